"""Our own code as one file for executors that have not got it, or another version of it. Made by ``session``.

Spark brings the file to each executor before its first task. Its byte code comes along, so that no executor compiles
anything, and its source for another Python and for stack traces. Third-party packages are not in it
(docs/operating/spark.md).
"""

from __future__ import annotations

import py_compile
import tempfile
import zipfile
from pathlib import Path

import mirrorspark

__all__ = ["build_code_archive"]

ROOMS = frozenset({"cluster", "observe", "offsets", "pipeline", "plan", "wire"})
"""Of those that the pipeline may import, besides the words that everybody shares."""
_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def build_code_archive(path: Path) -> Path:
    """Writes the archive there and returns the path. The same code gives the same bytes."""
    package = Path(mirrorspark.__file__).parent
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as scratch:
        compiled = Path(scratch) / "compiled"
        for source in sorted(package.rglob("*.py")):
            inside = source.relative_to(package)
            if len(inside.parts) > 1 and inside.parts[0] not in ROOMS:
                continue
            name = f"{package.name}/{inside.as_posix()}"
            py_compile.compile(
                str(source),
                cfile=str(compiled),
                dfile=name,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
            archive.writestr(_entry(name), source.read_bytes())
            archive.writestr(_entry(f"{name}c"), compiled.read_bytes())
    return path


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _SAME_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
