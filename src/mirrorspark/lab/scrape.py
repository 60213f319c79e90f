"""One scrape of a ``/metrics``, as a journey reads it: values by series and labels, of series that the catalogue has."""

from __future__ import annotations

from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from mirrorspark.observe.metric_catalogue import METRICS

__all__ = ["Samples", "names_in", "names_on", "scrape"]

ANSWER_TIMEOUT_S = 60.0

Samples = dict[str, dict[tuple[str, ...], float]]


def scrape(port: int) -> Samples:
    """Labels in the catalogue's order. Raises OSError where nobody answers."""
    found: Samples = {}
    for family in text_string_to_metric_families(_text(port)):
        for sample in family.samples:
            if (metric := METRICS.get(sample.name)) is not None:
                labels = tuple(sample.labels[name] for name in metric.labels)
                found.setdefault(sample.name, {})[labels] = sample.value
    return found


def names_on(port: int) -> list[tuple[str, tuple[str, ...]]]:
    """Name and labels of each sample, whether or not the catalogue has them."""
    return names_in(_text(port))


def names_in(text: str) -> list[tuple[str, tuple[str, ...]]]:
    families = text_string_to_metric_families(text)
    return [(sample.name, tuple(sample.labels)) for family in families for sample in family.samples]


def _text(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ANSWER_TIMEOUT_S) as answer:
        return str(answer.read().decode())
