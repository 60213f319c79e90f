"""Format a broker's data folder without waiting for Kafka's storage tool each time.

Called by ``lab/broker.py`` before a broker's first start. A formatted folder holds two files: ``meta.properties``
(plain text, written here) and ``bootstrap.checkpoint`` (the feature levels of a new cluster, the same for every node).
The second is made once by Kafka's own tool and kept in the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from mirrorspark.errors import LabError
from mirrorspark.java_home import cache_folder, java_home
from mirrorspark.lab.jars import kafka_class_path
from mirrorspark.lab.kafka_version import LATEST, KafkaVersion

__all__ = ["format_data_folder", "is_formatted", "new_kafka_id"]

FORMAT_TIMEOUT_S = 120

_META = "meta.properties"
_CHECKPOINT = "bootstrap.checkpoint"

_ANY_NODE = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
"""


def new_kafka_id() -> str:
    """A random id as Kafka writes them; never with a leading dash, which its tools would take for a flag."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def is_formatted(data: Path) -> bool:
    return (data / _META).exists()


def format_data_folder(data: Path, *, cluster_id: str, node_id: int, kafka: KafkaVersion = LATEST) -> None:
    """For a cluster that is its own quorum; brokers with a ZooKeeper write into an empty folder by themselves."""
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_checkpoint_template(kafka), data / _CHECKPOINT)
    meta = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": new_kafka_id()}
    # Last, since its presence says that the folder is formatted.
    (data / _META).write_text("".join(f"{key}={value}\n" for key, value in meta.items()))


def _checkpoint_template(kafka: KafkaVersion) -> Path:
    """Feature levels belong to a Kafka version, so the file is named for the jars that made it."""
    jars = kafka_class_path(kafka)
    template = cache_folder() / f"bootstrap-{sha256(jars.encode()).hexdigest()[:12]}.checkpoint"
    if not template.exists():
        template.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=template.parent) as folder:
            made = _run_storage_tool(Path(folder), jars)
            os.replace(made, template)
    return template


def _run_storage_tool(folder: Path, jars: str) -> Path:
    properties = folder / "node.properties"
    properties.write_text(f"{_ANY_NODE}log.dirs={folder / 'data'}\n")
    command = [str(java_home() / "bin" / "java"), "-Xmx128m", "-XX:+UseSerialGC", "kafka.tools.StorageTool", "format"]
    run = subprocess.run(
        [*command, "--cluster-id", new_kafka_id(), "--config", properties],
        env={**os.environ, "CLASSPATH": jars},
        capture_output=True,
        text=True,
        timeout=FORMAT_TIMEOUT_S,
    )
    made = folder / "data" / _CHECKPOINT
    if run.returncode != 0 or not made.exists():
        raise LabError(f"Kafka's storage tool failed: {(run.stderr or run.stdout).strip()[-800:]}")
    return made
