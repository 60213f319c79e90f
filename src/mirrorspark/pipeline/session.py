"""The Spark session: embedded by default, any master by choice.

``local[N,F]``: N lanes side by side, F attempts per task (``spark_master``). Java is found here too (see ``java_home``).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirrorspark.errors import LabError, SparkLost
from mirrorspark.java_home import java_home
from mirrorspark.log_lines import FORMAT_VARIABLE, JSON, TEXT, is_json
from mirrorspark.pipeline.class_archive import archive_flags
from mirrorspark.pipeline.spark_master import TASK_ATTEMPTS_MAX, is_local, with_attempts

__all__ = ["first_line", "kill_starting_jvm", "open_session"]

# The driver's JVM only schedules lanes and sums up receipts: a quick start matters more than peak speed.
DRIVER_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:+IgnoreUnrecognizedVMOptions"


def open_session(
    master: str | None, *, lanes: int, folder: Path, ui: bool, app_name: str = "mirrorspark"
) -> SparkSession:
    """``folder`` holds Spark's scratch files; losing it loses nothing. Raises SparkLost with one line that says why not."""
    try:
        return _open(master, lanes, folder, ui, app_name)
    except (Py4JError, PySparkException, LabError, OSError) as error:
        raise SparkLost(f"Spark could not be started: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without its stack. Asking a dead JVM for its words is an error of its own."""
    try:
        text = str(getattr(error, "java_exception", None) or error)
    except (Py4JError, OSError):
        text = ""
    lines = text.strip().splitlines()
    return lines[0] if lines else type(error).__name__


def kill_starting_jvm() -> None:
    """End Spark's JVM, or the script that is about to become it, below this process. Linux; elsewhere it ends by itself
    when it finds its pipe to us closed."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = stat.with_name("cmdline").read_bytes()
            if parent == os.getpid() and (b"spark-submit" in command or b"org.apache.spark" in command):
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked


def _say_nothing(*_: object) -> None:
    """PySpark prints a stack when its JVM goes away; whoever asks the query next says it in a line (SparkLost)."""


def _open(master: str | None, lanes: int, folder: Path, ui: bool, app_name: str) -> SparkSession:
    AccumulatorTCPServer.handle_error = AccumulatorUnixServer.handle_error = _say_nothing  # type: ignore[method-assign, assignment]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(java_home())
    local = is_local(master)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(app_name)
        .master(with_attempts(master, lanes))
        .config("spark.ui.enabled", str(ui).lower())
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.task.maxFailures", str(TASK_ATTEMPTS_MAX))
        .config("spark.python.worker.reuse", "true")
        .config("spark.python.daemon.module", "mirrorspark.pipeline.worker_daemon")
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.numRecentProgressUpdates", "20")
        .config("spark.sql.artifact.isolation.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "FATAL")
        .config(f"spark.executorEnv.{FORMAT_VARIABLE}", JSON if is_json() else TEXT)
    )
    if local:
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.extraJavaOptions", " ".join([DRIVER_JVM_FLAGS, *archive_flags()]))
    return builder.getOrCreate()
