"""Fill a topic quickly with plain records, for benchmarks: hundreds of thousands a second.

Called by benchmarks and the demo. Records have neither identity nor headers; what must be accounted for record by
record comes from ``lab/workload.py`` instead.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from typing import Any, Literal

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import producer, total_records

__all__ = ["Preloaded", "preload"]

Shape = Literal["random", "json"]

CHUNK_RECORDS = 5_000
CHUNKS_MAX = 8
CHUNKS_BYTES_MAX = 64 * 1024 * 1024
FLUSH_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Preloaded:
    """What was written, and how long it took."""

    records: int
    record_bytes: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds


def preload(
    bootstrap: str,
    topic: str,
    partitions: int,
    records: int,
    record_bytes: int = 1000,
    codec: str = "none",
    shape: Shape = "random",
    *,
    batch_bytes: int = 100_000,
    seed: int = 1,
) -> Preloaded:
    """Write ``records`` records, spread evenly over the partitions of an existing topic, and check that all arrived.

    ``batch_bytes`` bounds a record batch before compression; mirrors that carry batches feel it, so say it in reports.
    """
    before = total_records(bootstrap, topic)
    chunks = _chunks(record_bytes, shape, seed)
    client = producer(bootstrap, _settings(codec, batch_bytes))
    began = time.monotonic()
    left = records
    number = 0
    while left > 0:
        chunk = chunks[number // partitions % len(chunks)]
        part = chunk if left >= len(chunk) else chunk[:left]
        _enqueue(client, topic, part, number % partitions)
        left -= len(part)
        number += 1
    unsent = client.flush(FLUSH_TIMEOUT_S)
    seconds = time.monotonic() - began
    arrived = total_records(bootstrap, topic) - before
    if arrived != records:
        raise LabError(f"{topic}: {records} records were written but {arrived} arrived ({unsent} never left)")
    return Preloaded(records, record_bytes, seconds)


def _settings(codec: str, batch_bytes: int) -> dict[str, Any]:
    return {
        "compression.type": codec,
        "acks": 1,
        "linger.ms": 50,
        "batch.size": batch_bytes,
        "batch.num.messages": 100_000,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 256 * 1024,
    }


def _enqueue(client: Any, topic: str, messages: list[dict[str, Any]], partition: int) -> None:
    """All of them, waiting while the producer's queue is full."""
    while messages:
        queued = client.produce_batch(topic, messages, partition=partition)
        if queued == len(messages):
            return
        # The library marks those that found no room.
        messages = [{"value": message["value"]} for message in messages if message.pop("_error", None) is not None]
        client.poll(0.01)


def _chunks(record_bytes: int, shape: Shape, seed: int) -> list[list[dict[str, Any]]]:
    """A few thousand different records, used in turn: making each anew would cost more than sending it."""
    dice = random.Random(seed)
    make = _json_value if shape == "json" else _random_value
    count = max(1, min(CHUNKS_MAX, CHUNKS_BYTES_MAX // (CHUNK_RECORDS * record_bytes)))
    chunk_records = min(CHUNK_RECORDS, max(1, CHUNKS_BYTES_MAX // record_bytes))
    return [[{"value": make(dice, record_bytes)} for _ in range(chunk_records)] for _ in range(count)]


def _random_value(dice: random.Random, size: int) -> bytes:
    return dice.randbytes(size)


def _json_value(dice: random.Random, size: int) -> bytes:
    event = {
        "id": dice.randrange(10**12),
        "user": f"user-{dice.randrange(100_000)}",
        "event": dice.choice(["page_view", "add_to_cart", "purchase", "search", "login"]),
        "price": round(dice.uniform(1, 500), 2),
        "country": dice.choice(["de", "fr", "us", "jp", "br", "in"]),
        "ts": 1_700_000_000_000 + dice.randrange(10**9),
        "note": "",
    }
    padding = size - len(json.dumps(event))
    words = ["order", "basket", "mobile", "desktop", "campaign", "summer", "express", "voucher"]
    note = ""
    while len(note) < padding:
        note += dice.choice(words) + " "
    event["note"] = note[: max(0, padding)]
    return json.dumps(event).encode()
