"""The checker finds each kind of damage, on its own and in copies on a real broker."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mirrorspark.lab.checker import Checker, Verdict, check_copy
from mirrorspark.lab.clients import create_topic, producer
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.ledger import Ledger
from mirrorspark.lab.records import Record, digest, make_record
from mirrorspark.lab.workload import TOPIC_SETTINGS

COUNT = 60


def _records(partition: int) -> list[Record]:
    return [make_record(3, partition, sequence) for sequence in range(COUNT) if sequence != 1]


def _ledger(partitions: int = 1) -> Ledger:
    """As a workload would leave it, with sequence 50 in doubt in each partition."""
    ledger = Ledger("original", partitions)
    for partition in range(partitions):
        for offset, record in enumerate(_records(partition)):
            content = digest(record.key, record.value, record.headers, record.timestamp_ms)
            if record.sequence == 50:
                ledger.doubt(partition, record.sequence, content)
            else:
                ledger.acknowledge(partition, record.sequence, offset, content)
    return ledger


def _verdict(records: Iterable[Record]) -> Verdict:
    checker = Checker(_ledger(), "copy")
    for offset, record in enumerate(records):
        checker.see(
            0,
            offset,
            key=record.key,
            value=record.value,
            headers=record.headers,
            timestamp_ms=record.timestamp_ms,
        )
    return checker.verdict()


def _changed(record: Record, **changes: object) -> Record:
    fields = {name: getattr(record, name) for name in Record.__slots__}
    return Record(**{**fields, **changes})  # type: ignore[arg-type]


def test_faithful_copy_is_clean() -> None:
    verdict = _verdict(_records(0))
    assert verdict.is_clean
    assert str(verdict) == "lost=0 duplicated=0 reordered=0 corrupted=0 extra=0"
    assert verdict.read == COUNT - 1


def test_record_in_doubt_may_be_absent_but_not_twice() -> None:
    records = _records(0)
    in_doubt = next(record for record in records if record.sequence == 50)
    assert _verdict(record for record in records if record is not in_doubt).is_clean
    assert str(_verdict([*records, in_doubt])) == "lost=0 duplicated=1 reordered=0 corrupted=0 extra=0"


def test_lost_record_is_found_with_its_source_offset() -> None:
    records = _records(0)
    verdict = _verdict(records[:10] + records[12:])
    assert str(verdict) == "lost=2 duplicated=0 reordered=0 corrupted=0 extra=0"
    assert verdict.examples["lost"] == ["copy-0: nothing of source offset 10", "copy-0: nothing of source offset 11"]
    assert "source offset 11" in verdict.report()


def test_duplicate_is_found() -> None:
    records = _records(0)
    verdict = _verdict(records[:20] + records[15:])
    assert str(verdict) == "lost=0 duplicated=5 reordered=0 corrupted=0 extra=0"
    assert verdict.examples["duplicated"][0].startswith("copy-0@20 ")


def test_swapped_neighbours_are_one_reordering() -> None:
    records = _records(0)
    records[30], records[31] = records[31], records[30]
    assert str(_verdict(records)) == "lost=0 duplicated=0 reordered=1 corrupted=0 extra=0"


@pytest.mark.parametrize(
    "changes",
    [
        {"key": b"another"},
        {"value": b"another"},
        {"timestamp_ms": 77},
        {"headers": (("n", b"0:5"), ("more", b""))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_any_change_to_a_record_is_corruption(changes: dict[str, object]) -> None:
    records = [_changed(record, **changes) if record.sequence == 5 else record for record in _records(0)]
    assert str(_verdict(records)) == "lost=0 duplicated=0 reordered=0 corrupted=1 extra=0"


def test_strangers_are_extra() -> None:
    never_sent = make_record(3, 0, COUNT + 5)
    other_partition = make_record(3, 1, 4)
    nameless = _changed(make_record(3, 0, 4), headers=())
    verdict = _verdict([*_records(0), never_sent, other_partition, nameless])
    assert str(verdict) == "lost=0 duplicated=0 reordered=0 corrupted=0 extra=3"
    assert len(verdict.examples["extra"]) == 3


def test_examples_are_few() -> None:
    verdict = _verdict([])
    assert verdict.lost == COUNT - 2
    assert len(verdict.examples["lost"]) == 5


def test_spoiled_copy_on_a_broker_is_found(target_cluster: ClusterOfBrokers, topic_name: str) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 3, settings=TOPIC_SETTINGS)
    copier = producer(target_cluster.bootstrap, {"enable.idempotence": True})
    for partition in range(3):
        records = [record for record in _records(partition) if record.sequence != 50]
        if partition == 1:
            records[3], records[4] = records[4], records[3]
            records[8] = _changed(records[8], value=b"spoiled")
            del records[20]
        if partition == 2:
            records += [records[7], make_record(3, 2, COUNT + 1)]
        for record in records:
            copier.produce(
                topic_name,
                partition=partition,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
            )
    assert copier.flush(60) == 0
    verdict = check_copy(target_cluster.bootstrap, topic_name, _ledger(3))
    assert str(verdict) == "lost=1 duplicated=1 reordered=1 corrupted=1 extra=1"
    assert verdict.examples["corrupted"][0].startswith(f"{topic_name}-1@8 ")


@pytest.mark.parametrize(("isolation", "expected"), [("read_committed", 0), ("read_uncommitted", 5)])
def test_aborted_records_show_only_to_uncommitted_readers(
    target_cluster: ClusterOfBrokers, topic_name: str, isolation: str, expected: int
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 1, settings=TOPIC_SETTINGS)
    ledger = Ledger(topic_name, 1)
    writer = producer(target_cluster.bootstrap, {"transactional.id": topic_name})
    writer.init_transactions(60)
    for is_committed in (True, False):
        writer.begin_transaction()
        for sequence in range(5):
            record = make_record(3, 0, sequence + 10 if is_committed else sequence + 20)
            writer.produce(
                topic_name,
                partition=0,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
            )
            if is_committed:
                content = digest(record.key, record.value, record.headers, record.timestamp_ms)
                ledger.acknowledge(0, record.sequence, sequence, content)
        writer.flush(60)
        if is_committed:
            writer.commit_transaction(60)
        else:
            writer.abort_transaction(60)
    verdict = check_copy(target_cluster.bootstrap, topic_name, ledger, isolation=isolation)  # type: ignore[arg-type]
    assert str(verdict) == f"lost=0 duplicated=0 reordered=0 corrupted=0 extra={expected}"
