"""Which mirrorspark this is: the commit that it was built of, where that can be known. Told by REST and ``/metrics``.

A package that pip built from a repository has the commit in its metadata (PEP 610); a source tree has it in ``.git``. An
archive without either is known by its version alone.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
from pathlib import Path

from mirrorspark import __version__

__all__ = ["commit_id"]

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@functools.cache
def commit_id() -> str:
    """Of this process, as it was when first asked for; the version where no commit is known."""
    tree = Path(__file__).parents[2]
    return _from_metadata() or (_from_tree(tree) if (tree / "pyproject.toml").is_file() else None) or __version__


def _from_metadata() -> str | None:
    try:
        text = importlib.metadata.distribution("mirrorspark").read_text("direct_url.json")
        found = json.loads(text or "{}").get("vcs_info", {}).get("commit_id")
    except (importlib.metadata.PackageNotFoundError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and _COMMIT.fullmatch(found) else None


def _from_tree(tree: Path) -> str | None:
    """``.git/HEAD`` and what it points to, without git: loose, or packed."""
    git = tree / ".git"
    head = _line(git / "HEAD")
    if not head.startswith("ref: "):
        return head if _COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref: ")
    if _COMMIT.fullmatch(loose := _line(git / name)):
        return loose
    packed = _text(git / "packed-refs").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)


def _line(file: Path) -> str:
    return _text(file).strip()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
