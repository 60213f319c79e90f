"""Kafka's primitive encoding as MirrorMaker 2 writes its records in: big endian, strings with a length in two bytes."""

from __future__ import annotations

import struct

__all__ = ["STRING_BYTES_MAX", "string_bytes", "take_string"]

STRING_BYTES_MAX = 32_767
_LENGTH = struct.Struct(">h")


def string_bytes(text: str) -> bytes:
    """Raises ValueError for a text that is too long: it comes from users (a commit's metadata)."""
    raw = text.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(raw)} bytes, of {STRING_BYTES_MAX} at most")
    return _LENGTH.pack(len(raw)) + raw


def take_string(raw: bytes) -> tuple[str, bytes]:
    """The string in front and the rest. Raises ValueError or struct.error where there is none."""
    (length,) = _LENGTH.unpack_from(raw)
    if length < 0 or len(raw) < _LENGTH.size + length:
        raise ValueError("no string")
    end = _LENGTH.size + length
    return raw[_LENGTH.size : end].decode(), raw[end:]
