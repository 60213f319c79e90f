"""The page docs/reference/metrics.md, written from the catalogue: ``python -m mirrorspark.observe.metrics_page FILE``.

``make docs`` runs it; a test holds the page current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mirrorspark.observe.metric_catalogue import FAMILIES, Metric

__all__ = ["metrics_page"]

_HEAD = """\
# Metrics, series by series

Written by `make docs` from the catalogue in `src/mirrorspark/observe/metric_catalogue`; do not edit. How to scrape them,
dashboards and alerts: [operating/metrics.md](../operating/metrics.md).

- **type**: a counter begins at nought when the process starts; use `rate` and `increase`.
- **from**: where the value comes from, or in what it differs from MirrorMaker 2's.
- A series whose value is not known is not there.
"""
_INTRODUCTIONS = {
    "Our own": "`flow` is `source->target`; `topic` is the topic on the target. Where a flow has more partitions than "
    "`metrics.partitions.max`, `partition` is `all`: sums, and the largest of times.",
    "MirrorMaker 2, by Strimzi's names": "As Strimzi's rules for the JMX exporter make them of MirrorMaker 2's own. "
    "`topic` is the topic on the target.",
    "Kafka Connect, by Strimzi's names": "A lane is a task of `MirrorSourceConnector`. Values of `connector` and `clientid` "
    "have literal double quotes, as JMX has them and Strimzi's dashboard expects them.",
    "Kafka's clients, by Strimzi's names": "A lane has two clients: a consumer of the source, a producer for the target. "
    "`connect` is the driver's client of the target, which a worker uses for its group. `nodeid` is a broker.",
    "Connect and its clients, by the names of Strimzi's Metrics Reporter": "The same values. No quotes in the labels, no "
    "`_total` in the names.",
    "MirrorMaker 2, by the rules of AWS and Redpanda": "By the exporter rules in their images: `destination` is the target. "
    "In `target` of a checkpoint these rules leave `, group=…, topic=…, partition=…` behind the alias.",
    "MirrorMaker 2, by older rules": "By the exporter rules of guides for Kafka 2.4: no label `source`. What has the same "
    "labels is added up.",
    "Kafka Connect, by older rules": "By the same rules, with the connector in the name: tasks of one number of several "
    "flows are added up.",
    "The worker's client, by older rules": "By the seeds' rule, which puts the client's id into the name: `east->west` is "
    "`kafka_connect_connect_metrics_east_west_request_total`. No labels.",
    "The JVM of Spark's driver": "By the JMX exporter's names. Not there where no Spark runs (heartbeats only), before it "
    "has started, and while it does not answer. With a master that is not local the executors are JVMs elsewhere; Spark's "
    "own Prometheus servlet tells of them.",
    "The driver's own process": "The process of `mirrorspark run`. Lanes are other processes: "
    "`mirrorspark_lane_cpu_seconds_total`.",
    "The container": "What Strimzi's dashboard and alert ask cAdvisor for. Not given in Kubernetes, where cAdvisor does.",
}


def metrics_page() -> str:
    parts = [_HEAD]
    for title, family in FAMILIES.items():
        parts.append(f"\n## {title}\n\n{_INTRODUCTIONS[title]}\n\n")
        parts += _rows(family)
    return "".join(parts)


def _rows(family: tuple[Metric, ...]) -> Iterator[str]:
    yield "| series | type | labels | unit | meaning | from |\n|---|---|---|---|---|---|\n"
    for one in family:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        cells = (f"`{one.name}`", one.kind.value, labels, one.unit, one.help, one.origin)
        yield "| " + " | ".join(cells) + " |\n"


def main(arguments: list[str]) -> None:
    Path(arguments[0]).write_text(metrics_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
