"""Filler: the same bytes as the plain encoder's, put together by the block."""

from __future__ import annotations

import pytest

from mirrorspark.wire.compression import ZSTD
from mirrorspark.wire.filler import FILLER_RECORDS_MAX, filler_batch
from mirrorspark.wire.record_batch import split_batches, verify_crc
from mirrorspark.wire.records import Record, encode_batch

NOW = 1_700_000_000_000
TOPIC_LIMIT_BYTES = 1_048_588
"""max.message.bytes, as brokers have it by default."""


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128, 129, 8_191, 8_192, 8_193, 20_001])
def test_a_batch_is_what_the_encoder_would_write(count: int) -> None:
    assert filler_batch(count, NOW) == encode_batch([Record(i, NOW, None, None) for i in range(count)], codec=ZSTD)


def test_the_largest_batch_fits_a_topic_as_it_is_by_default() -> None:
    data = filler_batch(FILLER_RECORDS_MAX, NOW)
    (batch,) = split_batches(memoryview(data), "topic", 0)
    verify_crc(batch, "topic", 0)
    assert (batch.record_count, batch.last_offset) == (FILLER_RECORDS_MAX, FILLER_RECORDS_MAX - 1)
    assert len(data) < TOPIC_LIMIT_BYTES
