"""Kafka's jars: kept in a cache, checked on every use, fetched by Maven coordinates when they are not there.

Called by ``lab/child.py`` for a class path. Where no registry can be reached, variables name jars that are there already:
``MIRRORSPARK_KAFKA_JARS`` (a folder of jars) or ``KAFKA_HOME`` (its ``libs`` folder) for the latest version, and one for
each older version (``KafkaVersion.jars_variable``). Each version has a folder of its own in the cache.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

from mirrorspark.errors import LabError
from mirrorspark.java_home import cache_folder
from mirrorspark.lab.jar_resolver import ANSWER_TIMEOUT_S, resolve
from mirrorspark.lab.kafka_version import LATEST, KafkaVersion

__all__ = ["kafka_class_path", "kafka_jars"]

REPAIR_ANSWER_TIMEOUT_S = 15.0

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Jar:
    """A line of the manifest: what a jar in the cache must look like."""

    name: str
    size_bytes: int
    sha256: str


def kafka_class_path(kafka: KafkaVersion = LATEST) -> str:
    """All jars that a broker (and of the latest version MirrorMaker 2) needs, joined for ``CLASSPATH``."""
    return os.pathsep.join(str(jar) for jar in kafka_jars(kafka))


def kafka_jars(kafka: KafkaVersion = LATEST) -> list[Path]:
    """The jars as files that were checked in this process; fetches them first where needed."""
    given, home = os.environ.get(kafka.jars_variable), os.environ.get("KAFKA_HOME")
    if given:
        return _jars_of(kafka, Path(given), kafka.jars_variable)
    if home and kafka is LATEST:
        return _jars_of(kafka, Path(home) / "libs", "KAFKA_HOME")
    return _cached_jars(kafka, cache_folder() / f"kafka-{kafka.number}")


def _jars_of(kafka: KafkaVersion, folder: Path, variable: str) -> list[Path]:
    jars = sorted(folder.glob("*.jar"))
    for needed in kafka.jars_needed:
        # Jars that a resolver stored carry their organisation in front of the name.
        if not any(jar.name.startswith(needed) or f"_{needed}" in jar.name for jar in jars):
            raise LabError(
                f"{variable} leads to {folder}, which has no {needed}*.jar: "
                f"point it to Kafka {kafka.series}.x, or unset it",
                variable=variable,
                folder=str(folder),
            )
    return jars


@lru_cache(maxsize=8)
def _cached_jars(kafka: KafkaVersion, folder: Path) -> list[Path]:
    """Memoised: brokers of one run are not made to hash 50 MB each."""
    fault = _fault(folder)
    if fault is not None:
        with _alone(folder):
            # Another process may have done the work while this one waited for the lock.
            fault = _fault(folder)
            if fault is not None:
                _fill(kafka, folder, fault)
    return [folder / jar.name for jar in _read_manifest(folder) or []]


def _read_manifest(folder: Path) -> list[Jar] | None:
    try:
        listed = json.loads((folder / _MANIFEST).read_text())
        return [Jar(**line) for line in listed["jars"]] or None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _fault(folder: Path) -> str | None:
    """What is wrong with the cache, in words; None when every jar is as it was stored."""
    manifest = _read_manifest(folder)
    if manifest is None:
        return f"no readable {_MANIFEST} in {folder}" if folder.exists() else "not fetched yet"
    for jar in manifest:
        path = folder / jar.name
        if not path.exists():
            return f"{path} is missing"
        if path.stat().st_size != jar.size_bytes:
            return f"{path} has {path.stat().st_size} bytes instead of {jar.size_bytes}"
        if _sha256(path) != jar.sha256:
            return f"{path} has other contents than when it was stored"
    return None


def _fill(kafka: KafkaVersion, folder: Path, fault: str) -> None:
    """Fetch all jars and put right what is not right; the manifest is written last."""
    was_there = folder.exists()
    ivy_home = Path(tempfile.mkdtemp(prefix=".ivy-", dir=folder.parent))
    try:
        timeout_s = REPAIR_ANSWER_TIMEOUT_S if was_there else ANSWER_TIMEOUT_S
        fetched = resolve(kafka.coordinates, ivy_home, answer_timeout_s=timeout_s)
        folder.mkdir(exist_ok=True)
        jars = [_store(jar, folder) for jar in fetched]
        _write_manifest(kafka, folder, jars)
    except LabError as error:
        if was_there:
            message = f"Kafka's jars in the cache are damaged ({fault}) and fetching them again failed: {error}. "
            message += f"Delete {folder} and try again with a registry in reach. {_alternatives(kafka)}"
        else:
            message = f"{kafka} could not be fetched by its Maven coordinates: {error}. {_alternatives(kafka)}"
        raise LabError(message, fault=fault, folder=str(folder)) from error
    finally:
        shutil.rmtree(ivy_home, ignore_errors=True)


def _alternatives(kafka: KafkaVersion) -> str:
    home = f"KAFKA_HOME to an unpacked Kafka {kafka.series}.x, or " if kafka is LATEST else ""
    return f"Without a registry, set {home}{kafka.jars_variable} to a folder with the jars of Kafka {kafka.series}.x."


def _store(fetched: Path, folder: Path) -> Jar:
    jar = Jar(fetched.name, fetched.stat().st_size, _sha256(fetched))
    path = folder / jar.name
    if not path.exists() or path.stat().st_size != jar.size_bytes or _sha256(path) != jar.sha256:
        # By way of a second name: a broker that is running keeps the file it has open.
        part = path.with_suffix(".part")
        shutil.copyfile(fetched, part)
        part.replace(path)
    return jar


def _write_manifest(kafka: KafkaVersion, folder: Path, jars: list[Jar]) -> None:
    listed = {"kafka": kafka.number, "coordinates": kafka.coordinates, "jars": [asdict(jar) for jar in jars]}
    part = folder / f"{_MANIFEST}.part"
    part.write_text(json.dumps(listed, indent=1) + "\n")
    part.replace(folder / _MANIFEST)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time fills the cache; the others wait and then find it filled."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise LabError(
            f"the cache folder {folder.parent} cannot be written ({error.strerror}): set MIRRORSPARK_CACHE",
            folder=str(folder.parent),
        ) from error
