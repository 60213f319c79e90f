"""From a group's offset on the source to the offset on the target at which it goes on (invariant E).

A committed offset names the next record that the group would read. ``translate`` answers with the lowest downstream offset
from which a consumer reads exactly that record next, or with a lower one that it says is not exact. Called by the group
sync and the commands; pure, and knows no more than the ledger that it is given.

Invariant E, in parts:

- E1. Never past the mirrored end.
- E2. Never skips: all that lies on the target before the answer was read upstream, or is not the source's, or is gone.
- E3. ``exact`` means: what is read first from the answer on is the very next record that the group has not read.
- E4. A later upstream offset never gets an earlier answer. (That a group never goes back unless it did so on the source is
  the caller's to keep: the ledger learns, and prunes, between two questions.)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import NO_TOPIC_ID, LedgerPage
from mirrorspark.offsets.ledger_store import LedgerStore

__all__ = ["Reason", "Translation", "translate"]


class Reason(enum.Enum):
    """Why the answer is what it is; the value is what people are told."""

    MIRRORED = "the record is on the target"
    NEXT = "there is no record for the target at that offset; the next one"
    AT_END = "all that was read is on the target, and nothing after it yet"
    AHEAD = "the group is ahead of what is mirrored; the end of the copy"
    MERGED = "the ledger keeps only an outline of so long ago; a little before it"
    NOT_TOLD = "the ledger says nothing about that stretch; the last offset before it that is known"
    BEFORE_LEDGER = "from before the ledger begins; the oldest record on the target"
    CHECKPOINT = "from before the ledger begins; where MirrorMaker 2's checkpoint says"
    GONE = "the target's retention has taken it; the oldest record on the target"
    UNKNOWN = "the ledger says nothing about this partition: nothing is mirrored yet"
    RECREATED = "the topic was deleted and created again on the source, and nothing of the new one is mirrored yet"
    BEFORE_LOG_START = "from before the ledger begins, and the target's first offset is not known"


@dataclass(frozen=True, slots=True)
class Translation:
    downstream_offset: int | None
    exact: bool
    reason: Reason

    def __str__(self) -> str:
        how = "exactly" if self.exact else "not exactly"
        where = "nowhere" if self.downstream_offset is None else f"{how} {self.downstream_offset}"
        return f"{where}: {self.reason.value}"


def translate(
    store: LedgerStore,
    remote: TopicPartition,
    upstream_offset: int,
    topic_id: bytes = NO_TOPIC_ID,
    *,
    source_log_start: int = 0,
) -> Translation:
    """``topic_id`` is the source topic's as of now (zeros: not known); ``source_log_start`` the first offset it still has.

    A group below the source's log start would go on there, so it does so on the target.
    """
    assert upstream_offset >= 0, f"{remote}: a committed offset of {upstream_offset}"
    newest = store.newest(remote)
    if newest is None:
        return Translation(None, False, Reason.UNKNOWN)
    if not newest.is_of(topic_id, newest.remote_id):
        return Translation(None, False, Reason.RECREATED)
    wanted = max(upstream_offset, source_log_start)
    log_start = store.log_start(remote)
    page, is_last = store.page_at(remote, wanted)
    if page is None:
        reason = Reason.BEFORE_LOG_START if log_start is None else Reason.BEFORE_LEDGER
        return Translation(log_start, False, reason)
    found = _within(store, page, wanted) if wanted < page.upstream_next else _after(page, wanted, is_last)
    assert found.downstream_offset is not None
    assert found.downstream_offset <= newest.downstream_end, f"{remote}: past the mirrored end (invariant E1)"
    if log_start is None or found.downstream_offset >= log_start:
        return found
    nothing_lost = found.downstream_offset == newest.downstream_end
    return (
        Translation(log_start, found.exact, found.reason)
        if nothing_lost
        else Translation(log_start, False, Reason.GONE)
    )


def _within(store: LedgerStore, page: LedgerPage, wanted: int) -> Translation:
    run = store.run_at(page, wanted)
    if run is None:  # before the page's first run
        return Translation(page.downstream_start, True, Reason.NEXT)
    if wanted > run.upstream_last:
        return Translation(run.downstream_last + 1, True, Reason.NEXT)
    into = wanted - run.upstream_first
    if run.is_dense or into == 0:
        return Translation(run.downstream_first + into, True, Reason.MIRRORED)
    # Of the offsets before the wanted one at most as many are no records as in the whole run; its first one is a record.
    missing = run.upstream_last - run.upstream_first + 1 - run.records
    return Translation(run.downstream_first + max(1, into - missing), False, Reason.MERGED)


def _after(page: LedgerPage, wanted: int, is_last: bool) -> Translation:
    """Beyond what the page covers. Right at its end, whatever comes next lies after it downstream too."""
    if wanted == page.upstream_next:
        return Translation(page.downstream_end, True, Reason.AT_END if is_last else Reason.NEXT)
    return Translation(page.downstream_end, False, Reason.AHEAD if is_last else Reason.NOT_TOLD)
