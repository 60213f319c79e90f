"""What connectors do, as a server says it, and waiting until they do what is wanted. Commands call it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.remote.api import Api, part

__all__ = ["GONE", "Told", "look", "told_of", "wait_until"]

LOOK_INTERVAL_S = 0.5
SETTLED_S = 5.0
"""A failure, or a connector without tasks, counts when it has stayed so: both are seen for a moment after a change."""
GONE = "NOT DEPLOYED"
FAILED = "FAILED"
RUNNING = "RUNNING"
AT_REST = ("PAUSED", "STOPPED")


@dataclass(frozen=True)
class Told:
    """A connector as its server tells of it."""

    name: str
    state: str = GONE
    worker: str = ""
    tasks: tuple[str, ...] = ()
    trace: str = ""
    """Of the connector, else of the first task that has one."""

    @property
    def has_failed(self) -> bool:
        return FAILED in (self.state, *self.tasks)

    @property
    def runs(self) -> bool:
        return self.state == RUNNING and all(state == RUNNING for state in self.tasks)

    @property
    def is_well(self) -> bool:
        """Nothing is wrong with it: it runs, or somebody paused it."""
        return self.runs or (self.state == AT_REST[0] and not self.has_failed)

    @property
    def tasks_text(self) -> str:
        return f"{sum(state == RUNNING for state in self.tasks)}/{len(self.tasks)}"

    @property
    def word(self) -> str:
        return self.state if self.state == GONE else f"{self.state}, {self.tasks_text} tasks run"

    def picture(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "state": self.state, "tasks": list(self.tasks)}
        found |= {"worker_id": self.worker}
        return {**found, "trace": self.trace} if self.trace else found


def told_of(name: str, body: Mapping[str, Any] | None) -> Told:
    """Of a status body; of none, a connector that is not there."""
    if body is None:
        return Told(name)
    connector, tasks = body.get("connector", {}), body.get("tasks", [])
    traces = [str(one["trace"]) for one in (connector, *tasks) if one.get("trace")]
    return Told(
        name,
        str(connector.get("state", "UNASSIGNED")),
        str(connector.get("worker_id", "")),
        tuple(str(task.get("state", "UNASSIGNED")) for task in tasks),
        traces[0] if traces else "",
    )


def look(api: Api, name: str) -> Told:
    return told_of(name, api.find(f"/connectors/{part(name)}/status"))


def wait_until(api: Api, wanted: Mapping[str, str], deadline: Deadline, say: Callable[[Told], None]) -> Sequence[Told]:
    """Until each connector is in its state (``GONE`` too), has failed for good or rests; or until the deadline.

    ``say`` hears of every change. The caller judges what it gets.
    """
    seen: dict[str, Told] = {}
    since: dict[str, float] = {}
    while True:
        for name in wanted:
            told = look(api, name)
            if told != seen.get(name):
                say(told)
                seen[name], since[name] = told, time.monotonic()
        waits = [name for name, state in wanted.items() if not _is_over(seen[name], state, since[name])]
        if not waits or deadline.passed:
            return [seen[name] for name in wanted]
        time.sleep(deadline.at_most(LOOK_INTERVAL_S))


def _is_over(told: Told, wanted: str, since: float) -> bool:
    has_settled = time.monotonic() - since >= SETTLED_S
    if wanted == GONE or told.state == GONE:
        return told.state == wanted
    if told.has_failed:
        return has_settled
    if wanted == RUNNING:
        return (told.runs and bool(told.tasks or has_settled)) or told.state in AT_REST
    return told.state == wanted
