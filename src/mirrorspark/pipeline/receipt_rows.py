"""Receipts as Arrow: the rows that a lane yields to Spark. Apart from ``receipt``, so that only Spark's side loads Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from mirrorspark.pipeline.receipt import Receipt

__all__ = ["RECEIPT_DDL", "RECEIPT_SCHEMA", "to_arrow"]

RECEIPT_SCHEMA = pa.schema(
    [
        ("lane", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("upstream_first", pa.int64()),
        ("upstream_last", pa.int64()),
        ("downstream_first", pa.int64()),
        ("records", pa.int64()),
        ("batches", pa.int64()),
        ("bytes", pa.int64()),
        ("latency_ms", pa.int64()),
        ("at_ms", pa.int64()),
    ]
)
RECEIPT_DDL = (
    "lane int, topic string, partition int, upstream_first long, upstream_last long, downstream_first long, "
    "records long, batches long, bytes long, latency_ms long, at_ms long"
)


def to_arrow(receipts: Sequence[Receipt]) -> pa.RecordBatch:
    for receipt in receipts:
        assert receipt.records > 0, receipt
        assert receipt.upstream_first <= receipt.upstream_last, receipt
    columns = zip(*receipts, strict=True) if receipts else [[] for _ in RECEIPT_SCHEMA]
    return pa.RecordBatch.from_arrays(
        [pa.array(list(column), field.type) for column, field in zip(columns, RECEIPT_SCHEMA, strict=True)],
        schema=RECEIPT_SCHEMA,
    )
