"""What an edited file changes: flows added, removed, told anew, or started anew.

Pure: two lists of flows in, the difference out; ``reload`` reads the file, ``flow_set`` carries the difference out. What
only the driver goes by is told to it and its lanes stay as they are. What lanes hold (they got it with their task) needs
a new start of that one flow. A setting that is not in ``DRIVER_SETTINGS`` counts as the latter, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from mirrorspark.config.catalogue import CLIENTS, PLAIN
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings

__all__ = ["DRIVER_SETTINGS", "Changes", "changed_settings", "difference"]

DRIVER_SETTINGS = (
    *("topics", "topics_exclude", "replication_factor", "start_before_spark"),
    *("topic_sync", "heartbeats", "bandwidth"),
    *("group_sync.groups", "group_sync.groups_exclude", "group_sync.refresh_enabled", "group_sync.refresh_interval_s"),
    *("group_sync.checkpoints_enabled", "group_sync.checkpoints_interval_s"),
    "group_sync.checkpoints_replication_factor",
    *("group_sync.offsets_enabled", "group_sync.offsets_interval_s"),
    *("policies.on_source_topic_deleted", "limits.topic_deletions_max"),
)
"""Fields of FlowSettings that no lane looks at; a part stands for all of its fields."""


@dataclass(frozen=True)
class Changes:
    added: tuple[FlowSettings, ...] = ()
    removed: tuple[Flow, ...] = ()
    told: tuple[FlowSettings, ...] = ()
    """Their drivers go by the new settings from now on; their lanes notice new topics and nothing else."""
    restarted: tuple[FlowSettings, ...] = ()
    texts: tuple[str, ...] = ()
    """One line for each flow, for people. Names of keys, never their values: those may be secrets."""

    def __bool__(self) -> bool:
        return bool(self.texts)


def difference(old: Iterable[FlowSettings], new: Iterable[FlowSettings]) -> Changes:
    before, after = ({one.flow: one for one in flows} for flows in (old, new))
    added = [one for flow, one in after.items() if flow not in before]
    removed = [flow for flow in before if flow not in after]
    told: list[FlowSettings] = []
    restarted: list[FlowSettings] = []
    texts: list[str] = []
    for flow, one in after.items():
        names = changed_settings(before[flow], one) if flow in before else []
        if not names:
            continue
        lanes_stay = all(_is_the_drivers(name) for name in names) or not (one.enabled or before[flow].enabled)
        (told if lanes_stay else restarted).append(one)
        keys = ", ".join(_key(name, one) for name in names)
        texts.append(f"{flow}: {keys} changed; {_effect(lanes_stay)}")
    texts += [f"{one.flow}: added" for one in added] + [
        f"{flow}: removed; it is drained and stopped" for flow in removed
    ]
    return Changes(tuple(added), tuple(removed), tuple(told), tuple(restarted), tuple(texts))


def _effect(lanes_stay: bool) -> str:
    return "applied as it runs" if lanes_stay else "it is drained and started anew"


def changed_settings(old: FlowSettings, new: FlowSettings) -> list[str]:
    """Names of the fields that differ, ``part.field`` inside a part; a cluster counts as one."""
    return list(_differing(old, new, ""))


def _differing(old: Any, new: Any, prefix: str) -> Sequence[str]:
    found: list[str] = []
    for field in fields(old):
        one, other = getattr(old, field.name), getattr(new, field.name)
        if one == other:
            continue
        if is_dataclass(one) and not isinstance(one, ClusterSettings):
            found += _differing(one, other, f"{prefix}{field.name}.")
        else:
            found.append(f"{prefix}{field.name}")
    return found


_KEYS = {
    **{one.applied: f"consumer.{name}" for name, one in CLIENTS["consumer"].items() if one.fills_a_setting},
    **{one.applied: f"producer.{name}" for name, one in CLIENTS["producer"].items() if one.fills_a_setting},
    **{one.applied: name for name, one in PLAIN.items() if one.fills_a_setting},
}
"""The key in the file that fills a field."""


def _key(name: str, settings: FlowSettings) -> str:
    if name in ("source", "target"):
        return f"cluster {getattr(settings, name).alias}"
    return _KEYS.get(name, name)


def _is_the_drivers(name: str) -> bool:
    return name in DRIVER_SETTINGS or name.partition(".")[0] in DRIVER_SETTINGS
