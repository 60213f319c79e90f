"""The repository as a whole: nothing in it points at one machine or a download server, and the changelog is current."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import mirrorspark

ROOT = Path(__file__).parents[2]

# Written in pieces, since this file is looked at too.
_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("repo", "spring", "io"),
        ("packages", "confluent", "io"),
        ("oss", "sonatype", "org"),
        ("central", "sonatype", "com"),
        ("repository", "apache", "org"),
        ("archive", "apache", "org"),
        ("downloads", "apache", "org"),
        ("dlcdn", "apache", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("unpkg", "com"),
        ("jsdelivr", "net"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("security", "ubuntu", "com"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("rubygems", "org"),
    )
]
_REGISTRY = re.compile(rf"(?<![\w-])(?:[\w-]+\.)*(?:{'|'.join(map(re.escape, _HOSTS))})(?![\w-])", re.IGNORECASE)
_MACHINE = re.compile(r"(?<![\w.~$}>*)-])/(?:" + "|".join(("work", "root", "opt")) + r")/")


def _tracked() -> list[Path]:
    """What is in the repository, or would be with the next commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def registry_addresses(text: str) -> list[str]:
    return [match.group() for match in _REGISTRY.finditer(text)]


def machine_paths(text: str) -> list[str]:
    """Lines with an absolute path of the machine on which somebody wrote this."""
    return [line.strip()[:200] for line in text.splitlines() if _MACHINE.search(line)]


def has_entry(changelog: str, version: str) -> bool:
    return re.search(rf"^## +\[?v?{re.escape(version)}(?![\w.])", changelog, re.MULTILINE) is not None


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def test_no_address_of_a_package_registry() -> None:
    """Packages come by the names that pip, Ivy and their settings know; a company's mirror must not be bypassed."""
    found = {}
    for path in _tracked():
        addresses = registry_addresses(path.read_bytes().decode("latin-1"))
        if addresses:
            found[str(path.relative_to(ROOT))] = sorted(set(addresses))
    assert found == {}


def test_no_path_of_this_machine() -> None:
    found = {}
    for path in _tracked():
        raw = path.read_bytes()
        if b"\0" not in raw[:8192] and (lines := machine_paths(raw.decode("utf-8", "replace"))):
            found[str(path.relative_to(ROOT))] = lines[:5]
    assert found == {}


def test_the_changelog_tells_of_this_version() -> None:
    path, version = ROOT / "CHANGELOG.md", _version()
    assert path.exists(), f"CHANGELOG.md is missing: write one with a section '## {version}'"
    assert has_entry(path.read_text(encoding="utf-8"), version), f"CHANGELOG.md has no section '## {version}'"


def test_the_package_says_the_projects_version() -> None:
    assert mirrorspark.__version__ == _version()


@pytest.mark.parametrize("host", _HOSTS)
def test_an_address_is_noticed(host: str) -> None:
    assert registry_addresses(f"curl https://{host}/simple/x")
    assert registry_addresses(f"index = '{host.upper()}'")
    assert registry_addresses(f"files.{host}")
    assert not registry_addresses(f"my{host}")
    assert not registry_addresses(f"{host}anization")


def test_a_word_is_no_address() -> None:
    assert not registry_addresses("on PyPI, by Maven coordinates org.apache.kafka:kafka_2.13, with npm or apt")


@pytest.mark.parametrize("folder", ["work", "root", "opt"])
def test_a_path_of_a_machine_is_noticed(folder: str) -> None:
    for line in (f"/{folder}/main", f'path = "/{folder}/x"', f"see /{folder}/x.", f"A=/{folder}/b", f"a:/{folder}/b"):
        assert machine_paths(f"first\n{line}\nlast") == [line]
    for line in (
        f"https://host.example/{folder}/x",
        f"src/{folder}/x",
        f"~/{folder}/x",
        f"$HOME/{folder}/x",
        f"/{folder}",
    ):
        assert machine_paths(line) == []


def test_a_missing_changelog_entry_is_noticed() -> None:
    changelog = "# Changelog\n\n## 1.2.30\n\n## [1.2.2] - today\n\nText about 1.2.3\n\n### 1.2.4\n"
    assert has_entry(changelog, "1.2.30")
    assert has_entry(changelog, "1.2.2")
    assert not has_entry(changelog, "1.2.3")
    assert not has_entry(changelog, "1.2.4")
