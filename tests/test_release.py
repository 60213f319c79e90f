"""The commit: of a source tree from .git, loose or packed; else the version."""

from __future__ import annotations

from pathlib import Path

import mirrorspark
from mirrorspark.release import _from_tree, commit_id

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def tree(folder: Path, head: str) -> Path:
    (folder / ".git" / "refs" / "heads").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"{head}\n")
    return folder


def test_a_branch_or_a_commit_is_followed(tmp_path: Path) -> None:
    main = tree(tmp_path / "loose", "ref: refs/heads/main")
    assert _from_tree(main) is None
    (main / ".git" / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert _from_tree(main) == COMMIT
    (main / ".git" / "refs" / "heads" / "main").write_text(f"{COMMIT[::-1]}\n")
    assert _from_tree(main) == COMMIT[::-1]
    assert _from_tree(tree(tmp_path / "detached", COMMIT)) == COMMIT
    assert _from_tree(tmp_path / "archive") is None


def test_it_is_never_unknown() -> None:
    found = commit_id()
    assert found == mirrorspark.__version__ or len(found) in (40, 64)
