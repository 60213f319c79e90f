"""Section 1 of the MirrorMaker 2 reference, rule by rule: what a key means at which level, and what is an error.

Each vector was tried on Kafka 4.3.1's own MirrorMakerConfig where the reference leaves a question open.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.document import Document
from mirrorspark.config.levels import Levels
from mirrorspark.config.load import parse_deployment, working_flows
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.settings import FlowSettings

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "a:1",
    "b.bootstrap.servers": "b:1",
    "a->b.enabled": "true",
}
ALIASES = ["a", "b", "c"]


def _flow(**changes: str) -> FlowSettings:
    return _of(changes)


def _of(changes: dict[str, str]) -> FlowSettings:
    [flow] = parse_deployment({**BASE, **changes}).flows
    return flow


def _refused(changes: dict[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        parse_deployment({**BASE, **changes})
    return caught.value


# -- rule 1: security names go down to each client ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "source", "target"),
    [
        ({}, None, None),
        ({"sasl.mechanism": "M0"}, "M0", "M0"),
        ({"a.sasl.mechanism": "M1"}, "M1", None),
        ({"sasl.mechanism": "M0", "a.sasl.mechanism": "M1"}, "M1", "M0"),
        ({"a.sasl.mechanism": "M1", "a.consumer.sasl.mechanism": "M2"}, "M2", None),
        ({"a.sasl.mechanism": "M1", "a.producer.sasl.mechanism": "M2"}, "M1", None),  # a is not written to
        ({"b.sasl.mechanism": "M1", "b.producer.sasl.mechanism": "M2"}, None, "M2"),
        ({"b.consumer.sasl.mechanism": "M2", "b.sasl.mechanism": "M1"}, None, "M1"),
        ({"sasl.mechanism": "M0", "b.producer.sasl.mechanism": "M2"}, "M0", "M2"),
        ({"a->b.source.consumer.sasl.mechanism": "M3", "a.consumer.sasl.mechanism": "M2"}, "M3", None),
        ({"a->b.source.cluster.sasl.mechanism": "M4"}, "M4", None),
        ({"a->b.target.cluster.sasl.mechanism": "M4"}, None, "M4"),
        ({"a->b.consumer.sasl.mechanism": "M5"}, "M5", None),
        # A cluster's value has become source.consumer. by then, and beats what the flow says for either side.
        ({"a->b.source.cluster.sasl.mechanism": "M4", "a.sasl.mechanism": "M1"}, "M1", None),
        ({"a->b.consumer.sasl.mechanism": "M5", "sasl.mechanism": "M0"}, "M0", "M0"),
        ({"a->b.producer.override.sasl.mechanism": "M6", "b.producer.sasl.mechanism": "M2"}, None, "M6"),
    ],
)
def test_rule_1_security_fills_what_is_missing(changes: dict[str, str], source: str | None, target: str | None) -> None:
    flow = _of(changes)
    assert flow.source.client.get("sasl.mechanism") == source
    assert flow.target.client.get("sasl.mechanism") == target


# -- rule 2: connector keys --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "topics"),
    [
        ({}, ".*"),
        ({"topics": "t0"}, "t0"),
        ({"a->b.topics": "t1"}, "t1"),
        ({"topics": "t0", "a->b.topics": "t1"}, "t1"),
        ({"topics": "t0", "b->a.topics": "t1"}, "t0"),
        ({"topics": "t0", "a->b.topics": "t1", "a->b.MirrorSourceConnector.topics": "t2"}, "t2"),
        ({"topics": "t0", "a->b.topics": ""}, ""),
    ],
)
def test_rule_2_the_flow_overrides_all(changes: dict[str, str], topics: str) -> None:
    assert _of(changes).topics == topics


@pytest.mark.parametrize(
    ("changes", "is_committed"),
    [
        ({}, False),
        ({"a.consumer.isolation.level": "read_committed"}, True),
        ({"b.consumer.isolation.level": "read_committed"}, False),
        ({"a->b.consumer.isolation.level": "read_committed"}, True),
        ({"a->b.source.consumer.isolation.level": "read_committed"}, True),
        ({"a->b.target.consumer.isolation.level": "read_committed"}, False),
        ({"a->b.consumer.isolation.level": "read_committed", "a.consumer.isolation.level": "read_uncommitted"}, False),
        (
            {
                "a->b.consumer.isolation.level": "read_uncommitted",
                "a->b.source.consumer.isolation.level": "read_committed",
            },
            True,
        ),
    ],
)
def test_rule_2_source_consumer_beats_consumer(changes: dict[str, str], is_committed: bool) -> None:
    assert _of(changes).read_committed is is_committed


@pytest.mark.parametrize(
    ("loser", "winner", "remedy"),
    [
        ("a->b.consumer.isolation.level", "a.consumer.isolation.level", "a->b.source.consumer.isolation.level"),
        ("a->b.source.cluster.sasl.mechanism", "a.sasl.mechanism", "a->b.source.consumer.sasl.mechanism"),
        ("a->b.target.cluster.sasl.mechanism", "sasl.mechanism", "a->b.producer.override.sasl.mechanism"),
    ],
)
def test_rule_2_a_flows_value_that_loses_to_a_clusters_is_told(loser: str, winner: str, remedy: str) -> None:
    [remark] = parse_deployment({**BASE, loser: "read_committed", winner: "read_uncommitted"}).remarks
    assert (remark.kind, remark.key) == ("warning", loser)
    assert remark.text == f"has no effect: {winner} wins, as in MirrorMaker 2; write {remedy}"
    assert parse_deployment({**BASE, loser: "read_committed", winner: "read_committed"}).remarks == []


def test_rule_2_enabled_is_false_if_absent() -> None:
    properties = {key: value for key, value in BASE.items() if key != "a->b.enabled"}
    deployment = parse_deployment({**properties, "b->a.enabled": "true"})
    assert [str(one.flow) for one in deployment.flows] == ["b->a"]
    assert [(str(one.flow), one.enabled) for one in deployment.heartbeats_only] == [("a->b", False)]


# -- rule 3: worker keys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ({}, 3),
        ({"offset.storage.replication.factor": "1"}, 1),
        ({"b.offset.storage.replication.factor": "2"}, 2),
        ({"offset.storage.replication.factor": "1", "b.offset.storage.replication.factor": "2"}, 2),
        ({"a.offset.storage.replication.factor": "2"}, 3),  # for the flows into a
    ],
)
def test_rule_3_a_worker_is_its_targets(changes: dict[str, str], factor: int) -> None:
    assert _of(changes).internal_replication_factor == factor


@pytest.mark.parametrize(("changes", "is_on"), [({"b.exactly.once.source.support": "enabled"}, True), ({}, False)])
def test_rule_3_exactly_once_at_the_target(changes: dict[str, str], is_on: bool) -> None:
    assert _of(changes).transactions is is_on


# -- rule 4: which flows there are -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "flows"),
    [
        ({}, "a->b a->c b->a b->c c->a c->b"),
        ({"emit.heartbeats.enabled": "false"}, ""),
        ({"a->b.emit.heartbeats.enabled": "false", "c->a.emit.heartbeats.enabled": "false"}, "a->c b->a b->c c->b"),
        ({"emit.heartbeats.enabled": "false", "a->b.emit.heartbeats.enabled": "true"}, "a->b"),
        ({"emit.heartbeats.enabled": "false", "b->c.enabled": "true"}, "b->c"),
        ({"a->b.emit.heartbeats.enabled": "false", "a->b.enabled": "true"}, "a->b a->c b->a b->c c->a c->b"),
    ],
)
def test_rule_4_every_pair_with_heartbeats_or_enabled(changes: dict[str, str], flows: str) -> None:
    assert " ".join(str(flow) for flow in working_flows(changes, ALIASES)) == flows


def test_rule_4_a_pair_without_records_has_heartbeats_only() -> None:
    deployment = parse_deployment({**BASE, "emit.heartbeats.interval.seconds": "7"})
    [other] = deployment.heartbeats_only
    assert (str(other.flow), other.enabled, other.heartbeats.interval_s) == ("b->a", False, 7)
    assert other.target.bootstrap == (("a", 1),)


# -- rules 5 and 6: what MirrorMaker 2 drops without a word ------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("offset.flush.interval.ms", "b.offset.flush.interval.ms"),
        ("consumer.isolation.level", "a.consumer.isolation.level"),
        ("producer.acks", "b.producer.acks"),
        ("admin.retries", "a.admin.retries"),
        ("use.defaults.from", "a->b.use.defaults.from"),
        ("exactly.once.source.support", "b.exactly.once.source.support"),
        ("a->b.exactly.once.source.support", "b.exactly.once.source.support"),
        ("group.id", "b.group.id"),
        ("enabled", "a->b.enabled"),
        ("b.tasks.max", "a->b.tasks.max"),
        ("b.replication.factor", "replication.factor for all"),
        ("b.replication.policy.separator", "replication.policy.separator for all"),
        ("a.client.rack", "a.consumer.client.rack"),
        ("client.rack", "a.consumer.client.rack"),
        ("a->b.fetch.max.bytes", "a.consumer.fetch.max.bytes"),
        ("b.linger.ms", "b.producer.linger.ms"),
        ("client.id", "b.client.id"),
        ("a->b.security.protocol", "a.security.protocol or b.security.protocol"),
        ("a->b.source.cluster.isolation.level", "a.consumer.isolation.level"),
        ("a->b.consumer.override.isolation.level", "a->b.consumer.isolation.level"),
        ("producer.override.acks", "b.producer.acks"),
    ],
)
def test_rules_5_and_6_the_wrong_level_is_an_error_with_the_right_one(key: str, remedy: str) -> None:
    error = _refused({key: "1"})
    assert error.facts["key"] == key
    assert str(error).startswith(f"{key}: ")
    assert "MirrorMaker 2" in str(error)
    assert remedy in str(error)
    [remark] = parse_deployment({**BASE, key: "1"}, lenient=True).remarks
    assert remark.kind == "warning"
    assert remark.text.endswith("It is ignored")


@pytest.mark.parametrize("prefix", ["producer", "source.producer", "target.producer", "MirrorSourceConnector.producer"])
def test_rule_6_a_flows_producer_is_that_of_offset_syncs(prefix: str) -> None:
    error = _refused({f"a->b.{prefix}.max.request.size": "1"})
    assert "offset syncs only" in str(error)
    assert "b.producer.max.request.size or a->b.producer.override.max.request.size" in str(error)


def test_rule_6_the_right_ways_to_the_data_producer() -> None:
    assert _of({"b.producer.max.request.size": "7"}).limits.produce_request_bytes_max == 7
    override = {"a->b.producer.override.max.request.size": "8", "b.producer.max.request.size": "7"}
    assert _of(override).limits.produce_request_bytes_max == 8


def test_rule_6_use_defaults_from_at_the_flow() -> None:
    assert _of({"a->b.use.defaults.from": "source"}).topic_sync.use_defaults_from == "source"


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("topic.exclude", "topics.exclude"),
        ("a->b.topic", "a->b.topics"),
        ("a.bootstrap.server", "a.bootstrap.servers"),
        ("a.consumer.isolation.leve", "a.consumer.isolation.level"),
        ("a->b.consumer.auto.offset.rest", "a->b.consumer.auto.offset.reset"),
        ("a->b.MirrorSourceConnector.task.max", "a->b.MirrorSourceConnector.tasks.max"),
        ("b.sasl.mechanisms", "b.sasl.mechanism"),
        ("sync.topics.acls.enabled", "sync.topic.acls.enabled"),
    ],
)
def test_a_misspelt_key_is_an_error_with_the_nearest_name(key: str, near: str) -> None:
    error = _refused({key: "x"})
    assert error.facts["key"] == key
    assert str(error) == f"{key}: not known; did you mean {near}?"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("topics.blacklist", "topics.exclude"),
        ("a->b.topics.blacklist", "a->b.topics.exclude"),
        ("groups.blacklist", "groups.exclude"),
        ("config.properties.blacklist", "config.properties.exclude"),
    ],
)
def test_section_1_3_removed_keys_are_refused_with_the_new_name(old: str, new: str) -> None:
    error = _refused({old: "x"})
    assert error.facts["key"] == old
    assert str(error).endswith(f"write {new}")
    with pytest.raises(SettingsError):
        parse_deployment({**BASE, old: "x"}, lenient=True)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("a->d.enabled", "clusters = a, b"), ("east->b.topics", "clusters = a, b"), ("a->a.enabled", "clusters = a, b")],
)
def test_a_flow_between_clusters_that_are_not_there(key: str, hint: str) -> None:
    assert hint in str(_refused({key: "true"}))


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("primry.bootstrap.servers", "there is no cluster primry; clusters = primary, b. Did you mean primary?"),
        ("c.bootstrap.servers", "there is no cluster c; clusters = primary, b"),
        ("c.d.consumer.client.rack", "there is no cluster c.d; clusters = primary, b"),
        ("backup.sasl.mechanism", "there is no cluster backup; clusters = primary, b"),
    ],
)
def test_a_cluster_that_is_not_there(key: str, told: str) -> None:
    properties = {name.replace("a", "primary", 1) if name[0] == "a" else name: text for name, text in BASE.items()}
    with pytest.raises(SettingsError) as caught:
        parse_deployment({**properties, "clusters": "primary, b", key: "h:1"})
    assert str(caught.value) == f"{key}: {told}"


# -- keys of 1.3 to 1.5 and 1.7 ----------------------------------------------------------------------------------------


def test_sections_1_3_to_1_7_defaults() -> None:
    flow = _flow()
    assert (flow.topics, flow.topics_exclude) == (".*", r".*[\-\.]internal, .*\.replica, __.*")
    assert (flow.replication_factor, flow.tasks_max, flow.transactions) == (2, 1, False)
    sync = flow.topic_sync
    assert (sync.refresh_enabled, sync.configs_enabled, sync.acls_enabled) == (True, True, True)
    assert (sync.refresh_interval_s, sync.configs_interval_s, sync.acls_interval_s) == (5, 60, 60)
    assert sync.use_defaults_from == "target"
    groups = flow.group_sync
    assert (groups.groups, groups.groups_exclude) == (".*", "console-consumer-.*, connect-.*, __.*")
    assert (groups.refresh_enabled, groups.refresh_interval_s) == (True, 600)
    assert (groups.checkpoints_enabled, groups.checkpoints_interval_s) == (True, 60)
    assert (groups.offsets_enabled, groups.offsets_interval_s) == (False, 60)
    assert (groups.offset_syncs_enabled, groups.offset_syncs_on_target, groups.offset_lag_max) == (True, False, 100)
    assert (groups.checkpoints_replication_factor, groups.offset_syncs_replication_factor) == (3, 3)
    beats = flow.heartbeats
    assert (beats.emitted, beats.interval_s, beats.replicated, beats.replication_factor) == (True, 1, True, 3)


def test_section_1_4_groups_are_read() -> None:
    sync = _of(
        {
            "groups": "g.*",
            "a->b.groups.exclude": "x",
            "refresh.groups.enabled": "false",
            "refresh.groups.interval.seconds": "11",
            "emit.checkpoints.interval.seconds": "12",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "13",
            "checkpoints.topic.replication.factor": "1",
            "offset-syncs.topic.location": "target",
            "offset-syncs.topic.replication.factor": "2",
            "offset.lag.max": "0",
            "a->b.MirrorCheckpointConnector.groups": "only",
        }
    ).group_sync
    assert (sync.groups, sync.groups_exclude) == ("only", "x")
    assert (sync.refresh_enabled, sync.refresh_interval_s, sync.checkpoints_interval_s) == (False, 11, 12)
    assert (sync.offsets_enabled, sync.offsets_interval_s) == (True, 13)
    assert (sync.checkpoints_replication_factor, sync.offset_syncs_replication_factor) == (1, 2)
    assert (sync.offset_syncs_on_target, sync.offset_lag_max) == (True, 0)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (
            {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"},
            "offset-syncs.topic.location",
        ),
        (
            {"a->b.emit.offset-syncs.enabled": "false", "a->b.offset-syncs.topic.replication.factor": "1"},
            "a->b.offset-syncs.topic.replication.factor",
        ),
        ({"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"}, "emit.checkpoints.enabled"),
        ({"emit.offset-syncs.enabled": "false", "sync.group.offsets.enabled": "true"}, "emit.offset-syncs.enabled"),
        ({"emit.offset-syncs.enabled": "false", "emit.checkpoints.enabled": "true"}, "emit.offset-syncs.enabled"),
        ({"a->b.exactly.once.support": "required"}, "a->b.exactly.once.support"),
        (
            {"a->b.exactly.once.support": "required", "b.exactly.once.source.support": "enabled"},
            "a->b.exactly.once.support",
        ),
        (
            {"a->b.MirrorCheckpointConnector.replication.policy.separator": "_"},
            "a->b.MirrorCheckpointConnector.replication.policy.separator",
        ),
        (
            {"a->b.MirrorCheckpointConnector.offset-syncs.topic.location": "target"},
            "a->b.MirrorCheckpointConnector.offset-syncs.topic.location",
        ),
        ({"a->b.source.cluster.alias": "z"}, "a->b.source.cluster.alias"),
    ],
)
def test_cross_key_rules(changes: dict[str, str], key: str) -> None:
    assert _refused(changes).facts["key"] == key


def test_without_offset_syncs_there_are_no_checkpoints_and_it_is_told() -> None:
    deployment = parse_deployment({**BASE, "emit.offset-syncs.enabled": "false"})
    assert [remark.key for remark in deployment.remarks] == ["emit.offset-syncs.enabled"]


def test_checkpoints_may_be_off() -> None:
    assert not _of({"emit.checkpoints.enabled": "false"}).group_sync.checkpoints_enabled


# -- client keys -------------------------------------------------------------------------------------------------------


def test_client_keys_that_have_a_place() -> None:
    flow = _of(
        {
            "a.consumer.fetch.max.bytes": "1000000",
            "a->b.consumer.max.partition.fetch.bytes": "70000",
            "a->b.source.consumer.fetch.max.wait.ms": "40",
            "a.consumer.request.timeout.ms": "12000",
            "a.consumer.client.id": "reader",
            "a.consumer.auto.offset.reset": "LATEST",
            "b.request.timeout.ms": "13000",
            "b.producer.request.timeout.ms": "14000",
            "b.producer.max.in.flight.requests.per.connection": "20",
            "b.producer.transaction.timeout.ms": "15000",
            "b.client.id": "writer",
        }
    )
    limits = flow.limits
    assert (limits.fetch_bytes_max, limits.fetch_partition_bytes_max, limits.fetch_wait_ms_max) == (
        1_000_000,
        70_000,
        40,
    )
    assert (flow.source.request_timeout_s, flow.target.request_timeout_s) == (12, 13)
    assert (limits.produce_timeout_ms, limits.transaction_timeout_ms) == (14_000, 15_000)
    assert limits.produce_requests_in_flight_max == 5
    assert (flow.source.client["client.id"], flow.target.client["client.id"]) == ("reader", "writer")
    assert flow.start_at_latest


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("b.producer.compression.type", "zstd"),
        ("b.producer.acks", "1"),
        ("a->b.producer.override.linger.ms", "5"),
        ("a.consumer.max.poll.records", "5"),
        ("a->b.consumer.group.id", "x"),
        ("b.admin.request.timeout.ms", "5"),
        ("b.offset.flush.interval.ms", "5"),
        ("config.storage.replication.factor", "1"),
        ("b.value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("rest.advertised.port", "9000"),
    ],
)
def test_known_keys_without_meaning_are_answered(key: str, value: str) -> None:
    [remark] = parse_deployment({**BASE, key: value}).remarks
    assert remark.kind == "note"
    assert str(remark).startswith(f"{key}: has no meaning here, because ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("b.producer.acks", "all"),
        ("b.producer.enable.idempotence", "true"),
        ("a.consumer.enable.auto.commit", "false"),
        ("a.consumer.key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"),
        ("key.converter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("topic.filter.class", "org.apache.kafka.connect.mirror.DefaultTopicFilter"),
        ("ssl.protocol", "TLSv1.2"),
        ("a->b.source.cluster.alias", "a"),
    ],
)
def test_what_happens_anyway_needs_no_word(key: str, value: str) -> None:
    assert parse_deployment({**BASE, key: value}).warnings == []


@pytest.mark.parametrize(
    "key",
    ["transforms", "a->b.transforms", "transforms.x.type", "topic.filter.class", "group.filter.class", "predicates"],
)
def test_what_cannot_be_honoured_is_refused(key: str) -> None:
    assert str(_refused({key: "com.example.Own"})).startswith(f"{key}: cannot be honoured, because ")


# -- aliases -----------------------------------------------------------------------------------------------------------


def test_aliases_with_dots_and_separators_the_longest_wins() -> None:
    properties = {
        "clusters": "us, us.west, us.west-2",
        "us.bootstrap.servers": "u:1",
        "us.west.bootstrap.servers": "w:1",
        "us.west-2.bootstrap.servers": "w2:1",
        "us.west.consumer.client.rack": "r",
        "us->us.west.enabled": "true",
        "us.west->us.west-2.enabled": "true",
        "us.west->us.west-2.topics": "t",
        "us->us.west-2.topics": "other",
    }
    first, second = parse_deployment(properties).flows
    assert (str(first.flow), first.topics, first.client_rack) == ("us->us.west", ".*", "")
    assert (str(second.flow), second.topics, second.client_rack) == ("us.west->us.west-2", "t", "r")
    assert second.target.bootstrap == (("w2", 1),)


@pytest.mark.parametrize("alias", ["source", "topics", "consumer", "replication", "a->b"])
def test_aliases_that_are_also_words_of_keys(alias: str) -> None:
    properties = {
        "clusters": f"{alias}, target",
        f"{alias}.bootstrap.servers": "s:1",
        "target.bootstrap.servers": "t:1",
        f"{alias}->target.enabled": "true",
        f"{alias}.consumer.client.rack": "r",
        "topics.exclude": "x",
        "replication.factor": "4",
        "consumer.poll.timeout.ms": "5",
    }
    if "->" in alias:
        with pytest.raises(SettingsError, match="cannot be part of a topic's name"):
            parse_deployment(properties)
        return
    [flow] = parse_deployment(properties).flows
    assert (flow.topics_exclude, flow.replication_factor, flow.client_rack) == ("x", 4, "r")


# -- where values come from --------------------------------------------------------------------------------------------


def test_each_effective_value_tells_its_place_and_level() -> None:
    properties = {**BASE, "topics": "t", "a->b.tasks.max": "2", "b.exactly.once.source.support": "enabled"}
    found = {one.name: one for one in parse_deployment(properties).effective[Flow("a", "b")]}
    assert (found["topics"].text, found["topics"].level) == ("t", "top level")
    assert (found["tasks.max"].text, found["tasks.max"].level) == ("2", "flow a->b")
    assert found["exactly.once.source.support"].level == "cluster b"
    assert (found["replication.factor"].text, found["replication.factor"].origin) == ("2", "default")
    assert found["source.consumer.bootstrap.servers"].text == "a:1"


LEVELS_OF_TASKS = ("a->b.MirrorSourceConnector.tasks.max", "a->b.tasks.max", "tasks.max")
LEVELS_OF_CONSUMER = (
    "a->b.MirrorSourceConnector.source.consumer.fetch.max.bytes",
    "a->b.source.consumer.fetch.max.bytes",
    "a.consumer.fetch.max.bytes",
    "a->b.MirrorSourceConnector.consumer.fetch.max.bytes",
    "a->b.consumer.fetch.max.bytes",
)


@given(st.lists(st.sampled_from(LEVELS_OF_TASKS), unique=True, min_size=1))
def test_precedence_of_connector_keys(keys: list[str]) -> None:
    document = Document.of({key: f"at {key}" for key in keys})
    best = next(key for key in LEVELS_OF_TASKS if key in keys)
    assert Levels(document, document, Flow("a", "b")).plain(PLAIN["tasks.max"]).value == f"at {best}"


@given(st.lists(st.sampled_from(LEVELS_OF_CONSUMER), unique=True, min_size=1))
def test_precedence_of_consumer_keys(keys: list[str]) -> None:
    document = Document.of({key: f"at {key}" for key in keys})
    best = next(key for key in LEVELS_OF_CONSUMER if key in keys)
    assert Levels(document, document, Flow("a", "b")).consumer("fetch.max.bytes").value == f"at {best}"


# -- everything at once ------------------------------------------------------------------------------------------------


def test_all_problems_are_told_together() -> None:
    error = _refused({"tasks.max": "x", "topic": "y", "consumer.client.rack": "z", "topics.blacklist": "b"})
    assert [one["key"] for one in error.facts["problems"]] == [
        *("tasks.max", "topic", "consumer.client.rack", "topics.blacklist"),
    ]
    assert len(str(error).splitlines()) == 4
    assert error.facts["key"] == "tasks.max"
