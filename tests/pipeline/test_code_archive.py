"""Our code as one file: a Python that has only the third-party packages runs lanes from it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from mirrorspark.pipeline.code_archive import build_code_archive

SHOW = """
import mirrorspark.pipeline.worker_daemon, mirrorspark.pipeline.mirror_source, sys
print(mirrorspark.pipeline.worker_daemon.__file__)
print(sorted(name for name, module in sys.modules.items()
    if name.startswith("mirrorspark") and "mirrorspark.zip" not in (module.__file__ or "")))
"""


def test_a_python_without_mirrorspark_loads_a_lane_from_the_archive(tmp_path: Path) -> None:
    archive = build_code_archive(tmp_path / "of-the-driver" / "mirrorspark.zip")
    base = Path(sys.base_prefix) / "bin" / "python3"
    # As a path, not as an installation: what .pth files add, an editable mirrorspark among it, is not there.
    environment = {"PYTHONPATH": f"{archive}:{sysconfig.get_path('purelib')}", "PATH": os.environ["PATH"]}
    told = subprocess.run(
        [base, "-c", SHOW], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == [f"{archive}/mirrorspark/pipeline/worker_daemon.pyc", "[]"]


def test_the_same_code_gives_the_same_bytes_and_only_what_lanes_need(tmp_path: Path) -> None:
    one, two = (build_code_archive(tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    assert one == two
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert {"mirrorspark/__init__.py", "mirrorspark/pipeline/worker.pyc", "mirrorspark/settings.py"} <= set(names)
    assert not [name for name in names if name.startswith(("mirrorspark/lab/", "mirrorspark/control/"))]
