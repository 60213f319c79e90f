"""One scrape of a ``/metrics``, as a journey reads it: values by series and labels, of series that the catalogue has."""

from __future__ import annotations

from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from mirrorspark.observe.metric_catalogue import METRICS

__all__ = ["Samples", "scrape"]

ANSWER_TIMEOUT_S = 60.0

Samples = dict[str, dict[tuple[str, ...], float]]


def scrape(port: int) -> Samples:
    """Labels in the catalogue's order. Raises OSError where nobody answers."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ANSWER_TIMEOUT_S) as answer:
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if (metric := METRICS.get(sample.name)) is not None:
                labels = tuple(sample.labels[name] for name in metric.labels)
                found.setdefault(sample.name, {})[labels] = sample.value
    return found
