"""A group's own checkpoint counts where the ledger knows less, if it fits to the ledger."""

from __future__ import annotations

import pytest

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.checkpoint_floor import not_before_checkpoint
from mirrorspark.offsets.group_sync import Synced
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, translate

REMOTE = TopicPartition("east.orders", 0)


@pytest.fixture
def store() -> LedgerStore:
    """Taken over at upstream 1,000, which lies at 900; the target still has everything from 10 on."""
    page = LedgerPage.of(
        [Run(1_000, 1_099, 900, 999, 100)], upstream_start=1_000, upstream_next=1_100, downstream_start=900
    )
    store = LedgerStore()
    store.fold(*ledger_entry(REMOTE, page))
    store.drop_before(REMOTE, 10)
    return store


def ask(store: LedgerStore, offset: int, checkpoint: Synced | None) -> tuple[int | None, bool, Reason]:
    found = not_before_checkpoint(translate(store, REMOTE, offset), store, REMOTE, offset, checkpoint)
    return found.downstream_offset, found.exact, found.reason


def test_it_is_closer_than_the_oldest_record(store: LedgerStore) -> None:
    assert ask(store, 600, None) == (10, False, Reason.BEFORE_LEDGER)
    for offset in (500, 600, 999):
        assert ask(store, offset, Synced(500, 450)) == (450, False, Reason.CHECKPOINT)


@pytest.mark.parametrize(
    ("offset", "checkpoint"),
    [
        (499, Synced(500, 450)),  # the group went back since
        (600, Synced(500, 901)),  # beyond where the ledger begins: of an earlier topic
        (600, Synced(1_001, 450)),
        (600, Synced(500, 5)),  # the target's retention has taken it
    ],
)
def test_one_that_does_not_fit_does_not_count(store: LedgerStore, offset: int, checkpoint: Synced) -> None:
    assert ask(store, offset, checkpoint) == (10, False, Reason.BEFORE_LEDGER)


def test_what_the_ledger_tells_is_not_touched(store: LedgerStore) -> None:
    assert ask(store, 1_050, Synced(500, 450)) == (950, True, Reason.MIRRORED)
    assert ask(LedgerStore(), 5, Synced(0, 0)) == (None, False, Reason.UNKNOWN)
