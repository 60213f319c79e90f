"""Faults as values: a name, and an act that is undone. What a seed draws from them, and what came of each.

``lab/kills.py`` has those of processes, ``lab/broker_faults.py`` those of clusters; ``lab/chaos.py`` strikes with them::

    @contextmanager
    def frozen(broker: Broker, dice: random.Random) -> Iterator[str]:
        broker.pause()
        try:
            yield f"{broker} stands still"
        finally:
            broker.resume()

    fault = Fault("freeze", partial(frozen, broker), lasts_s=(30.0, 30.0))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Fault", "Struck", "drawn", "table"]


@dataclass(frozen=True, slots=True)
class Fault:
    """``strike`` acts on entering and undoes it on leaving; the text it gives says whom it hit.

    ``lasts_s``: the least and the most time between the two. A fault that is over when it has happened has none.
    """

    name: str
    strike: Callable[[random.Random], AbstractContextManager[str]]
    lasts_s: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Struck:
    """What came of a fault. Seconds since the run began; ``ended_s`` is when everything flowed again.

    ``stall_s``: the longest time without a record arriving anywhere on the target while some waited on the source.
    ``partition_stall_s``: the same for the partition that waited longest.
    """

    name: str
    what: str
    began_s: float
    undone_s: float
    ended_s: float
    stall_s: float = 0.0
    partition_stall_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def drawn(seed: int, names: Sequence[str], count: int) -> list[str]:
    """``count`` names in an order that the seed decides: each one once before any comes a second time."""
    dice = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        found += dice.sample(sorted(names), len(names))
    return found[:count]


def table(struck: Sequence[Struck]) -> str:
    """One line a fault: when it began, how long it lasted, both stalls, and whom it hit."""
    head = f"{'at':>7}  {'fault':<24} {'lasted':>8} {'stall':>8} {'partition':>10}  what"
    lines = [
        f"{one.began_s:5.0f} s  {one.name:<24} {one.undone_s - one.began_s:6.1f} s {one.stall_s:6.1f} s "
        f"{one.partition_stall_s:8.1f} s  {one.what}"
        for one in struck
    ]
    return "\n".join([head, *lines])
