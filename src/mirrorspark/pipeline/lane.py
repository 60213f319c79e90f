"""One lane: the partitions that one Spark task carries for one epoch.

Runs inside a Python worker on an executor (or anywhere else: nothing here knows Spark). The walk of an attempt:
(1) read the plan, end quietly if another driver leads the flow, (2) obtain a producer epoch, (3) own the partitions,
(4) carry, follow the plan, write the books every second, (5) at the epoch's end drain, commit, leave cleanly.
Positions are on the target; nothing is kept in the worker but connections.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from mirrorspark.cluster.batch_appender import STALL_S_MAX
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.lost_brokers import hang_up_on_lost_brokers
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import ClusterError, Fenced
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic, plan_topic, progress_topic_of, status_topic
from mirrorspark.offsets.position import positions_group
from mirrorspark.pipeline.bookkeeping import Bookkeeping
from mirrorspark.pipeline.company import step_past_company
from mirrorspark.pipeline.dead_letters import DeadLetters
from mirrorspark.pipeline.entitlement import Entitlement
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.identical_lane import IdenticalLane
from mirrorspark.pipeline.lane_clock import LaneClock
from mirrorspark.pipeline.new_target_topic import drain
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.ownership import Ownership
from mirrorspark.pipeline.plan_following import PlanFollowing
from mirrorspark.pipeline.position_commits import PositionCommits
from mirrorspark.pipeline.receipt import Receipt
from mirrorspark.pipeline.recovery import Recovery, transactional_id
from mirrorspark.pipeline.track import Track, TrackState
from mirrorspark.pipeline.transaction import Transactions
from mirrorspark.pipeline.troubles import Troubles
from mirrorspark.pipeline.writers import WriterRegistry
from mirrorspark.plan.bandwidth import Shares
from mirrorspark.plan.lanes import Assignment, Plan
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.settings import FlowSettings

__all__ = ["BRIDGE_EPOCH", "LaneRun", "LaneSpec"]

log = logging.getLogger("mirrorspark.lane")

START_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 20.0
FAILURE_LOOK_S = 5.0
"""How long a lane may go on before it is noticed that a part of it has failed."""
BRIDGE_EPOCH = 0
"""Of lanes that carry while Spark starts, and give way to its lanes (``bridge``). Spark's epochs begin at 1."""


@dataclass(frozen=True)
class LaneSpec:
    """What a task is given: pickled from the driver to an executor. Holds the settings with their secrets, so no repr."""

    settings: FlowSettings
    lane: int
    generation: int
    epoch: int
    epoch_s: float
    resized: int | None = None
    """The version of the plan that gave the epoch its number of lanes: a later change ends it. None: it has no number."""

    def __repr__(self) -> str:
        return f"LaneSpec({self.settings.flow}, lane {self.lane}, epoch {self.epoch})"


class LaneRun:
    """One attempt. ``start``, then ``next_receipts`` until it returns None."""

    def __init__(self, spec: LaneSpec, source: ClusterClient, target: ClusterClient) -> None:
        settings = spec.settings
        flow = settings.flow
        self._spec = spec
        self._settings = settings
        self._limits = settings.limits
        self._source = source
        self._target = target
        self._tracks: dict[TopicPartition, Track] = {}  # by remote partition
        self._end = asyncio.Event()
        self._plans = PlanFollowing(target, flow, self._end)
        self._positions = GroupPositions(target, positions_group(flow))
        self._books = Bookkeeping(source, target, settings, self._positions, lane=spec.lane, generation=spec.generation)
        registry = WriterRegistry(target, settings.internal_replication_factor)
        self._origin = (
            OriginCheck(source, settings, on_target=registry, report=self._report)
            if policy_for(settings).needs_origin_check
            else None
        )
        self._identical = self._with_identical_offsets(registry) if settings.identical_offsets else None
        self._recovery = Recovery(
            source,
            target,
            settings,
            lane=spec.lane,
            generation=spec.generation,
            positions=self._positions,
            remembered=self._books.remembered,
            report=self._report,
            registry=registry,
            origin=self._origin,
            has_books=self._books.has_books,
            last_booked=self._books.last_booked,
            identical=self._identical.offsets if self._identical else None,
            holes=self._identical.holes if self._identical else None,
            entitlement=Entitlement(
                target,
                plan_followed=self._plans.caught_up,
                gives_way=spec.epoch == BRIDGE_EPOCH or settings.transactions,
            ),
        )
        self._troubles = Troubles(
            source,
            settings,
            report=self._report,
            own_again=self._own_again,
            dead_letters=DeadLetters(target, settings, self._books.count),
        )
        self._express = Express(
            source,
            target,
            settings,
            on_trouble=self._troubles.meet,
            on_company=self._company,
            on_mismatch=self._identical.offsets.lose if self._identical else None,
            transactional_id=transactional_id(settings, spec.lane) if settings.transactions else None,
            origin=self._origin,
        )
        self._troubles.express = self._express
        self._plans.on_shares = self._obey_shares
        if self._identical is not None:
            self._identical.carry_with(self._express, self._troubles)
        self._commits = PositionCommits(
            spec.lane, self._books, self._express, signed=self._recovery.signed, tracks=self._tracks
        )
        self._plan: Plan | None = None
        self._transactions: Transactions | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._written: dict[TopicPartition, Writer] = {}  # the last epoch that this attempt used on a partition
        self._transaction_turn = asyncio.Lock()
        self._ownership = Ownership(
            spec.lane,
            spec.generation,
            source,
            target,
            self._recovery,
            self._troubles,
            positions=self._positions,
            release_wait_ms_max=self._limits.release_wait_ms_max,
            turn=self._transaction_turn,
            begin=self._begin,
            release=self._release,
            superseded=self._supersede,
            guard=self._guard,
        )
        self._clock = LaneClock(
            spec.lane,
            settings,
            target,
            self._express,
            books=self._books,
            commits=self._commits,
            ownership=self._ownership,
            tracks=self._tracks,
            has_company=self._origin is not None,
            end=self._end,
            tell_state=self._tell_state,
        )
        self._ends_at = time.monotonic() + spec.epoch_s
        self._superseded = ""
        self._state = "starting"

    def _with_identical_offsets(self, registry: WriterRegistry) -> IdenticalLane:
        impossible = "topics that keep their names have producers on both sides" if self._origin is not None else ""
        return IdenticalLane(
            self._source,
            self._target,
            self._settings,
            lane=self._spec.lane,
            generation=self._spec.generation,
            registry=registry,
            report=self._report,
            impossible=impossible,
        )

    # -- start ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        deadline = Deadline(START_TIMEOUT_S)
        flow = self._settings.flow
        own = [topic(flow.books) for topic in (plan_topic, status_topic, ledger_topic)]
        internal = [*own, progress_topic_of(self._settings)]
        await self._target.refresh(internal, deadline)
        plan = await self._plans.newest(deadline)
        if not self._leads(plan):
            self._supersede(f"flow {flow} is led by {plan.owner} now")
            return
        if self._origin is not None:
            await self._origin.start(deadline)
        if self._settings.transactions:
            await self._recovery.finish_own_transaction(deadline)
        writer = await self._recovery.obtain(deadline)
        if self._identical is not None:
            await self._identical.start(writer, deadline)
        if self._settings.transactions:
            self._transactions = Transactions(
                self._target,
                self._settings,
                self._express,
                self._books,
                group=self._positions.group,
                writer=self._writer,
                signed=self._recovery.signed,
                turn=self._transaction_turn,
            )
        self._express.stop_fetching_at(self._ends_at)
        self._state = "carrying"
        self._follow(plan)
        self._tasks = [
            asyncio.ensure_future(self._guard(work))
            for work in (
                self._plans.follow(self._take_up),
                self._clock.run(),
                self._stay_awake(),
                self._ownership.notice_successor(self._tracks, self._end),
                *(hang_up_on_lost_brokers(client, self._end) for client in (self._source, self._target)),
                *self._work_in_transactions(),
                *([self._identical.holes.run()] if self._identical else []),
            )
        ]

    def _work_in_transactions(self) -> list[Awaitable[None]]:
        if self._transactions is None:
            return []
        return [self._transactions.run(), self._clock.commit_between(self._transactions, self._transaction_turn)]

    def _writer(self) -> Writer:
        assert self._recovery.writer is not None
        return self._recovery.writer

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  (raised again by next_receipts)
            self._troubles.failure = self._troubles.failure or error
            self._end.set()

    # -- the plan ---------------------------------------------------------------------------------------------------

    def _leads(self, plan: Plan) -> bool:
        return plan.owner.generation == self._spec.generation

    def _supersede(self, why: str) -> None:
        self._superseded = why
        self._state = "superseded"
        self._end.set()

    def _take_up(self, plan: Plan) -> None:
        """New plans are taken up as they are published, with no restart."""
        if plan.owner.generation > self._spec.generation:
            self._supersede(f"flow {self._settings.flow} is led by {plan.owner} now")
        elif self._leads(plan):
            self._follow(plan)

    def _follow(self, plan: Plan) -> None:
        self._plan = plan
        if plan.stopping or (self._spec.resized is not None and plan.resized > self._spec.resized):
            self._end.set()
            return
        wanted = {one.remote: one for one in plan.lane(self._spec.lane)}
        for remote, track in list(self._tracks.items()):
            one = wanted.get(remote)
            if one is None or not track.still_fits(one):
                self._let_go(track)
        for remote, one in wanted.items():
            if remote not in self._tracks:
                self._take(one)
        for track in self._tracks.values():
            self._obey_pause(track, plan.is_paused(track.remote.topic))

    def _obey_shares(self, shares: Shares) -> None:
        if shares.generation == self._spec.generation:
            self._express.pace.set_rate(shares.of(self._spec.lane))

    def _take(self, assignment: Assignment) -> None:
        track = Track(assignment)
        track.wanted_since = time.monotonic()
        # Sequences begin at nought again: under the same epoch the broker would take new batches for repeats.
        track.newer_than = self._written.get(track.remote)
        if track.newer_than is not None and self._settings.transactions:
            raise Fenced(f"lane {self._spec.lane} takes {track.remote} up again: under a new epoch")
        track.queue.admitted = not self._settings.transactions
        self._tracks[track.remote] = track
        self._ownership.want(track)

    def _obey_pause(self, track: Track, paused: bool) -> None:
        if paused and track.state is TrackState.CARRYING:
            track.state = TrackState.PAUSED
            self._express.hold_back(track)
        elif not paused and track.state is TrackState.PAUSED:
            track.state = TrackState.CARRYING
            self._express.resume(track)

    def _let_go(self, track: Track) -> None:
        """Release to another lane (or to nobody): drain, commit cleanly, forget. The other lane waits for the commit."""
        del self._tracks[track.remote]
        self._ownership.let_go(track)
        self._tasks.append(asyncio.ensure_future(self._guard(self._release([track]))))

    async def _release(self, tracks: list[Track]) -> None:
        owned = [track for track in tracks if track.writer is not None]
        for track in owned:
            self._express.hold_back(track)
            if track.state in (TrackState.CARRYING, TrackState.PAUSED):
                track.state = TrackState.LEAVING
        deadline = Deadline(DRAIN_TIMEOUT_S)
        await drain(owned, self._target, deadline)
        settled = self._transactions is None or await self._transactions.settled(deadline)
        left = [track for track in owned if settled and track.drained and not track.in_doubt]
        if self._origin is not None:
            await step_past_company(self._target, left, deadline)
        # A partition that did not drain, or is in doubt, is left as it is: its next owner fences us and walks the tail.
        await self._books.write_ledger(left)  # first: a clean end says that the ledger tells it all
        await self._books.sign_off({t.remote: self._recovery.signed(t, clean=True) for t in left})
        await self._books.close_with(left)
        for track in tracks:
            track.state = TrackState.GONE
            self._express.remove(track)
            self._ownership.released(track)

    # -- owning -----------------------------------------------------------------------------------------------------

    async def _own_again(self, track: Track) -> None:
        """After a fence, a lost sequence or doubt: under a new epoch, if it is still ours."""
        if self._transactions is not None:
            raise Fenced(f"lane {self._spec.lane}: its transaction was fenced or lost on {track.remote}")
        if await self._ownership.is_lost(track):
            return
        self._express.remove(track)
        track.state = TrackState.GONE
        if self._tracks.get(track.remote) is track:
            fresh = Track(track.assignment)
            fresh.newer_than = track.writer
            fresh.wanted_since = time.monotonic()
            fresh.records, fresh.bytes = track.records, track.bytes
            self._tracks[track.remote] = fresh
            self._ownership.want(fresh)

    def _begin(self, track: Track) -> None:
        assert track.state is TrackState.CARRYING
        assert track.writer is not None
        self._written[track.remote] = track.writer
        self._express.add(track)
        self._books.take_up(track)
        assert self._plan is not None
        self._obey_pause(track, self._plan.is_paused(track.remote.topic))

    # -- alive, and telling of it -----------------------------------------------------------------------------------

    async def _stay_awake(self) -> None:
        """A process that was frozen for too long may have been superseded without a trace: it must not send again."""
        appender = self._express.appender
        while not self._end.is_set():
            slept = time.monotonic() - appender.awake_at
            if slept > STALL_S_MAX:
                raise Fenced(f"lane {self._spec.lane} was frozen for {slept:.0f} s; owning its partitions anew")
            now = time.monotonic() if self._identical is None else await self._identical.renewed(self._writer())
            if now is None:
                self._supersede(f"lane {self._spec.lane} has a newer attempt")
                return
            appender.awake_at = now
            await asyncio.sleep(0.5)

    async def _tell_state(self) -> None:
        if self._transactions is None:  # what is on the target is news, committed or not yet
            self._books.touch(track for track in self._tracks.values() if track.uncommitted)
        await self._books.report(
            self._state,
            self._tracks,
            self._express.memory.pool.live_bytes,
            self._express.appender.troubles,
            self._origin.skipped if self._origin is not None else {},
            {**self._recovery.counts, **self._express.pace.counts},
            self._express.pace.told(),
        )

    def _company(self, track: Track, base_offset: int) -> None:
        if self._origin is not None:
            return  # topics that keep their names have producers on both sides
        text = f"somebody else appends to {track.remote}: our batch came to {base_offset} instead of {track.downstream_end}"
        at = track.remote
        self._report(Event(EventKind.FOREIGN_RECORDS, text, *at, track.downstream_end, base_offset - 1))

    def _report(self, event: Event) -> None:
        log.warning("%s: %s", self._settings.flow, event)
        self._books.note(event)

    # -- receipts, and the end --------------------------------------------------------------------------------------

    async def next_receipts(self) -> list[Receipt] | None:
        """Carry for a while, then hand out what was appended; None when the attempt is over. Raises what ended it.

        While Spark takes what is handed out the lane stands still, some 20 ms: so that is not done often.
        """
        if self._state in ("ended", "superseded"):
            return None
        until = min(self._ends_at, time.monotonic() + self._limits.receipts_interval_ms / 1000)
        while True:
            await self._raise_failure()
            left = until - time.monotonic()
            if self._end.is_set() or left <= 0:
                break
            try:
                async with asyncio.timeout(min(left, FAILURE_LOOK_S)):
                    await self._end.wait()
            except TimeoutError:
                pass
        tracks = list(self._tracks.values())
        if self._state == "superseded":
            await self._abandon()
        elif self._end.is_set() or time.monotonic() >= self._ends_at:
            try:
                await self._leave()
            except BaseException:
                await self._abandon()
                raise
        return self._books.receipts(tracks)

    async def _raise_failure(self) -> None:
        failure = self._troubles.failure or self._express.ended
        if failure is not None:
            await self._abandon()
            raise failure

    async def _leave(self) -> None:
        """A clean end: everything fetched is appended, committed and signed off."""
        self._end.set()
        await self._express.close()
        if self._transactions is not None:
            self._transactions.stop()
        await self._release(list(self._tracks.values()))
        self._state = "ended"
        self._books.touch(self._tracks.values())
        await self._tell_state()
        await self._abandon()
        failure = self._troubles.failure
        if failure is not None:
            raise failure

    async def _abandon(self) -> None:
        """Stop at once, leaving the partitions as they are (a successor recovers them)."""
        self._end.set()
        self._troubles.close()
        tasks = [*self._tasks, *self._ownership.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._express.close()
        self._express.appender.close()
        self._express.memory.close()
        self._books.close()
        if self._books.has_events:
            try:
                await self._tell_state()
            except ClusterError as error:
                log.warning("%s: events could not be written: %s", self._spec, error)

    @property
    def superseded(self) -> str:
        return self._superseded
