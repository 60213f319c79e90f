"""Batches of one record, ready for an appender, for tests that append by themselves."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from mirrorspark.cluster.pipes import PipedBody
from mirrorspark.names import TopicPartition
from mirrorspark.wire.record_batch import split_batches, stamp
from mirrorspark.wire.records import Record, encode_batch


@dataclass
class Sent:
    """An ``Outgoing`` of one record."""

    buffer: memoryview
    size: int
    aged: bool = False
    request: object = None

    def parts(self) -> list[memoryview | PipedBody]:
        return [self.buffer]


def single_batch(at: TopicPartition, value_bytes: int) -> Sent:
    """Of no producer: the broker checks no sequence."""
    raw = encode_batch([Record(0, int(time.time() * 1000), b"k", os.urandom(value_bytes), ())], codec=0)
    (batch,) = split_batches(memoryview(raw), *at)
    stamp(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    return Sent(batch.buffer, batch.size)
