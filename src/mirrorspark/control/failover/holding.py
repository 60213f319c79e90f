"""Bringing a flow to rest: wait until all is carried (``drain``), pause it and wait until its lanes are still (``hold``).

Both go by the flow's books on the target and the source's own ends, so they do not care where the mirror runs. Called as
steps; the pause is the same record that ``mirrorspark pause`` writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.control.failover.record import Mode, Outcome
from mirrorspark.control.failover.steps import Tell
from mirrorspark.control.failover.stranded import find_stranded
from mirrorspark.control.flow_lag import FlowLag, LagLook, PartitionLag
from mirrorspark.errors import MirrorError
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import EVERYTHING

__all__ = ["NotDrained", "drain", "hold", "let_go"]

LOOK_INTERVAL_S = 0.5
QUIET_S = 2.0
"""The source's ends must stay where they are for so long before it counts as drained."""
TOLD_INTERVAL_S = 2.0
PAUSE_TAKEN_S_MAX = 30.0
STILL_S = 2.5
"""Lanes commit positions every second: positions that stay for so long, with nothing held, are the last ones."""
STILL_S_MAX = 30.0
PLACES_TOLD_MAX = 10
Ends = dict[TopicPartition, int | None]


class NotDrained(MirrorError):
    code = "NOT_DRAINED"


# -- drain -------------------------------------------------------------------------------------------------------------


async def drain(look: LagLook, timeout_s: float, tell: Tell) -> Outcome:
    """Until everything that the source has is on the target, and nothing more comes. Raises NotDrained."""
    deadline = Deadline(timeout_s)
    began, told_at, quiet_since = time.monotonic(), 0.0, time.monotonic()
    first: Ends | None = None
    before: Ends = {}
    while True:
        lag = await look.look()
        if lag.source_error:
            raise NotDrained(
                f"the source cannot be asked any more: {lag.source_error}. --cut takes what is on the target"
            )
        ends: Ends = {one.at: one.source_end for one in lag.counted}
        first = first or ends
        if ends != before:
            before, quiet_since = ends, time.monotonic()
        if not lag.behind and time.monotonic() - quiet_since >= QUIET_S:
            waited = time.monotonic() - began
            return Outcome(f"all of {len(lag.counted)} partitions is on the target (after {waited:.0f} s)")
        if deadline.passed:
            raise _not_drained(look, lag, first, timeout_s)
        if time.monotonic() - told_at >= TOLD_INTERVAL_S:
            told_at = time.monotonic()
            left = "waiting for the source to be quiet" if not lag.behind else _left(lag)
            tell(f"drain: {left}")
        await asyncio.sleep(LOOK_INTERVAL_S)


def _left(lag: FlowLag) -> str:
    worst = max(lag.behind, key=lambda one: one.records or 0)
    return f"{lag.records} records left in {len(lag.behind)} partitions, most in {worst.at} ({worst.records})"


def _not_drained(look: LagLook, lag: FlowLag, first: Ends, timeout_s: float) -> NotDrained:
    grows = [one for one in lag.counted if one.source_end != first.get(one.at)]
    stands = [one for one in lag.behind if one not in grows]
    texts = [f"not everything is on the target after {timeout_s:.0f} s"]
    if grows:
        texts.append(f"somebody still writes to {_places(grows)}: stop those producers")
    if stands:
        waiting = look.there.status.waiting
        why = "; ".join(f"{one.remote}: {waiting[str(one.remote)]}" for one in stands if str(one.remote) in waiting)
        texts.append(
            f"{_places(stands)} do not move{f' ({why})' if why else ''}: does the mirror run? See mirrorspark status"
        )
    return NotDrained("; ".join(texts))


def _places(some: list[PartitionLag]) -> str:
    names = ", ".join(str(one.at) for one in some[:PLACES_TOLD_MAX])
    return names + (f" and {len(some) - PLACES_TOLD_MAX} more" if len(some) > PLACES_TOLD_MAX else "")


# -- hold --------------------------------------------------------------------------------------------------------------


async def hold(look: LagLook, mode: Mode, note_holding: Callable[[bool], Awaitable[None]]) -> Outcome:
    """Pause the flow, wait until its lanes are still, and count what is left. Raises NotDrained in a drain that was none."""
    there = look.there
    await note_holding(True)
    taken = await there.pause(frozenset({EVERYTHING}), PAUSE_TAKEN_S_MAX if there.is_carried else 0.0)
    if there.is_carried and not taken:
        raise MirrorError(
            f"the mirror runs and has not taken the pause within {PAUSE_TAKEN_S_MAX:.0f} s: see mirrorspark status"
        )
    notices = []
    if not there.is_carried:
        notices.append("no mirror runs; the next one that leads the flow finds it paused")
    elif not await _stand_still(look):
        notices.append(
            f"not all lanes were still within {STILL_S_MAX:.0f} s: a few records may have come after the count"
        )
    lag = await look.look()
    stranded = find_stranded(lag)
    if mode is Mode.DRAIN and (stranded.count or not stranded.is_known):
        places = "; ".join(map(str, stranded.partitions[:PLACES_TOLD_MAX]))
        raise NotDrained(f"records came to the source after it was drained: {places}. Stop the producers there")
    unclean = [one for one in lag.counted if not one.is_clean]
    if unclean and not there.is_carried and stranded.count:
        notices.append(
            f"the last mirror did not leave {_places(unclean)} in order: a moment's records may be on the target that the "
            "books do not tell of. A mirror that is started now, paused as the flow is, puts that right"
        )
    facts: dict[str, Any] = {
        "stranded": stranded.to_facts(),
        "downstream_ends": await _ends(look, lag),
        "notices": [*notices, *lag.notices],
    }
    return Outcome(f"the flow is paused; {stranded.words}", facts)


async def let_go(look: LagLook, note_holding: Callable[[bool], Awaitable[None]]) -> str:
    """Take our pause back."""
    await look.there.pause(frozenset(), PAUSE_TAKEN_S_MAX if look.there.is_carried else 0.0)
    await note_holding(False)
    return "the pause was taken back: the flow carries on"


async def _stand_still(look: LagLook) -> bool:
    """Every lane has reported since with nothing in its hands, and no position has moved for a while."""
    there, deadline = look.there, Deadline(STILL_S_MAX)
    began = time.monotonic()
    since, before = began, None
    while not deadline.passed:
        await there.hear()
        positions = {one.remote: (one.mirrored_to, one.downstream_end) for one in (await look.look()).counted}
        if positions != before:
            before, since = positions, time.monotonic()
        lanes = there.status.lanes.values()
        have_all_spoken = all(
            lane.seen_at is not None and lane.seen_at > began and not lane.held_bytes for lane in lanes
        )
        if have_all_spoken and time.monotonic() - since >= STILL_S:
            return True
        await asyncio.sleep(LOOK_INTERVAL_S)
    return False


async def _ends(look: LagLook, lag: FlowLag) -> dict[str, dict[str, int]]:
    """Where the copies end now, by remote topic and partition: what comes later on the target is its own."""
    target, deadline = look.target, Deadline(PAUSE_TAKEN_S_MAX)
    await target.refresh(sorted({one.remote_topic for one in lag.counted}), deadline)
    wanted = [one.remote for one in lag.counted if target.leader(one.remote) is not None]
    found: dict[str, dict[str, int]] = {}
    for at, end in (await list_offsets(target, wanted, LATEST, deadline)).items():
        found.setdefault(at.topic, {})[str(at.partition)] = end
    return found
