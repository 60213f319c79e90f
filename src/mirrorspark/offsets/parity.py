"""Whether a remote partition's offsets equal those of its source, and since where (``offsets=identical``).

A value: it travels with the committed position (``offsets.position``), is decided by ``pipeline.identical``, and shown by
``status``. Once lost it stays lost, until the remote topic is another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Parity"]

HOLDS = -1


@dataclass(frozen=True, slots=True)
class Parity:
    """Records from upstream offset ``since`` on lie at their own offsets on the target; from ``lost_at`` on no longer."""

    since: int
    lost_at: int = HOLDS

    @property
    def holds(self) -> bool:
        return self.lost_at == HOLDS

    def lost(self, at: int) -> Parity:
        """``at``: the first offset that is not, or may not be, the same on both sides."""
        assert self.holds, f"lost twice: at {self.lost_at}, then at {at}"
        return replace(self, lost_at=max(at, 0))

    def to_json(self) -> list[int]:
        return [self.since, self.lost_at]

    @classmethod
    def from_json(cls, parts: list[int]) -> Parity:
        """Raises ValueError or TypeError for what ``to_json`` did not write."""
        since, lost_at = (int(part) for part in parts)
        return cls(since, lost_at)

    def __str__(self) -> str:
        if self.holds:
            return f"identical since {self.since}"
        return f"translated since {self.lost_at}" + (
            f", identical before, from {self.since} on" if self.was_ever else ""
        )

    @property
    def was_ever(self) -> bool:
        """Whether any offset was the same."""
        return self.lost_at > self.since if not self.holds else True
