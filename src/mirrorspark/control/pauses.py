"""The pause record on a flow's plan topic: a JSON list of remote topics, or ``["*"]`` for the whole flow.

Written by ``mirrorspark pause`` and ``resume`` (or by hand), obeyed by whoever leads the flow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mirrorspark.errors import SettingsError

__all__ = ["PAUSE_KEY", "format_pauses", "parse_pauses"]

PAUSE_KEY = b"pause"


def parse_pauses(raw: bytes | None) -> frozenset[str]:
    """Raises SettingsError for what is not a list of names: people write this record by hand, too."""
    if not raw:
        return frozenset()
    try:
        names = json.loads(raw)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SettingsError(
            'the pause record is not a JSON list of remote topics, such as ["east.orders"]; it is ignored. '
            "Write it anew with mirrorspark pause or mirrorspark resume",
            key="pause",
        )
    return frozenset(names)


def format_pauses(topics: Iterable[str]) -> bytes:
    return json.dumps(sorted(topics)).encode()
