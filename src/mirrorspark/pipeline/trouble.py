"""What ``express`` tells of a partition that cannot go on. ``troubles`` decides what is done about it."""

from __future__ import annotations

from dataclasses import dataclass

from mirrorspark.errors import WireError

__all__ = ["Trouble"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why one partition cannot go on: a code from the source or the target, or damaged bytes."""

    side: str  # "source" or "target"
    error_code: int = 0
    text: str = ""
    log_start: int = -1
    diverging_end: int = -1
    damaged: WireError | None = None
    doubtful: bool = False  # an append was not answered, and the broker may not know a repeat
