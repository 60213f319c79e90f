"""Progress where MirrorMaker 2 keeps it: Connect's JSON keys and values, byte for byte.

The member order of the key is Java's HashMap order; MirrorMaker 2 compares raw bytes, so it must stay so.
"""

from __future__ import annotations

import json

__all__ = ["SOURCE_CONNECTOR", "parse_progress", "progress_entry"]

SOURCE_CONNECTOR = "MirrorSourceConnector"


def progress_entry(source: str, topic: str, partition: int, upstream_last: int) -> tuple[bytes, bytes]:
    """``upstream_last`` is the last mirrored record; a restart resumes at the next."""
    place = {"cluster": source, "partition": partition, "topic": topic}
    key = json.dumps([SOURCE_CONNECTOR, place], separators=(",", ":"), ensure_ascii=False)
    return key.encode(), json.dumps({"offset": upstream_last}, separators=(",", ":")).encode()


def parse_progress(key: bytes, value: bytes | None, source: str) -> tuple[str, int, int | None] | None:
    """(topic, partition, last mirrored offset or None for a reset); None if the entry is not the source connector's."""
    try:
        connector, place = json.loads(key)
        if connector != SOURCE_CONNECTOR or place["cluster"] != source:
            return None
        offset = None if value is None else int(json.loads(value)["offset"])
        return str(place["topic"]), int(place["partition"]), offset
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
