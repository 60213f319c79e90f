"""The Spark session: embedded by default, any master by choice.

``local[N,F]``: N lanes side by side, F attempts per task (``spark_master``). Java is found here too (see ``java_home``).
With executors on other machines our code goes along (``code_archive``); what else they need is a person's to provide.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirrorspark.errors import LabError, SparkLost
from mirrorspark.java_home import java_home
from mirrorspark.log_lines import FORMAT_VARIABLE, JSON, TEXT, is_json
from mirrorspark.pipeline.class_archive import archive_flags
from mirrorspark.pipeline.code_archive import build_code_archive
from mirrorspark.pipeline.spark_conf import CODE_ARCHIVE, session_conf
from mirrorspark.pipeline.spark_master import is_local
from mirrorspark.pipeline.worker_python import python_elsewhere, python_here

__all__ = ["first_line", "kill_starting_jvm", "open_session", "tasks_at_once"]

# The driver's JVM only schedules lanes and sums up receipts: a quick start matters more than peak speed.
DRIVER_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:+IgnoreUnrecognizedVMOptions"


def open_session(
    master: str | None,
    *,
    lanes: int,
    folder: Path,
    ui: bool,
    app_name: str = "mirrorspark",
    given: Mapping[str, str] | None = None,
) -> SparkSession:
    """``folder`` holds Spark's scratch files; losing it loses nothing. ``given``: settings of Spark that a person wants.
    Raises SparkLost with one line that says why not."""
    try:
        return _open(master, lanes, folder, ui, app_name, given or {})
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


def tasks_at_once(spark: SparkSession) -> int:
    """How many tasks the executors that are there now run side by side. Raises what py4j raises."""
    context = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


def _open(
    master: str | None, lanes: int, folder: Path, ui: bool, app_name: str, given: Mapping[str, str]
) -> SparkSession:
    AccumulatorTCPServer.handle_error = AccumulatorUnixServer.handle_error = _say_nothing  # type: ignore[method-assign, assignment]
    local = is_local(master)
    os.environ["PYSPARK_PYTHON"] = python_here(folder / "bin") if local else python_elsewhere(given, folder / "bin")
    # Where Spark plans, it asks for this one.
    os.environ["PYSPARK_DRIVER_PYTHON"] = python_here(folder / "bin")
    os.environ["JAVA_HOME"] = str(java_home())
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("SPARK_LOCAL_DIRS", str(folder / "spark"))  # the driver's; executors have their own
    flags = " ".join([DRIVER_JVM_FLAGS, *archive_flags()])
    conf = session_conf(master, lanes=lanes, folder=folder, ui=ui, given=given, driver_flags=flags)
    conf[f"spark.executorEnv.{FORMAT_VARIABLE}"] = JSON if is_json() else TEXT
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if not local:
        spark.sparkContext.addPyFile(str(build_code_archive(folder / CODE_ARCHIVE)))
    return spark
