"""Heartbeats as MirrorMaker 2 writes them, byte for byte: Kafka's primitive encoding, big endian.

``control.heartbeats`` writes them to the target of each pair of clusters; flows mirror them like any record, so that a
heartbeat from far away is found as ``B.A.heartbeats``. This file only knows the bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["HEARTBEATS_TOPIC", "Heartbeat"]

HEARTBEATS_TOPIC = "heartbeats"
VERSION = 0
STRING_BYTES_MAX = 32_767
_LENGTH = struct.Struct(">h")
_VALUE = struct.Struct(">hq")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Written on ``target`` for the pair source->target; both are aliases."""

    source: str
    target: str
    timestamp_ms: int

    @property
    def key(self) -> bytes:
        return _string(self.source) + _string(self.target)

    @property
    def value(self) -> bytes:
        return _VALUE.pack(VERSION, self.timestamp_ms)

    @classmethod
    def from_record(cls, key: bytes | None, value: bytes | None) -> Heartbeat | None:
        """None for what is no heartbeat of the version that we know."""
        try:
            source, rest = _take_string(key or b"")
            target, rest = _take_string(rest)
            version, timestamp_ms = _VALUE.unpack(value or b"")
        except (struct.error, ValueError):
            return None
        return cls(source, target, timestamp_ms) if version == VERSION and not rest else None


def _string(text: str) -> bytes:
    raw = text.encode()
    assert len(raw) <= STRING_BYTES_MAX, f"an alias of {len(raw)} bytes"
    return _LENGTH.pack(len(raw)) + raw


def _take_string(raw: bytes) -> tuple[str, bytes]:
    """Raises ValueError or struct.error where there is none."""
    (length,) = _LENGTH.unpack_from(raw)
    if length < 0 or len(raw) < _LENGTH.size + length:
        raise ValueError("no string")
    end = _LENGTH.size + length
    return raw[_LENGTH.size : end].decode(), raw[end:]
