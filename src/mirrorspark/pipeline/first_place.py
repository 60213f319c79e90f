"""Where a partition begins that has no position, or one of another source topic; and how that is told. For ``recovery``."""

from __future__ import annotations

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.errors import PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import FlowSettings, Policies

__all__ = ["first_offsets", "lost_position", "recreated"]


async def first_offsets(
    source: ClusterClient, target: ClusterClient, track: Track, settings: FlowSettings, deadline: Deadline
) -> tuple[int, int, int]:
    """The source's first record, or its end where the user asked for ``latest``; first offset and end of the target."""
    which = LATEST if settings.start_at_latest else EARLIEST
    upstream = await list_offset(source, track.source, which, deadline)
    first = await list_offset(target, track.remote, EARLIEST, deadline)
    return upstream, first, await list_offset(target, track.remote, LATEST, deadline)


def lost_position(track: Track, first: int, end: int) -> Event:
    return Event(
        EventKind.POSITION_LOST,
        f"no position and no ledger for it, yet {end - first} offsets are on the target: comparing both logs "
        "from the beginning; what is there is not sent again",
        topic=track.remote.topic,
        partition=track.remote.partition,
        offset_first=first,
        offset_last=end - 1,
    )


def recreated(track: Track, position: Position, policies: Policies) -> Event:
    """The source topic was deleted and created again. Raises PartitionStopped where the policy says so."""
    fail = policies.on_topic_recreated == "fail"
    text = f"{track.source.topic} was deleted and created again (on.topic.recreated={policies.on_topic_recreated}); "
    text += "waits for a person" if fail else "all records of the new topic are carried"
    at = position.upstream_next
    if fail:
        raise PartitionStopped(
            text,
            event=EventKind.TOPIC_RECREATED,
            topic=track.source.topic,
            partition=track.source.partition,
            offset_first=at,
            offset_last=at,
        )
    return Event(EventKind.TOPIC_RECREATED, text, track.source.topic, track.source.partition, at, at)
