"""What is written down about one failover: its mode, the steps that are done and what they found. Values only.

One keyed record on the flow's plan topic on the target (``journal``), so that any machine can go on with it, also when the
source is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from mirrorspark.errors import SettingsError

__all__ = ["FAILOVER_KEY", "Mode", "Outcome", "Record", "StepRecord", "StepState", "format_record", "parse_record"]

FAILOVER_KEY = b"failover"
VERSION = 1


class Mode(StrEnum):
    DRAIN = "drain"
    """Producers have stopped: wait until all that they wrote is on the target."""
    CUT = "cut"
    """Take what is on the target now."""


class StepState(StrEnum):
    DONE = "done"
    POSTPONED = "postponed"
    """Cannot be done now and holds up nothing: the next run tries again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended. ``facts`` are for later steps and for the report; they go to JSON."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    state: StepState = StepState.DONE


@dataclass(frozen=True, slots=True)
class StepRecord:
    state: StepState
    at_ms: int
    text: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """``run`` names who may go on writing: a later run takes the record over by its own name."""

    run: str
    flow: str
    mode: Mode
    by: str
    started_ms: int
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    is_holding: bool = False
    """We paused the flow, or were about to: a pause that is found there is ours."""
    finished_ms: int | None = None
    returned_ms: int | None = None
    """When the work went back to the source: then another failover begins anew."""

    @property
    def is_finished(self) -> bool:
        return self.finished_ms is not None

    @property
    def is_in_force(self) -> bool:
        """Finished, and nothing has been moved back since."""
        return self.is_finished and self.returned_ms is None

    def is_done(self, step: str) -> bool:
        return step in self.steps and self.steps[step].state is StepState.DONE

    @property
    def postponed(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.state is StepState.POSTPONED]

    def facts(self, step: str) -> Mapping[str, Any]:
        return self.steps[step].facts if step in self.steps else {}

    def with_step(self, name: str, outcome: Outcome, at_ms: int) -> Record:
        done = StepRecord(outcome.state, at_ms, outcome.text, outcome.facts)
        return replace(self, steps={**self.steps, name: done})

    def without(self, steps: Iterable[str]) -> Record:
        gone = set(steps)
        return replace(self, steps={name: step for name, step in self.steps.items() if name not in gone})


def format_record(record: Record) -> bytes:
    text = {
        "v": VERSION,
        "run": record.run,
        "flow": record.flow,
        "mode": record.mode.value,
        "by": record.by,
        "started_ms": record.started_ms,
        "holding": record.is_holding,
        "finished_ms": record.finished_ms,
        "returned_ms": record.returned_ms,
        "steps": {
            name: {"state": step.state.value, "at_ms": step.at_ms, "text": step.text, "facts": dict(step.facts)}
            for name, step in record.steps.items()
        },
    }
    return json.dumps(text, separators=(",", ":")).encode()


def parse_record(raw: bytes | None, where: str) -> Record | None:
    """None where there is none. Raises SettingsError for one that cannot be read: to guess would be to move twice."""
    if not raw:
        return None
    try:
        text = json.loads(raw)
        if text["v"] != VERSION:
            raise SettingsError(
                f"{where}: the failover record is of version {text['v']}: use the mirrorspark that wrote it"
            )
        return Record(
            str(text["run"]),
            str(text["flow"]),
            Mode(text["mode"]),
            str(text["by"]),
            int(text["started_ms"]),
            {
                str(name): StepRecord(
                    StepState(step["state"]), int(step["at_ms"]), str(step["text"]), dict(step["facts"])
                )
                for name, step in text["steps"].items()
            },
            bool(text["holding"]),
            None if text["finished_ms"] is None else int(text["finished_ms"]),
            None if text["returned_ms"] is None else int(text["returned_ms"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"{where}: the failover record cannot be read ({error!r}). If nothing of it is needed, give --abandon: the flow "
            "goes on, and the next failover begins anew"
        ) from error
