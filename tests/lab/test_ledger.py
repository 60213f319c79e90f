"""The ledger of a workload: order by source offset, in-doubt records, save and load."""

from __future__ import annotations

from pathlib import Path

from mirrorspark.lab.ledger import Ledger


def _ledger() -> Ledger:
    ledger = Ledger("orders", 2)
    ledger.acknowledge(0, sequence=1, offset=5, digest=b"b" * 16)
    ledger.acknowledge(0, sequence=0, offset=3, digest=b"a" * 16)
    ledger.acknowledge(1, sequence=0, offset=0, digest=b"c" * 16)
    ledger.doubt(1, sequence=9, digest=b"d" * 16)
    return ledger


def test_entries_come_in_the_order_of_the_log() -> None:
    assert list(_ledger().books[0].in_log_order()) == [(3, 0, b"a" * 16), (5, 1, b"b" * 16)]


def test_counts() -> None:
    ledger = _ledger()
    assert (ledger.partitions, ledger.acknowledged, ledger.in_doubt) == (2, 3, 1)


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    ledger = _ledger()
    ledger.save(tmp_path / "ledger.npz")
    loaded = Ledger.load(tmp_path / "ledger.npz")
    assert loaded.topic == "orders"
    assert loaded.books == ledger.books
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.npz"]
