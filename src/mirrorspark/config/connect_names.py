"""What MirrorMaker 2 calls its own things on the target of a flow: offsets topic, status topic, group, source connector.

Dedicated MirrorMaker 2 derives all four from the source's alias; on Connect, and with Strimzi, they are whatever a worker
and a connector were given. ``load`` asks once for each flow. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.definition import SOURCE
from mirrorspark.config.flow_settings import BuiltFlow
from mirrorspark.config.forms.layout import KEPT
from mirrorspark.config.levels import Levels
from mirrorspark.settings import ConnectNames

__all__ = ["with_connect_names"]


def with_connect_names(built: BuiltFlow, keys: Iterable[str]) -> BuiltFlow:
    """``keys``: all of the document; those that a Strimzi resource leaves there tell how its operator names connectors."""
    levels, flow = built.levels, built.settings.flow
    strimzi = any(key.startswith(KEPT) for key in keys)
    names = ConnectNames(
        offsets_topic=_given(levels, "offsets.storage.topic") or _given(levels, "offset.storage.topic"),
        status_topic=_given(levels, "status.storage.topic"),
        group=_given(levels, "group.id"),
        connector=_given(levels, "name") or (f"{flow}.{SOURCE}" if strimzi else SOURCE),
    )
    return replace(built, settings=replace(built.settings, connect=names))


def _given(levels: Levels, name: str) -> str:
    """What the file says, "" if it says nothing."""
    found = levels.plain(PLAIN[name])
    return (found.value or "").strip() if found.entry is not None else ""
