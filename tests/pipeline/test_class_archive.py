"""The archive of Spark's classes: made by a first run, used by the next, never in the way."""

from __future__ import annotations

import os
import time
from pathlib import Path

from mirrorspark.pipeline.class_archive import COMPLETE_AFTER_S, archive_flags


def test_a_first_run_makes_the_archive(tmp_path: Path) -> None:
    assert archive_flags(tmp_path)[0].startswith("-XX:ArchiveClassesAtExit=")


def test_a_finished_archive_is_used_by_the_next_run(tmp_path: Path) -> None:
    made = Path(archive_flags(tmp_path)[0].partition("=")[2])
    made.write_bytes(b"classes")
    os.utime(made, (time.time() - 2 * COMPLETE_AFTER_S,) * 2)
    assert archive_flags(tmp_path)[0].startswith("-XX:SharedArchiveFile=")
    assert archive_flags(tmp_path)[0].startswith("-XX:SharedArchiveFile=")


def test_an_archive_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    made = Path(archive_flags(tmp_path)[0].partition("=")[2])
    made.write_bytes(b"half")
    assert archive_flags(tmp_path)[0].startswith("-XX:ArchiveClassesAtExit=")


def test_a_cache_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert archive_flags(blocked / "cache") == []
