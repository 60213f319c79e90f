"""A record batch as Kafka stores it: found, checked and readdressed without being opened.

Called by the fetch message (``split_batches``), the carrying loop (``verify_crc``, ``stamp``) and the tail walk
(``body``), once per batch and never per record. May not decompress, decode a record, or copy a batch:
``Batch.buffer`` is a view of the bytes that came from the socket, and ``stamp`` writes into those bytes.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, Protocol

from crc32c import crc32c

from mirrorspark.wire.crc_patch import patched_crc
from mirrorspark.wire.damage import corrupt_batch, unsupported_batch

__all__ = ["HEADER", "Batch", "Rest", "body", "size_if_carried", "split_batches", "stamp", "verify_crc"]

# What every format begins with: offset, length of what follows these two. A "log overhead", in Kafka's words.
_PREFIX: Final = struct.Struct(">qi")

HEADER: Final = struct.Struct(
    ">"
    "q"  # base_offset
    "i"  # batch_length, of what follows this field
    "i"  # leader_epoch
    "b"  # magic
    "I"  # crc, CRC-32C of all that follows it
    "h"  # attributes
    "i"  # last_offset_delta
    "q"  # base_timestamp
    "q"  # max_timestamp
    "q"  # producer_id
    "h"  # producer_epoch
    "i"  # base_sequence
    "i"  # record_count
)
_MAGIC_AT: Final = struct.calcsize(">qii")  # the same place in all three formats
_ATTRIBUTES_AT: Final = struct.calcsize(">qiibI")
_PRODUCER_AT: Final = struct.calcsize(">qiibIhiqq")
_RECORD_COUNT_AT: Final = struct.calcsize(">qiibIhiqqqhi")

_OUTSIDE_CRC: Final = struct.Struct(">qiibI")  # base_offset to crc
_ATTRIBUTES: Final = struct.Struct(">h")
_PRODUCER: Final = struct.Struct(">qhi")  # producer_id to base_sequence

_unpack_header: Final = HEADER.unpack_from
_new_batch: Final = object.__new__

_LENGTH_MIN: Final = HEADER.size - _PREFIX.size
PATCH_BYTES_MIN: Final = 65_536
"""From this size on reading a batch again takes longer than computing how its CRC changes with its header."""

# One message of format v0 or v1: offset, size, crc, magic, attributes, [timestamp in v1], key, value.
_LEGACY: Final = struct.Struct(">qiIbb")
_LEGACY_TIMESTAMP: Final = struct.Struct(">q")
_LEGACY_KEY_AND_VALUE_LENGTHS: Final = struct.calcsize(">ii")
_LEGACY_LENGTH_MIN: Final = (
    _LEGACY.size - _PREFIX.size + _LEGACY_KEY_AND_VALUE_LENGTHS,
    _LEGACY.size - _PREFIX.size + _LEGACY_TIMESTAMP.size + _LEGACY_KEY_AND_VALUE_LENGTHS,
)

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40
_KEPT_BY_STAMP: Final = _CODEC_MASK | _LOG_APPEND_TIME


class Rest(Protocol):
    """Bytes of a batch that are not in its buffer."""

    def fill(self) -> None:
        """Put them there."""


class Batch:
    """One batch, its header parsed. The attributes go on saying what the source sent, also after ``stamp``.

    A legacy message (``magic`` 0 or 1) is a batch of its own, with its one offset as ``base_offset`` and
    ``last_offset``. A compressed one wraps several records: its offset is that of the last of them, how many there
    are and where they begin is known only to who opens it, and ``record_count`` is -1.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "crc_is_proved",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
        "rest",
    )

    # No __init__: the two that make batches unpack a header straight into these, which saves a fifth of the time.
    buffer: memoryview
    """All of it is there only where ``rest`` is None; ``whole`` makes it so."""
    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    crc_is_proved: bool
    """Whether ``crc`` was compared with the bytes, or computed from them."""
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    rest: Rest | None
    """Whoever still has bytes of it that nobody has needed yet. Its header is always there."""

    def whole(self) -> memoryview:
        """All of its bytes."""
        if self.rest is not None:
            self.rest.fill()
            self.rest = None
        return self.buffer

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """Bytes, header included."""
        return len(self.buffer)

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC_MASK

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & _DELETE_HORIZON != 0

    @property
    def has_holes(self) -> bool:
        """Compaction took records out, perhaps all of them: a broker refuses such a batch from a producer."""
        return self.last_offset_delta + 1 != self.record_count

    @property
    def is_legacy(self) -> bool:
        return self.magic < 2

    def __repr__(self) -> str:
        return (
            f"Batch(offsets {self.base_offset}..{self.last_offset}, {self.record_count} records, {self.size} bytes, "
            f"magic {self.magic}, attributes {self.attributes:#x}, producer {self.producer_id}/{self.producer_epoch})"
        )


def split_batches(records: memoryview, topic: str, partition: int) -> list[Batch]:
    """All complete batches of a fetched record set, in order; ``records`` must be writable if they are to be stamped.

    A cut-off last batch is left out silently: that is how brokers answer. An answer that holds bytes but no complete
    batch therefore gives an empty list, and the caller must ask for more bytes. Raises CorruptBatch for impossible
    lengths and offsets, UnsupportedBatch for an unknown format.
    """
    batches: list[Batch] = []
    position = 0
    end = len(records)
    while end - position >= _PREFIX.size:
        if end - position >= HEADER.size:
            batch = _new_batch(Batch)
            (
                batch.base_offset,
                length,
                batch.leader_epoch,
                batch.magic,
                batch.crc,
                batch.attributes,
                batch.last_offset_delta,
                batch.base_timestamp,
                batch.max_timestamp,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.record_count,
            ) = _unpack_header(records, position)
            batch.crc_is_proved = False
            batch.rest = None
            if batch.magic == 2:
                if (
                    length < _LENGTH_MIN
                    or batch.base_offset < 0
                    or batch.last_offset_delta < 0
                    or batch.record_count < 0
                ):
                    raise corrupt_batch(topic, partition, batch.base_offset, _impossible(batch, length))
                next_position = position + _PREFIX.size + length
                if next_position > end:
                    break
                batch.buffer = records[position:next_position]
                batches.append(batch)
                position = next_position
                continue
        message = _legacy_message(records[position:], topic, partition)
        if message is None:
            break
        batches.append(message)
        position += message.size
    return batches


def size_if_carried(answer: memoryview, at: int, end: int) -> tuple[int, bool]:
    """From the header at ``at``: how long that batch is, and whether by all that the header says it goes as it is.

    A length of 0: there is no whole batch of format v2 up to ``end``. Called while the bytes after the header are still
    on their way, so nothing is an error here: ``split_batches`` will find it.
    """
    _, length, _, magic, _, attributes, last_offset_delta, *_, record_count = _unpack_header(answer, at)
    size = _PREFIX.size + length
    if magic != 2 or length < _LENGTH_MIN or size > end - at:
        return 0, False
    return size, not attributes & (_CONTROL | _LOG_APPEND_TIME) and last_offset_delta + 1 == record_count > 0


def _impossible(batch: Batch, length: int) -> str:
    return f"length {length}, last offset delta {batch.last_offset_delta}, {batch.record_count} records"


def _legacy_message(rest: memoryview, topic: str, partition: int) -> Batch | None:
    """The v0 or v1 message at the start of ``rest``; None when it is cut off; an error when it is something else."""
    offset, length = _PREFIX.unpack_from(rest)
    magic = rest[_MAGIC_AT] if len(rest) > _MAGIC_AT else 0
    if magic > 2:
        raise unsupported_batch(topic, partition, offset, f"record format {magic} is unknown")
    length_min = (*_LEGACY_LENGTH_MIN, _LENGTH_MIN)[magic]
    if length < length_min or offset < 0:
        raise corrupt_batch(topic, partition, offset, f"length {length}, less than the {length_min} of format v{magic}")
    size = _PREFIX.size + length
    if size > len(rest):
        return None
    assert magic != 2, "a complete v2 batch has a complete header"
    _, _, crc, _, attributes = _LEGACY.unpack_from(rest)
    batch = _new_batch(Batch)
    batch.buffer = rest[:size]
    batch.base_offset = offset
    batch.last_offset_delta = 0
    batch.magic = magic
    batch.crc = crc
    batch.crc_is_proved = False
    batch.rest = None
    # The bits that v2 added mean nothing here, and v0 knows no timestamp type.
    batch.attributes = attributes & (_KEPT_BY_STAMP if magic == 1 else _CODEC_MASK)
    batch.base_timestamp = batch.max_timestamp = _LEGACY_TIMESTAMP.unpack_from(rest, _LEGACY.size)[0] if magic else -1
    batch.leader_epoch = batch.producer_id = batch.producer_epoch = batch.base_sequence = -1
    batch.record_count = -1 if batch.attributes & _CODEC_MASK else 1
    return batch


def verify_crc(batch: Batch, topic: str, partition: int) -> None:
    """Raises CorruptBatch when the bytes are not those once signed; to be run before ``stamp`` signs them anew."""
    if batch.magic == 2:
        actual = crc32c(batch.whole()[_ATTRIBUTES_AT:])
    else:
        actual = zlib.crc32(batch.buffer[_MAGIC_AT:])
    if actual != batch.crc:
        raise corrupt_batch(
            topic, partition, batch.base_offset, f"checksum is {actual:#010x}, header says {batch.crc:#010x}"
        )
    batch.crc_is_proved = True


def stamp(
    batch: Batch, *, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool = False
) -> None:
    """Readdress the batch's bytes, in place, to the producer that will append them on the target.

    Base offset 0, leader epoch -1, producer fields, attributes reduced to codec and timestamp type (and the
    transactional bit, if asked), and the CRC over it all. A delete horizon needs no other care than its cleared bit:
    the base timestamp that held it is the base of the records' deltas all the same.

    The CRC of a large batch is not computed from its bytes, only changed by what changed in the header: that is quicker, and
    bytes that went bad, on the source or in our memory, are not signed but refused by the target, which checks them all.
    """
    attributes = batch.attributes
    assert batch.magic == 2, f"a message of format v{batch.magic} must be re-encoded, not stamped"
    assert not attributes & _CONTROL, "a control batch is never carried"
    assert batch.last_offset_delta + 1 == batch.record_count, "a batch with holes must be re-encoded, not stamped"
    attributes = attributes & _KEPT_BY_STAMP | (_TRANSACTIONAL if transactional else 0)
    buffer = batch.buffer
    head = buffer[_ATTRIBUTES_AT : HEADER.size]
    before = bytes(head)
    _ATTRIBUTES.pack_into(buffer, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(buffer, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    if len(buffer) >= PATCH_BYTES_MIN:
        batch.crc = patched_crc(batch.crc, before, head, len(buffer) - HEADER.size)
    else:
        batch.crc = crc32c(batch.whole()[_ATTRIBUTES_AT:])
        batch.crc_is_proved = True
    _OUTSIDE_CRC.pack_into(buffer, 0, 0, len(buffer) - _PREFIX.size, -1, 2, batch.crc)


def body(batch: Batch) -> memoryview:
    """Record count and records: the part that a carry never changes, for comparing a batch with its copy."""
    assert batch.magic == 2, "a legacy message is never carried, so it has nothing to compare"
    return batch.whole()[_RECORD_COUNT_AT:]
