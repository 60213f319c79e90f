"""A partition's position on the target, with the proof of who wrote last.

Kept as a group offset on the target: the offset is the downstream end, the rest is JSON in the commit's metadata. Written
and read by ``pipeline.recovery`` and ``pipeline.bookkeeping``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mirrorspark.errors import NewerFormat
from mirrorspark.names import Flow
from mirrorspark.offsets.parity import Parity

__all__ = ["Booked", "LastWriter", "Pen", "Position", "positions_group"]

VERSION = 1


def positions_group(flow: Flow) -> str:
    """MirrorMaker 2's default group filter leaves out names that begin with two underscores."""
    return f"__mirrorspark-{flow}"


@dataclass(frozen=True, slots=True)
class LastWriter:
    """Who appended last: the ids that a successor must fence, in which generation of the flow, and if it left cleanly."""

    transactional_id: str
    producer_id: int
    epoch: int
    generation: int
    clean: bool


@dataclass(frozen=True, slots=True)
class Booked:
    """How far the ledger tells it all, which may be a little less than the position: from there a recovery walks.

    Where the ledger's last page has one run at most, it is held too, so that the next owner lengthens that page instead of
    beginning another.
    """

    upstream_next: int
    downstream_end: int
    page_start: tuple[int, int] | None = None  # upstream, downstream
    run: tuple[int, int, int] | None = None  # upstream first, upstream last, downstream first

    def to_json(self) -> list[list[int]]:
        return [
            [self.upstream_next, self.downstream_end],
            *(list(part) for part in (self.page_start, self.run) if part),
        ]

    @classmethod
    def from_json(cls, parts: list[list[int]]) -> Booked:
        """Raises ValueError or TypeError for what ``to_json`` did not write."""
        (upstream_next, downstream_end), *page = ([int(number) for number in part] for part in parts)
        if not page:
            return cls(upstream_next, downstream_end)
        (start, downstream_start), *runs = page
        run = None
        if runs:
            ((first, last, downstream_first),) = runs
            run = first, last, downstream_first
        return cls(upstream_next, downstream_end, (start, downstream_start), run)


@dataclass(frozen=True, slots=True)
class Pen:
    """With ``offsets=identical``: under which producer id and epoch records were appended last, which sequence comes next,
    and how young the last record was. A successor that may not put a fence's marker into the log writes on with it."""

    producer_id: int
    epoch: int
    next_sequence: int
    newest_ms: int

    def to_json(self) -> list[int]:
        return [self.producer_id, self.epoch, self.next_sequence, self.newest_ms]

    @classmethod
    def from_json(cls, parts: list[int]) -> Pen:
        producer_id, epoch, next_sequence, newest_ms = (int(part) for part in parts)
        return cls(producer_id, epoch, next_sequence, newest_ms)


@dataclass(frozen=True, slots=True)
class Position:
    """Upstream records before ``upstream_next`` are on the target before ``downstream_end``."""

    upstream_next: int
    downstream_end: int
    topic_id: str  # hex; "" where the source has no topic ids
    leader_epoch: int  # of the last batch carried; -1 if not known
    writer: LastWriter | None
    booked: Booked | None = None  # None: the ledger begins here
    remote_id: str = ""  # of the remote topic, hex; "" where nobody knew it
    parity: Parity | None = None  # None: nobody asked for identical offsets
    pen: Pen | None = None

    def to_commit(self) -> tuple[int, str]:
        writer = self.writer
        text: dict[str, object] = {
            "v": VERSION,
            "up": self.upstream_next,
            "id": self.topic_id,
            "le": self.leader_epoch,
            "w": [writer.transactional_id, writer.producer_id, writer.epoch, writer.generation] if writer else None,
            "clean": int(writer.clean) if writer else 1,
        }
        if self.booked is not None:
            text["b"] = self.booked.to_json()
        if self.remote_id:
            text["rid"] = self.remote_id
        if self.parity is not None:
            text["i"] = self.parity.to_json()
        if self.pen is not None:
            text["p"] = self.pen.to_json()
        return self.downstream_end, json.dumps(text, separators=(",", ":"))

    @classmethod
    def from_commit(cls, offset: int, metadata: str) -> Position | None:
        """None if the text is not ours (somebody reset the group by hand): then the position must be proved anew.

        Raises NewerFormat for one that only a newer mirrorspark understands.
        """
        try:
            text = json.loads(metadata)
            if isinstance(text["v"], int) and text["v"] > VERSION:
                raise NewerFormat.of("a position on the target", text["v"], VERSION)
            if text["v"] != VERSION:
                return None
            last = text["w"]
            writer = (
                LastWriter(str(last[0]), int(last[1]), int(last[2]), int(last[3]), bool(text["clean"]))
                if last
                else None
            )
            booked = Booked.from_json(text["b"]) if text.get("b") else None
            remote_id = str(text.get("rid", ""))
            parity = Parity.from_json(text["i"]) if text.get("i") else None
            pen = Pen.from_json(text["p"]) if text.get("p") else None
            place = int(text["up"]), offset, str(text["id"]), int(text["le"])
            return cls(*place, writer, booked, remote_id, parity, pen)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError):
            return None
