"""The Python that Spark starts here loads PySpark from where it is installed, not from Spark's zip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from mirrorspark.pipeline import worker_python
from mirrorspark.pipeline.worker_python import python_elsewhere, python_here

LIBRARY = Path(pyspark.__file__).parent / "python" / "lib"
ZIPS = [str(LIBRARY / "pyspark.zip"), *(str(one) for one in LIBRARY.glob("py4j-*-src.zip"))]


def _says(python: str, code: str, *path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(
        [python, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_pyspark_comes_from_the_package_and_not_from_the_zip(tmp_path: Path) -> None:
    code = "import pyspark, py4j; print(pyspark.__file__, py4j.__file__)"
    assert len(ZIPS) == 2
    assert _says(sys.executable, code, *ZIPS).count(".zip") == 2  # as Spark has it
    assert _says(python_here(tmp_path), code, *ZIPS).split()[0] == pyspark.__file__
    assert ".zip" not in _says(python_here(tmp_path), code, *ZIPS, "/of/somebody")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ((*ZIPS, "/a.jar", "/my own"), "/a.jar:/my own"),
        ((*ZIPS,), ""),
        (("/my own", "/more"), "/my own:/more"),
        ((), ""),
    ],
)
def test_what_else_is_on_the_path_stays(tmp_path: Path, given: tuple[str, ...], left: str) -> None:
    assert _says(python_here(tmp_path), "import os; print(os.environ['PYTHONPATH'])", *given) == left


def test_it_is_our_own_interpreter(tmp_path: Path) -> None:
    assert _says(python_here(tmp_path / "with space"), "import sys; print(sys.executable)") == sys.executable


def test_where_nothing_may_be_started_from_the_folder_it_is_the_interpreter_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_python.os, "access", lambda path, mode: False)
    assert python_here(tmp_path) == sys.executable


def test_a_name_for_executors_elsewhere_is_ours_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert python_elsewhere({}, tmp_path) == sys.executable
    assert python_elsewhere({"spark.pyspark.python": "/there/bin/python9"}, tmp_path) == "python9"
    assert _says("python9", "import sys; print(sys.executable)") == sys.executable
