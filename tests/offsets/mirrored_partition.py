"""A partition as a mirror would carry it, in memory: what is where, and the ledger that its lanes would write."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger_pages import LedgerPages
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.position import Booked

REMOTE = TopicPartition("east.orders", 0)
ID, REMOTE_ID = b"s" * 16, b"r" * 16


@dataclass
class MirroredPartition:
    store: LedgerStore = field(default_factory=LedgerStore)
    upstream: int = 0
    downstream: int = 0
    records: list[tuple[int, int]] = field(default_factory=list)
    booked: Booked | None = None
    entries: list[tuple[bytes, bytes | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pages = LedgerPages(REMOTE, ID)
        self.pages.begin(Booked(self.upstream, self.downstream), REMOTE_ID, is_new=True)
        self.write()

    def carry(self, count: int) -> None:
        if count:
            self.pages.add(self.upstream, self.upstream + count - 1, self.downstream)
            self.records += [(self.upstream + i, self.downstream + i) for i in range(count)]
            self.upstream += count
            self.downstream += count

    def leave_out(self, count: int) -> None:
        """Markers, aborted data, what compaction took: offsets with no record for the target."""
        self.upstream += count

    def mark(self, count: int) -> None:
        """Markers on the target, or what others write there."""
        self.downstream += count

    def write(self) -> None:
        draft = self.pages.draft(self.upstream, self.downstream)
        for entry in draft.entries:
            self.store.fold(*entry)
        self.entries += draft.entries
        self.pages.confirm(draft)
        self.booked = self.pages.booked(self.upstream)

    def restart(self, *, clean: bool) -> None:
        """A new owner goes on where the position says, after a kill by walking what came since the last write."""
        if clean:
            self.write()
        assert self.booked is not None
        booked = self.booked
        self.pages = LedgerPages(REMOTE, ID)
        self.pages.begin(booked, REMOTE_ID)
        for up, down in self.records:
            if up >= booked.upstream_next:
                self.pages.add(up, up, down)

    def expected(self, upstream: int) -> int:
        """The lowest downstream offset from which the next record at or after ``upstream`` is read first."""
        before = [down for up, down in self.records if up < upstream]
        for up, down in self.records:
            if up == upstream:
                return down
        return before[-1] + 1 if before else self.records[0][1] if self.records else self.downstream
