"""The samples of one scrape: only of series that the catalogue has, with its labels, as prometheus-client's families.

Values that are not known (None) are left out. The same labels twice are added up where the catalogue says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from mirrorspark.observe.metric_catalogue import METRICS, MetricKind

__all__ = ["Sheet"]


class Sheet:
    def __init__(self) -> None:
        self._samples: dict[str, dict[tuple[str, ...], float]] = {}

    def put(self, name: str, value: float | None, *labels: object) -> None:
        """One sample; a second one with the same labels is added to it."""
        if value is None:
            return
        metric = METRICS[name]
        assert len(labels) == len(metric.labels), f"{name} has the labels {metric.labels}, not {labels}"
        samples = self._samples.setdefault(name, {})
        key = tuple(map(str, labels))
        samples[key] = samples.get(key, 0.0) + value

    def families(self) -> Iterator[Family]:
        """In the catalogue's order."""
        for name, metric in METRICS.items():
            if name not in self._samples:
                continue
            make = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
            family = make(name, metric.help, labels=metric.labels)
            for labels, value in self._samples[name].items():
                family.add_metric(list(labels), value)
            yield family
