"""Edits as file systems show them: in place, by replacement, by a link that is swapped, half written, gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirrorspark.control.watch import FileWatch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text("a = 1\n")
    return path


def test_a_file_that_nobody_touches(file: Path) -> None:
    watch = FileWatch([file])
    assert [watch.poll() for _ in range(3)] == [False] * 3


def test_an_edit_in_place_is_taken_once_when_it_is_at_rest(file: Path) -> None:
    watch = FileWatch([file])
    file.write_text("a = 2\nb = 3\n")
    assert [watch.poll() for _ in range(4)] == [False, True, False, False]


def test_a_file_that_is_still_being_written_is_not_taken(file: Path) -> None:
    watch = FileWatch([file])
    with file.open("w") as half:
        for line in ("a = 1\n", "b = 2\n", "c = 3\n"):
            half.write(line)
            half.flush()
            assert not watch.poll()
    assert watch.poll()


def test_a_replacement_of_the_same_size_and_time(file: Path, tmp_path: Path) -> None:
    watch = FileWatch([file])
    seen = file.stat()
    beside = tmp_path / "new"
    beside.write_text("a = 2\n")
    os.utime(beside, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    beside.replace(file)
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_links_that_are_swapped_as_kubernetes_does_it(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "mm2.properties").write_text(f"a = {version}\n")
    data, file = tmp_path / "..data", tmp_path / "mm2.properties"
    data.symlink_to("..1")
    file.symlink_to("..data/mm2.properties")
    watch = FileWatch([file])
    (tmp_path / "..tmp").symlink_to("..2")
    (tmp_path / "..tmp").replace(data)
    assert file.read_text() == "a = 2\n"
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_a_file_that_goes_away_is_an_edit_too_and_one_that_comes_back(file: Path) -> None:
    watch = FileWatch([file])
    file.unlink()
    assert [watch.poll() for _ in range(3)] == [False, True, False]
    file.write_text("a = 1\n")
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_one_that_changes_while_it_is_read(file: Path) -> None:
    watch = FileWatch([file])
    file.write_text("a = 22\n")
    assert [watch.poll(), watch.poll()] == [False, True]
    assert not watch.has_moved()
    file.write_text("a = 333\n")
    assert watch.has_moved()
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_any_of_several_files(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "checkpoint.json"
    other.write_text("{}")
    watch = FileWatch([file, other])
    other.write_text('{"a": 1}')
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_a_folder_stands_for_its_files(file: Path, tmp_path: Path) -> None:
    watch = FileWatch([tmp_path])
    file.write_text("a = 22\n")
    assert [watch.poll() for _ in range(3)] == [False, True, False]
    (tmp_path / "heartbeat.json").write_text("{}")
    assert [watch.poll() for _ in range(3)] == [False, True, False]
