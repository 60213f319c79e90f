"""The Python that Spark starts, on this machine and on executors: a word for ``PYSPARK_PYTHON``.

Spark puts PySpark as a zip at the head of ``PYTHONPATH``. Python keeps no byte code of what lies in a zip, so each of the
five processes that Spark starts for a flow compiled PySpark anew, nearly a second of CPU each. Where executors are this
machine, a script of three lines takes the zips off the path, and they load the package that we have loaded ourselves.
Asked by ``session``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from mirrorspark.pipeline.spark_conf import python_name

__all__ = ["python_elsewhere", "python_here"]

NAME = "python-of-spark"
_WITHOUT_ZIPS = """\
case "$PYTHONPATH" in */pyspark.zip:*/py4j-*-src.zip*) PYTHONPATH="${PYTHONPATH#*/py4j-*-src.zip}" ;; esac
export PYTHONPATH="${PYTHONPATH#:}"
"""


def python_here(folder: Path) -> str:
    """For executors in this process. Where nothing can be started from ``folder`` (``noexec``): our Python itself."""
    script = _write(folder / NAME, _WITHOUT_ZIPS)
    return str(script) if os.access(script, os.X_OK) else sys.executable


def python_elsewhere(given: Mapping[str, str], folder: Path) -> str:
    """The word by which Spark starts Python, and on this machine, first on the PATH, our own Python under that name."""
    name = python_name(given, sys.executable)
    if name != sys.executable:
        _write(folder / name)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return name


def _write(script: Path, first: str = "") -> Path:
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\n{first}exec {quote(sys.executable)} "$@"\n')
    script.chmod(0o755)
    return script
