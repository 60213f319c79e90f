"""Proving a list of ACLs on locked flows: with all of it everything works, and without one line something names it.

Used by ``test_required_acls`` (everything switched on) and ``test_required_acls_of_ways`` (other ways of mirroring).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from tests.journeys.locked_flows import DEADLINE_S, LockedFlow, is_seen_only_when_carried

from mirrorspark.control import (
    config_sync,
    flow_life,
    group_sync,
    heartbeats,
    offset_books,
    source_groups,
    target_groups,
)
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.plan.required_acls import RequiredAcl

__all__ = ["all_removals", "everything_works", "listening", "shorten_pauses"]

AT_ONCE = 4
PAUSES = {
    flow_life: "RETRY_PAUSE_S_MAX",
    config_sync: "DENIED_AGAIN_S",
    group_sync: "RETRY_PAUSE_S_MAX",
    heartbeats: "RETRY_PAUSE_S_MAX",
    offset_books: "SYNCS_TOPIC_AGAIN_S",
    source_groups: "FOLLOW_AGAIN_S",
    target_groups: "REFUSED_AGAIN_S",
}


def shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a person is tried again each second."""
    for module, name in PAUSES.items():
        monkeypatch.setattr(module, name, 1.0)


class _Listener(logging.Handler):
    """Hands each flow the lines of the driver's log that are about it."""

    def __init__(self, flows: Sequence[LockedFlow]) -> None:
        super().__init__(logging.INFO)
        self._flows = flows

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        for flow in self._flows:
            if flow.alias in text or flow.target_alias in text:
                flow.logged.append(text)


@contextmanager
def listening(flows: Sequence[LockedFlow]) -> Iterator[None]:
    logger, listener = logging.getLogger("mirrorspark"), _Listener(flows)
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)


async def everything_works(flow: LockedFlow) -> None:
    await asyncio.to_thread(flow.prepare)
    await asyncio.to_thread(flow.grant_all_but)

    async def work() -> None:
        await flow.until_works(whole=False)
        await flow.drive()
        await flow.until_works(whole=True)
        lacking = [text for text in flow.texts() if "our user lacks" in text]
        assert not lacking, lacking
        assert flow.lanes[-1].starts > 1, "its lane was not killed"

    await flow.live(work)
    await asyncio.to_thread(flow.check_copy)


async def _until_told(flow: LockedFlow, acl: RequiredAcl, *, or_works: bool) -> str:
    """What names the ACL; empty if everything that was driven so far works without."""
    seen = ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (told := flow.told(acl)):
                if or_works and not (missing := await asyncio.to_thread(flow.missing, whole=False)):
                    break
                if or_works and missing != seen:
                    print(f"{flow.alias}: without it there is still to come: {missing}", flush=True)
                    seen = missing
                await asyncio.sleep(0.25)
    except TimeoutError:
        raise AssertionError(f"{acl}: nothing says so; missing: {seen}\n{flow.report()}") from None
    return told


async def _fails_without(flow: LockedFlow, acl: RequiredAcl) -> str:
    """Leave it out, see it told; put it back, see the flow recover. Returns what was told."""
    flow.lacks(acl)
    comes_later = is_seen_only_when_carried(acl, flow)
    await asyncio.to_thread(flow.prepare)
    await asyncio.to_thread(flow.grant_all_but, None if comes_later else acl)
    found: list[str] = []

    async def work() -> None:
        if comes_later:
            await flow.until_works(whole=False)
            await asyncio.to_thread(flow.revoke, acl)
        told = await _until_told(flow, acl, or_works=not comes_later)
        if not told:
            await flow.drive()
            if acl.name.endswith(HEARTBEATS_TOPIC) and acl.operation == "Alter":
                await asyncio.to_thread(flow.grow_heartbeats)
            told = await _until_told(flow, acl, or_works=False)
        found.append(told)
        await asyncio.to_thread(flow.grant, acl)
        await flow.drive()
        await asyncio.to_thread(flow.nudge)
        await flow.until_works(whole=True)

    await flow.live(work)
    await asyncio.to_thread(flow.check_copy)
    return found[0]


async def all_removals(flows: dict[int, LockedFlow]) -> dict[RequiredAcl, str]:
    """By the line's number; a few at a time. Whatever fails is told together."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, flow: LockedFlow) -> tuple[RequiredAcl, str]:
        async with turns:
            acl = flow.lines()[number]
            began = time.monotonic()
            try:
                text = await _fails_without(flow, acl)
            except Exception as error:
                print(f"FAILED {acl}: {error!r}", flush=True)
                raise
            print(f"{acl}, {time.monotonic() - began:.1f} s:\n    {text}", flush=True)
            return acl, text

    return dict(await _together([one(number, flow) for number, flow in flows.items()]))


async def _together(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    done = await asyncio.gather(*work, return_exceptions=True)
    failures = [one for one in done if isinstance(one, Exception)]
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(done)} failed", failures)
    return done
