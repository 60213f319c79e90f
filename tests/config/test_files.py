"""Whole files as people have them: those of the seeds, and more shapes. Each loads, or is refused with its reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.errors import SettingsError

FILES = Path(__file__).parent / "files"

LOADS = {
    "seed_kafka_to_event_streams_mended": ["source->target"],
    "seed_active_passive": ["es-src->es-tgt"],
    "seed_custom_policy": ["msksource->mskdest", "mskdest->msksource"],
    "kip_382_active_active": ["us-west->us-east", "us-east->us-west"],
    "kafka_sample": ["A->B", "B->A"],
    "fan_out_tuned": ["hub->berlin", "hub->paris"],
    "aggregation_same_names": ["eu->hub", "us->hub", "ap->hub"],
    "chain_custom_separator": ["edge->region", "region->central"],
    "scram_over_tls": ["a->b"],
    "heartbeats_only": [],
}
"""File -> flows that carry records."""

REFUSED = {
    "seed_kafka_to_event_streams": {
        10: "target.sasl.jaas.config: it does not end with ';'; if it goes on in the next line",
        11: "username: no key of a mirror; if it belongs to the line before, end that line with a backslash",
    },
    "seed_connect_worker": {0: "a Kafka Connect worker's file, which names no flow; give it together with"},
    "jks_stores": {5: "a.ssl.truststore.location=/etc/kafka/truststore.jks: cannot be read: No such file"},
    "kerberos": {0: "a.sasl.mechanism: not given, so it is Kafka's default GSSAPI; GSSAPI needs the Python library"},
    "msk_iam": {
        5: "sasl.mechanism=AWS_MSK_IAM: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI",
        7: "sasl.client.callback.handler.class: cannot be honoured, because no Java class can be loaded",
    },
    "old_names": {6: "a->b.topics.blacklist: ", 7: "groups.blacklist: "},
    "wrong_levels": {
        6: "consumer.isolation.level: has no effect at the top level, as in MirrorMaker 2; write a.consumer.isolation",
        7: "producer.max.request.size: has no effect at the top level",
        8: "a->b.producer.max.request.size: MirrorMaker 2 gives it to the producer of offset syncs only",
        9: "exactly.once.source.support: has no effect at the top level, as in MirrorMaker 2; write b.exactly.once",
        10: "offset.flush.interval.ms: has no effect at the top level, as in MirrorMaker 2; write b.offset.flush",
        11: "use.defaults.from: has no effect at the top level, as in MirrorMaker 2; write a->b.use.defaults.from",
        12: "b.tasks.max: has no effect at a cluster's level, as in MirrorMaker 2; write a->b.tasks.max",
    },
    "mistakes": {
        9: "topics: a->hub and b->hub would both write to orders on hub. Take the topic out of one of them, or use Default",
        10: "refresh.topics.interval.second: not known; did you mean refresh.topics.interval.seconds?",
        11: "a->hub.tasks.max=four: not a whole number",
        12: "consumer.isolation.level: has no effect at the top level, as in MirrorMaker 2; write a.consumer.isolation",
        13: "b->hub.producer.acks: MirrorMaker 2 gives it to the producer of offset syncs only, never to the one that "
        "writes records; write hub.producer.acks or b->hub.producer.override.acks",
    },
    "transforms": {
        5: "a->b.transforms: cannot be honoured, because batches are carried unopened",
        6: "a->b.transforms.route.type: ",
        7: "a->b.transforms.route.topic.format: cannot be honoured",
    },
}
"""File -> line -> what is said of it; 0 for what is missing."""


def _load(name: str) -> Deployment:
    return load_deployment(FILES / f"{name}.properties")


@pytest.mark.parametrize("name", LOADS)
def test_these_run(name: str) -> None:
    assert [str(one.flow) for one in _load(name).flows] == LOADS[name]


@pytest.mark.parametrize("name", REFUSED)
def test_these_are_refused_with_file_line_key_and_reason(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _load(name)
    path = FILES / f"{name}.properties"
    places = {line: f"{path}:{line}" if line else str(path) for line in REFUSED[name]}
    expected = [f"{places[line]}: {text}" for line, text in REFUSED[name].items()]
    told = sorted(str(caught.value).splitlines(), key=lambda text: _line(text, path))
    assert len(told) == len(expected), told
    for text, start in zip(told, expected, strict=True):
        assert text.startswith(start)


def _line(text: str, path: Path) -> int:
    number = text.removeprefix(f"{path}:").partition(":")[0]
    return int(number) if number.isdigit() else 0


def test_every_file_is_looked_at() -> None:
    named = {*LOADS, *REFUSED, "seed_event_streams_by_environment"}
    assert {path.stem for path in FILES.glob("*.properties")} == named


def test_values_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_SOURCE_BROKERS", "KAFKA_TARGET_BROKERS", "KAFKA_TARGET_APIKEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        _load("seed_event_streams_by_environment")
    assert [one["line"] for one in caught.value.facts["problems"]] == [3, 4, 9]
    monkeypatch.setenv("KAFKA_SOURCE_BROKERS", "s1:9092,s2:9092")
    monkeypatch.setenv("KAFKA_TARGET_BROKERS", "t:9093")
    monkeypatch.setenv("KAFKA_TARGET_APIKEY", "hunter2-do-not-tell")
    deployment = _load("seed_event_streams_by_environment")
    [flow] = deployment.flows
    assert flow.source.bootstrap == (("s1", 9092), ("s2", 9092))
    assert "password=hunter2-do-not-tell;" in flow.target.client["sasl.jaas.config"]
    assert "hunter2" not in repr(deployment)


def test_the_active_passive_pair_of_the_fourth_seed() -> None:
    [flow] = _load("seed_active_passive").flows
    assert (flow.naming.policy, flow.naming.separator) == ("identity", "")
    assert (flow.topics, flow.topics_exclude) == ("items, store.inventory, items.inventory", ".apicurio")
    assert (flow.replication_factor, flow.internal_replication_factor) == (3, 3)
    assert (flow.topic_sync.acls_enabled, flow.topic_sync.refresh_interval_s) == (False, 10)
    sync = flow.group_sync
    assert (sync.offsets_enabled, sync.offsets_interval_s, sync.checkpoints_interval_s) == (True, 5, 5)


def test_the_policy_of_the_fifth_seed_keeps_names_without_loops() -> None:
    assert {flow.naming.policy for flow in _load("seed_custom_policy").flows} == {"same-name"}


def test_fan_out() -> None:
    berlin, paris = _load("fan_out_tuned").flows
    assert (berlin.transactions, paris.transactions) == (False, True)
    assert (berlin.topics, paris.topics) == (".*", r"billing\..*")
    assert berlin.read_committed
    assert (berlin.client_rack, berlin.limits.fetch_bytes_max) == ("rack-a", 16_777_216)
    assert paris.limits.produce_request_bytes_max == 4_194_304


def test_one_login_for_a_cluster_is_told() -> None:
    deployment = _load("scram_over_tls")
    assert [(remark.kind, remark.key) for remark in deployment.remarks] == [("warning", "b.admin.sasl.jaas.config")]
    assert "pb" in deployment.flows[0].target.client["sasl.jaas.config"]


def test_the_wrong_levels_are_warnings_with_lenient() -> None:
    deployment = load_deployment(FILES / "wrong_levels.properties", lenient=True)
    assert len(deployment.remarks) == 7
    assert (deployment.flows[0].transactions, deployment.flows[0].tasks_max) == (False, 1)


def test_a_key_given_twice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "twice.properties"
    path.write_text((FILES / "kafka_sample.properties").read_text() + "replication.factor = 2\n")
    deployment = load_deployment(path)
    [remark] = [one for one in deployment.remarks if one.kind == "warning"]
    assert str(remark) == f"{path}:18: replication.factor: given twice; this one counts, not {path}:10"
    assert deployment.flows[0].replication_factor == 2


def test_the_first_seeds_factor_of_internal_topics_is_answered_with_the_keys_that_count() -> None:
    deployment = _load("seed_kafka_to_event_streams_mended")
    [note] = [one for one in deployment.remarks if one.key == "internal.topic.replication.factor"]
    assert note.kind == "note"
    for name in ("offset-syncs", "checkpoints", "heartbeats"):
        assert f"{name}.topic.replication.factor" in note.text


def test_heartbeats_only_is_what_mirror_maker_does_with_it_and_it_is_told() -> None:
    deployment = _load("heartbeats_only")
    assert [str(one.flow) for one in deployment.heartbeats_only] == ["a->b", "b->a"]
    [remark] = deployment.remarks
    assert (remark.kind, remark.key) == ("warning", "a->b.enabled")
