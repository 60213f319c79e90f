"""Records made from a seed: reproducible, identifiable, of every shape."""

from __future__ import annotations

from mirrorspark.lab.records import CODECS, NOW_MS, Record, digest, identity_of, make_record


def _many() -> list[Record]:
    return [make_record(7, partition, sequence) for partition in range(3) for sequence in range(400)]


def test_same_seed_same_record_other_seed_other_record() -> None:
    assert make_record(7, 2, 11) == make_record(7, 2, 11)
    assert make_record(7, 2, 11) != make_record(8, 2, 11)


def test_every_record_tells_its_identity() -> None:
    for record in _many():
        assert identity_of(record.headers) == (record.partition, record.sequence)


def test_all_shapes_occur() -> None:
    records = _many()
    assert {record.codec for record in records} == set(CODECS)
    assert {record.key is None for record in records} == {True, False}
    assert any(record.key == b"" for record in records)
    assert any(record.value is None for record in records)
    assert any(record.value == b"" for record in records)
    assert any(record.value is not None and len(record.value) > 890_000 for record in records)
    assert any(("null", None) in record.headers for record in records)
    assert any(record.headers.count(("same", b"1")) == 2 for record in records)
    assert any(name == "" for record in records for name, _ in record.headers)
    assert any(record.timestamp_ms < 40_000_000_000 for record in records)
    assert any(record.timestamp_ms > 1_800_000_000_000 for record in records)


def test_without_ancient_ones_no_record_is_a_day_old() -> None:
    records = [make_record(7, 0, sequence, has_ancient=False) for sequence in range(400)]
    assert NOW_MS - 86_400_000 < min(record.timestamp_ms for record in records) < NOW_MS


def test_identity_of_strangers_is_none() -> None:
    assert identity_of(None) is None
    assert identity_of([("other", b"1:2")]) is None
    assert identity_of([("n", None)]) is None
    assert identity_of([("n", b"one:two")]) is None
    assert identity_of([("n", b"12")]) is None


def test_digest_tells_apart_what_a_consumer_can_tell_apart() -> None:
    headers = [("a", b"1"), ("b", b"2")]
    variants = [
        digest(b"k", b"v", headers, 5),
        digest(None, b"v", headers, 5),
        digest(b"", b"v", headers, 5),
        digest(b"k", None, headers, 5),
        digest(b"k", b"", headers, 5),
        digest(b"kv", b"", headers, 5),
        digest(b"k", b"v", headers[::-1], 5),
        digest(b"k", b"v", [("a", b"1"), ("b", None)], 5),
        digest(b"k", b"v", [("a", b"1"), ("b", b"")], 5),
        digest(b"k", b"v", [], 5),
        digest(b"k", b"v", headers, 6),
    ]
    assert len(set(variants)) == len(variants)
    assert digest(b"k", b"v", None, 5) == digest(b"k", b"v", [], 5)
