"""Where a partition begins that has no position, or one of another source topic; and how that is told. For ``recovery``,
and for who sets a flow's offsets back by hand."""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.errors import PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.track import Track
from mirrorspark.plan.start_positions import StartKind, start_of
from mirrorspark.settings import FlowSettings, Policies

__all__ = ["begins_at_latest", "first_offsets", "first_upstream", "lost_position", "recreated"]


async def first_offsets(
    source: ClusterClient,
    target: ClusterClient,
    track: Track,
    settings: FlowSettings,
    deadline: Deadline,
    report: Callable[[Event], None],
) -> tuple[int, int, int]:
    """Where the user wants it to begin on the source (its first record, if nothing was said); first offset and end of the
    target. ``report`` is told where that place is not there."""
    upstream, not_there = await first_upstream(source, track.source, settings, deadline)
    if not_there is not None:
        report(not_there)
    first = await list_offset(target, track.remote, EARLIEST, deadline)
    return upstream, first, await list_offset(target, track.remote, LATEST, deadline)


async def first_upstream(
    source: ClusterClient, at: TopicPartition, settings: FlowSettings, deadline: Deadline
) -> tuple[int, Event | None]:
    """The first offset to carry, and what there is to say about it."""
    start = start_of(settings, *at)
    if start.kind is StartKind.EARLIEST:
        return await list_offset(source, at, EARLIEST, deadline), None
    if start.kind is StartKind.TIME:
        found = await list_offset(source, at, start.time_ms, deadline)
        if found >= 0:
            return found, None
        return await list_offset(source, at, LATEST, deadline), None  # nothing so young is there yet
    end = await list_offset(source, at, LATEST, deadline)
    if start.kind is StartKind.LATEST:
        return end, None
    ((_, wanted),) = start.offsets
    first = await list_offset(source, at, EARLIEST, deadline)
    if first <= wanted <= end:
        return wanted, None
    return (first if wanted < first else end), _out_of_range(at, wanted, first, end)


def begins_at_latest(settings: FlowSettings, at: TopicPartition) -> bool:
    return start_of(settings, *at).kind is StartKind.LATEST


def _out_of_range(at: TopicPartition, wanted: int, first: int, end: int) -> Event:
    is_gone = wanted < first
    what = (
        f"begins at {first}, the first that is left"
        if is_gone
        else f"begins at {end}, the end; what is written from now on is carried"
    )
    return Event(
        EventKind.START_OUT_OF_RANGE,
        f"start.at.topic.{at.topic} asks for offset {wanted} of partition {at.partition}, and the source has {first} to "
        f"{end} (its end): {what}",
        *at,
        *((wanted, first - 1) if is_gone else (end, wanted - 1)),
    )


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
