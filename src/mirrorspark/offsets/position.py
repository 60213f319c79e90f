"""A partition's position on the target, with the proof of who wrote last.

Kept as a group offset on the target: the offset is the downstream end, the rest is JSON in the commit's metadata. Written
and read by ``pipeline.recovery`` and ``pipeline.bookkeeping``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

__all__ = ["LastWriter", "Position", "positions_group"]

VERSION = 1


def positions_group(source: str, target: str) -> str:
    """MirrorMaker 2's default group filter leaves out names that begin with two underscores."""
    return f"__mirrorspark-{source}->{target}"


@dataclass(frozen=True, slots=True)
class LastWriter:
    """Who appended last: the ids that a successor must fence, in which generation of the flow, and if it left cleanly."""

    transactional_id: str
    producer_id: int
    epoch: int
    generation: int
    clean: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Upstream records before ``upstream_next`` are on the target before ``downstream_end``."""

    upstream_next: int
    downstream_end: int
    topic_id: str  # hex; "" where the source has no topic ids
    leader_epoch: int  # of the last batch carried; -1 if not known
    writer: LastWriter | None

    def to_commit(self) -> tuple[int, str]:
        writer = self.writer
        text = {
            "v": VERSION,
            "up": self.upstream_next,
            "id": self.topic_id,
            "le": self.leader_epoch,
            "w": [writer.transactional_id, writer.producer_id, writer.epoch, writer.generation] if writer else None,
            "clean": int(writer.clean) if writer else 1,
        }
        return self.downstream_end, json.dumps(text, separators=(",", ":"))

    @classmethod
    def from_commit(cls, offset: int, metadata: str) -> Position | None:
        """None if the text is not ours (somebody reset the group by hand): then the position must be proved anew."""
        try:
            text = json.loads(metadata)
            if text["v"] != VERSION:
                return None
            last = text["w"]
            writer = (
                LastWriter(str(last[0]), int(last[1]), int(last[2]), int(last[3]), bool(text["clean"]))
                if last
                else None
            )
            return cls(int(text["up"]), offset, str(text["id"]), int(text["le"]), writer)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError):
            return None
