"""The page docs/reference/metrics.md, written from the catalogue: ``python -m mirrorspark.observe.metrics_page FILE``.

``make docs`` runs it; a test holds the page current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mirrorspark.observe.metric_catalogue import ABSENT, FAMILIES, Metric

__all__ = ["metrics_page"]

_HEAD = """\
# Metrics, series by series

Written by `make docs` from the catalogue in `src/mirrorspark/observe/metric_catalogue`; do not edit. How to scrape them,
dashboards and alerts: [operating/metrics.md](../operating/metrics.md).

- **type**: a counter begins at nought when the process starts; use `rate` and `increase`.
- **from**: where the value comes from, or in what it differs from MirrorMaker 2's.
- A series whose value is not known is not there, unless the table says NaN.
"""
_INTRODUCTIONS = {
    "Our own": "`flow` is `source->target`; `topic` is the topic on the target. Where a flow has more partitions than "
    "`metrics.partitions.max`, `partition` is `all`: sums, and the largest of times.",
    "MirrorMaker 2, by Strimzi's names": "As Strimzi's rules for the JMX exporter make them of MirrorMaker 2's own. "
    "`topic` is the topic on the target.",
    "Kafka Connect, by Strimzi's names": "A lane is a task of `MirrorSourceConnector`. Values of `connector` and `clientid` "
    "have literal double quotes, as JMX has them and Strimzi's dashboard expects them.",
    "Kafka Connect, by the names of Strimzi's Metrics Reporter": "What its dashboard asks for, besides series "
    "above. No quotes in the labels.",
    "MirrorMaker 2, by older rules": "By the exporter rules of guides for Kafka 2.4: no label `source`. What has the same "
    "labels is added up.",
    "Kafka Connect, by older rules": "By the same rules, with the connector in the name: tasks of one number of several "
    "flows are added up.",
    "The JVM of Spark's driver": "By the JMX exporter's names. Not there where no Spark runs (heartbeats only), before it "
    "has started, and while it does not answer. With a master that is not local the executors are JVMs elsewhere; Spark's "
    "own Prometheus servlet tells of them.",
    "The driver's own process": "The process of `mirrorspark run`. Lanes are other processes: "
    "`mirrorspark_lane_cpu_seconds_total`.",
}


def metrics_page() -> str:
    parts = [_HEAD]
    for title, family in FAMILIES.items():
        parts.append(f"\n## {title}\n\n{_INTRODUCTIONS[title]}\n\n")
        parts += _rows(family)
    parts.append("\n## Not given\n\nSeries of MirrorMaker 2's dashboards that have no meaning here.\n\n")
    parts.append("| series | why |\n|---|---|\n")
    parts += [f"| `{one.name}` | {one.why} |\n" for one in ABSENT]
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
