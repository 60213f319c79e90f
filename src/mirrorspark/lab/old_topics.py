"""Topics as clusters of another age left them: message formats v0 and v1, and what compaction made of them.

Written to brokers of Kafka 2.8, the last that still write these formats (``KAFKA_2_8``), by ordinary producers: the broker
turns what they send into the topic's format. ``inherit_logs`` gives the logs to a later broker, as upgrades do over years.
Used by journeys; what arrives elsewhere is compared by ``plain_records``.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaError

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import alter_topic, one_batch
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.records import CODECS
from mirrorspark.wire.record_batch import Batch
from mirrorspark.wire.reencoding import decode

__all__ = ["FORMATS", "inherit_logs", "write_compacted", "write_in_every_format", "write_transactions"]

FORMATS = {0: "0.9.0", 1: "0.10.2", 2: "2.8"}
"""Magic number of a format, and the message.format.version that has a broker write it."""
CODECS_OF = {0: CODECS[:4], 1: CODECS[:4], 2: CODECS}
"""zstd came with v2."""
BATCH_BYTES = 20_000
TAKEN_UP_S = 60.0
FLUSH_S = 60.0
TRANSACTION_S = 60.0
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}

Row = tuple[bytes | None, bytes | None]


def write_in_every_format(bootstrap: str, topic: str) -> None:
    """One partition that was configured for v0 first, then for v1, then for v2: each with every codec that it knows."""
    create_topic(bootstrap, topic, 1, settings={"message.format.version": FORMATS[0], "retention.ms": "-1"})
    for magic, version in FORMATS.items():
        alter_topic(bootstrap, topic, {"message.format.version": version})

        def has_begun(magic: int = magic) -> bool:
            # Without headers: while the topic is still in an older format, the broker fails on them.
            write_rows(bootstrap, topic, [(b"probe", b"%d" % magic)], 0, "none")
            return raw_batches(bootstrap, topic)[0][-1].magic == magic

        wait_for(has_begun, f"{topic} to be written in format v{magic}", TAKEN_UP_S, 0.1)
        for codec in CODECS_OF[magic]:
            write_rows(bootstrap, topic, _awkward_rows(magic, codec), magic, codec)
        written = raw_batches(bootstrap, topic)[0]
        found = {one.codec for one in written if one.magic == magic}
        if len(found) < len(CODECS_OF[magic]):
            raise LabError(f"{topic}: codecs {found} in format v{magic}, wanted {CODECS_OF[magic]}")


def _awkward_rows(magic: int, codec: str) -> list[Row]:
    text = f"v{magic} {codec}".encode()
    odd: list[Row] = [(None, text), (b"", b""), (text, None), (b"large", text * 2_000)]
    return odd + [(b"key-%d" % (number % 7), b"%s %d" % (text, number)) for number in range(30)]


def write_compacted(bootstrap: str, topic: str, magic: int) -> None:
    """A log in one format in which compaction left holes: between batches, and inside of those of every codec."""
    # Brokers since 3.0 write v2 and nothing else; the setting is gone in 4.0.
    told = {"message.format.version": FORMATS[magic]} if magic < 2 else {}
    create_topic(bootstrap, topic, 1, settings={**told, **COMPACTED})
    for turn in range(2):
        for codec in CODECS_OF[magic]:
            name = b"%s-%d" % (codec.encode(), turn)
            kept = [(b"%s-%d" % (name, number), b"kept") for number in range(12)]
            hot = [(b"hot-%d" % (number % 5), b"%s %d" % (name, number)) for number in range(24)]
            mixed = [row for pair in zip(kept, hot[:12], hot[12:], strict=True) for row in pair]
            write_rows(bootstrap, topic, [*mixed, (b"gone-" + name, None)], magic, codec)

    def has_holes() -> bool:
        # A segment is rolled, and comes into the cleaner's reach, only when something is appended.
        write_rows(bootstrap, topic, [(b"tick", b"%d" % time.monotonic_ns())], magic, "none")
        batches = [one for one in raw_batches(bootstrap, topic)[0] if one.codec]
        holed = {one.codec for one in batches if _has_inner_holes(one, topic)}
        return len(holed) == len(CODECS_OF[magic]) - 1  # what is not compressed is one record to a batch, before v2

    wait_for(has_holes, f"the cleaner to leave holes in {topic}", TAKEN_UP_S, 0.2)


def _has_inner_holes(batch: Batch, topic: str) -> bool:
    offsets = [record.offset for record in decode(batch, topic, 0)]
    return bool(offsets) and offsets[-1] - offsets[0] + 1 > len(offsets)


def inherit_logs(heir: ClusterOfBrokers, testator: ClusterOfBrokers, topics: Sequence[str]) -> None:
    """Topics of one partition, as they are on the one cluster's only broker, become the other's, of the same names.

    The heir's broker is stopped meanwhile; it makes its indexes anew from the logs when it starts.
    """
    for topic in topics:
        create_topic(heir.bootstrap, topic, 1, settings={"retention.ms": "-1"})
    (broker,), (other,) = heir.brokers, testator.brokers
    broker.stop()
    for topic in topics:
        folder = broker.data / f"{topic}-0"
        for file in folder.iterdir():
            if file.name != "partition.metadata":  # who it is; all the rest is what it holds
                file.unlink()
        for log in (other.data / f"{topic}-0").glob("*.log"):
            shutil.copy(log, folder)
    (broker.data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    broker.start()


def write_transactions(bootstrap: str, topic: str, transactional_id: str) -> list[bytes]:
    """Committed and aborted ones, with another producer's records between them; returns the values that count."""
    create_topic(bootstrap, topic, 1, settings={"retention.ms": "-1"})
    client = producer(bootstrap, {"transactional.id": transactional_id})
    client.init_transactions(TRANSACTION_S)
    committed: list[bytes] = []
    for number in range(12):
        values = [b"%d/%d" % (number, one) for one in range(1 + number % 3)]
        client.begin_transaction()
        for value in values:
            client.produce(topic, value, partition=0)
        if number % 3 == 1:
            client.flush(FLUSH_S)  # an abort would take back what was not sent yet
            client.abort_transaction(TRANSACTION_S)
        else:
            client.commit_transaction(TRANSACTION_S)
            committed += values
        plain = b"plain %d" % number
        write_rows(bootstrap, topic, [(None, plain)], 2, "none")
        committed.append(plain)
    return committed


def write_rows(bootstrap: str, topic: str, rows: Sequence[Row], magic: int, codec: str) -> None:
    """Keys and values as one batch where the format has batches, acknowledged when this returns; v2 with headers."""
    failures: list[KafkaError] = []

    def settled(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            failures.append(error)

    client = producer(bootstrap, {**one_batch(BATCH_BYTES), "linger.ms": 50, "compression.type": codec})
    for number, (key, value) in enumerate(rows):
        headers: Iterable[tuple[str, bytes]] = [("n", b"%d" % number)] if magic == 2 else []
        client.produce(topic, value, key, partition=0, headers=list(headers), on_delivery=settled)
    if client.flush(FLUSH_S) or failures:
        raise LabError(f"{topic}: not all records were written with {codec}: {failures[:1]}")
