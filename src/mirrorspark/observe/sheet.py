"""The samples of one scrape: only of series that the catalogue has, with its labels, as prometheus-client's families.

Values that are not known (None) are left out. The same labels twice are added up where the catalogue says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from mirrorspark.observe.metric_catalogue import METRICS, TWINS, Metric, MetricKind

__all__ = ["Sheet"]


_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


class Sheet:
    def __init__(self) -> None:
        self._samples: dict[str, dict[tuple[str, ...], float]] = {}
        self._of_clients: dict[str, dict[str, float]] = {}
        """Series with a client in the name: by client, then by the catalogue's name."""

    def put(self, name: str, value: float | None, *labels: object) -> None:
        """One sample, and that of its twin; a second one with the same labels is added to it."""
        if value is None:
            return
        self._put(METRICS[name], value, tuple(map(str, labels)))
        if (twin := TWINS.get(name)) is not None:
            self._put(twin, value, tuple(str(label).strip('"') for label in labels[: len(twin.labels)]))

    def _put(self, metric: Metric, value: float, labels: tuple[str, ...]) -> None:
        assert len(labels) == len(metric.labels), f"{metric.name} has the labels {metric.labels}, not {labels}"
        samples = self._samples.setdefault(metric.name, {})
        samples[labels] = samples.get(labels, 0.0) + value

    def put_of_client(self, name: str, client: str, value: float) -> None:
        """A sample of a series that has the client in its name, written as the JMX exporter writes it."""
        told = self._of_clients.setdefault(_NOT_IN_A_NAME.sub("_", client.lower()).strip("_"), {})
        told[name] = told.get(name, 0.0) + value

    def families(self) -> Iterator[Family]:
        """In the catalogue's order."""
        for name, metric in METRICS.items():
            if name in self._samples:
                yield _family(name, metric, self._samples[name])
            for client, told in self._of_clients.items():
                if name in told:
                    yield _family(name.format(client=client), metric, {(): told[name]})


def _family(name: str, metric: Metric, samples: dict[tuple[str, ...], float]) -> Family:
    make = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    family = make(name, metric.help, labels=metric.labels)
    for labels, value in samples.items():
        family.add_metric(list(labels), value)
    return family
