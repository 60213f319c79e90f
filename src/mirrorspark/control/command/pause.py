"""``mirrorspark pause FILE``: hold topics, or a whole flow, until ``resume``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.control.command.flow_choice import File, FlowName, chosen_flows, end_with
from mirrorspark.control.command.tables import AsJson, print_json
from mirrorspark.control.flow_on_target import FlowOnTarget
from mirrorspark.control.pause_changes import paused_with, remote_name
from mirrorspark.errors import SettingsError
from mirrorspark.observe.flow_status import EVERYTHING
from mirrorspark.settings import FlowSettings

__all__ = ["Topics", "pause", "steer"]

TAKEN_WAIT_S = 5.0
"""A mirror that runs takes a pause into its plan in about half a second."""
NAMES_SHOWN_MAX = 10

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC", help="A topic, by its name on the target or on the source. May be repeated."
    ),
]


def pause(file: File, flow: FlowName = None, topic: Topics = None, as_json: AsJson = False) -> None:
    """Hold these topics, or the whole flow if none is named. The mirror obeys in a second or two, and over restarts.

    Examples:

      mirrorspark pause mm2.properties

      mirrorspark pause mm2.properties --flow 'east->west' --topic orders --topic payments --json

    Exit codes: 0 written, 1 a target cluster cannot be reached or refuses, 2 FILE, --flow or --topic is wrong.
    """
    end_with(_pause(file, flow, topic or [], as_json))


async def _pause(file: Path, flow: str | None, topics: list[str], as_json: bool) -> int:
    def pauses(there: FlowOnTarget, named: frozenset[str]) -> frozenset[str]:
        return paused_with(there, named if topics else ())

    return await steer(chosen_flows(file, flow), topics, pauses, as_json=as_json)


async def steer(
    flows: list[FlowSettings],
    topics: list[str],
    pauses: Callable[[FlowOnTarget, frozenset[str]], frozenset[str]],
    *,
    as_json: bool,
) -> int:
    """Write what ``pauses`` says for each flow that knows one of the topics; nothing if a topic is known to none."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(FlowOnTarget(settings)) for settings in flows]
        meant = [{topic: name for topic in topics if (name := remote_name(there, topic))} for there in opened]
        for topic in topics:
            if not any(topic in names for names in meant):
                raise _unknown(topic, opened)
        done = []
        for there, names in zip(opened, meant, strict=True):
            if names or not topics:
                taken = await there.pause(pauses(there, frozenset(names.values())), TAKEN_WAIT_S)
                done.append(picture(there, taken))
                if not as_json:
                    tell(there, taken)
        if as_json:
            print_json({"flows": done})
    return 0


def _unknown(topic: str, flows: list[FlowOnTarget]) -> SettingsError:
    known = sorted({one.source.topic for there in flows for one in there.assignments})
    shown = ", ".join(known[:NAMES_SHOWN_MAX]) + (" …" if len(known) > NAMES_SHOWN_MAX else "")
    names = ", ".join(str(there.settings.flow) for there in flows)
    return SettingsError(f"--topic {topic}: not carried by {names}; carried are: {shown or 'none'}", key="--topic")


def picture(there: FlowOnTarget, taken: bool) -> dict[str, Any]:
    """As REST answers the same: ``["*"]`` is everything."""
    return {"flow": str(there.settings.flow), "paused": sorted(there.paused), "is_taken": taken}


def tell(there: FlowOnTarget, taken: bool) -> None:
    names = "everything" if EVERYTHING in there.paused else ", ".join(sorted(there.paused)) or "nothing"
    when = "the mirror obeys it" if taken else "no mirror has taken it up yet; the next one that leads the flow will"
    print(f"{there.settings.flow} paused: {names} ({when})")
