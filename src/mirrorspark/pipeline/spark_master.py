"""Spark masters as text: which ones there are, and a local one with enough attempts for its lanes. Knows no Spark."""

from __future__ import annotations

import re

from mirrorspark.errors import SettingsError

__all__ = ["TASK_ATTEMPTS_MAX", "check_master", "is_local", "local_slots", "with_attempts"]

TASK_ATTEMPTS_MAX = 1000
"""A lane may be killed as often as it likes: each attempt recovers from the target's log."""
_LOCAL = re.compile(r"local(?:\[(?P<slots>\d+|\*)(?:,\s*(?P<attempts>\d+))?\])?")
_ELSEWHERE = re.compile(r"yarn|spark://.+|k8s://.+|local-cluster\[.+\]")


def check_master(master: str) -> None:
    """Raises SettingsError for what Spark would not know; better now than after its JVM has started."""
    local = _LOCAL.fullmatch(master)
    if (local and local["slots"] != "0") or _ELSEWHERE.fullmatch(master):
        return
    raise SettingsError(
        f"--master {master}: not a Spark master; use local[N], local[*], spark://host:port, yarn or k8s://…",
        key="--master",
    )


def is_local(master: str | None) -> bool:
    return master is None or _LOCAL.fullmatch(master) is not None


def local_slots(master: str | None) -> int | None:
    """How many tasks a local master runs side by side; None if that is not for the text to say."""
    found = _LOCAL.fullmatch(master or "")
    if found is None or found["slots"] == "*":
        return None
    return int(found["slots"] or 1)


def with_attempts(master: str | None, lanes: int) -> str:
    """Embedded unless a master is given; a local one gets our number of attempts unless it says its own.

    Spark gives a task on ``local[N]`` one attempt only, whatever ``spark.task.maxFailures`` says.
    """
    if master is None:
        return f"local[{lanes},{TASK_ATTEMPTS_MAX}]"
    found = _LOCAL.fullmatch(master)
    if found is None or found["attempts"]:
        return master
    return f"local[{found['slots'] or 1},{TASK_ATTEMPTS_MAX}]"
