"""What to do when one partition cannot go on: named, told, and only that partition waits.

Each trouble that the carrying loop reports ends in one of: going on at a new place, splitting or setting aside a batch,
owning the partition anew, or waiting (and trying again from time to time). Decisions follow the flow's policies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mirrorspark.cluster.broker_errors import ErrorCode, error_name
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.cluster.missing_acl import missing_acl
from mirrorspark.errors import MirrorError, WireError
from mirrorspark.events import Event, EventKind
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.holes import hole_instead
from mirrorspark.pipeline.preparation import carry_records
from mirrorspark.pipeline.track import CarriedBatch, Track, TrackState
from mirrorspark.pipeline.trouble import Trouble
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.record_batch import verify_crc
from mirrorspark.wire.reencoding import decode

if TYPE_CHECKING:
    from mirrorspark.cluster.cluster_client import ClusterClient
    from mirrorspark.pipeline.dead_letters import DeadLetters

__all__ = ["Troubles"]

RETRY_WAITING_S = 30.0
"""A waiting partition is tried again this often: an operator who raises a limit need not restart anything."""
REOWN_PAUSE_S = 1.0
"""Whoever fenced us has this long to put its name on the partition before we look."""
QUIET_TIMEOUT_S = 60.0

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
SEQUENCE_LOST = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


class Troubles:
    def __init__(
        self,
        source: ClusterClient,
        settings: FlowSettings,
        *,
        report: Callable[[Event], None],
        own_again: Callable[[Track], Awaitable[None]],
        dead_letters: DeadLetters,
    ) -> None:
        self._source = source
        self._settings = settings
        self._report = report
        self._own_again = own_again
        self._dead_letters = dead_letters
        self._tasks: set[asyncio.Task[None]] = set()
        self.express: Express | None = None
        self.failure: BaseException | None = None

    def meet(self, track: Track, trouble: Trouble) -> None:
        """Called by the carrying loop; the answer is found in a task of its own."""
        if track.state is TrackState.GONE:
            return
        task = asyncio.ensure_future(self._guard(self._answer(track, trouble)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  (handed to the lane, which ends with it)
            self.failure = error

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def quiet(self, track: Track) -> None:
        """Wait until no request of this partition is on the wire: only then may its buffers be touched."""
        deadline = Deadline(QUIET_TIMEOUT_S)
        while track.queue.outstanding and not deadline.passed:
            await asyncio.sleep(0.005)

    async def _answer(self, track: Track, trouble: Trouble) -> None:
        assert self.express is not None
        if trouble.side == "target":
            await self.quiet(track)
            await self._target_trouble(track, trouble)
        elif trouble.damaged is not None:
            await self._drain(track)
            self._wait(track, EventKind.BATCH_DAMAGED, str(trouble.damaged), track.fetch_next, track.fetch_next)
        else:
            await self._source_trouble(track, trouble)

    async def _source_trouble(self, track: Track, trouble: Trouble) -> None:
        code = trouble.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._out_of_range(track)
        elif trouble.diverging_end >= 0:
            await self._drain(track)
            self._wait(
                track,
                EventKind.SOURCE_TRUNCATED,
                f"the source's log was cut at {trouble.diverging_end} (unclean leader election?): records from there on "
                "were carried but are no longer on the source; check both sides, then reset this partition's position",
                trouble.diverging_end,
                max(track.fetch_next - 1, trouble.diverging_end),
            )
        elif code in (
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INCONSISTENT_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ):
            await self._topic_missing(track)
        else:
            await self._drain(track)
            text = f"the source answers {error_name(code)} ({code}){missing_acl(code, 'Fetch')}"
            self._wait(track, EventKind.FETCH_REFUSED, text, track.fetch_next, track.fetch_next)

    async def _out_of_range(self, track: Track) -> None:
        assert self.express is not None
        await self._drain(track)
        deadline = Deadline(30.0)
        first = await list_offset(self._source, track.source, EARLIEST, deadline)
        end = await list_offset(self._source, track.source, LATEST, deadline)
        position = track.upstream_next
        if position > end:
            self._wait(
                track,
                EventKind.SOURCE_TRUNCATED,
                f"the source's log ends at {end}, before our position {position}: it lost records (unclean election?)",
                end,
                position - 1,
            )
            return
        if first <= position:
            self.express.resume(track)  # the answer was about an earlier place
            return
        fails = self._settings.policies.on_data_gap == "fail"
        text = (
            f"the source's retention passed our position: {first - position} offsets are gone "
            f"(on.data.gap={self._settings.policies.on_data_gap}); "
        ) + ("waits for a person" if fails else f"going on at {first}, the first record that is left")
        if fails:
            self._wait(track, EventKind.DATA_GAP, text, position, first - 1)
            return
        self._report(Event(EventKind.DATA_GAP, text, track.source.topic, track.source.partition, position, first - 1))
        track.skip_to(first)
        track.fetch_next = first
        track.fetched_epoch = -1
        self.express.resume(track)

    async def _topic_missing(self, track: Track) -> None:
        """Deleted, or deleted and created again: the next plan tells; until then the partition waits a little."""
        await self._drain(track)
        await self._source.refresh([track.source.topic])
        known = self._source.topics.get(track.source.topic)
        if known is not None and known.topic_id == track.topic_id and track.source.partition in known.partitions:
            assert self.express is not None
            await asyncio.sleep(0.2)
            self.express.resume(track)
            return
        what = "is gone from the source" if known is None else "was deleted and created again on the source"
        track.state = TrackState.WAITING
        track.why = f"{track.source.topic} {what}; waiting for the next plan"
        track.retry_at = float("inf")

    async def _target_trouble(self, track: Track, trouble: Trouble) -> None:
        code = trouble.error_code
        if trouble.doubtful:
            await self._own_anew(track, 0.0)
        elif code == ErrorCode.CORRUPT_MESSAGE and (damage := self._damage(track)) is not None:
            at = track.upstream_next
            self._hold(track)
            self._wait(track, EventKind.BATCH_DAMAGED, f"{damage}; the target refused it", at, at)
        elif code in TOO_LARGE:
            await self._too_large(track)
        elif code in FENCED or code in SEQUENCE_LOST:
            await self._own_anew(track, REOWN_PAUSE_S)
        elif code == 0:
            # What was appended just now lies at an offset given out before: trying again would append it twice.
            track.in_doubt = True
            self._hold(track)
            event = EventKind.TARGET_TRUNCATED
            self._wait(track, event, trouble.text, track.downstream_end, track.downstream_end, remote=True)
            track.retry_at = float("inf")
        else:
            self._hold(track)
            text = f"the target answers {error_name(code)} ({code}) for {track.remote} {trouble.text}".rstrip()
            text += missing_acl(code, "Produce")
            self._wait(track, EventKind.APPEND_REFUSED, text, track.upstream_next, track.upstream_next)

    def _damage(self, track: Track) -> WireError | None:
        """What is wrong with the batch that the target refused: damaged on the source, or on its way here."""
        refused = track.queue.waiting[0]
        assert isinstance(refused, CarriedBatch)
        try:
            verify_crc(refused.batch, *track.source)
        except WireError as error:
            return error
        return None

    async def _own_anew(self, track: Track, pause_s: float) -> None:
        track.in_doubt = True
        self._hold(track)
        track.state = TrackState.OWNING
        track.why = "being recovered"
        await asyncio.sleep(pause_s)
        await self._own_again(track)

    async def _too_large(self, track: Track) -> None:
        """Cut the batch in two while it has more than one record; a single record goes by the policy."""
        assert self.express is not None
        carried = track.queue.waiting[0]
        assert isinstance(carried, CarriedBatch)
        records = decode(carried.batch, *track.remote)
        offsets = [
            first + i for first, count in carried.runs or [(carried.upstream_first, len(records))] for i in range(count)
        ]
        records = [record._replace(offset=at) for record, at in zip(records, offsets, strict=True)]
        sequence = carried.batch_sequence
        if len(records) > 1:
            middle = (len(records) + 1) // 2
            halves = [
                carry_records(half, carried.batch.codec, carried.leader_epoch, track.remote)
                for half in (records[:middle], records[middle:])
            ]
            halves[-1].upstream_next = carried.upstream_next
            self._replace_first(track, halves)
        else:
            policy = self._settings.policies.on_record_too_large
            event = Event(
                EventKind.RECORD_TOO_LARGE,
                f"a record of {carried.size} bytes is more than the target topic takes (on.record.too.large={policy}); "
                + {
                    "stop": "this partition waits: raise max.message.bytes on the target topic, it goes on by itself",
                    "skip": "skipped",
                    "dead-letter": f"set aside in {self._dead_letters.topic}",
                }[policy],
                track.source.topic,
                track.source.partition,
                carried.upstream_first,
                carried.upstream_last,
                waits=policy == "stop",
            )
            if policy == "stop":
                self._hold(track)
                self._wait_for(track, event)
                return
            if policy == "dead-letter":
                try:
                    await self._dead_letters.set_aside(track, records[0])
                except MirrorError as error:
                    self._hold(track)
                    offset = carried.upstream_first
                    self._wait(track, EventKind.RECORD_TOO_LARGE, f"cannot be set aside: {error}", offset, offset)
                    return
            self._report(event)
            self._replace_first(track, [hole_instead(carried)] if track.identical else [])
            if not track.queue.waiting:
                track.skip_to(carried.upstream_next)
        track.restamp(sequence, transactional=self._settings.transactions)
        track.queue.blocked = False
        if track.identical and self.express.holes is not None:
            self.express.holes.look(track)
        self.express.go_on(track)

    def _replace_first(self, track: Track, instead: list[CarriedBatch]) -> None:
        first = track.queue.waiting.popleft()
        assert isinstance(first, CarriedBatch)
        for carried in reversed(instead):
            track.queue.waiting.appendleft(carried)
        first.release()

    async def _drain(self, track: Track) -> None:
        """Let what is in line go out before the partition stops."""
        assert self.express is not None
        self.express.hold_back(track)
        deadline = Deadline(QUIET_TIMEOUT_S)
        while not track.drained and not track.queue.blocked and not deadline.passed:
            await asyncio.sleep(0.005)
        if not track.drained:
            await self.quiet(track)
            track.drop_queue()

    def _hold(self, track: Track) -> None:
        assert self.express is not None
        self.express.hold_back(track)
        track.drop_queue()

    def _wait(self, track: Track, kind: str, text: str, first: int, last: int, *, remote: bool = False) -> None:
        """Events of the source name the source topic, events of the target the remote one."""
        at = track.remote if remote else track.source
        self._wait_for(track, Event(kind, text, at.topic, at.partition, first, last, waits=True))

    def _wait_for(self, track: Track, event: Event) -> None:
        first_time = track.why != event.text
        track.state = TrackState.WAITING
        track.why = event.text
        track.retry_at = time.monotonic() + RETRY_WAITING_S
        if first_time:
            self._report(event)

    def stopped(self, track: Track, error: MirrorError) -> None:
        """Recovery could not own the partition."""
        facts = error.facts
        kind = facts.get("event")
        if kind:
            event = Event(
                kind,
                error.message,
                facts.get("topic", track.source.topic),
                facts.get("partition", track.source.partition),
                facts.get("offset_first", -1),
                facts.get("offset_last", -1),
                waits=True,
            )
            self._wait_for(track, event)
        else:
            track.state = TrackState.WAITING
            track.why = str(error)
            track.retry_at = time.monotonic() + 2.0
