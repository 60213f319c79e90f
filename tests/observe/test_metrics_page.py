"""The reference page says what the catalogue says."""

from __future__ import annotations

from pathlib import Path

from mirrorspark.observe.metric_catalogue import METRICS
from mirrorspark.observe.metrics_page import metrics_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_current() -> None:
    assert (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8") == metrics_page(), "run make docs"


def test_the_page_has_every_series() -> None:
    page = metrics_page()
    assert [name for name in METRICS if f"| `{name}` |" not in page] == []
