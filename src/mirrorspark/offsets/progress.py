"""Progress where MirrorMaker 2 keeps it: Connect's JSON keys and values, byte for byte.

The member order of the key is Java's HashMap order; MirrorMaker 2 compares raw bytes, so it must stay so. Connect keeps
offsets by connector: dedicated MirrorMaker 2 names it after its class, a user of Connect as they like.
"""

from __future__ import annotations

import json

__all__ = ["SOURCE_CONNECTOR", "parse_progress", "progress_entry", "progress_key"]

SOURCE_CONNECTOR = "MirrorSourceConnector"


def progress_key(source: str, topic: str, partition: int, connector: str = SOURCE_CONNECTOR) -> bytes:
    place = {"cluster": source, "partition": partition, "topic": topic}
    return json.dumps([connector, place], separators=(",", ":"), ensure_ascii=False).encode()


def progress_entry(
    source: str, topic: str, partition: int, upstream_last: int, connector: str = SOURCE_CONNECTOR
) -> tuple[bytes, bytes]:
    """``upstream_last`` is the last mirrored record; a restart resumes at the next."""
    value = json.dumps({"offset": upstream_last}, separators=(",", ":")).encode()
    return progress_key(source, topic, partition, connector), value


def parse_progress(
    key: bytes, value: bytes | None, source: str, connector: str = SOURCE_CONNECTOR
) -> tuple[str, int, int | None] | None:
    """(topic, partition, last mirrored offset or None for a reset); None if the entry is not this source connector's."""
    try:
        name, place = json.loads(key)
        if name != connector or place["cluster"] != source:
            return None
        offset = None if value is None else int(json.loads(value)["offset"])
        return str(place["topic"]), int(place["partition"]), offset
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
