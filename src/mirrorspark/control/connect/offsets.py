"""A source connector's offsets, over ``flow_offsets``: show, set, reset. ``hosting`` has seen to it that it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from mirrorspark.config.document import Document
from mirrorspark.control.connect.wanted import Wanted, settings_of
from mirrorspark.control.flow_offsets import FlowNotStopped, FlowOffsets, offsets_document, parse_offsets
from mirrorspark.rest.connector_host import Refusal

__all__ = ["ConnectorOffsets"]

SETTLE_S_MAX = 60.0
ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"


class ConnectorOffsets:
    def __init__(self, worker: Document | None) -> None:
        self._worker = worker
        self._one_at_a_time = asyncio.Lock()

    async def wait_for(self, settled: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(SETTLE_S_MAX):
                await settled
        except TimeoutError:
            raise Refusal(f"the connector has not stopped within {SETTLE_S_MAX:g} s; try again", 409) from None

    async def show(self, one: Wanted) -> Sequence[Mapping[str, Any]]:
        settings = settings_of(one, self._worker)
        async with FlowOffsets(settings) as offsets:
            found: list[dict[str, Any]] = offsets_document(settings, dict(await offsets.show()))["offsets"]
            return found

    async def alter(self, one: Wanted, entries: Sequence[Mapping[str, Any]]) -> str:
        settings = settings_of(one, self._worker)
        wanted = parse_offsets(settings, {"offsets": list(entries)})
        try:
            async with self._one_at_a_time, FlowOffsets(settings) as offsets:
                await offsets.alter(wanted)
        except FlowNotStopped as error:
            raise Refusal(error.message, 409) from None
        return ALTERED

    async def reset(self, one: Wanted, *, keeps_any: bool) -> str:
        if keeps_any:
            try:
                async with self._one_at_a_time, FlowOffsets(settings_of(one, self._worker)) as offsets:
                    await offsets.reset()
            except FlowNotStopped as error:
                raise Refusal(error.message, 409) from None
        return RESET
