"""How many lanes each flow of a process may have, where Spark runs fewer tasks at a time than they want together.

Pure: ``flow_set`` asks with what there is. A lane holds its slot for a whole epoch, so a lane without one would leave its
partitions uncarried for minutes. A flow with fewer lanes carries all of its partitions, only with fewer hands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mirrorspark.names import Flow

__all__ = ["LaneShare", "lane_shares"]


@dataclass(frozen=True, slots=True)
class LaneShare:
    """``why`` is empty where the flow has all the lanes that it wants."""

    lanes: int
    why: str = ""


def lane_shares(
    wanted: Mapping[Flow, int], slots: int | None, where: str, behind: Collection[Flow] = ()
) -> dict[Flow, LaneShare]:
    """One each at least; then those that are behind, then the others, evenly: nobody gets a lane more while another of its
    kind has fewer and wants more. ``slots`` None: no limit known. ``where`` names Spark to a person."""
    if slots is None or sum(wanted.values()) <= slots:
        return {flow: LaneShare(lanes) for flow, lanes in wanted.items()}
    given = {flow: min(1, lanes) for flow, lanes in wanted.items()}
    for _ in range(slots - sum(given.values())):
        short = (one for one in wanted if given[one] < wanted[one])
        flow = min(short, key=lambda one: (one not in behind, given[one]))
        given[flow] += 1
    total = sum(wanted.values())
    return {flow: _share(lanes, wanted[flow], slots, total, len(wanted), where) for flow, lanes in given.items()}


def _share(lanes: int, wanted: int, slots: int, total: int, flows: int, where: str) -> LaneShare:
    remedy = f"Give Spark {total} slots (spark.cores.max, or more and larger executors), or lower tasks.max"
    if slots < flows:
        why = (
            f"{where} runs {slots} tasks at a time, but there are {flows} flows: they take turns, an epoch each "
            f"(epoch.seconds). {remedy}"
        )
    elif lanes < wanted:
        why = (
            f"tasks.max = {wanted}, but {where} runs {slots} tasks at a time for {total} lanes in all: this flow has "
            f"{lanes} of its {wanted} lanes, and they carry everything. {remedy}"
        )
    else:
        why = ""
    return LaneShare(lanes, why)
