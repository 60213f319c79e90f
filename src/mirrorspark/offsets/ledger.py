"""The ledger: ranges that say where upstream offsets landed downstream.

A range is dense on both sides: upstream ``first..last`` lies at ``downstream_first`` and on, offset by offset. It grows
while receipts continue it; a hole, a restart or a marker on the target opens the next one. Ranges come from receipts only.
Key: remote topic, partition, upstream first. Value: upstream last, downstream first,
the source topic's id (a topic that was made anew begins at offset 0 again). A tombstone prunes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from mirrorspark.names import TopicPartition

__all__ = ["LedgerRange", "ledger_entry", "parse_ledger_entry"]

VERSION = 1
NO_TOPIC_ID = bytes(16)
_KEY_TAIL = struct.Struct(">iq")
_VALUE = struct.Struct(">hqq16s")


@dataclass(slots=True)
class LedgerRange:
    upstream_first: int
    upstream_last: int
    downstream_first: int
    topic_id: bytes = field(default=NO_TOPIC_ID, compare=False)

    @property
    def downstream_last(self) -> int:
        return self.downstream_first + self.upstream_last - self.upstream_first

    def extend(self, upstream_first: int, upstream_last: int, downstream_first: int) -> bool:
        """True if the piece continues this range on both sides."""
        if upstream_first != self.upstream_last + 1 or downstream_first != self.downstream_last + 1:
            return False
        self.upstream_last = upstream_last
        return True


def ledger_entry(at: TopicPartition, span: LedgerRange) -> tuple[bytes, bytes]:
    name = at.topic.encode()
    key = struct.pack(">h", len(name)) + name + _KEY_TAIL.pack(at.partition, span.upstream_first)
    return key, _VALUE.pack(VERSION, span.upstream_last, span.downstream_first, span.topic_id)


def parse_ledger_entry(key: bytes, value: bytes | None) -> tuple[TopicPartition, LedgerRange] | None:
    """None for a tombstone, bytes of another version or bytes that are not ours."""
    if value is None or len(value) != _VALUE.size or len(key) < 2:
        return None
    (length,) = struct.unpack_from(">h", key, 0)
    if length <= 0 or len(key) != 2 + length + _KEY_TAIL.size:
        return None
    partition, first = _KEY_TAIL.unpack_from(key, 2 + length)
    version, last, downstream, topic_id = _VALUE.unpack(value)
    if version != VERSION or last < first:
        return None
    try:
        topic = key[2 : 2 + length].decode()
    except UnicodeDecodeError:
        return None
    return TopicPartition(topic, partition), LedgerRange(first, last, downstream, topic_id)
