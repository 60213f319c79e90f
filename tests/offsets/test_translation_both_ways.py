"""Two clusters with one topic under one name: whoever moves reads every record, and where it is exact, none twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, Translation, translate
from mirrorspark.offsets.translation_both_ways import first_not_brought, translate_both_ways

AT = TopicPartition("orders", 0)
MARKER = "marker"


@dataclass
class Side:
    """A log, and the ledger of the flow that writes into it."""

    log: list[str] = field(default_factory=list)
    began: tuple[int, int] | None = None
    runs: list[Run] = field(default_factory=list)
    seen: int = 0  # of the other side's log, by the flow into this one

    def carry_from(self, other: Side, name: str, count: int) -> None:
        """The flow into this side looks at the next offsets and takes what the other side's own producers wrote."""
        if self.began is None:
            self.began = self.seen, len(self.log)
        for offset in range(self.seen, min(len(other.log), self.seen + count)):
            value = other.log[offset]
            if value.startswith(name):
                self.runs.append(Run(offset, offset, len(self.log), len(self.log), 1))
                self.log.append(value)
            self.seen = offset + 1

    def ledger(self) -> LedgerStore:
        store = LedgerStore()
        if self.began is not None:
            up, down = self.began
            page = LedgerPage.of(self.runs, upstream_start=up, upstream_next=self.seen, downstream_start=down)
            store.fold(*ledger_entry(AT, page))
            store.drop_before(AT, 0)
        return store

    def has_own_from(self, offset: int, name: str) -> int:
        """What somebody who reads the log from there on meets first of its own producers."""
        own = [place for place, value in enumerate(self.log) if value.startswith(name) and place >= offset]
        return own[0] if own else len(self.log)


steps = st.lists(st.tuples(st.sampled_from("abABmM"), st.integers(1, 4)), max_size=30)


@given(steps, st.integers(0, 40), st.booleans())
def test_nothing_is_skipped_and_exact_is_exact(
    script: list[tuple[str, int]], place: int, somebody_looked: bool
) -> None:
    """a, b: producers there write; A, B: the flow into that side carries; m, M: markers on either side."""
    sides = {"a": Side(), "b": Side()}
    a, b = sides["a"], sides["b"]
    number = 0
    for what, count in script:
        if what in "ab":
            for _ in range(count):
                sides[what].log.append(f"{what}{number}")
                number += 1
        elif what == "A":
            a.carry_from(b, "b", count)
        elif what == "B":
            b.carry_from(a, "a", count)
        else:
            (a if what == "m" else b).log.append(MARKER)
    offset = min(place, len(b.log))  # a group on b moves to a
    store, back = a.ledger(), b.ledger()
    forward = translate(store, AT, offset)
    looked_to = a.has_own_from(b.seen, "a") if somebody_looked else 0
    found = translate_both_ways(forward, store, AT, back, AT, offset, looked_to=looked_to)
    if found.downstream_offset is None:
        return
    read = {value for value in b.log[:offset] if value != MARKER}
    unread = {value for value in b.log[offset:] if value != MARKER} | {one for one in a.log if one not in b.log}
    before, after = a.log[: found.downstream_offset], a.log[found.downstream_offset :]
    if back.pages(AT):
        assert not [value for value in before if value in unread and value != MARKER], "a record would be skipped"
    if found.exact and back.pages(AT):
        again = [value for value in after if value in read]
        assert not again, f"{again} would be read again, but {found} says exactly"


@given(st.integers(1, 20), st.integers(0, 20), st.data())
def test_one_phase_after_the_other_is_always_exact(first: int, second: int, data: st.DataObject) -> None:
    """Failover, then failback: all of a's is on b, then all of b's on a; a marker where each flow began."""
    a, b = Side(), Side()
    a.log = [f"a{i}" for i in range(first)]
    b.carry_from(a, "a", first)
    a.seen = data.draw(st.sampled_from([0, first]))  # from the beginning, or from where the failover set it
    b.log += [f"b{i}" for i in range(second)]
    a.log.append(MARKER)
    a.carry_from(b, "b", first + second)
    offset = data.draw(st.integers(0, len(b.log)))
    store, back = a.ledger(), b.ledger()
    found = translate_both_ways(
        translate(store, AT, offset), store, AT, back, AT, offset, looked_to=a.has_own_from(b.seen, "a")
    )
    assert found.exact, found
    assert found.downstream_offset is not None
    left = [value for value in a.log[found.downstream_offset :] if value != MARKER]
    assert left == b.log[offset:]


def test_without_the_look_the_others_phase_is_read_again_rather_than_skipped() -> None:
    a, b = Side([f"a{i}" for i in range(5)]), Side()
    b.carry_from(a, "a", 5)
    b.log += ["b0", "b1"]
    a.carry_from(b, "b", 10)
    store, back = a.ledger(), b.ledger()
    forward = translate(store, AT, 6)
    assert forward == Translation(6, True, Reason.MIRRORED)
    assert translate_both_ways(forward, store, AT, back, AT, 6) == Translation(5, False, Reason.MERGED)
    assert translate_both_ways(forward, store, AT, back, AT, 6, looked_to=7).downstream_offset == 6


def test_without_a_reverse_ledger_the_flows_own_answer_stands() -> None:
    forward = Translation(7, True, Reason.MIRRORED)
    assert translate_both_ways(forward, LedgerStore(), AT, LedgerStore(), AT, 7) is forward


def test_the_first_offset_that_was_not_brought() -> None:
    store = LedgerStore()
    runs = [Run(0, 4, 10, 14, 5), Run(5, 6, 15, 16, 2), Run(7, 7, 18, 18, 1)]
    store.fold(*ledger_entry(AT, LedgerPage.of(runs, upstream_start=0, upstream_next=8, downstream_start=10)))
    assert [first_not_brought(store, AT, at) for at in (0, 10, 12, 16, 17, 18, 19, 50)] == [
        0,
        17,
        17,
        17,
        17,
        19,
        19,
        50,
    ]
    assert first_not_brought(store, TopicPartition("none", 0), 3) == 3
