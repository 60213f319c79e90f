"""MirrorMaker 2's own series, three times: as Strimzi's JMX exporter rules name them, as those in AWS' and Redpanda's images
do, and as the rules of older guides do.

Labels are theirs: ``topic`` is the remote topic, ``source`` and ``target`` are aliases.
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["AWS", "AWS_CHECKPOINT", "AWS_SOURCE", "CHECKPOINT", "OLDER", "SOURCE", "STRIMZI"]

SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
CHECKPOINT = "kafka_connect_mirror_mirrorcheckpointconnector_"
AWS_SOURCE = "kafka_connect_mirror_source_connector_"
AWS_CHECKPOINT = "kafka_connect_mirror_checkpoint_connector_"
OLDER_SOURCE = "connect_mirror_mirrorsourceconnector_"
OLDER_CHECKPOINT = "connect_mirror_mirrorcheckpointconnector_"

_PARTITION = ("source", "target", "topic", "partition")
_GROUP = ("source", "target", "group", "topic", "partition")
_SPREAD = {"": "of the last batch", "_min": "least", "_max": "largest", "_avg": "mean"}
_AGE = "Measured when the target took the record; MirrorMaker 2 measures it at the fetch, a moment earlier."
_LATENCY = "Time from the newest timestamp of a batch to the target's answer; one measurement a second and partition."
_RECEIPTS = "Lane reports, from the target's answers."
_CHECKPOINT = (
    "From the group's commit on the source until its offset was written; MirrorMaker 2 counts from the checkpoint."
)


def _spread(prefix: str, labels: tuple[str, ...], name: str, what: str, origin: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(f"{prefix}{name}{ending}", MetricKind.GAUGE, labels, "ms", f"{what}, {which}.", origin)
        for ending, which in _SPREAD.items()
    )


def _counts(prefix: str, labels: tuple[str, ...]) -> tuple[Metric, ...]:
    gauge = MetricKind.GAUGE
    return (
        Metric(
            f"{prefix}record_count", gauge, labels, "records", "Records carried since the process began.", _RECEIPTS
        ),
        Metric(
            f"{prefix}record_rate", gauge, labels, "records/s", "Records a second, over the last minute.", _RECEIPTS
        ),
        Metric(
            f"{prefix}byte_count", gauge, labels, "bytes", "Bytes of the batches carried, as compressed.", _RECEIPTS
        ),
        Metric(f"{prefix}byte_rate", gauge, labels, "bytes/s", "Bytes a second, over the last minute.", _RECEIPTS),
    )


STRIMZI: tuple[Metric, ...] = (
    *_counts(SOURCE, _PARTITION),
    *_spread(SOURCE, _PARTITION, "record_age_ms", "Age of the records carried", _AGE),
    *_spread(SOURCE, _PARTITION, "replication_latency_ms", "Age of records when they are on the target", _LATENCY),
    *_spread(CHECKPOINT, _GROUP, "checkpoint_latency_ms", "Delay of a group's offset", _CHECKPOINT),
)
_AWS_PARTITION = ("destination", "topic", "partition")
AWS: tuple[Metric, ...] = (
    *_counts(AWS_SOURCE, _AWS_PARTITION),
    *_spread(AWS_SOURCE, _AWS_PARTITION, "record_age_ms", "Age of the records carried", _AGE),
    *_spread(AWS_SOURCE, _AWS_PARTITION, "replication_latency_ms", "Age of records on the target", _LATENCY),
    *_spread(AWS_CHECKPOINT, ("source", "target"), "checkpoint_latency_ms", "Delay of a group's offset", _CHECKPOINT),
)
"""``destination`` is the target. In ``target`` the rule leaves group, topic and partition behind the alias."""
OLDER: tuple[Metric, ...] = (
    *_counts(OLDER_SOURCE, _PARTITION[1:]),
    _spread(OLDER_SOURCE, _PARTITION[1:], "record_age_ms", "Age of the records carried", _AGE)[0],
    _spread(OLDER_SOURCE, _PARTITION[1:], "replication_latency_ms", "Age of records on the target", _LATENCY)[0],
    _spread(OLDER_CHECKPOINT, _GROUP, "checkpoint_latency_ms", "Delay of a group's offset", _CHECKPOINT)[0],
)
"""By the rules of guides for Kafka 2.4: no label ``source``. Two flows from different sources into one topic of one name on
one target would be one series there, so their figures are added up."""
