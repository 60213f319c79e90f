"""What Spark is told of a session, as text: our own settings, those that a cluster of other machines needs, a person's.

``session`` asks for it before Spark starts, the command line for ``--conf``. Knows no Spark and opens nothing. A person's
word wins over ours, but for what the pipeline stands on (``SETTLED``); ours wins over ``spark-defaults.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path, PurePosixPath

from mirrorspark.errors import SettingsError
from mirrorspark.pipeline.spark_master import TASK_ATTEMPTS_MAX, is_local, with_attempts

__all__ = ["CODE_ARCHIVE", "EXECUTOR_PYTHON", "is_encrypted", "parse_conf", "python_name", "session_conf"]

CODE_ARCHIVE = "mirrorspark.zip"
"""Our own code on its way to executors; in their working folder, where Spark puts it before the first task."""
EXECUTOR_PYTHON = "spark.pyspark.python"
DAEMON = "mirrorspark.pipeline.worker_daemon"
EXECUTORS = 2
"""On YARN and Kubernetes, unless a person says how many: the lanes of one that is lost fit into the other."""
EXECUTOR_JVM_MB = 512
"""The executor's JVM hands tasks to Python and takes receipts back; Spark itself asks for 450 MB at least."""
EXECUTOR_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:+IgnoreUnrecognizedVMOptions"
"""And a lane that was lost is carried again the sooner, the quicker a new executor starts."""
LANE_MEMORY_MB = 256
"""Of a lane's Python worker: what YARN and Kubernetes must leave to it beside the JVM."""
OVERHEAD_MB_MIN = 384
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SETTLED = {
    "spark.master": "give --master",
    "spark.submit.deployMode": "the driver is this process; its executors may be anywhere",
    "spark.app.name": "it is mirrorspark",
    "spark.python.daemon.module": "lanes start from a daemon of our own",
    "spark.python.worker.reuse": "lanes keep their connections in their workers",
    "spark.ui.enabled": "give --ui",
    "spark.speculation": "a lane is as long as its epoch; a second copy of it would only shut the first one out",
}
"""What a person cannot set, and why or how else."""
_SECRET = re.compile(r"(secret|password|token)(\.key)?$|access\.key$", re.IGNORECASE)
"""Keys whose value is one; ``…secret.file`` and ``oauthTokenFile`` only say where it is."""


def parse_conf(given: Sequence[str]) -> dict[str, str]:
    """``spark.key=value`` as ``--conf`` takes it, later ones first. Raises SettingsError."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key.startswith("spark."):
            raise SettingsError(f"--conf {key}: not spark.key=value", key="--conf")
        if key in SETTLED:
            raise SettingsError(f"--conf {key}: cannot be set: {SETTLED[key]}", key="--conf")
        if _SECRET.search(key):
            raise SettingsError(
                f"--conf {key}: a command line is everybody's to read; put it into spark-defaults.conf in a folder that "
                "SPARK_CONF_DIR names",
                key="--conf",
            )
        found[key] = value
    return found


def session_conf(
    master: str | None, *, lanes: int, folder: Path, ui: bool, given: Mapping[str, str], driver_flags: str
) -> dict[str, str]:
    """Everything but the application's name. ``folder`` is the driver's own and means nothing to executors elsewhere."""
    local = is_local(master)
    conf = {
        "spark.master": with_attempts(master, lanes),
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.task.maxFailures": str(TASK_ATTEMPTS_MAX),
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": DAEMON,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.sql.artifact.isolation.enabled": "false",
        # Also where spark-defaults.conf has it: see SETTLED.
        "spark.speculation": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": driver_flags,
        "spark.log.level": "FATAL",
    }
    conf |= _here(folder) if local else _elsewhere(master or "", lanes, given)
    return {**conf, **{key: value for key, value in given.items() if key not in _JOINED}}


_JOINED = ("spark.executorEnv.PYTHONPATH",)
"""A person's value is part of ours."""


def _here(folder: Path) -> dict[str, str]:
    return {
        "spark.local.dir": str(folder / "spark"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def _elsewhere(master: str, lanes: int, given: Mapping[str, str]) -> dict[str, str]:
    """Slots for the lanes and no more, our code on the executors' path, and the Python that they shall use."""
    paths = [CODE_ARCHIVE, given.get("spark.executorEnv.PYTHONPATH", "")]
    conf = {
        "spark.executor.memory": f"{EXECUTOR_JVM_MB}m",
        "spark.executor.extraJavaOptions": EXECUTOR_JVM_FLAGS,
        "spark.executorEnv.PYTHONPATH": ":".join(path for path in paths if path),
    }
    if EXECUTOR_PYTHON in given:
        conf["spark.executorEnv.PATH"] = f"{PurePosixPath(given[EXECUTOR_PYTHON]).parent}:{SYSTEM_PATH}"
    if master.startswith("spark://"):
        conf["spark.cores.max"] = str(lanes)
    elif master == "yarn" or master.startswith("k8s://"):
        executors = int(given.get("spark.executor.instances", min(EXECUTORS, lanes)))
        cores = int(given.get("spark.executor.cores", ceil(lanes / max(executors, 1))))
        conf["spark.executor.instances"] = str(executors)
        conf["spark.executor.cores"] = str(cores)
        conf["spark.executor.memoryOverhead"] = f"{max(OVERHEAD_MB_MIN, LANE_MEMORY_MB * cores)}m"
    return conf


def python_name(given: Mapping[str, str], own: str) -> str:
    """What Spark starts Python by. One program is started on the driver too (the planner), by the same word: so a Python
    of the executors' own is a bare name, found on each side's PATH."""
    wanted = given.get(EXECUTOR_PYTHON, own)
    return own if wanted == own else PurePosixPath(wanted).name


def is_encrypted(conf: Mapping[str, str]) -> bool:
    """Whether what driver and executors say to each other can be read by others on the network."""
    on = {key for key, value in conf.items() if value.lower() == "true"}
    return bool(on & {"spark.ssl.rpc.enabled", "spark.network.crypto.enabled"}) or (
        "spark.authenticate.enableSaslEncryption" in on
    )
