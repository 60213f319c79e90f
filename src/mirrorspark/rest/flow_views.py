"""Flows as the resources under ``/mirrorspark/v1`` show them: values, named as their JSON is (docs/reference/rest_flows.md).

A ``FlowsHost`` makes them, routes write them out as they are. None is "not known". No secret may be in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "Acknowledged",
    "Cluster",
    "EventPage",
    "EventView",
    "FlowConfig",
    "FlowLagView",
    "FlowLanes",
    "FlowList",
    "FlowView",
    "GroupPage",
    "GroupRow",
    "GroupView",
    "LaneCount",
    "LaneView",
    "Page",
    "PartitionPage",
    "PartitionView",
    "PausedView",
    "PositionView",
    "ReadinessView",
    "SettingView",
    "TopicLagView",
    "TopicSort",
    "Topology",
    "TopologyFlow",
    "TranslationView",
    "Waiting",
]


TopicSort = Literal["lag", "rate", "name"]
"""Largest lag first, most bytes a second first, or by the source's name."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is asked of a list: ``search`` in names, and the part that is wanted."""

    limit: int = 100
    offset: int = 0
    search: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    place: str
    why: str


# -- flows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaneCount:
    expected: int
    reporting: int
    silent: list[int]
    missing: list[int]


@dataclass(frozen=True, slots=True)
class FlowView:
    flow: str
    source: str
    target: str
    instance: str | None
    carries: bool
    verdict: str
    generation: int | None
    lanes: LaneCount
    partitions: int
    topics: int
    records: int
    bytes: int
    records_per_s: float
    bytes_per_s: float
    lag_records: int
    lag_bytes: float | None
    lag_seconds: float | None
    lag_looked_age_s: float | None
    latency_ms: int | None
    record_age_ms: int | None
    heartbeat_age_s: float | None
    is_paused: bool
    paused: list[str]
    waiting: list[Waiting]
    waiting_count: int
    events_count: int
    notices: list[str]
    notices_count: int


@dataclass(frozen=True, slots=True)
class FlowList:
    at_ms: int
    flows: list[FlowView]


@dataclass(frozen=True, slots=True)
class Cluster:
    alias: str
    bootstrap: list[str]


@dataclass(frozen=True, slots=True)
class TopologyFlow:
    flow: str
    source: str
    target: str
    instance: str | None
    carries: bool
    verdict: str
    records_per_s: float
    bytes_per_s: float
    lag_records: int
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class Topology:
    clusters: list[Cluster]
    flows: list[TopologyFlow]


# -- inside a flow -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionView:
    topic: str
    remote_topic: str
    partition: int
    lane: int | None
    state: str
    waits: str | None
    is_paused: bool
    source_next: int | None
    source_end: int | None
    target_end: int | None
    lag_records: int | None
    lag_bytes: float | None
    lag_seconds: float | None
    records_per_s: float
    bytes_per_s: float
    latency_ms: float | None


@dataclass(frozen=True, slots=True)
class PartitionPage:
    flow: str
    total: int
    matched: int
    limit: int
    offset: int
    partitions: list[PartitionView]


@dataclass(frozen=True, slots=True)
class LaneView:
    lane: int
    state: str
    reports: bool
    reported_age_s: float | None
    since_ms: int | None
    partitions: int | None
    held_bytes: int | None
    held_bytes_max: int
    records: int
    bytes: int
    attempts: int
    epoch_pause_s: float | None
    waiting: list[Waiting]


@dataclass(frozen=True, slots=True)
class FlowLanes:
    flow: str
    expected: int
    lanes: list[LaneView]


@dataclass(frozen=True, slots=True)
class TopicLagView:
    topic: str
    remote_topic: str
    partitions: int
    lag_records: int
    lag_bytes: float | None
    lag_seconds: float | None
    records_per_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class FlowLagView:
    flow: str
    lag_records: int
    lag_bytes: float | None
    lag_seconds: float | None
    lag_looked_age_s: float | None
    total: int
    matched: int
    limit: int
    offset: int
    topics: list[TopicLagView]


@dataclass(frozen=True, slots=True)
class SettingView:
    name: str
    value: str | None
    level: str
    origin: str
    is_default: bool
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class FlowConfig:
    flow: str
    file: str | None
    settings: list[SettingView]


# -- groups, failover, offsets -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupRow:
    group: str
    kind: str
    state: str
    target_state: str
    target_members: int
    partitions: int
    lag_records: int | None
    exact: bool
    in_step: bool
    ready: bool
    word: str
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GroupPage:
    flow: str
    at_ms: int
    total: int
    matched: int
    limit: int
    offset: int
    writes_offsets: bool
    notices: list[str]
    groups: list[GroupRow]


@dataclass(frozen=True, slots=True)
class PositionView:
    topic: str
    remote_topic: str
    partition: int
    source_offset: int
    source_end: int | None
    lag_records: int | None
    target_offset_exact: int | None
    target_offset: int | None
    exact: bool
    reason: str
    verdict: str | None
    is_beyond_end: bool


@dataclass(frozen=True, slots=True)
class GroupView:
    flow: str
    at_ms: int
    group: str
    kind: str
    state: str
    target_state: str
    target_members: int
    lag_records: int | None
    exact: bool
    in_step: bool
    ready: bool
    word: str
    left_out: Mapping[str, str]
    partitions: list[PositionView]


@dataclass(frozen=True, slots=True)
class ReadinessView:
    """``checks`` and ``steps`` as ``mirrorspark failover --json`` has them."""

    flow: str
    mode: str
    at_ms: int
    ready: bool
    state: str
    checks: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TranslationView:
    flow: str
    topic: str
    partition: int
    offset: int
    source_end: int | None
    remote_topic: str
    target_offset: int | None
    exact: bool
    reason: str


# -- events and steering -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventView:
    flow: str
    key: str
    kind: str
    text: str
    topic: str
    partition: int
    offset_first: int
    offset_last: int
    waits: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class EventPage:
    total: int
    limit: int
    offset: int
    events: list[EventView]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    acknowledged: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class PausedView:
    flow: str
    paused: list[str]
    is_taken: bool
