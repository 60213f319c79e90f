"""Every series of ``/metrics``, declared once: the collector gives no other, the reference page and the tests read this."""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.clients import CLIENTS, WORKER_CLIENT
from mirrorspark.observe.metric_catalogue.connect import CONNECT, CONNECT_OLDER
from mirrorspark.observe.metric_catalogue.container import CONTAINER
from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind
from mirrorspark.observe.metric_catalogue.mirror_maker import AWS, OLDER, STRIMZI
from mirrorspark.observe.metric_catalogue.own import OWN
from mirrorspark.observe.metric_catalogue.process import JVM, PROCESS
from mirrorspark.observe.metric_catalogue.reporter import REPORTER, TWINS

__all__ = ["FAMILIES", "METRICS", "TWINS", "Metric", "MetricKind"]

FAMILIES: dict[str, tuple[Metric, ...]] = {
    "Our own": OWN,
    "MirrorMaker 2, by Strimzi's names": STRIMZI,
    "Kafka Connect, by Strimzi's names": CONNECT,
    "Kafka's clients, by Strimzi's names": CLIENTS,
    "Connect and its clients, by the names of Strimzi's Metrics Reporter": REPORTER,
    "MirrorMaker 2, by the rules of AWS and Redpanda": AWS,
    "MirrorMaker 2, by older rules": OLDER,
    "Kafka Connect, by older rules": CONNECT_OLDER,
    "The worker's client, by older rules": WORKER_CLIENT,
    "The JVM of Spark's driver": JVM,
    "The driver's own process": PROCESS,
    "The container": CONTAINER,
}
METRICS: dict[str, Metric] = {metric.name: metric for family in FAMILIES.values() for metric in family}
