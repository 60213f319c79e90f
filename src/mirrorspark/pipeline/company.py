"""Partitions of the target to which others append too: keeps our downstream end near the end of their logs.

A successor proves what we left by reading the target's log from our downstream end on. Where topics keep their names, local
producers write there as well, and a partition that we have nothing for would make that a long read. Called by the lane's
clock and at a clean end, for flows with an origin check only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.errors import ClusterError
from mirrorspark.pipeline.track import Track, TrackState

__all__ = ["step_past_company"]

log = logging.getLogger("mirrorspark.lane")

SETTLED = (TrackState.CARRYING, TrackState.PAUSED, TrackState.LEAVING)


def is_settled(track: Track) -> bool:
    """All that we sent to this partition is acknowledged, for certain."""
    return track.state in SETTLED and track.drained and not track.in_doubt and not track.queue.blocked


async def step_past_company(target: ClusterClient, tracks: Iterable[Track], deadline: Deadline) -> None:
    """Move the downstream end of settled partitions to the end of the target's log as of now.

    Nothing of ours can lie in between: nothing was on its way when the end was asked for, and where something was sent
    meanwhile the answer is left alone.
    """
    before = {
        track: track.next_sequence
        for track in tracks
        if is_settled(track) and track.writer is not None and target.leader(track.remote) is not None
    }
    if not before:
        return
    try:
        ends = await list_offsets(target, [track.remote for track in before], LATEST, deadline)
    except ClusterError as error:
        if not error.retriable:
            raise
        log.info("the ends of the target's logs are not known now (%s): a successor would read a little more", error)
        return
    for track, sequence in before.items():
        nothing_sent = is_settled(track) and track.next_sequence == sequence
        if nothing_sent and ends[track.remote] > track.downstream_end:
            track.downstream_end = ends[track.remote]
            track.uncommitted = True
