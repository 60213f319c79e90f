"""Is a MirrorMaker 2 carrying this flow? Asked before a flow is led: two mirrors would copy each record twice.

Its workers are members of a Connect group on the target, and each of its tasks says on Connect's status topic what it is
doing. Both together tell: workers without source tasks carry nothing (a dedicated MirrorMaker 2 keeps some for
heartbeats), and tasks that say RUNNING but whose group is empty were killed. While a flow runs ``MirrorMakerWatch`` looks
again each minute: one that is started beside it cannot be kept from copying, but it is told. Changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.errors import BrokerError, ClusterError, MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.settings import FlowSettings

__all__ = [
    "WATCHING_MIRROR_MAKER",
    "MirrorMakerRunning",
    "MirrorMakerWatch",
    "RunningTask",
    "check_no_mirror_maker",
    "parse_task",
    "running_mirror_maker",
]

log = logging.getLogger("mirrorspark.flow")

WATCHING_MIRROR_MAKER = "looking for MirrorMaker 2"
ASK_TIMEOUT_S = 30.0
WATCH_INTERVAL_S = 60.0
TASKS_SHOWN_MAX = 3
AT_REST = ("UNASSIGNED", "DESTROYED", "STOPPED")
"""States of a task that nobody runs. A paused or failed one goes on as soon as somebody says so."""


class MirrorMakerRunning(MirrorError):
    code = "MIRROR_MAKER_RUNNING"


@dataclass(frozen=True, slots=True)
class RunningTask:
    name: str
    state: str
    worker: str

    def __str__(self) -> str:
        return f"{self.name} {self.state} on {self.worker}"


async def check_no_mirror_maker(target: ClusterClient, settings: FlowSettings) -> None:
    """Raises MirrorMakerRunning, unless the user wants it so."""
    found = await running_mirror_maker(target, settings)
    if not found:
        return
    flow = settings.flow
    if settings.policies.on_mirror_maker_running == "continue":
        log.warning("%s: %s; starting beside it (on.mirror.maker.running=continue)", flow, found)
        return
    raise MirrorMakerRunning(
        f"{found}. Two mirrors would copy each record twice: stop MirrorMaker 2 first, then {flow} goes on from there. "
        "To start beside it all the same set on.mirror.maker.running=continue",
        flow=str(flow),
    )


class MirrorMakerWatch:
    """``run`` until it is cancelled; ``tell`` gets what there is to be told, nothing if all is well."""

    def __init__(
        self,
        target: ClusterClient,
        settings: Callable[[], FlowSettings],
        tell: Callable[[Sequence[Event]], Awaitable[None]],
    ) -> None:
        self._target = target
        self._settings = settings
        self._tell = tell

    async def run(self) -> None:
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            try:
                await self.look()
            except ClusterError as error:  # the flow's other jobs say so; the next look may know more
                log.info("%s: %s: %s", self._settings().flow, WATCHING_MIRROR_MAKER, error)

    async def look(self) -> None:
        settings = self._settings()
        found = await running_mirror_maker(self._target, settings)
        is_wanted = settings.policies.on_mirror_maker_running == "continue"
        text = f"{found}: both copy each record. Stop one of them; what is on the target twice stays there"
        await self._tell([Event(EventKind.MIRROR_MAKER_RUNNING, text)] if found and not is_wanted else [])


async def running_mirror_maker(target: ClusterClient, settings: FlowSettings) -> str:
    """Who it is, in words; "" if there is none, or if the target does not tell."""
    flow = settings.flow
    group = settings.connect.group or f"{flow.source}-mm2"
    deadline = Deadline(ASK_TIMEOUT_S)
    answers = await GroupAdmin(target).describe([group], deadline)
    if group in answers.refused:
        log.warning("%s: whether MirrorMaker 2 is running cannot be told: %s", flow, answers.refused[group])
        return ""
    state = answers.found[group]
    if state.members == 0:
        return ""
    workers = f"its group {group} on cluster {flow.target} has {state.members} members"
    try:
        tasks = await _tasks(target, settings, deadline)
    except BrokerError as error:
        return f"MirrorMaker 2 may be carrying {flow}: {workers}, and what they do cannot be read: {error}"
    if not tasks:
        return ""
    shown = ", ".join(map(str, tasks[:TASKS_SHOWN_MAX]))
    more = f" and {len(tasks) - TASKS_SHOWN_MAX} more" if len(tasks) > TASKS_SHOWN_MAX else ""
    return f"MirrorMaker 2 is carrying {flow}: {workers}, with tasks {shown}{more}"


async def _tasks(target: ClusterClient, settings: FlowSettings, deadline: Deadline) -> list[RunningTask]:
    """Source tasks that somebody runs. Raises BrokerError where the status topic cannot be read."""
    name = settings.connect.status_topic or f"mm2-status.{settings.flow.source}.internal"
    (found,) = await target.refresh([name], deadline)
    if found.error_code:
        raise broker_error(found.error_code, "Metadata", f"topic {name} on cluster {target.alias}", before="Fetch")
    newest = await KeyedTopic(target, name, len(found.partitions)).read_all(deadline)
    tasks = (parse_task(key, value, settings.connect.connector) for key, value in newest.items())
    return sorted((task for task in tasks if task is not None and task.state not in AT_REST), key=str)


def parse_task(key: bytes, value: bytes | None, connector: str) -> RunningTask | None:
    """One record of Connect's status topic; None for what is not a task of this connector, or was taken away."""
    name = key.decode(errors="replace")
    own = f"status-task-{connector}-"
    if value is None or not name.startswith(own) or not name[len(own) :].isdigit():
        return None
    try:
        told = json.loads(value)
        return RunningTask(name.removeprefix("status-task-"), str(told["state"]), str(told["worker_id"]))
    except (ValueError, KeyError, TypeError):
        return None
