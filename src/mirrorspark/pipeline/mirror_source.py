"""The Python data source ``mirror``: its rows are receipts, its tasks are lanes.

Driver side (a Python process that Spark starts): ``latestOffset`` names the next epoch, ``partitions`` gives one task per
lane. Executor side: ``read`` carries. What the lanes shall do is in a file that only this user can read (it holds the
clusters' credentials); it travels on inside the pickled lanes, never as an option, since Spark shows options.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from mirrorspark.pipeline.flow_order import FlowOrder, stop_mark
from mirrorspark.pipeline.lane import LaneSpec
from mirrorspark.pipeline.receipt_rows import RECEIPT_DDL, to_arrow
from mirrorspark.pipeline.worker import carry

__all__ = ["MirrorDataSource"]


class LaneTask(InputPartition):
    """One Spark task."""

    def __init__(self, spec: LaneSpec) -> None:
        super().__init__(spec.lane)
        self.spec = spec


class MirrorDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "mirror"

    def schema(self) -> str:
        return RECEIPT_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _MirrorReader(Path(self.options["order"]))


class _MirrorReader(DataSourceStreamReader):
    def __init__(self, order: Path) -> None:
        self._order = order

    def initialOffset(self) -> dict[str, Any]:
        return {"epoch": 0}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """The next epoch begins when the last one has ended, and none once the flow is being stopped."""
        last = int((start or {"epoch": 0})["epoch"])
        return {"epoch": last if stop_mark(self._order).exists() else last + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        order = FlowOrder.read(self._order)
        settings = order.settings
        return [
            LaneTask(LaneSpec(settings, lane, order.generation, end["epoch"], settings.epoch_s, order.resized))
            for lane in range(order.lanes or settings.tasks_max)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LaneTask)
        for receipts in carry(partition.spec):
            yield to_arrow(receipts)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the truth about how far a flow got is on the target."""
