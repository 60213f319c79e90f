"""The ledger in memory: pages of each remote partition, in order, within a bound.

Folded from the ledger topic by whoever translates (group sync, commands) and by a lane that lost a position. Newer entries
win over older ones that contradict them: after a reset, or when one of the topics was made anew. Above its limits the
store keeps an outline of the oldest pages: translations there are no longer exact, and say so, but still skip nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry, ledger_key, parse_ledger_entry, parse_ledger_key
from mirrorspark.offsets.ledger_repacking import RUNS_PER_PAGE_MAX, cut_off, repack

__all__ = ["PARTITION_BYTES_MAX", "STORE_BYTES_MAX", "LedgerStore"]

PARTITION_BYTES_MAX = 8 * 1024 * 1024
"""Pages of one remote partition, as they lie in memory: some 2,000,000 runs."""
STORE_BYTES_MAX = 256 * 1024 * 1024
"""All pages; above it the largest partition is outlined."""
PAGE_BYTES = 200
"""What a page takes besides its runs, about."""
NEWEST_KEPT = 2
"""Pages at the end of a partition that are never rewritten: a lane may still write them."""
OUTLINE_RECORDS = 16
"""Records that one run of an outline stands for at most, at first: so many are read again at worst. Four times as many
whenever the outline itself takes half of the room."""
RUNS_CACHED_MAX = 64
"""Unpacked pages, for the next question about the same one."""


class _Partition:
    __slots__ = ("bytes", "log_start", "outline_records", "outlined_to", "pages", "starts")

    def __init__(self) -> None:
        self.pages: list[LedgerPage] = []
        self.starts: list[int] = []
        self.bytes = 0
        self.log_start: int | None = None
        self.outline_records = OUTLINE_RECORDS
        self.outlined_to = 0  # upstream offset before which the pages are an outline

    def put(self, index: int, page: LedgerPage) -> None:
        self.pages.insert(index, page)
        self.starts.insert(index, page.upstream_start)
        self.bytes += _size(page)

    def drop(self, first: int, end: int) -> list[LedgerPage]:
        dropped = self.pages[first:end]
        del self.pages[first:end]
        del self.starts[first:end]
        self.bytes -= sum(map(_size, dropped))
        return dropped

    @property
    def outlined_count(self) -> int:
        return bisect_left(self.starts, self.outlined_to)


class LedgerStore:
    def __init__(
        self, *, partition_bytes_max: int = PARTITION_BYTES_MAX, store_bytes_max: int = STORE_BYTES_MAX
    ) -> None:
        self._partition_bytes_max = partition_bytes_max
        self._store_bytes_max = store_bytes_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._unpacked: dict[int, tuple[LedgerPage, list[Run], list[int]]] = {}
        self._rewrites: dict[bytes, bytes | None] = {}
        self._bytes_needed = 0
        self.bytes = 0
        self.damaged_entries = 0
        """Entries that were no pages of this version; told by whoever folds."""

    # -- what is known ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def __contains__(self, remote: object) -> bool:
        return remote in self._partitions

    def pages(self, remote: TopicPartition) -> Sequence[LedgerPage]:
        known = self._partitions.get(remote)
        return known.pages if known else ()

    def newest(self, remote: TopicPartition) -> LedgerPage | None:
        pages = self.pages(remote)
        return pages[-1] if pages else None

    def log_start(self, remote: TopicPartition) -> int | None:
        """The target's first offset, as it was last told to ``drop_before``."""
        known = self._partitions.get(remote)
        return known.log_start if known else None

    def page_at(self, remote: TopicPartition, upstream_offset: int) -> tuple[LedgerPage | None, bool]:
        """The last page that begins at or before the offset, and whether it is the partition's last."""
        known = self._partitions.get(remote)
        index = bisect_right(known.starts, upstream_offset) - 1 if known else -1
        if known is None or index < 0:
            return None, False
        return known.pages[index], index == len(known.pages) - 1

    def run_at(self, page: LedgerPage, upstream_offset: int) -> Run | None:
        """The last run of the page that begins at or before the offset."""
        cached = self._unpacked.get(id(page))
        if cached is None or cached[0] is not page:
            runs = list(page.runs())
            cached = page, runs, [run.upstream_first for run in runs]
            while len(self._unpacked) >= RUNS_CACHED_MAX:
                del self._unpacked[next(iter(self._unpacked))]
            self._unpacked[id(page)] = cached
        index = bisect_right(cached[2], upstream_offset) - 1
        return cached[1][index] if index >= 0 else None

    # -- folding ----------------------------------------------------------------------------------------------------

    def fold(self, key: bytes, value: bytes | None) -> TopicPartition | None:
        """One entry of the ledger topic, in its order. Returns the remote partition that it is about, if it is about one."""
        if value is None:
            named = parse_ledger_key(key)
            if named is not None:
                self._remove(*named)
            return named[0] if named else None
        parsed = parse_ledger_entry(key, value)
        if parsed is None:
            self.damaged_entries += 1
            return None
        remote, page = parsed
        self._add(remote, page)
        self._stay_within_limits(remote)
        return remote

    def _remove(self, remote: TopicPartition, upstream_start: int) -> None:
        known = self._partitions.get(remote)
        if known is None:
            return
        index = bisect_right(known.starts, upstream_start) - 1
        if index >= 0 and known.starts[index] == upstream_start:
            self._drop(known, index, index + 1)
        if not known.pages:
            del self._partitions[remote]

    def _add(self, remote: TopicPartition, page: LedgerPage) -> None:
        known = self._partitions.setdefault(remote, _Partition())
        if known.pages and not known.pages[-1].is_of(*page.ids):
            self._prune(remote, known, 0, len(known.pages))
        index = bisect_right(known.starts, page.upstream_start)
        if index and known.starts[index - 1] == page.upstream_start:
            index -= 1
            self._drop(known, index, index + 1)
        self._drop_contradicted(remote, known, index, page)
        index = bisect_right(known.starts, page.upstream_start)
        self.bytes -= known.bytes
        known.put(index, page)
        self.bytes += known.bytes
        self._rewrites.pop(ledger_key(remote, page.upstream_start), None)  # it was written anew

    def _drop_contradicted(self, remote: TopicPartition, known: _Partition, index: int, page: LedgerPage) -> None:
        """Offsets ascend on both sides. What does not fit to the newer page is from another life of the partition."""
        end = index
        while end < len(known.pages) and (
            known.pages[end].upstream_start < page.upstream_next
            or known.pages[end].downstream_start < page.downstream_end
        ):
            end += 1
        self._prune(remote, known, index, end)
        first = index
        while first and (
            known.pages[first - 1].upstream_next > page.upstream_start
            or known.pages[first - 1].downstream_end > page.downstream_start
        ):
            first -= 1
        for old in self._drop(known, first, index):
            kept = cut_off(old, page.upstream_start)
            if kept is not None and kept.downstream_end <= page.downstream_start:
                self.bytes -= known.bytes
                known.put(bisect_right(known.starts, kept.upstream_start), kept)
                self.bytes += known.bytes
            else:
                self._rewrites[ledger_key(remote, old.upstream_start)] = None

    def _drop(self, known: _Partition, first: int, end: int) -> list[LedgerPage]:
        self.bytes -= known.bytes
        dropped = known.drop(first, end)
        self.bytes += known.bytes
        return dropped

    # -- keeping it small -------------------------------------------------------------------------------------------

    def drop_before(self, remote: TopicPartition, downstream_log_start: int, upstream_log_start: int = 0) -> int:
        """Both logs begin there now: pages that lie wholly before either are needed no more. Returns how many those were.

        The newest page stays: it says where the copy ends.
        """
        known = self._partitions.get(remote)
        if known is None:
            return 0
        known.log_start = downstream_log_start
        count = 0
        while count < len(known.pages) - 1 and (
            known.pages[count].downstream_end <= downstream_log_start
            or known.pages[count].upstream_next <= upstream_log_start
        ):
            count += 1
        self._prune(remote, known, 0, count)
        return count

    def forget(self, remote: TopicPartition) -> None:
        """The remote partition is gone: all of its pages with it."""
        known = self._partitions.pop(remote, None)
        if known is not None:
            self._prune(remote, known, 0, len(known.pages))

    def tidy(self, remote: TopicPartition) -> None:
        """Put small neighbours together: each attempt of a lane may begin a page. Nothing is lost by that."""
        known = self._partitions.get(remote)
        if known is not None:
            done, end = known.outlined_count, max(0, len(known.pages) - NEWEST_KEPT)
            self._repack(remote, known, done, end, 0)
            self._repack(remote, known, 0, done, known.outline_records)

    def take_rewrites(self) -> list[tuple[bytes, bytes | None]]:
        """What to append to the ledger topic, so that it holds no more than the store does. For its one keeper."""
        rewrites, self._rewrites = self._rewrites, {}
        return list(rewrites.items())

    def _prune(self, remote: TopicPartition, known: _Partition, first: int, end: int) -> None:
        for page in self._drop(known, first, end):
            self._rewrites[ledger_key(remote, page.upstream_start)] = None

    def _stay_within_limits(self, remote: TopicPartition) -> None:
        self._outline(remote, self._partition_bytes_max)
        while self.bytes > max(self._store_bytes_max, self._bytes_needed * 5 // 4):
            largest = max(self._partitions, key=lambda one: self._partitions[one].bytes)
            if not self._outline(largest, self._partitions[largest].bytes // 2):
                self._bytes_needed = self.bytes  # so many partitions need more: looked at again when it has grown

    def _outline(self, remote: TopicPartition, bytes_max: int) -> bool:
        """The oldest first, the older half of what is not one yet at a time. False if it cannot be made smaller."""
        known = self._partitions[remote]
        while known.bytes > bytes_max:
            done, end = known.outlined_count, max(0, len(known.pages) - NEWEST_KEPT)
            if sum(map(_size, known.pages[:done])) > bytes_max // 2 or done >= end:
                if known.outline_records > known.pages[-1].downstream_end:
                    return False
                known.outline_records *= 4
                self._repack(remote, known, 0, done, known.outline_records)
            else:
                upto = done + (end - done + 1) // 2
                known.outlined_to = known.pages[upto - 1].upstream_next
                self._repack(remote, known, done, upto, known.outline_records)
        return True

    def _repack(self, remote: TopicPartition, known: _Partition, first: int, end: int, records_max: int) -> None:
        old = known.pages[first:end]
        new = repack(old, records_max, RUNS_PER_PAGE_MAX)
        if new == old:
            return
        self._prune(remote, known, first, end)
        self.bytes -= known.bytes
        for index, page in enumerate(new, first):
            known.put(index, page)
        self.bytes += known.bytes
        before = {page.upstream_start: page for page in old}
        for page in new:
            key, value = ledger_entry(remote, page)
            if before.get(page.upstream_start) == page:
                self._rewrites.pop(key, None)
            else:
                self._rewrites[key] = value


def _size(page: LedgerPage) -> int:
    return PAGE_BYTES + len(page.packed)
