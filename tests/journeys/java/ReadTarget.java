import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * What MirrorMaker 2's own client library reads on a target: bootstrap servers, the source's alias, the alias of a cluster
 * behind it, groups. One fact a line.
 */
public class ReadTarget {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
        String source = arguments[1];
        String far = arguments[2];
        System.out.println("upstream " + String.join(",", new TreeSet<>(RemoteClusterUtils.upstreamClusters(settings))));
        System.out.println("hops " + RemoteClusterUtils.replicationHops(settings, source));
        System.out.println("far " + RemoteClusterUtils.replicationHops(settings, far));
        System.out.println("nowhere " + RemoteClusterUtils.replicationHops(settings, "no-such-cluster"));
        System.out.println("checkpoints " + String.join(",", new TreeSet<>(RemoteClusterUtils.checkpointTopics(settings))));
        System.out.println("heartbeats " + String.join(",", new TreeSet<>(RemoteClusterUtils.heartbeatTopics(settings))));
        try (MirrorClient client = new MirrorClient(settings)) {
            System.out.println("remote " + String.join(",", new TreeSet<>(client.remoteTopics(source))));
            System.out.println("all " + String.join(",", new TreeSet<>(client.remoteTopics())));
            System.out.println("clients " + client.upstreamClusters().equals(RemoteClusterUtils.upstreamClusters(settings)));
        }
        for (int i = 3; i < arguments.length; i++) {
            Map<TopicPartition, OffsetAndMetadata> offsets =
                RemoteClusterUtils.translateOffsets(settings, source, arguments[i], Duration.ofSeconds(60));
            Map<String, OffsetAndMetadata> sorted = new TreeMap<>();
            offsets.forEach((at, offset) -> sorted.put(at.topic() + " " + at.partition(), offset));
            sorted.forEach((at, offset) ->
                System.out.println("offset " + at + " " + offset.offset() + " " + offset.metadata()));
        }
        System.exit(0);
    }
}
