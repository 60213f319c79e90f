"""How this room says that bytes are not what they should be.

The small readers (varints, codecs) know no topic and raise a plain WireError with a reason; whoever opens a batch
puts the place to it, here, so that every error that leaves the room names topic, partition and offset. May not decide
what to do about it.
"""

from __future__ import annotations

from mirrorspark.errors import CorruptBatch, UnsupportedBatch, WireError

__all__ = ["corrupt_batch", "damage", "locate", "unsupported_batch"]


def damage(reason: str) -> WireError:
    """Damage seen by a reader that does not know where it is reading."""
    return WireError(reason, reason=reason)


def corrupt_batch(topic: str, partition: int, offset: int, reason: str) -> CorruptBatch:
    message = f"{topic}-{partition} at offset {offset}: damaged batch: {reason}"
    return CorruptBatch(message, topic=topic, partition=partition, offset=offset, reason=reason)


def unsupported_batch(topic: str, partition: int, offset: int, reason: str) -> UnsupportedBatch:
    message = f"{topic}-{partition} at offset {offset}: unsupported batch: {reason}"
    return UnsupportedBatch(message, topic=topic, partition=partition, offset=offset, reason=reason)


def locate(error: WireError, topic: str, partition: int, offset: int) -> WireError:
    """The same complaint with its place: that of the whole batch, also when it came from something wrapped in it."""
    reason = str(error.facts.get("reason", error.message))
    if isinstance(error, UnsupportedBatch):
        return unsupported_batch(topic, partition, offset, reason)
    return corrupt_batch(topic, partition, offset, reason)
