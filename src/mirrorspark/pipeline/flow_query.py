"""One Structured Streaming query per flow: start it, watch it, stop it.

Its rows are receipts; Spark sums them up (``observe``) and its UI shows the query's rate and state. The sink keeps
nothing: what must be known is on the target cluster. Progress files are written asynchronously, into a folder that may
be lost at any time.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from mirrorspark.errors import MirrorError, SparkLost
from mirrorspark.pipeline.flow_order import FlowOrder, stop_mark
from mirrorspark.pipeline.mirror_source import MirrorDataSource
from mirrorspark.pipeline.session import first_line

__all__ = ["FlowQuery", "reason"]

IDLE_WAIT_S = 5.0
_QUERY_IDS = re.compile(r"Query \[id = [^\]]*\] ")
_PYTHON_ERROR = re.compile(
    r"^\s*([\w.]+(?:Error|Exception|Fenced|Lost|Unreachable|Failed|TimedOut|Batch|Stopped): .+)$", re.M
)


def reason(text: str) -> str:
    """Why a query ended, from Spark's pages about it: the last Python error in them, else their first line."""
    found = _PYTHON_ERROR.findall(text)
    lines = _QUERY_IDS.sub("", text).strip().splitlines()
    return str(found[-1]) if found else (lines[0] if lines else "no reason given")


class FlowQuery:
    """Called from the driver's flow runtime, in a thread (Spark's calls block)."""

    def __init__(self, spark: SparkSession, order: FlowOrder, folder: Path) -> None:
        self._spark = spark
        self._order = order
        self._folder = folder
        self._order_path = folder / "order"
        self._query: StreamingQuery | None = None

    def start(self) -> None:
        """Begin the first epoch. Raises SparkLost when Spark's JVM is gone, MirrorError when Spark refuses."""
        try:
            self._start()
        except (PySparkException, Py4JJavaError) as error:
            raise MirrorError(f"Spark does not start the query: {first_line(error)}") from error
        except (Py4JError, ConnectionError) as error:
            raise SparkLost(f"Spark's JVM is gone (killed, or out of memory?): {first_line(error)}") from error

    def _start(self) -> None:
        """An earlier run's query folder is thrown away: nothing in it is needed."""
        folder = self._folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        order = self._order_path
        self._order.write(order)
        self._spark.dataSource.register(MirrorDataSource)
        receipts = self._spark.readStream.format("mirror").option("order", str(order)).load()
        summed = receipts.observe(
            "receipts",
            F.sum("records").alias("records"),
            F.sum("bytes").alias("bytes"),
            F.sum("batches").alias("batches"),
            F.max("latency_ms").alias("latency_ms_max"),
        )
        self._query = (
            summed.writeStream.format("noop")
            .queryName(f"mirrorspark {self._order.settings.flow}")
            .option("checkpointLocation", (folder / "query_checkpoint").absolute().as_uri())  # this disk, not HDFS
            .option("asyncProgressTrackingEnabled", "true")
            .option("asyncProgressTrackingCheckpointIntervalMs", "60000")
            .start()
        )

    def carry_with(self, lanes: int, resized: int) -> None:
        """So many tasks in each epoch from the next one on, by this version of the plan."""
        self._order = replace(self._order, lanes=lanes, resized=resized)
        if self._order_path.exists():
            self._order.write(self._order_path)

    @property
    def active(self) -> bool:
        """Raises SparkLost when Spark's JVM is gone."""
        if self._query is None:
            return False
        try:
            return bool(self._query.isActive)
        except (Py4JError, OSError) as error:
            raise SparkLost("Spark's JVM is gone (killed, or out of memory?)") from error

    @property
    def failure(self) -> str | None:
        """Why the query ended by itself, if it did. Raises SparkLost when Spark's JVM is gone."""
        try:
            error = self._query.exception() if self._query is not None else None
            return reason(str(error)) if error is not None else None
        except (Py4JError, OSError) as lost:
            raise SparkLost("Spark's JVM is gone (killed, or out of memory?)") from lost

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """The last finished epochs as Spark saw them: rows, durations, sums of receipts."""
        return [dict(progress) for progress in self._query.recentProgress] if self._query is not None else []

    def begin_no_epoch(self) -> None:
        """The running epoch is the last one."""
        if self._folder.exists():
            stop_mark(self._order_path).touch()

    def stop(self) -> None:
        """Give a lane that has just ended the moment to hand in its last receipts, then stop."""
        if self._query is None or not self.active:
            return
        ends = time.monotonic() + IDLE_WAIT_S
        try:
            while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < ends:
                time.sleep(0.05)
            self._query.stop()
        except (Py4JError, OSError) as error:
            raise SparkLost(f"Spark's JVM is gone (killed, or out of memory?): {first_line(error)}") from error
