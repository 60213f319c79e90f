"""Connect's series once more, as Strimzi's Metrics Reporter names them: the type of the figure in full, no ``_total``, no
quotes in the labels.

Each is the twin of a series by the exporter's rules and has its value: ``sheet`` gives both from one ``put``.
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.clients import CLIENTS
from mirrorspark.observe.metric_catalogue.connect import CONNECT
from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["REPORTER", "TWINS"]

_TYPES = {
    "kafka_connect_worker_rebalance_": "kafka_connect_connect_worker_rebalance_metrics_",
    "kafka_connect_worker_": "kafka_connect_connect_worker_metrics_",
    "kafka_connect_connector_task_": "kafka_connect_connector_task_metrics_",
    "kafka_connect_source_task_": "kafka_connect_source_task_metrics_",
    "kafka_connect_task_error_": "kafka_connect_task_error_metrics_",
    "kafka_connect_coordinator_": "kafka_connect_connect_coordinator_metrics_",
    "kafka_consumer_fetch_manager_": "kafka_consumer_consumer_fetch_manager_metrics_",
    "kafka_consumer_incoming_": "kafka_consumer_consumer_metrics_incoming_",
    "kafka_producer_outgoing_": "kafka_producer_producer_metrics_outgoing_",
    "kafka_producer_buffer_": "kafka_producer_producer_metrics_buffer_",
}
"""Longer ones first: what a name begins with, by the exporter's rules and by the reporter."""
_LABELS = {
    "connector": "connector",
    "task": "task",
    "clientid": "client_id",
    "topic": "topic",
    "partition": "partition",
}
_OF_EACH_PARTITION = "kafka_consumer_fetch_manager_records_l"
_WITH_TWIN = "kafka_consumer_fetch_manager_records_lag"
"""Of the series that each partition has, the one that the reporter's dashboard asks for. Starts have the reporter's names
with ``_total``, by the seeds' rules: OpenMetrics allows no second family beside them."""


def _twin(metric: Metric) -> Metric | None:
    begin = next((begin for begin in _TYPES if metric.name.startswith(begin)), None)
    is_many = metric.name.startswith(_OF_EACH_PARTITION) and metric.name != _WITH_TWIN
    is_older = "_startup_" in metric.name and metric.kind is MetricKind.COUNTER
    if begin is None or is_many or is_older:
        return None
    name = _TYPES[begin] + metric.name.removeprefix(begin).removesuffix("_total")
    labels = tuple(_LABELS[label] for label in metric.labels if label in _LABELS)
    return Metric(name, MetricKind.GAUGE, labels, metric.unit, metric.help, f"As {metric.name}.")


TWINS: dict[str, Metric] = {metric.name: twin for metric in (*CONNECT, *CLIENTS) if (twin := _twin(metric)) is not None}
"""By the name of the series whose value they have. A twin has the first labels of it."""
REPORTER: tuple[Metric, ...] = tuple(TWINS.values())
