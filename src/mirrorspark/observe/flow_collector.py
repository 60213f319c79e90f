"""All series of a process, for prometheus-client: flows in, families out. Called at each scrape, in the driver's event loop.

Reads statuses as they are and asks no cluster. That somebody scrapes is noted in each status, so that the driver looks at
the source's log ends meanwhile (``control.lag_watch``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mirrorspark import __version__
from mirrorspark.names import Flow
from mirrorspark.observe.connect_series import FlowPart, put_connect
from mirrorspark.observe.container_series import put_container
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.jvm_figures import JvmFigures, put_jvm
from mirrorspark.observe.mirror_maker_series import put_mirror_maker
from mirrorspark.observe.own_series import put_own
from mirrorspark.observe.partition_figures import figures_of
from mirrorspark.observe.sheet import Sheet
from mirrorspark.settings import MetricsSettings

__all__ = ["CONTENT_TYPE", "FlowCollector", "flow_of", "metrics_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def flow_of(text: str) -> Flow:
    """``source->target/instance`` as ``str(Flow)`` writes it."""
    pair, _, instance = text.partition("/")
    source, _, target = pair.partition("->")
    return Flow(source, target, instance)


class FlowCollector(Collector):
    def __init__(
        self,
        statuses: Callable[[], Iterable[FlowStatus]],
        limits: MetricsSettings | None = None,
        jvm: Callable[[], JvmFigures | None] = lambda: None,
    ) -> None:
        """``jvm``: what Spark's JVM says of itself, None where there is none or it does not answer."""
        self._statuses = statuses
        self._limits = limits or MetricsSettings()
        self._jvm = jvm

    def describe(self) -> list[Family]:
        """Nothing: prometheus-client would collect once just to learn the names."""
        return []

    def collect(self) -> Iterator[Family]:
        return self.fill().families()

    def fill(self) -> Sheet:
        """The part that reads the statuses."""
        sheet = Sheet()
        sheet.put("mirrorspark_build_info", 1, __version__)
        put_connect(sheet, [self._put_flow(sheet, status) for status in self._statuses()])
        put_container(sheet)
        if (jvm := self._jvm()) is not None:
            put_jvm(sheet, jvm)
        return sheet

    def _put_flow(self, sheet: Sheet, status: FlowStatus) -> FlowPart:
        status.source_ends.asked_at = status.clock()
        flow, limits = flow_of(status.flow), self._limits
        partitions = figures_of(status, limits.partitions_max)
        put_own(sheet, status, partitions, is_summed=len(status.partitions) > limits.partitions_max)
        put_mirror_maker(sheet, flow, status, partitions, checkpoints_max=limits.checkpoints_max)
        return FlowPart(flow, status, partitions)


def metrics_text(
    statuses: Callable[[], Iterable[FlowStatus]], limits: MetricsSettings | None = None
) -> Callable[[], bytes]:
    """What ``/metrics`` answers, anew with each call; with the driver's own process beside the flows."""
    registry = CollectorRegistry()
    registry.register(FlowCollector(statuses, limits))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)
