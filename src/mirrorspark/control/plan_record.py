"""The plan record as drivers and commands read it: whole, or only who leads by it.

Asked by ``flow_runtime`` and by commands that look at a flow on its target. A record that nobody but a mirror may write and
that cannot be read is an error with its reason, never an empty plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mirrorspark.errors import MirrorError
from mirrorspark.plan.lanes import Owner, Plan

__all__ = ["read_owner", "read_plan"]

T = TypeVar("T")


def read_plan(raw: bytes) -> Plan:
    """Raises NewerFormat for one that only a newer mirrorspark understands."""
    return _read(raw, Plan.from_json)


def read_owner(raw: bytes) -> Owner:
    """Who leads, by a plan of whatever format: an older mirrorspark steps aside for a newer one."""
    return _read(raw, Plan.owner_in)


def _read(raw: bytes, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MirrorError(
            f"the plan record cannot be read ({error!r}): who wrote it? Nothing but a mirror may write the key plan"
        ) from error
