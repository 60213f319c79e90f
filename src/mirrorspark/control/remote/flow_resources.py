"""Where a server has its flows (docs/reference/rest_flows.md): addresses, and lists that come in pages. Commands call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api

__all__ = ["EVENTS", "FLOWS", "STREAM", "flow_path", "pages"]

ROOT = "/mirrorspark/v1"
FLOWS = f"{ROOT}/flows"
EVENTS = f"{ROOT}/events"
STREAM = f"{ROOT}/stream"
PAGE_MAX = 1_000
"""What the server gives at once."""


def flow_path(flow: str) -> str:
    """``east -> west`` is meant as ``east->west``."""
    return f"{FLOWS}/{quote(flow.replace(' ', ''), safe='')}"


def pages(api: Api, path: str, field: str, most: int | None = None, **params: str) -> Iterator[dict[str, Any]]:
    """All entries of a list, or the first so many."""
    offset = 0
    while most is None or offset < most:
        limit = PAGE_MAX if most is None else min(PAGE_MAX, most - offset)
        found = api.ask("GET", path, limit=str(limit), offset=str(offset), **params)[field]
        yield from found
        offset += len(found)
        if len(found) < limit:
            return
