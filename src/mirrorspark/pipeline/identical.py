"""Identical offsets (``offsets=identical``): which partitions can have them, from where on, and how they end.

The proof is always the same: the target's log ends where the source's next record lies. It is looked at when a partition is
taken up (``judge``), and on every receipt (``express``). The first mismatch ends parity for that partition, is told, and the
ledger, which is kept all the time, goes on translating. Used by ``recovery`` and by the lane, on its event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.cluster.missing_acl import is_denial
from mirrorspark.cluster.topic_configs import effective_config
from mirrorspark.cluster.writer import Writer, is_newest
from mirrorspark.errors import BrokerError
from mirrorspark.events import Event, EventKind
from mirrorspark.offsets.ledger import LedgerRange
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.filler_writer import FillerWriter
from mirrorspark.pipeline.holes import AlignedQueue
from mirrorspark.pipeline.start_level import LevelNotReached, raise_level
from mirrorspark.pipeline.tail_walk import Found, next_wanted
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import FlowSettings

__all__ = ["IdenticalOffsets", "is_being_raised"]

log = logging.getLogger("mirrorspark.lane")

LOOK_TIMEOUT_S = 60.0
NEWEST_TIMEOUT_S = 10.0
TRANSLATED = "offsets of this partition are translated by the ledger from here on"


class IdenticalOffsets:
    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        settings: FlowSettings,
        filler: FillerWriter,
        *,
        report: Callable[[Event], None],
        impossible: str = "",
    ) -> None:
        """``impossible``: why no topic of this flow can have them."""
        self._source = source
        self._target = target
        self._settings = settings
        self.filler = filler
        self._report = report
        self.impossible = impossible
        self._why_not: dict[tuple[str, str], str] = {}

    # -- before the first record ------------------------------------------------------------------------------------

    async def why_not(self, track: Track) -> str:
        """Why this topic cannot have identical offsets, whatever its log looks like; "" if it can. Raises BrokerError where
        an ACL is missing: once given up they cannot be had again, and the ACL can."""
        if self.impossible:
            return self.impossible
        key = (track.source.topic, track.remote.topic)
        if key not in self._why_not:
            self._why_not[key] = await self._compacted(self._source, key[0]) or await self._compacted(
                self._target, key[1]
            )
        return self._why_not[key]

    async def _compacted(self, client: ClusterClient, topic: str) -> str:
        try:
            policy = await effective_config(client, topic, "cleanup.policy")
        except BrokerError as error:
            if error.retriable or is_denial(error.error_code):
                raise
            return f"the settings of {topic} on cluster {client.alias} cannot be looked at: {error}"
        if "compact" not in policy:
            return ""
        return f"{topic} on cluster {client.alias} is compacted (cleanup.policy={policy}): records are taken out of its log"

    async def raised(
        self, track: Track, position: Position, claim: Callable[[Track, Position], Awaitable[None]]
    ) -> Position | None:
        """Bring an empty remote partition to the level of ``position.upstream_next``; the position there.

        None where that cannot be, or need not. ``claim`` commits a position under our name: with one that was committed
        before the first filler, whoever comes after us knows that all below the level is filler.
        """
        if await self.why_not(track):
            return None
        level, deadline = position.upstream_next, Deadline(LOOK_TIMEOUT_S)
        first = await list_offset(self._target, track.remote, EARLIEST, deadline)
        end = await list_offset(self._target, track.remote, LATEST, deadline)
        is_empty = first == end < level
        if not is_empty and not is_being_raised(position):
            return None  # judged as it is
        log.info("%s: bringing %s from offset %d to %d", self._settings.flow, track.remote, end, level)
        await claim(track, replace(position, downstream_end=min(end, level - 1), parity=Parity(level)))
        try:
            await raise_level(self._target, self.filler, track.remote, level, lambda text: _say(track, text))
        except (LevelNotReached, BrokerError) as error:
            if error.retriable or (isinstance(error, BrokerError) and is_denial(error.error_code)):
                raise  # a missing ACL: whoever comes next goes on filling
            self._tell(track, EventKind.PARITY_REFUSED, level, f"it cannot be brought to offset {level}: {error}")
            end = await list_offset(self._target, track.remote, LATEST, deadline)
            return replace(position, downstream_end=end, parity=Parity(level, level))
        finally:
            _say(track, "")
        return replace(position, downstream_end=level, parity=Parity(level))

    # -- taking up --------------------------------------------------------------------------------------------------

    async def judge(self, track: Track, found: Found, known: Parity | None) -> None:
        """Whether offsets are identical from where ``found`` goes on; then it goes on exactly where the target's log ends.

        ``known``: what the last position said; None if nobody asked before.
        """
        found.parity = known
        if known is not None and not known.holds:
            return
        end = found.downstream_end
        why = await self.why_not(track) or await self._mismatch(track, found)
        if why:
            found.parity = self.ended(track, known, end, why)
            return
        found.parity = known or Parity(end)
        found.upstream_next = end
        booked = found.booked
        if booked is not None and booked.upstream_next == booked.downstream_end < end:
            # Holes that were filled lie at their own offsets too: one run, as in the ledger of a dense log.
            found.ranges = [LedgerRange(booked.upstream_next, end - 1, booked.upstream_next)]

    def ended(self, track: Track, known: Parity | None, at: int, why: str) -> Parity:
        """Told, and named by whether it ever began."""
        kind = EventKind.PARITY_LOST if known is not None else EventKind.PARITY_REFUSED
        self._tell(track, kind, at, why)
        return (known or Parity(at)).lost(at)

    async def _mismatch(self, track: Track, found: Found) -> str:
        """Nothing but holes may lie between the source's next record and the end of the target's log."""
        for span in found.ranges:
            if span.upstream_first != span.downstream_first:
                return f"the record of offset {span.upstream_first} lies at {span.downstream_first}"
        upstream, end = found.upstream_next, found.downstream_end
        if upstream == end:
            return ""
        low, high = min(upstream, end), max(upstream, end)
        wanted = await next_wanted(self._source, track.source, low, read_committed=self._settings.read_committed)
        if wanted >= high:
            return ""
        next_record = f"the source goes on at offset {upstream} (its next record is at {wanted})"
        return f"{next_record}, but the target's log ends at {end}"

    def take_up(self, track: Track, found: Found) -> None:
        """Before the track begins."""
        track.parity = found.parity
        track.identical = found.parity is not None and found.parity.holds
        if track.identical:
            track.queue = AlignedQueue(track.remote)

    # -- while it carries -------------------------------------------------------------------------------------------

    def lose(self, track: Track, at: int, why: str) -> None:
        """The end of parity for this partition, at upstream offset ``at``."""
        track.lose_parity(at)
        self._tell(track, EventKind.PARITY_LOST, at, why)

    async def is_newest(self, writer: Writer) -> bool:
        """Whether no other attempt has obtained a newer epoch. Asked all the time: a lane that gets no answer for as long as
        its lease lasts sends nothing more, and so a successor need not shut it out with a marker."""
        return await is_newest(self._target, writer, Deadline(NEWEST_TIMEOUT_S))

    def _tell(self, track: Track, kind: str, at: int, why: str) -> None:
        self._report(Event(kind, f"{why}; {TRANSLATED}", *track.remote, at, at))


def is_being_raised(position: Position) -> bool:
    """Whether its partition was left while it was brought to its start level."""
    parity = position.parity
    return parity is not None and parity.holds and position.downstream_end < parity.since


def _say(track: Track, text: str) -> None:
    track.why = text
