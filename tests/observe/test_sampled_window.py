"""The last minute in two samples: what is old falls out, what is there is exact."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.observe.sampled_window import SAMPLE_S, SAMPLES, SampledWindow


def test_nothing_is_known_of_nothing() -> None:
    window = SampledWindow()
    assert (window.low(0), window.high(0), window.mean(0), window.rate(0)) == (None, None, None, 0.0)


def test_a_rate_is_over_the_time_since_the_oldest_sample() -> None:
    window = SampledWindow()
    for second in range(10):
        window.add(float(second), 50.0)
    assert window.rate(10.0) == 50.0
    assert window.mean(10.0) == window.low(10.0) == window.high(10.0) == 50.0


def test_what_is_old_falls_out() -> None:
    window = SampledWindow()
    window.add(0.0, 1_000.0)
    window.add(SAMPLE_S, 1.0)
    assert window.high(SAMPLE_S) == 1_000.0
    window.add(SAMPLES * SAMPLE_S, 2.0)
    assert window.high(SAMPLES * SAMPLE_S) == 2.0
    assert window.low(10 * SAMPLE_S) is None
    assert window.rate(10 * SAMPLE_S) == 0.0


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 10**6)), min_size=1))
def test_inside_one_sample_it_is_exact(steps: list[tuple[float, int]]) -> None:
    window = SampledWindow()
    times = sorted(at for at, _ in steps)
    for at, (_, value) in zip(times, steps, strict=True):
        window.add(at, value)
    values = [value for _, value in steps]
    now = times[-1]
    assert (window.low(now), window.high(now)) == (min(values), max(values))
    assert abs((window.mean(now) or 0) - sum(values) / len(values)) < 1e-6 * max(1, max(values))
