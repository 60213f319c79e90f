"""What Strimzi's dashboard and rules ask cAdvisor for. In Kubernetes it is cAdvisor that gives them, and not we."""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["CONTAINER"]

CONTAINER: tuple[Metric, ...] = (
    Metric(
        "container_cpu_usage_seconds_total",
        MetricKind.COUNTER,
        (),
        "s",
        "CPU of the container or service, with Spark and the lanes in it.",
        "The account of the control group; without one, of the driver's process.",
    ),
    Metric("container_last_seen", MetricKind.GAUGE, (), "s", "Now, Unix time.", "The clock."),
)
"""Labels (``namespace``, ``pod``, ``container``) come from the scrape: ops/prometheus/prometheus.yml."""
