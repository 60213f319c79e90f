"""``mirrorspark resume FILE``: let paused topics, or a whole flow, go on."""

from __future__ import annotations

from pathlib import Path

from mirrorspark.control.command.flow_choice import File, FlowName, chosen_flows, end_with
from mirrorspark.control.command.pause import Topics, steer
from mirrorspark.control.command.tables import AsJson
from mirrorspark.control.flow_on_target import FlowOnTarget
from mirrorspark.control.pause_changes import paused_without

__all__ = ["resume"]


def resume(file: File, flow: FlowName = None, topic: Topics = None, as_json: AsJson = False) -> None:
    """Let these topics go on, or everything that is paused if none is named.

    Of a flow that is paused as a whole, --topic lets these go on and holds the others that it carries now.

    Examples:

      mirrorspark resume mm2.properties

      mirrorspark resume mm2.properties --flow 'east->west' --topic orders

    Exit codes: 0 written, 1 a target cluster cannot be reached or refuses, 2 FILE, --flow or --topic is wrong.
    """
    end_with(_resume(file, flow, topic or [], as_json))


async def _resume(file: Path, flow: str | None, topics: list[str], as_json: bool) -> int:
    def pauses(there: FlowOnTarget, named: frozenset[str]) -> frozenset[str]:
        return paused_without(there, named if topics else ())

    return await steer(chosen_flows(file, flow), topics, pauses, as_json=as_json)
