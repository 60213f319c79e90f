"""What a walk of the target's tail came upon, told as events. Called by ``recovery`` after each walk that counts."""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.errors import PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.pipeline.tail_walk import Found
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import Policies

__all__ = ["tell_found"]


def tell_found(track: Track, found: Found, policies: Policies, report: Callable[[Event], None]) -> None:
    """Raises PartitionStopped where records are gone on the source and the policy is to stop for that."""
    if found.foreign_records:
        report(
            Event(
                EventKind.FOREIGN_RECORDS,
                f"{found.foreign_records} records in the target's tail are not the source's: somebody else writes there",
                topic=track.remote.topic,
                partition=track.remote.partition,
                offset_first=found.downstream_end,
                offset_last=found.downstream_end,
            )
        )
    if found.gap is not None:
        report(
            Event(
                EventKind.DATA_GAP,
                "the source's retention passed the position while the flow was down; on.data.gap="
                f"{policies.on_data_gap}",
                topic=track.source.topic,
                partition=track.source.partition,
                offset_first=found.gap[0],
                offset_last=found.gap[1],
            )
        )
        if policies.on_data_gap == "fail":
            raise PartitionStopped(
                f"{track.source}: offsets {found.gap[0]}..{found.gap[1]} are no longer on the source (on.data.gap=fail)",
                event=EventKind.DATA_GAP,
                topic=track.source.topic,
                partition=track.source.partition,
                offset_first=found.gap[0],
                offset_last=found.gap[1],
            )
