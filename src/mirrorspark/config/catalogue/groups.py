"""Keys of MirrorMaker 2's checkpoint and heartbeat connectors, and of its offset syncs: groups, and signs of life."""

from __future__ import annotations

from mirrorspark.config.definition import CHECKPOINT, HEARTBEAT, SOURCE, Definition, Kind, Scope

__all__ = ["GROUPS", "HEARTBEATS"]

_BOTH = (SOURCE, CHECKPOINT)
_GROUPS = (CHECKPOINT,)
_HEARTBEATS = (HEARTBEAT,)
_INT_MAX = 2**31 - 1


def _factor(name: str, help_: str, connectors: tuple[str, ...], applied: str) -> Definition:
    return Definition(
        name,
        Kind.WHOLE,
        help_,
        default="3",
        low=-1,
        high=32767,
        unit="replicas",
        connectors=connectors,
        applied=applied,
    )


def _interval(name: str, help_: str, default: str, connectors: tuple[str, ...], applied: str) -> Definition:
    return Definition(
        name,
        Kind.WHOLE,
        help_,
        default=default,
        low=1,
        high=_INT_MAX,
        unit="s",
        connectors=connectors,
        applied=applied,
    )


def _switch(name: str, help_: str, default: str, connectors: tuple[str, ...], applied: str) -> Definition:
    return Definition(name, Kind.SWITCH, help_, default=default, connectors=connectors, applied=applied)


GROUPS: tuple[Definition, ...] = (
    Definition(
        "groups",
        Kind.PATTERNS,
        "Consumer groups whose offsets are translated: names or Java regexes.",
        default=".*",
        connectors=_GROUPS,
        applied="group_sync.groups",
        importance="high",
    ),
    Definition(
        "groups.exclude",
        Kind.PATTERNS,
        "Groups to leave out; wins over groups.",
        default="console-consumer-.*, connect-.*, __.*",
        connectors=_GROUPS,
        applied="group_sync.groups_exclude",
        importance="high",
    ),
    Definition(
        "group.filter.class",
        Kind.CLASS,
        "Java class that selects groups.",
        default="org.apache.kafka.connect.mirror.DefaultGroupFilter",
        connectors=_GROUPS,
        refused="no Java class can be loaded; say it with groups and groups.exclude",
        harmless=("DefaultGroupFilter",),
    ),
    _switch("refresh.groups.enabled", "Look for new groups.", "true", _GROUPS, "group_sync.refresh_enabled"),
    _interval("refresh.groups.interval.seconds", "How often.", "600", _GROUPS, "group_sync.refresh_interval_s"),
    _switch("emit.checkpoints.enabled", "Write checkpoints.", "true", _GROUPS, "group_sync.checkpoints_enabled"),
    _interval("emit.checkpoints.interval.seconds", "How often.", "60", _GROUPS, "group_sync.checkpoints_interval_s"),
    _switch(
        "sync.group.offsets.enabled",
        "Write translated offsets to the groups on the target.",
        "false",
        _GROUPS,
        "group_sync.offsets_enabled",
    ),
    _interval("sync.group.offsets.interval.seconds", "How often.", "60", _GROUPS, "group_sync.offsets_interval_s"),
    _factor(
        "checkpoints.topic.replication.factor",
        "Of the checkpoints topic when it is created.",
        _GROUPS,
        "group_sync.checkpoints_replication_factor",
    ),
    _switch("emit.offset-syncs.enabled", "Write offset syncs.", "true", _BOTH, "group_sync.offset_syncs_enabled"),
    Definition(
        "offset-syncs.topic.location",
        Kind.CHOICE,
        "The cluster that holds the offset-syncs topic.",
        default="source",
        choices=("source", "target"),
        connectors=_BOTH,
        applied="group_sync.offset_syncs_on_target",
        true_when="target",
    ),
    _factor(
        "offset-syncs.topic.replication.factor",
        "Of the offset-syncs topic when it is created.",
        (SOURCE,),
        "group_sync.offset_syncs_replication_factor",
    ),
    Definition(
        "offset.lag.max",
        Kind.WHOLE,
        "Offsets between two offset syncs of a partition, at most.",
        default="100",
        low=0,
        high=2**63 - 1,
        unit="offsets",
        connectors=(SOURCE,),
        applied="group_sync.offset_lag_max",
    ),
    Definition(
        "task.assigned.groups",
        Kind.LIST,
        "Set by MirrorMaker 2 for its tasks.",
        connectors=_GROUPS,
        scope=Scope.FLOW,
        no_meaning="groups are not given to tasks",
    ),
)

HEARTBEATS: tuple[Definition, ...] = (
    _switch("emit.heartbeats.enabled", "Write heartbeats to the target.", "true", _HEARTBEATS, "heartbeats.emitted"),
    _interval("emit.heartbeats.interval.seconds", "How often.", "1", _HEARTBEATS, "heartbeats.interval_s"),
    _factor(
        "heartbeats.topic.replication.factor",
        "Of the heartbeats topic when it is created.",
        _HEARTBEATS,
        "heartbeats.replication_factor",
    ),
)
