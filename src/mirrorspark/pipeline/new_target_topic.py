"""A remote topic that somebody deleted: letting go of it, and where its partitions begin on the one in its place.

The earlier topic's id is in the committed position; the group coordinator forgets positions together with the topic, so
where there is none the plan says that the topic was made anew, and the ledger how far the flow had come. Then it goes by
``on.target.topic.deleted``. Called by the lane and by ``recovery``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import FlowSettings

__all__ = ["LastBooked", "drain", "nothing_booked", "position_on_new_topic", "stood_on_earlier_topic"]

DRAIN_POLL_S = 0.002
LastBooked = Callable[[TopicPartition, TopicPartition], Awaitable[Position | None]]


async def drain(tracks: Iterable[Track], target: ClusterClient, deadline: Deadline) -> None:
    """Until what is in line has gone out, or cannot.

    To a topic that is gone nothing goes out any more. What waits for it is dropped, or it would be the first thing in the
    topic that is made in its place.
    """
    waiting = list(tracks)
    while waiting and not deadline.passed:
        gone = [track for track in waiting if track.remote.topic not in target.topics]
        for track in gone:
            track.queue.blocked = True  # nothing is sent from now on; what is on the wire will be answered
            if not track.queue.outstanding:
                track.drop_queue()
        waiting = [one for one in waiting if not one.drained and (one in gone or not one.queue.blocked)]
        if waiting:
            await asyncio.sleep(DRAIN_POLL_S)


async def nothing_booked(source: TopicPartition, remote: TopicPartition) -> Position | None:
    return None


async def stood_on_earlier_topic(track: Track, position: Position | None, last_booked: LastBooked) -> Position | None:
    """The position on an earlier topic of this name; None if there was none, or nobody knows how far it went."""
    now = track.assignment.remote_id
    if position is not None:
        return position if position.remote_id and now and position.remote_id != now else None
    return await last_booked(track.source, track.remote) if track.assignment.is_remade else None


async def position_on_new_topic(
    source: ClusterClient,
    target: ClusterClient,
    track: Track,
    stood: Position,
    settings: FlowSettings,
    deadline: Deadline,
) -> Position:
    """``recreate``: on with the next record; what a last batch may have left there is compared. ``remirror``: from the
    source's first record, behind whatever is there."""
    now = replace(stood, booked=None, remote_id=track.assignment.remote_id, parity=None, pen=None)
    if settings.policies.on_target_topic_deleted == "remirror":
        first = await list_offset(source, track.source, EARLIEST, deadline)
        end = await list_offset(target, track.remote, LATEST, deadline)
        return replace(
            now, upstream_next=first, downstream_end=end, topic_id=track.assignment.topic_id, leader_epoch=-1
        )
    return replace(now, downstream_end=await list_offset(target, track.remote, EARLIEST, deadline))
