"""The Spark session: embedded by default, any master by choice.

``local[N,F]``: N lanes side by side, F attempts per task. Java is found here too (see ``java_home``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from mirrorspark.java_home import java_home

__all__ = ["open_session"]

TASK_ATTEMPTS_MAX = 1000
"""A lane may be killed as often as it likes: each attempt recovers from the target's log."""
# The driver's JVM only schedules lanes and sums up receipts: a quick start matters more than peak speed.
DRIVER_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:+IgnoreUnrecognizedVMOptions"


def open_session(
    master: str | None, *, lanes: int, folder: Path, ui: bool, app_name: str = "mirrorspark"
) -> SparkSession:
    """``folder`` holds Spark's scratch files; losing it loses nothing."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["JAVA_HOME"] = str(java_home())
    local = master is None or master.startswith("local")
    builder = (
        SparkSession.builder.appName(app_name)
        .master(master or f"local[{lanes},{TASK_ATTEMPTS_MAX}]")
        .config("spark.ui.enabled", str(ui).lower())
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.task.maxFailures", str(TASK_ATTEMPTS_MAX))
        .config("spark.python.worker.reuse", "true")
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.numRecentProgressUpdates", "20")
        .config("spark.sql.artifact.isolation.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "FATAL")
    )
    if local:
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.extraJavaOptions", DRIVER_JVM_FLAGS)
    return builder.getOrCreate()
