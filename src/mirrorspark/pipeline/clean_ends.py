"""Clean ends that are not taken on trust: where a position says that the last writer left, its log must end there too.

A writer that was cut off can still sign a stale position as clean. One request per leader tells. Called by ``recovery``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.errors import PartitionStopped
from mirrorspark.events import EventKind
from mirrorspark.pipeline.tail_walk import Found
from mirrorspark.pipeline.track import Track

__all__ = ["distrust_clean_ends"]


async def distrust_clean_ends(
    target: ClusterClient,
    ready: dict[Track, Found],
    failed: dict[Track, Exception],
    nothing_of_ours: Callable[[Track, int, int], Awaitable[bool]],
    deadline: Deadline,
) -> list[Track]:
    """Invariant C holds for clean ends too. Where the log goes on, markers (and others' records, where those are meant to be
    there) are passed over; where something else may follow the track is returned, and taken out of ``ready``: it must be
    fenced and walked like one with an unclean end."""
    ends = await list_offsets(target, [track.remote for track in ready], LATEST, deadline)
    goes_on = [track for track, found in ready.items() if ends[track.remote] > found.downstream_end]
    harmless = await asyncio.gather(
        *(nothing_of_ours(track, ready[track].downstream_end, ends[track.remote]) for track in goes_on)
    )
    for track, nothing in zip(goes_on, harmless, strict=True):
        if nothing:
            ready[track].downstream_end = ends[track.remote]
    for track, found in list(ready.items()):
        if ends[track.remote] < found.downstream_end:
            del ready[track]
            failed[track] = _truncated(track, ends[track.remote], found.downstream_end)
    return [track for track, nothing in zip(goes_on, harmless, strict=True) if not nothing]


def _truncated(track: Track, end: int, acknowledged: int) -> PartitionStopped:
    return PartitionStopped(
        f"the target's log of {track.remote} ends at {end}, but offsets up to {acknowledged - 1} were acknowledged: records "
        "were lost or the topic was made anew; restore it, or start this topic over",
        event=EventKind.TARGET_TRUNCATED,
        topic=track.remote.topic,
        partition=track.remote.partition,
        offset_first=end,
        offset_last=acknowledged - 1,
    )
