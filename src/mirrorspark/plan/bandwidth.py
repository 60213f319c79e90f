"""A limit divided: over the lanes of a flow, or over the flows of a process, by what each of them needs.

Pure: who needs how much comes in, shares go out; they always add up to the limit, and what one leaves the others may use.
``Shares`` is how a driver tells its lanes, as one small record on the plan topic beside the plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mirrorspark.errors import MirrorError

__all__ = ["Need", "Shares", "divide"]

VERSION = 1
HEADROOM = 1.1
"""Of what somebody used who was not held back: room to grow a little. What is left over is divided as well."""
FLOOR = 0.02
"""The part of a limit that is given out evenly, whatever is needed: who was idle begins with it, until the next division."""


@dataclass(frozen=True, slots=True)
class Need:
    """One of those that share. ``is_held``: it would take more than it was given, nobody knows how much."""

    bytes_per_s: float = 0.0
    is_held: bool = True
    weight: int = 1
    bytes_per_s_max: float = float("inf")
    """More it may not have, whatever is left."""

    @property
    def wanted(self) -> float:
        wanted = float("inf") if self.is_held else self.bytes_per_s * HEADROOM
        return min(wanted, self.bytes_per_s_max)


def divide(limit: float, needs: Sequence[Need]) -> list[float]:
    """Bytes a second for each: nobody more than they want while another wants it, the rest by weight. Work conserving:
    the sum is the limit, unless all have as much as they may have."""
    assert limit > 0
    if not needs:
        return []
    even = limit * FLOOR / len(needs)
    shares = [min(even, need.bytes_per_s_max) for need in needs]
    _pour(shares, limit - sum(shares), [need.wanted for need in needs], [need.weight for need in needs])
    _pour(shares, limit - sum(shares), [need.bytes_per_s_max for need in needs], [need.weight for need in needs])
    return shares


def _pour(shares: list[float], left: float, up_to: Sequence[float], weights: Sequence[int]) -> None:
    """Fill all at once, each in step with its weight, until it is full or nothing is left."""
    open_ = [index for index in range(len(shares)) if shares[index] < up_to[index]]
    while open_ and left > 0:
        step = left / sum(weights[index] for index in open_)
        full = [index for index in open_ if shares[index] + step * weights[index] >= up_to[index]]
        if not full:
            for index in open_:
                shares[index] += step * weights[index]
            return
        for index in full:
            left -= up_to[index] - shares[index]
            shares[index] = up_to[index]
        open_ = [index for index in open_ if index not in full]


@dataclass(frozen=True, slots=True)
class Shares:
    """What the lanes of a flow may read, in bytes a second. ``limit`` 0: as much as they can."""

    generation: int
    limit: int = 0
    lanes: tuple[int, ...] = ()

    def of(self, lane: int) -> int:
        """0 is no limit. A lane that is not listed gets what each had if all were alike."""
        if not self.limit:
            return 0
        return self.lanes[lane] if lane < len(self.lanes) else max(1, self.limit // max(1, len(self.lanes)))

    def to_json(self) -> bytes:
        text = {"v": VERSION, "generation": self.generation, "limit": self.limit, "lanes": list(self.lanes)}
        return json.dumps(text, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> Shares:
        """Raises MirrorError for what no driver of this version wrote."""
        try:
            text = json.loads(raw)
            if text["v"] != VERSION:
                raise ValueError(f"version {text['v']}")
            return cls(int(text["generation"]), int(text["limit"]), tuple(int(share) for share in text["lanes"]))
        except (ValueError, KeyError, TypeError) as error:
            raise MirrorError(
                f"the bandwidth record cannot be read ({error!r}): nothing but a driver may write that key"
            ) from error
