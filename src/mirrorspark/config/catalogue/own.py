"""Our own keys: what MirrorMaker 2 has no word for. They stand where its connectors' keys stand."""

from __future__ import annotations

from mirrorspark.config.definition import SOURCE, Definition, Kind, Scope

__all__ = ["OWN"]

_SOURCE = (SOURCE,)


def _policy(name: str, help_: str, *choices: str) -> Definition:
    """The first choice is the default."""
    applied = "policies." + name.replace(".", "_")
    return Definition(
        name, Kind.CHOICE, help_, default=choices[0], choices=choices, connectors=_SOURCE, applied=applied
    )


OWN: tuple[Definition, ...] = (
    _policy("on.data.gap", "When records are gone on the source before they were carried.", "continue", "fail"),
    _policy("on.topic.recreated", "When a source topic was deleted and created anew.", "restart", "fail"),
    _policy("on.record.too.large", "When the target refuses a record for its size.", "stop", "skip", "dead-letter"),
    _policy("on.source.topic.deleted", "When a source topic is gone: keep its copy, or delete it.", "keep", "delete"),
    _policy(
        "on.target.topic.deleted",
        "When a remote topic is gone: create it and go on, or mirror all that the source has.",
        "recreate",
        "remirror",
    ),
    _policy(
        "on.mirror.maker.running",
        "When MirrorMaker 2 is carrying the flow: do not start it, or start beside it and copy all records twice.",
        "fail",
        "continue",
    ),
    Definition(
        "offsets",
        Kind.CHOICE,
        "identical: each record gets the offset on the target that it has on the source. Needs a remote topic that is "
        "empty, or whose offsets are those of the source already.",
        default="translated",
        choices=("translated", "identical"),
        connectors=_SOURCE,
        applied="offsets",
    ),
    Definition(
        "topic.deletions.max",
        Kind.WHOLE,
        "With on.source.topic.deleted=delete: a pass that would delete more deletes nothing and says so.",
        default="10",
        low=0,
        high=2**31 - 1,
        unit="topics",
        connectors=_SOURCE,
        applied="limits.topic_deletions_max",
    ),
    Definition(
        "sync.topic.acls.revoke.enabled",
        Kind.SWITCH,
        "Also take away on the target what was taken away on the source, of what the mirror had granted.",
        default="false",
        connectors=_SOURCE,
        applied="topic_sync.acls_revoke",
    ),
    Definition(
        "sync.topic.acls.prefixed.enabled",
        Kind.SWITCH,
        "Also carry ACLs that have a prefix instead of a topic's whole name.",
        default="false",
        connectors=_SOURCE,
        applied="topic_sync.acls_prefixed",
    ),
    Definition(
        "start.at",
        Kind.START,
        "Where a partition begins that has no position yet: earliest, latest, or with the first record of that time or "
        "later (2026-11-01T00:00:00Z, or epoch milliseconds). Without it the consumer's auto.offset.reset counts.",
        default="",
        connectors=_SOURCE,
        applied="start_at",
    ),
    Definition(
        "start.at.topic.*",
        Kind.TOPIC_START,
        "The same for one topic, by its name on the source; also offsets 0:100,1:200, by partition.",
        connectors=_SOURCE,
        applied="where that topic begins",
    ),
    Definition(
        "start.before.spark",
        Kind.SWITCH,
        "Carry with lanes outside of Spark while Spark starts.",
        default="true",
        connectors=_SOURCE,
        applied="start_before_spark",
    ),
    Definition(
        "epoch.seconds",
        Kind.WHOLE,
        "Length of an epoch of lanes.",
        default="300",
        low=2,
        high=86400,
        unit="s",
        connectors=_SOURCE,
        applied="epoch_s",
    ),
    Definition(
        "lane.memory.max.bytes",
        Kind.WHOLE,
        "Fetch buffers of one lane.",
        default=str(16 * 1024 * 1024),
        low=1 << 20,
        high=1 << 40,
        unit="bytes",
        connectors=_SOURCE,
        applied="limits.lane_memory_bytes_max",
    ),
    Definition(
        "partition.memory.max.bytes",
        Kind.WHOLE,
        "Of these, fetched and not yet acknowledged bytes of one partition. A long, fast link wants its bandwidth times its "
        "round trip.",
        default=str(4 * 1024 * 1024),
        low=1 << 16,
        high=1 << 40,
        unit="bytes",
        connectors=_SOURCE,
        applied="limits.partition_memory_bytes_max",
    ),
    Definition(
        "bandwidth.max.bytes.per.second",
        Kind.WHOLE,
        "How fast a flow may read its source, in bytes of record batches; 0 is no limit. At the top level for each flow by "
        "itself.",
        default="0",
        low=0,
        high=1 << 50,
        unit="bytes",
        connectors=_SOURCE,
        applied="bandwidth.bytes_per_s_max",
    ),
    Definition(
        "bandwidth.priority",
        Kind.WHOLE,
        "The flow's weight when bandwidth.total.max.bytes.per.second is divided among flows that want more: 10 gets twice "
        "as much as 5.",
        default="5",
        low=1,
        high=10,
        connectors=_SOURCE,
        applied="bandwidth.priority",
    ),
    Definition(
        "bandwidth.total.max.bytes.per.second",
        Kind.WHOLE,
        "What all flows of one process may read together; what one does not need the others may use. 0 is no limit.",
        default="0",
        low=0,
        high=1 << 50,
        unit="bytes",
        scope=Scope.TOP,
        applied="bandwidth.total_bytes_per_s_max",
    ),
    Definition(
        "transaction.interval.ms",
        Kind.WHOLE,
        "With transactions: time between commits.",
        default="100",
        low=1,
        high=60_000,
        unit="ms",
        connectors=_SOURCE,
        applied="limits.transaction_interval_ms",
    ),
)
