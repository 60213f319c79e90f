"""A flow's state as its lanes report it: folded from the status topic, shown by the view, the exit report and ``status``.

Whoever leads the flow says which generation it leads, what it planned and what is paused; lanes say the rest. Times are
those of the process that looks: a lane's clock may be wrong.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrorspark.events import Event
from mirrorspark.names import TopicPartition
from mirrorspark.observe.carried_series import CarriedSeries
from mirrorspark.observe.lane_handouts import LaneHandouts
from mirrorspark.observe.lane_limit import LaneLimit, words_of_limit
from mirrorspark.observe.lane_totals import LaneTotals, traffic_counts
from mirrorspark.observe.sampled_window import SampledWindow
from mirrorspark.observe.source_ends import SourceEnds
from mirrorspark.observe.traffic_rates import TrafficRates

__all__ = [
    "EVERYTHING",
    "GROUPS_KEY",
    "SYNC_KEY",
    "FlowStatus",
    "LaneStatus",
    "PartitionStatus",
    "words_of_groups",
    "words_of_skipped",
]

RATE_WINDOW_S = 5.0
ATTEMPTS_REMEMBERED = 4
"""Of a lane's, for each partition: what they have counted."""
LANE_SILENT_S = 15.0
"""A lane that has not reported for so long is shown as silent, never as running."""
LANE_START_S = 60.0
"""A lane that has never reported is starting for so long, then silent."""
MOVED_WINDOW_S = 10.0
"""Latency is that of partitions that moved in this time: the last batch of an idle one says nothing about now."""
LATENCY_MS_MAX = 3_600_000
"""Above an hour it is the age of old records (a backlog, imported data), not the time they took to be carried."""
EVERYTHING = "*"
"""In a list of paused topics: the whole flow."""
GROUPS_KEY = "groups"
"""Of the record in which the driver tells how the groups are."""
SYNC_KEY = "sync"
"""Of the record in which the driver tells how settings and ACLs of the topics are."""


@dataclass(slots=True)
class PartitionStatus:
    upstream_next: int = 0
    downstream_end: int = 0
    high_watermark: int = 0
    records: int = 0
    bytes: int = 0
    latency_ms: int = 0
    state: str = ""
    lane: int = -1
    moved_at: float = float("-inf")

    @property
    def lag_records(self) -> int:
        return max(0, self.high_watermark - self.upstream_next)


@dataclass
class LaneStatus:
    state: str
    since_ms: int
    at_ms: int
    partitions: int
    held_bytes: int
    waiting: dict[str, str]
    seen_at: float | None = None
    """When its report arrived here; None for one that was there before we looked."""
    skipped_by_origin: dict[str, list[int]] = field(default_factory=dict)
    """Batches and records that a mirror had written on the source, by that mirror's flow; since the attempt began."""
    identical: list[int] | None = None
    """With offsets=identical: partitions that have them, and those that lost them."""
    limit: LaneLimit | None = None
    """Its share of the flow's bandwidth limit, if there is one."""


@dataclass
class FlowStatus:
    """``records`` and ``bytes_carried`` count what this process saw carried since it started."""

    flow: str
    lanes_expected: int = 1
    topics: str = ".*"
    state: str = "starting"
    records: int = 0
    bytes_carried: int = 0
    generation: int | None = None
    lanes: dict[int, LaneStatus] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """What does not work just now, by job; each job clears only its own."""
    paused: frozenset[str] = frozenset()
    planned: frozenset[TopicPartition] | None = None
    """Remote partitions of the newest plan; None until there is one."""
    matched: int | None = None
    """Topics on the source that the flow wants; None until somebody has looked."""
    sync: dict[str, Any] = field(default_factory=dict)
    """How settings and ACLs of the topics are, as the driver wrote it; empty until it has looked."""
    groups: dict[str, Any] = field(default_factory=dict)
    """How the offsets of the groups are, as the driver wrote it; empty until it has looked."""
    last_append_at: float = 0.0
    heartbeat_sent_at: float | None = None
    """When the target took the pair's newest heartbeat; None if it took none yet."""
    heartbeats_sent: int = 0
    """How many the target took since the process began."""
    heartbeats_topic: str = ""
    """The remote topic that brings the source's heartbeats along."""
    lane_memory_bytes_max: int = 0
    certificates: dict[tuple[str, str], float] = field(default_factory=dict)
    """When they end (Unix time), by cluster and by what they are: ``broker``, ``truststore``, ``keystore``."""
    sources: dict[TopicPartition, TopicPartition] = field(default_factory=dict)
    """Source partitions of the newest plan, by remote partition."""
    source_ends: SourceEnds = field(default_factory=SourceEnds)
    carried: dict[TopicPartition, CarriedSeries] = field(default_factory=dict)
    lane_totals: dict[int, LaneTotals] = field(default_factory=dict)
    done_at: dict[str, float] = field(default_factory=dict)
    """When a job of the driver last did its work."""
    failed_times: Counter[str] = field(default_factory=Counter)
    """How often a job of the driver failed."""
    handouts: LaneHandouts = field(default_factory=LaneHandouts)
    began_at_s: float = field(default_factory=time.time)
    worker_traffic: Callable[[], Mapping[int, Mapping[str, float]]] = dict
    """What the driver's connections to the target have counted, by broker (``cluster.traffic``)."""
    worker_rates: TrafficRates = field(default_factory=lambda: TrafficRates(time.time()))
    checkpoint_latencies: Mapping[tuple[str, TopicPartition], SampledWindow] = field(default_factory=dict)
    """By group and remote partition, in ms; only where the groups are followed by this process."""
    clock: Callable[[], float] = time.monotonic
    _since: float = 0.0
    _rates: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=256))
    _bytes_before: dict[TopicPartition, tuple[float, int]] = field(default_factory=dict)
    _owners: dict[TopicPartition, int] = field(default_factory=dict)
    _counted: dict[tuple[int, TopicPartition], dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """By lane and partition: the attempt's beginning, and what its reports counted so far."""

    # -- what the one who leads says --------------------------------------------------------------------------------

    def begin(self, generation: int, *, waited_s: float = 0.0) -> None:
        """A lead begins: only reports of this generation count; events stay. ``waited_s``: how long lanes had to start."""
        self.generation = generation
        self._since = self.clock() - waited_s
        self.handouts.begin(self._since)
        self.lanes.clear()
        self.partitions.clear()
        self._rates.clear()
        self._bytes_before.clear()
        self._counted.clear()

    def run(self) -> None:
        """The lanes have been started."""
        self.state = "running"
        self._since = self.clock()

    def expect(self, lanes: int) -> None:
        """The flow has so many lanes from now on."""
        self.lanes_expected = lanes
        for gone in [index for index in self.lanes if index >= lanes]:
            del self.lanes[gone]

    def follow_plan(self, lanes: Iterable[Iterable[TopicPartition]], paused: Iterable[str]) -> None:
        """The newest plan: remote partitions by lane."""
        self._owners = {at: index for index, lane in enumerate(lanes) for at in lane}
        self.planned = frozenset(self._owners)
        self.paused = frozenset(paused)
        for gone in self.partitions.keys() - self.planned:
            del self.partitions[gone]
        for gone in self.carried.keys() - self.planned:
            del self.carried[gone]
        for counter in [counter for counter in self._counted if counter[1] not in self.planned]:
            del self._counted[counter]

    def fail(self, job: str, text: str) -> None:
        self.failures[job] = text
        self.failed_times[job] += 1

    def clear(self, job: str) -> None:
        self.failures.pop(job, None)

    def note_done(self, job: str) -> None:
        self.done_at[job] = self.clock()

    def hold(self, job: str, text: str) -> None:
        """``fail`` where there is a text, ``clear`` where there is none."""
        if text:
            self.fail(job, text)
        else:
            self.clear(job)

    # -- what the status topic says ---------------------------------------------------------------------------------

    def fold(self, key: bytes, value: bytes | None, *, fresh: bool = True) -> Event | None:
        """Take in one status record; returns the event, if it was a new one. Not ``fresh``: it was there before.

        A record that cannot be read is named in ``failures`` and left out.
        """
        name = key.decode(errors="replace")
        event = None
        try:
            if name.startswith("event/"):
                event = self._fold_event(name, value)
            elif name.startswith("lane/") and value is not None:
                self._fold_lane(json.loads(value), fresh)
            elif name == SYNC_KEY and value is not None:
                self.sync = dict(json.loads(value))
            elif name == GROUPS_KEY and value is not None:
                self.groups = dict(json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.fail(f"status record {name}", f"cannot be read ({error!r}); left out")
        else:
            self.clear(f"status record {name}")
        return event

    def _fold_event(self, name: str, value: bytes | None) -> Event | None:
        if value is None:
            self.events.pop(name, None)
            return None
        event = Event.from_json(value)
        is_new = name not in self.events
        self.events[name] = event
        return event if is_new else None

    def _fold_lane(self, report: dict[str, Any], fresh: bool) -> None:
        if report["generation"] != self.generation:
            return
        now = self.clock()
        index = report["lane"]
        if index >= self.lanes_expected and (report["state"] == "ended" or not report["partitions"]):
            self.lanes.pop(index, None)  # one that the flow no longer has, and that has let everything go
        else:
            self.lanes[index] = LaneStatus(
                report["state"],
                report["since_ms"],
                report["at_ms"],
                report["partitions"],
                report["held_bytes"],
                report["waiting"],
                now if fresh else None,
                report.get("skipped_by_origin", {}),
                report.get("identical"),
                LaneLimit.of_report(report.get("limit")),
            )
        totals = self.lane_totals.setdefault(index, LaneTotals())
        counts = report.get("counts", {}) | traffic_counts(report.get("traffic", {}))
        totals.take(report["since_ms"], report["at_ms"], report["state"], counts)
        totals.held_window.add(now, report["held_bytes"])
        if not self.lanes_missing:
            self.handouts.complete(now)
        for topic, partition, upstream, downstream, high, records, size, latency, state, *more in report["moved"]:
            at = TopicPartition(topic, partition)
            if self.planned is not None and at not in self.planned:
                continue  # the last word of a partition that was taken off the plan
            known = self.partitions.get(at)
            moved_at = known.moved_at if known else float("-inf")
            if self._count(index, at, report["since_ms"], (records, size, *(more or [0]))) and fresh:
                moved_at = self.last_append_at = now
                self.carried[at].see_latency(now, latency)
            if known and known.lane != index and known.lane == self._owners.get(at):
                known.moved_at = moved_at
                continue  # the last word of a lane that gave the partition away; its new lane has spoken already
            self.partitions[at] = PartitionStatus(
                upstream, downstream, high, records, size, latency, state, index, moved_at
            )
        self._rates.append((now, self.records, self.bytes_carried))

    def _count(self, lane: int, at: TopicPartition, since_ms: int, counts: tuple[int, ...]) -> bool:
        """Add what is new in a lane's counters (records, bytes, re-encoded batches), which begin at nought in each attempt;
        whether anything is. An attempt that was replaced may still say its last word after its successor's first."""
        attempts = self._counted.setdefault((lane, at), {})
        before = attempts.get(since_ms, (0, 0, 0))
        if counts[0] < before[0]:
            before = (0, 0, 0)
        attempts[since_ms] = counts
        if len(attempts) > ATTEMPTS_REMEMBERED:
            del attempts[next(iter(attempts))]
        records, size, reencoded = (new - old for new, old in zip(counts, before, strict=False))
        self.records += records
        self.bytes_carried += size
        self.lane_totals[lane].carry(records, size)
        self.carried.setdefault(at, CarriedSeries()).add(self.clock(), records, size, reencoded)
        return records > 0

    # -- numbers ----------------------------------------------------------------------------------------------------

    @property
    def rates(self) -> tuple[float, float]:
        """Records and bytes a second over the last few seconds."""
        now = self.clock()
        while len(self._rates) > 2 and self._rates[0][0] < now - RATE_WINDOW_S:
            self._rates.popleft()
        if len(self._rates) < 2 or self._rates[-1][0] < now - RATE_WINDOW_S:
            return 0.0, 0.0
        (start, records, size), (end, records_now, size_now) = self._rates[0], self._rates[-1]
        span = max(end - start, 0.001)
        return (records_now - records) / span, (size_now - size) / span

    def partition_rates(self) -> dict[TopicPartition, float]:
        """Bytes a second for each partition since the last call; what the spread over lanes goes by."""
        now = self.clock()
        found = {}
        for at, status in self.partitions.items():
            then, size = self._bytes_before.get(at, (now, status.bytes))
            if now > then and status.bytes >= size:
                found[at] = (status.bytes - size) / (now - then)
            self._bytes_before[at] = (now, status.bytes)
        return found

    @property
    def partition_count(self) -> int:
        return sum(lane.partitions for lane in self.lanes.values())

    @property
    def lag_records(self) -> int:
        return sum(status.lag_records for status in self.partitions.values())

    @property
    def skipped_by_origin(self) -> dict[str, dict[str, int]]:
        """Batches and records not carried since a mirror had written them on the source, by that mirror's flow; since the
        lanes' attempts began."""
        found: dict[str, dict[str, int]] = {}
        for lane in self.lanes.values():
            for flow, (batches, records) in lane.skipped_by_origin.items():
                sums = found.setdefault(flow, {"batches": 0, "records": 0})
                sums["batches"] += batches
                sums["records"] += records
        return dict(sorted(found.items()))

    @property
    def records_skipped_by_origin(self) -> int:
        return sum(counts["records"] for counts in self.skipped_by_origin.values())

    @property
    def partitions_identical(self) -> tuple[int, int] | None:
        """With offsets=identical: partitions that have them, and those that lost them; None where nobody asked."""
        told = [lane.identical for lane in self.lanes.values() if lane.identical is not None]
        return (sum(one[0] for one in told), sum(one[1] for one in told)) if told else None

    @property
    def limits(self) -> list[LaneLimit]:
        """The lanes' shares of the flow's bandwidth limit; empty without one."""
        return [lane.limit for lane in self.lanes.values() if lane.limit is not None and lane.state == "carrying"]

    @property
    def heartbeat_age_s(self) -> float | None:
        """Seconds since the target took this pair's newest heartbeat."""
        return None if self.heartbeat_sent_at is None else self.clock() - self.heartbeat_sent_at

    @property
    def heartbeat_mirrored_age_s(self) -> float | None:
        """Seconds since the flow last brought a heartbeat of its source over; None if it never did."""
        partition = self.partitions.get(TopicPartition(self.heartbeats_topic, 0))
        if partition is None or partition.moved_at == float("-inf"):
            return None
        return self.clock() - partition.moved_at

    @property
    def latency_ms(self) -> int | None:
        """The largest of the partitions that moved just now; None if none did, or only with old records."""
        return max((ms for ms in self._latencies() if ms <= LATENCY_MS_MAX), default=None)

    @property
    def record_age_ms(self) -> int | None:
        """How old the records are that are being carried, where that is all there is to say; else None."""
        latencies = self._latencies()
        return min(latencies) if latencies and min(latencies) > LATENCY_MS_MAX else None

    def _latencies(self) -> list[int]:
        oldest = self.clock() - MOVED_WINDOW_S
        return [status.latency_ms for status in self.partitions.values() if status.moved_at >= oldest]

    # -- words ------------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> dict[str, str]:
        return {place: why for lane in self.lanes.values() for place, why in lane.waiting.items()}

    @property
    def lanes_missing(self) -> list[int]:
        """Lanes that have not reported in this generation."""
        return [index for index in range(self.lanes_expected) if index not in self.lanes]

    @property
    def lanes_silent(self) -> list[int]:
        """Lanes that no longer report."""
        oldest = self.clock() - LANE_SILENT_S
        return sorted(i for i, lane in self.lanes.items() if lane.seen_at is None or lane.seen_at < oldest)

    @property
    def is_paused(self) -> bool:
        """Whether a person paused all that there is to carry."""
        return EVERYTHING in self.paused or (bool(self.planned) and self._planned_topics <= self.paused)

    @property
    def _planned_topics(self) -> set[str]:
        return {at.topic for at in self.planned or ()}

    @property
    def verdict(self) -> str:
        """The state in one word, the worst first; never "running" where something is not."""
        has_had_time = self.clock() - self._since >= LANE_START_S
        if self.state != "running":
            return self.state
        if self.lanes_silent or (self.lanes_missing and has_had_time):
            return "silent"
        if self.lanes_missing or self.planned is None:
            return "starting"
        if self.failures:
            return "degraded"
        if self.is_paused:
            return "paused"
        if self.waiting or self.events:
            return "degraded"
        return "idle" if self.matched == 0 else "running"

    @property
    def notices(self) -> list[str]:
        """What an operator should look at: failures, lanes, waiting partitions, events that nobody acknowledged, pauses."""
        texts = [f"{job}: {text}" for job, text in self.failures.items()]
        if self.state == "running":
            texts += self._lane_notices()
            if self.matched == 0:
                texts.append(f"topics={self.topics} matches no topic on the source")
        texts += [f"{place} waits: {why}" for place, why in sorted(self.waiting.items())]
        texts += words_of_limit(self.limits, self.lag_records)
        texts += [str(event) for event in sorted(self.events.values(), key=lambda event: -event.at_ms)]
        if self.paused:
            texts.append(f"paused: {'everything' if EVERYTHING in self.paused else ', '.join(sorted(self.paused))}")
        return texts

    @property
    def sync_lines(self) -> list[str]:
        """Settings and ACLs of the topics in words: first whether they are in step, then what is not, as a diff."""
        if not self.sync:
            return []
        sync = self.sync
        differ = sync.get("settings_differ", 0)
        state = f"settings of {differ} of {sync['topics']} topics differ" if differ else "settings in step"
        acls = sync.get("acls_notice") or f"ACLs: {sync['acls_granted']} granted, {sync['acls_revoked']} revoked"
        lines = [f"topics: {state}, {sync['settings_changed']} changed since the start; {acls}"]
        lines += [f"{topic} {change}" for topic, changes in sync.get("drift", {}).items() for change in changes]
        return lines

    def _lane_notices(self) -> list[str]:
        now = self.clock()
        texts = []
        for index in self.lanes_silent:
            lane = self.lanes[index]
            if lane.seen_at is not None:
                texts.append(f"lane {index} has not reported for {now - lane.seen_at:.0f} s")
            else:
                stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lane.at_ms / 1000))
                texts.append(f"lane {index} does not report; by its own clock it last did at {stamp}")
        if now - self._since >= LANE_START_S:
            texts += [
                f"lane {index} has never reported: has Spark fewer free slots than the {self.lanes_expected} lanes of "
                "this flow? See --master and tasks.max"
                for index in self.lanes_missing
            ]
        return texts


def words_of_skipped(skipped: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What was left out since a mirror had written it on the source, a line for each mirror."""
    return [
        f"skipped by origin: {counts['records']} records in {counts['batches']} batches that {flow} had written"
        for flow, counts in skipped.items()
    ]


def words_of_groups(groups: Mapping[str, Any]) -> list[str]:
    """Offsets of the groups in words: how many, how they are known, what is not in step. Empty until somebody looked."""
    if not groups:
        return []
    parts = [f"{groups['groups']} groups, {groups['mode']}", f"{groups['checkpoints_written']} checkpoints written"]
    if groups.get("writes_offsets"):
        parts.append(f"{groups['offsets_written']} offsets written")
    if groups.get("latency_ms_p95") is not None:
        parts.append(f"{groups['latency_ms_p95']} ms behind (p95)")
    for key, text in (
        ("waiting", "offsets wait for records"),
        ("with_members_on_target", "groups are in use on the target"),
        ("refused", "groups are refused"),
        ("share_groups_not_handled", "share groups are not handled"),
    ):
        if groups.get(key):
            parts.append(f"{groups[key]} {text}")
    return [f"groups: {', '.join(parts)}"]
