"""Since when something waits, from looks at the ends of the source's logs alone."""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.observe.source_ends import LOOKS_KEPT_MAX, SourceEnds

AT = TopicPartition("east.orders", 0)


def test_nobody_looked() -> None:
    ends = SourceEnds()
    assert ends.end_of(AT) is None
    assert ends.waiting_s(AT, 0, 5.0) is None


def test_time_counts_from_the_first_look_that_found_more() -> None:
    ends = SourceEnds()
    ends.take(10.0, {AT: 100}, {AT: 100})
    ends.take(12.0, {AT: 150}, {AT: 100})
    ends.take(14.0, {AT: 150}, {AT: 100})
    ends.take(16.0, {AT: 190}, {AT: 120})
    assert ends.end_of(AT) == 190
    assert ends.waiting_s(AT, 120, 17.0) == 5.0
    assert ends.waiting_s(AT, 150, 17.0) == 1.0
    assert ends.waiting_s(AT, 190, 17.0) == 0.0


def test_a_log_that_was_cut_begins_anew() -> None:
    ends = SourceEnds()
    ends.take(10.0, {AT: 100}, {AT: 0})
    ends.take(20.0, {AT: 5}, {AT: 0})
    assert (ends.end_of(AT), ends.waiting_s(AT, 0, 21.0)) == (5, 1.0)


def test_what_is_kept_is_bounded_and_the_oldest_stays() -> None:
    ends = SourceEnds()
    for second in range(10_000):
        ends.take(float(second), {AT: second + 1}, {AT: 0})
    assert ends.waiting_s(AT, 0, 10_000.0) == 10_000.0
    assert len(ends._looks[AT]) <= LOOKS_KEPT_MAX + 1
    ends.take(10_000.0, {}, {})
    assert ends.end_of(AT) is None
