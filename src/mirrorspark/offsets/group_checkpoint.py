"""Checkpoints as MirrorMaker 2 writes them, byte for byte: where a group stands on the source and on the target.

The group sync writes them to ``<source>.checkpoints.internal`` on the target, where ``RemoteClusterUtils`` and other
people's tools read them. This file only knows the bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.mm2_bytes import string_bytes, take_string

__all__ = ["GroupCheckpoint"]

VERSION = 0
_PARTITION = struct.Struct(">i")
_VALUE = struct.Struct(">hqq")


@dataclass(frozen=True, slots=True)
class GroupCheckpoint:
    """``at`` is the remote partition. Both offsets are those of the next record to read."""

    group: str
    at: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    @property
    def key(self) -> bytes:
        return string_bytes(self.group) + string_bytes(self.at.topic) + _PARTITION.pack(self.at.partition)

    @property
    def value(self) -> bytes:
        return _VALUE.pack(VERSION, self.upstream_offset, self.downstream_offset) + string_bytes(self.metadata)

    @classmethod
    def from_record(cls, key: bytes | None, value: bytes | None) -> GroupCheckpoint | None:
        """None for a tombstone and for what is no checkpoint of the version that we know."""
        try:
            group, rest = take_string(key or b"")
            topic, rest = take_string(rest)
            (partition,) = _PARTITION.unpack(rest)
            version, upstream, downstream = _VALUE.unpack_from(value or b"")
            metadata, rest = take_string((value or b"")[_VALUE.size :])
        except (struct.error, ValueError):
            return None
        if version != VERSION or rest:
            return None
        return cls(group, TopicPartition(topic, partition), upstream, downstream, metadata)
