"""Where the ledger goes on when a partition changes hands, so that no record on the target is left out of it.

The committed position says how far the ledger tells everything. After a clean end that is the position itself; after any
other the walk begins there, and what it finds is booked by the new owner. Called by ``recovery``.
"""

from __future__ import annotations

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, list_offset
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import NO_TOPIC_ID
from mirrorspark.offsets.position import Booked, Position
from mirrorspark.pipeline.tail_walk import Found
from mirrorspark.pipeline.track import Track

__all__ = ["booked_by", "found_clean", "go_on_with_ledger", "set_ledger_start", "walk_from"]


def found_clean(position: Position) -> Found:
    """A position that is taken as it is."""
    found = Found(position.upstream_next, position.downstream_end, position.leader_epoch)
    reaches = position.booked is not None and position.booked.upstream_next == position.upstream_next
    set_ledger_start(found, position, position.booked if reaches else None)
    return found


def set_ledger_start(found: Found, position: Position, booked: Booked | None) -> None:
    """Where it ended, or at the position if it told nothing that reaches it."""
    found.ledger_is_new = booked is None
    found.booked = booked or Booked(position.upstream_next, position.downstream_end)


async def walk_from(
    source: ClusterClient, at: TopicPartition, position: Position, deadline: Deadline
) -> tuple[int, int, Booked | None]:
    """Upstream and downstream offsets at which to begin a walk: where the ledger ends, if that is before the position.

    Where the source no longer has all of that, the position: then the ledger has a gap, and translation says so.
    """
    booked = position.booked
    place = position.upstream_next, position.downstream_end
    if booked is None or booked.upstream_next == position.upstream_next:
        return *place, booked
    if await list_offset(source, at, EARLIEST, deadline) > booked.upstream_next:
        return *place, None
    return booked.upstream_next, booked.downstream_end, booked


def booked_by(track: Track, found: Found | None) -> Booked | None:
    """What a position says of the ledger: the track's, or before it has begun, the one that was found."""
    if found is None:
        return track.ledger.booked(track.upstream_next)
    return None if found.ledger_is_new and not found.ranges else found.booked


def go_on_with_ledger(target: ClusterClient, track: Track, found: Found) -> None:
    """What the walk found is told too: a record that a killed lane appended and did not book."""
    assert found.booked is not None, f"{track.remote}: a ledger without a beginning"
    remote = target.topics.get(track.remote.topic)
    is_new = found.ledger_is_new and not found.ranges
    track.ledger.begin(found.booked, remote.topic_id if remote else NO_TOPIC_ID, is_new=is_new)
    for span in found.ranges:
        track.ledger.add(span.upstream_first, span.upstream_last, span.downstream_first)
    track.unbooked = found.ledger_is_new or bool(found.ranges)
    track.progress_due = bool(found.ranges)
