"""Fetch jars by Maven coordinates, through the Ivy resolver that Spark brings along.

Called by ``lab/jars.py`` when the cache has no Kafka yet, or a damaged one. Runs ``spark-submit --packages`` with a
main class that does nothing, in a JVM of its own: so a company's ``spark.jars.ivySettings``, ``~/.m2`` and
``spark-defaults.conf`` are honoured and no download address stands in our code.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from mirrorspark.errors import LabError
from mirrorspark.java_home import is_bundled_java, java_home
from mirrorspark.lab.trust_store import PASSWORD, trust_store

__all__ = ["resolve", "spark_jars_folder"]

ANSWER_TIMEOUT_S = 60.0
SILENCE_TIMEOUT_S = 300.0
PLAIN_REPORT_EVERY_S = 5.0

_FOUND = re.compile(r"^\s+found (\S+) in ")
_DOWNLOADED = re.compile(r"\[SUCCESSFUL ?\]\s+(\S+?)!")
# The first pattern that any line matches gives the reason: what the network said tells more than what is missing.
_TELLING = (
    re.compile(r"Server access error|timed out|refused|Unauthorized|Forbidden"),
    re.compile(r"Host \S+ not found"),
    re.compile(r"unresolved dependency|not found|Exception"),
)
_TRUST_HINT = (
    " (this Java does not trust the registry's certificate: "
    "name a store that does with JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE)"
)
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def spark_jars_folder() -> Path:
    """The jars inside the pyspark wheel."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LabError(
            "pyspark is not installed, and its resolver is needed to fetch Kafka's jars: pip install pyspark"
        )
    return Path(spec.origin).parent / "jars"


def resolve(coordinates: Sequence[str], ivy_home: Path, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> list[Path]:
    """The jars of these coordinates and all they need, as files below ``ivy_home``.

    Spark leaves scala-library out since it brings its own; that one is added here from the same place.
    """
    spark_jars = spark_jars_folder()
    resolver = _Resolver(_command(coordinates, ivy_home, spark_jars), answer_timeout_s)
    with _progress(coordinates[0]) as show:
        resolver.run(show)
    jars = sorted((ivy_home / "jars").glob("*.jar"))
    if not jars:
        raise LabError(f"the resolver ended well but left no jar in {ivy_home / 'jars'}: {resolver.telling_lines()}")
    if not any("scala-library" in jar.name for jar in jars):
        jars.extend(spark_jars.glob("scala-library-*.jar"))
    return jars


def _command(coordinates: Sequence[str], ivy_home: Path, spark_jars: Path) -> list[str]:
    ivy_jar = next(iter(sorted(spark_jars.glob("ivy-*.jar"))), None)
    if ivy_jar is None:
        raise LabError(f"no Ivy in {spark_jars}: this pyspark cannot resolve Maven coordinates")
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local", "--conf", f"spark.jars.ivy={ivy_home}"]
    # Ivy's own main with -version is a class that surely exists, does nothing and returns.
    harmless_main = ["--class", "org.apache.ivy.Main", str(ivy_jar), "-version"]
    java = str(java_home() / "bin" / "java")
    return [
        java,
        "-Xmx512m",
        *_trust_flags(ivy_home),
        "-cp",
        f"{spark_jars}/*",
        *submit,
        "--packages",
        ",".join(coordinates),
        *harmless_main,
    ]


def _trust_flags(folder: Path) -> list[str]:
    """A Java that has no certificates of its own machine is given the system's; one that was told a store keeps it."""
    if not is_bundled_java() or "javax.net.ssl.trustStore" in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        return []
    store = trust_store(folder)
    if store is None:
        return []
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]


class _Resolver:
    """One run of the resolver's process: reads its lines, keeps the last ones, gives up when it falls silent."""

    def __init__(self, command: list[str], answer_timeout_s: float) -> None:
        self._command = command
        self._answer_timeout_s = answer_timeout_s
        self._lines: deque[str] = deque(maxlen=400)
        self._found = 0
        self._downloaded = 0

    def run(self, show: Callable[[str], None]) -> None:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        )
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_pump, args=(process, lines), name="jar-resolver-output", daemon=True)
        reader.start()
        try:
            while (line := self._next(lines)) is not None:
                self._take(line, show)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            reader.join(timeout=5)
        if code != 0:
            raise LabError(f"the resolver failed: {self.telling_lines()}", exit_code=code)

    def _next(self, lines: queue.Queue[str | None]) -> str | None:
        patience_s = SILENCE_TIMEOUT_S if self._found else self._answer_timeout_s
        try:
            return lines.get(timeout=patience_s)
        except queue.Empty:
            raise LabError(f"no registry answered within {patience_s:.0f} s: {self.telling_lines()}") from None

    def _take(self, line: str, show: Callable[[str], None]) -> None:
        self._lines.append(line)
        if _FOUND.search(line):
            self._found += 1
            show(f"{self._found} modules found")
        elif _DOWNLOADED.search(line):
            self._downloaded += 1
            show(f"{self._downloaded} of {self._found} jars here")

    def telling_lines(self) -> str:
        """The few lines that say why, without user names and passwords that addresses may hold."""
        lines = list(dict.fromkeys(line.strip() for line in self._lines if line.strip()))
        for pattern in _TELLING:
            telling = [line for line in lines if pattern.search(line)]
            if telling:
                hint = _TRUST_HINT if "PKIX" in telling[0] else ""
                return _CREDENTIALS.sub("//***@", telling[0])[:300] + hint
        return f"it last said: {_CREDENTIALS.sub('//***@', lines[-1])[:200]}" if lines else "it said nothing"


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            lines.put(line.rstrip("\n"))
    lines.put(None)


@contextmanager
def _progress(first: str) -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal, a plain line now and then elsewhere."""
    title = f"{first} and what it needs, by Maven coordinates (some 50 MB, once)"
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(title) as status:
            yield lambda text: status.update(f"{title}: {text}")
        return
    print(f"mirrorspark lab: {title}", file=sys.stderr, flush=True)
    began = last = time.monotonic()

    def show(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_REPORT_EVERY_S:
            last = time.monotonic()
            print(f"mirrorspark lab: {text}", file=sys.stderr, flush=True)

    yield show
    print(f"mirrorspark lab: jars fetched in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
