"""Each alert of ``ops/`` by its real cause: real Prometheus and Alertmanager, flows in trouble, a webhook for Slack.

One process with several flows, as ``run`` has them but with lanes in plain processes, and a second process that is killed.
Rules are those of ``ops/`` with shorter times (``lab.monitoring.in_haste``). The third cluster speaks TLS, asks who the
mirror is, and stands still at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mirrorspark.config.load import load_deployment
from mirrorspark.lab.clients import admin, consumer, create_topic, delete_records, delete_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flows_without_spark import FlowsWithoutSpark
from mirrorspark.lab.mirror import Mirror
from mirrorspark.lab.monitoring import Monitoring, free_ports
from mirrorspark.lab.plain_records import alter_topic, write_values
from mirrorspark.names import Flow
from mirrorspark.observe import flow_status
from mirrorspark.settings import ClusterSettings, FlowSettings, GroupSync, Heartbeats, TopicSync, parse_bootstrap

OPS = Path(__file__).parents[2] / "ops"
PATIENCE_S = 180.0
TIMES = {"for_s": 1, "window_s": 10, "threshold_s": 6}
LANE_SILENT_S = 8.0
ENDS_SOON_DAYS = 5
HEARTBEATS = "heartbeats"
SILENT = Heartbeats(emitted=False, replicated=False)
QUICK = TopicSync(refresh_interval_s=1.0, configs_enabled=False, acls_enabled=False)
NO_GROUPS = GroupSync(checkpoints_enabled=False, offsets_enabled=False)
NEVER_BY_SLOWNESS = {
    *("MirrorDataGap", "MirrorTopicReset", "MirrorPartitionWaits", "MirrorGroupBlocked", "MirrorSettingsDrift"),
}
"""Others may fire here on a machine that is overloaded, since times are so short."""
OF_STRIMZI = 'strimzi_io_kind=~"KafkaMirrorMaker2",strimzi_io_cluster="mirrorspark"'
_SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
PANELS = [
    *(
        f"{name}{{{OF_STRIMZI}}}"
        for name in (
            *(f"{_SOURCE}{rate}_rate" for rate in ("record", "byte")),
            *(
                f"{_SOURCE}{what}{of}"
                for what in ("record_age_ms", "replication_latency_ms")
                for of in ("", "_avg", "_min", "_max")
            ),
            "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms",
            *(f"kafka_connect_coordinator_assigned_{what}" for what in ("connectors", "tasks")),
            *(f"kafka_connect_worker_{what}" for what in ("connector_count", "task_count", "rebalance_rebalancing")),
            *("kafka_consumer_incoming_byte_total", "kafka_producer_outgoing_byte_total"),
        )
    ),
    f'kafka_consumer_fetch_manager_records_lag{{{OF_STRIMZI},clientid=~".*replication-consumer\\""}}',
    'kafka_connect_connector_task_offset_commit_avg_time_ms{connector=~"\\".*SourceConnector\\"",task=~"[0-9]+"}',
    'kafka_connect_source_task_source_record_active_count{connector=~"\\".*SourceConnector\\""}',
    'kafka_producer_buffer_available_bytes{clientid=~"\\".*SourceConnector-[0-9]+\\""}',
    'kafka_connect_connector_task_metrics_offset_commit_avg_time_ms{connector=~".*SourceConnector",task=~"[0-9]+"}',
    'kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id=~".*replication-consumer"}',
    "kafka_producer_producer_metrics_buffer_available_bytes",
]
"""What the panels of Strimzi's dashboards select, but for the JVM's (``test_start_before_spark``) and cAdvisor's."""


# -- a cluster that speaks TLS -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Papers:
    """An authority, a broker's certificate that ends soon, and the mirror's own."""

    authority: Path
    broker: Path
    mirror: Path

    @classmethod
    def made(cls, folder: Path) -> Papers:
        authority, key = _certificate("authority", days=400)
        papers = cls(folder / "authority.pem", folder / "broker.pem", folder / "mirror.pem")
        papers.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        for path, name, days in ((papers.broker, "broker", ENDS_SOON_DAYS), (papers.mirror, "mirror", 300)):
            one, own_key = _certificate(name, days=days, issuer=(authority, key))
            private = own_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            path.write_bytes(private + one.public_bytes(serialization.Encoding.PEM))
        return papers

    @property
    def server_settings(self) -> dict[str, str]:
        return {
            "listener.security.protocol.map": "CLIENT:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.client.auth": "requested",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            # The lab shows no certificate; the broker shows its own to itself.
            "super.users": "User:ANONYMOUS;User:CN=broker",
        }

    @property
    def lab_client(self) -> dict[str, str]:
        return {"security.protocol": "ssl", "ssl.ca.location": str(self.authority)}

    @property
    def mirror_client(self) -> dict[str, str]:
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.mirror),
        }


def _certificate(
    name: str, *, days: int, issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    )
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


# -- the world ---------------------------------------------------------------------------------------------------------


@dataclass
class World:
    source: ClusterOfBrokers
    target: ClusterOfBrokers
    guarded: ClusterOfBrokers
    papers: Papers
    topic: str

    def alias(self, name: str) -> str:
        return f"alert-{name}-{os.getpid()}"

    def settings(
        self, name: str, *, source_guarded: bool = False, target_guarded: bool = False, **changes: Any
    ) -> FlowSettings:
        flow = Flow(self.alias(name), self.alias("target"))
        ends = []
        for alias, is_guarded, plain in (
            (flow.source, source_guarded, self.source),
            (flow.target, target_guarded, self.target),
        ):
            bootstrap = parse_bootstrap((self.guarded if is_guarded else plain).bootstrap, alias)
            ends.append(ClusterSettings(alias, bootstrap, self.papers.mirror_client if is_guarded else {}))
        given = {"topic_sync": QUICK, "heartbeats": SILENT, "group_sync": NO_GROUPS, "replication_factor": 1, **changes}
        return FlowSettings(flow, *ends, **{"topics": f"{self.topic}-{name}.*", "tasks_max": 1, **given})

    def create(self, name: str, *, guarded: bool = False) -> str:
        topic = f"{self.topic}-{name}"
        if guarded:
            create_topic(self.guarded.bootstrap, topic, client=self.guarded_admin)
        else:
            create_topic(self.source.bootstrap, topic)
        return topic

    @property
    def guarded_admin(self) -> Any:
        return admin(self.guarded.bootstrap, self.papers.lab_client)

    def forbid(self, topic: str, operation: AclOperation) -> None:
        """Everything on the topic is allowed to everybody, but this."""
        rules = [(AclOperation.ALL, AclPermissionType.ALLOW), (operation, AclPermissionType.DENY)]
        bindings = [
            AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*", one, permission)
            for one, permission in rules
        ]
        client = self.guarded_admin
        for answer in client.create_acls(bindings).values():
            answer.result(60)

    def write(self, topic: str, count: int = 1, *, guarded: bool = False) -> None:
        cluster, client = (self.guarded, self.papers.lab_client) if guarded else (self.source, {})
        write_values(cluster.bootstrap, topic, [b"x" * 100] * count, settings=client)


@pytest.fixture
def world(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> Iterator[World]:
    missing = [name for name in ("prometheus", "prometheus-alertmanager") if shutil.which(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"not installed: {missing} (Debian's packages)")
    papers = Papers.made(tmp_path)
    with ClusterOfBrokers("guarded", settings=papers.server_settings, client=papers.lab_client) as guarded:
        yield World(source_cluster, target_cluster, guarded, papers, topic_name)


@contextmanager
def written_on(write: Callable[[], None]) -> Iterator[None]:
    """Again and again, by a thread, until the end."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.wait(0.5):
            write()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


# -- what must be delivered --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """One alert: labels besides name and severity, and its summary as a pattern."""

    name: str
    severity: str
    labels: tuple[tuple[str, str], ...]
    summary: str

    def fits(self, alert: dict[str, Any]) -> bool:
        labels = alert["labels"]
        return labels["alertname"] == self.name and all(labels.get(key) == value for key, value in self.labels)


def expected(name: str, severity: str, summary: str, **labels: object) -> Expected:
    return Expected(name, severity, tuple((key, str(value)) for key, value in labels.items()), summary)


def wait_delivered(monitoring: Monitoring, wanted: list[Expected]) -> None:
    def missing() -> list[Expected]:
        sent = monitoring.delivered()
        return [one for one in wanted if not any(map(one.fits, sent))]

    try:
        wait_for(lambda: not missing(), "the alerts", PATIENCE_S, 0.2)
    except Exception as error:
        raise AssertionError(
            f"not delivered: {missing()}\nknown to Prometheus: {monitoring.active()}\n"
            f"delivered: {[alert['labels'] for alert in monitoring.delivered()]}"
        ) from error


def check_words(monitoring: Monitoring, wanted: list[Expected], rules: dict[str, Any]) -> None:
    """Labels and words of each, on both ways."""
    sent, slack = monitoring.delivered(), "\n".join(monitoring.slack_texts())
    for one in wanted:
        found = [alert for alert in sent if one.fits(alert)]
        labels, words = found[0]["labels"], found[0]["annotations"]
        assert labels["severity"] == one.severity
        assert re.fullmatch(one.summary, words["summary"]), (one, words)
        assert words["description"] == rules[one.name]["annotations"]["description"]
        assert re.search(one.summary, slack), (one, slack)
        assert words["description"] in slack
        assert len({alert["startsAt"] for alert in found}) == len(found), "one firing is told once"


def check_once(monitoring: Monitoring, wanted: list[Expected], since: datetime) -> None:
    """From its cause on; a slow machine may have been behind before."""
    for one in wanted:
        starts = [datetime.fromisoformat(alert["startsAt"]) for alert in monitoring.delivered() if one.fits(alert)]
        assert sum(at >= since for at in starts) <= 1, (one, starts)


# -- the journey -------------------------------------------------------------------------------------------------------


def test_every_alert_fires_once_by_its_real_cause(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(flow_status, "LANE_SILENT_S", LANE_SILENT_S)
    group = f"{world.topic}-group"
    paused, gap, reset = (world.create(f"main-{name}") for name in ("paused", "gap", "reset"))
    world.create("slots-a")
    world.create("slots-b")
    drifting, denied = world.create("drift"), world.create("denied", guarded=True)
    groups = GroupSync(groups=group, offsets_enabled=True, checkpoints_replication_factor=1)
    main = world.settings("main", group_sync=groups)
    slots = world.settings("slots", tasks_max=2)
    drift = world.settings(
        "drift", target_guarded=True, topic_sync=replace(QUICK, configs_enabled=True, configs_interval_s=1.0)
    )
    cut_off = world.settings("denied", source_guarded=True)
    beats = world.settings("beats", enabled=False, heartbeats=Heartbeats(replicated=False, replication_factor=1))
    wrong = Flow(world.alias("wrong"), main.flow.target)
    file = {"clusters": f"{wrong.source}, {main.flow.source}, {wrong.target}", f"{wrong}.topics": "("}
    file |= {f"{alias}.bootstrap.servers": "localhost:1" for alias in file["clusters"].split(", ")}
    file |= {f"{flow}.enabled": "true" for flow in (wrong, main.flow)}
    (tmp_path / "wrong.properties").write_text("".join(f"{key} = {value}\n" for key, value in file.items()))
    refused = load_deployment(tmp_path / "wrong.properties", apart=True).refused
    assert list(refused) == [wrong]
    rules = {
        rule["alert"]: rule
        for part in yaml.safe_load((OPS / "prometheus" / "mirrorspark.rules.yml").read_text())["groups"]
        for rule in part["rules"]
    }

    def of(settings: FlowSettings) -> str:
        return str(settings.flow)

    with FlowsWithoutSpark(folder=tmp_path / "flows") as flows, beats_alone(world, tmp_path) as (mirror, port):
        flows.begin(main, slots, drift, cut_off, beats, slots={slots.flow: 1})
        for topic in (paused, gap, reset):
            world.write(topic, 5)
        commit(world, group, gap, 3)
        wait_for(lambda: flows.status(main.flow).records >= 15, "the first records", PATIENCE_S)
        wait_for(lambda: flows.status(beats.flow).heartbeats_sent > 0, "a heartbeat", PATIENCE_S)
        world.forbid(f"{drift.flow.source}.{drifting}", AclOperation.ALTER_CONFIGS)
        wait_for(lambda: is_served(port), "the metrics of the second process", PATIENCE_S)
        targets = [f"127.0.0.1:{flows.port}", f"127.0.0.1:{port}"]
        with Monitoring(tmp_path / "monitoring", OPS, targets, times=TIMES) as monitoring:
            at_start = [
                expected("MirrorLaneMissing", "page", f"{of(slots)}: 1 lanes do not report", flow=of(slots)),
                *(
                    expected(
                        "MirrorCertificateEnds",
                        "warning",
                        f"{of(one)}: broker of {cluster} ends in 4d 23h .*",
                        flow=of(one),
                        cluster=cluster,
                        certificate="broker",
                    )
                    for one, cluster in ((drift, drift.flow.target), (cut_off, cut_off.flow.source))
                ),
            ]
            wait_delivered(monitoring, at_start)
            for panel in PANELS:
                wait_for(lambda asked=panel: bool(monitoring.query(asked)), panel, PATIENCE_S)  # type: ignore[misc]
            known = {labels["alertname"] for state, labels in monitoring.active() if state == "firing"}
            assert not known & NEVER_BY_SLOWNESS, "nothing fires without its cause"

            begun_at = datetime.now(UTC)
            flows.refuse(refused)
            flows.pause(main.flow, f"{main.flow.source}.{paused}")
            world.write(paused, 3)
            for pid in flows.lane_pids(main.flow):
                os.kill(pid, signal.SIGSTOP)
            try:
                # A fetch that waits on the source is answered with the first of them.
                world.write(gap, 10)
                world.write(gap, 10)
                delete_records(world.source.bootstrap, gap, {0: 20})
            finally:
                for pid in flows.lane_pids(main.flow):
                    os.kill(pid, signal.SIGCONT)
            delete_topic(world.source.bootstrap, reset)
            create_topic(world.source.bootstrap, reset)
            world.write(reset, 5)
            alter_topic(world.source.bootstrap, drifting, {"retention.bytes": "123456789"})
            world.forbid(denied, AclOperation.READ)
            mirror.kill_driver()
            guarded = [
                expected(
                    "MirrorSilentWhileSourceMoves",
                    "page",
                    f"{of(cut_off)}: {cut_off.flow.source}.{denied} receives nothing .*",
                    flow=of(cut_off),
                    topic=f"{cut_off.flow.source}.{denied}",
                ),
                expected("MirrorPartitionWaits", "warning", f"{of(cut_off)}: 1 partitions wait", flow=of(cut_off)),
                expected("MirrorSettingsDrift", "warning", f"{of(drift)}: settings of 1 topics differ", flow=of(drift)),
            ]
            others = [
                expected("MirrorDown", "page", f"127.0.0.1:{port} gives no metrics", instance=f"127.0.0.1:{port}"),
                expected("MirrorFlowFailed", "page", f"{wrong} is failed", flow=wrong, state="failed"),
                expected("MirrorLagOverObjective", "page", f"{of(main)} is .+s behind", flow=of(main)),
                expected("MirrorDataGap", "page", f"{of(main)}: records were gone on .*", flow=of(main)),
                expected("MirrorTopicReset", "page", f"{of(main)}: topic.recreated", flow=of(main)),
                expected("MirrorHeartbeatOld", "warning", f"{of(beats)}: no heartbeat for .+s", flow=of(beats)),
                expected("MirrorGroupBlocked", "warning", f"{of(main)}: 1 groups cannot be .*", flow=of(main)),
            ]
            of_standstill = [
                expected("MirrorFlowFailed", "page", f"{of(drift)} is silent", flow=of(drift), state="silent"),
                expected("MirrorLagNotKnown", "warning", f"{of(cut_off)}: the source has not .*", flow=of(cut_off)),
                expected(
                    "MirrorSyncStale",
                    "warning",
                    f"{of(cut_off)}: topics last kept .*",
                    flow=of(cut_off),
                    sync="topics",
                ),
            ]
            with heartbeats_refused(world), member_on_target(world, group, gap, f"{main.flow.source}.{gap}"):
                with written_on(lambda: world.write(denied, guarded=True)):
                    wait_delivered(monitoring, guarded)
                stood_still_at = datetime.now(UTC)
                world.guarded.broker(1).pause()
                wait_delivered(monitoring, [*others, *of_standstill])
            every = [*at_start, *guarded, *others, *of_standstill]
            assert {one.name for one in every} == set(rules), "every alert has its cause here"
            check_words(monitoring, every, rules)
            ((_, worst),) = monitoring.query(f'min_over_time(up{{instance="{targets[0]}"}}[30m])')
            if worst == 1:  # a scrape that failed would end every alert, and begin it anew
                check_once(monitoring, at_start, datetime.min.replace(tzinfo=UTC))
                check_once(monitoring, [*guarded, *others], begun_at)
                check_once(monitoring, of_standstill, stood_still_at)


@contextmanager
def beats_alone(world: World, folder: Path) -> Iterator[tuple[Mirror, int]]:
    """A second process, of ``mirrorspark run``: heartbeats alone, so that it has no Spark. With the port of its metrics."""
    pair = f"{world.alias('alone')}->{world.alias('target')}"
    source, target = pair.split("->")
    (port,) = free_ports(1)
    properties = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": world.source.bootstrap,
        f"{target}.bootstrap.servers": world.target.bootstrap,
        f"{pair}.enabled": "false",
        f"{target}->{source}.emit.heartbeats.enabled": "false",
        "heartbeats.topic.replication.factor": "1",
    }
    with Mirror(properties, folder=folder / "alone", arguments=["--metrics", f"127.0.0.1:{port}"]) as mirror:
        yield mirror, port


def is_served(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10.0).status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def heartbeats_refused(world: World) -> Iterator[None]:
    """The target takes no heartbeat any more: not even one fits."""
    alter_topic(world.target.bootstrap, HEARTBEATS, {"max.message.bytes": "1"})
    try:
        yield
    finally:
        alter_topic(world.target.bootstrap, HEARTBEATS, {"max.message.bytes": "1048588"})


@contextmanager
def member_on_target(world: World, group: str, topic: str, remote: str) -> Iterator[None]:
    """Somebody reads on the target in a group that goes on on the source."""
    member = consumer(world.target.bootstrap, {"group.id": group, "auto.offset.reset": "earliest"})
    member.subscribe([remote])
    try:
        wait_for(lambda: member.poll(0.1) is not None or bool(member.assignment()), "the member", PATIENCE_S)
        commit(world, group, topic, 22)
        yield
    finally:
        member.close()


def commit(world: World, group: str, topic: str, offset: int) -> None:
    reader = consumer(world.source.bootstrap, {"group.id": group})
    reader.commit(offsets=[Place(topic, 0, offset)], asynchronous=False)
    reader.close()
