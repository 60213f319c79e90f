"""The example on the page about own replication policies: installed as it stands there, it does what the page says."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from mirrorspark.config.load import load_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.plan.desired_topics import SeenTopic, TopicRules, desired_topics
from mirrorspark.plan.replication_policy import is_heartbeats, policy_for

PAGE = Path(__file__).parents[2] / "docs" / "operating" / "replication_policies.md"


def _example(language: str) -> str:
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's package as pip would have put it there, and its mm2.properties."""
    project = tomllib.loads(_example("toml"))
    [module] = project["tool"]["setuptools"]["py-modules"]
    (tmp_path / f"{module}.py").write_text(_example("python"))
    name, version = project["project"]["name"], project["project"]["version"]
    folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project["project"]["entry-points"]
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    path = tmp_path / "mm2.properties"
    path.write_text(_example("properties"))
    return path


def test_the_pages_example_names_topics_and_cuts_loops(file: Path) -> None:
    east_west, west_east = load_deployment(file).flows
    policy = policy_for(east_west)
    assert policy.remote("orders") == "orders_from_east"
    assert (policy.source_of("orders_from_east"), policy.upstream("orders_from_east")) == ("east", "orders")
    assert (policy.source_of("orders"), policy.upstream("orders")) == (None, None)
    assert policy.remote("heartbeats") == "east.heartbeats"
    assert is_heartbeats(policy, "east.heartbeats")
    on_west = {name: SeenTopic(name, 1) for name in ("orders", "orders_from_east", "heartbeats", "__consumer_offsets")}
    actions = {one.topic: (one.kind.value, one.remote) for one in desired_topics(on_west, {}, TopicRules(west_east))}
    assert actions == {
        "orders": ("create", "orders_from_west"),
        "heartbeats": ("create", "west.heartbeats"),
        "orders_from_east": ("skip", ""),
        "__consumer_offsets": ("skip", ""),
    }


def test_without_the_package_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(_example("properties"))
    with pytest.raises(SettingsError, match=r"com\.example\.SuffixReplicationPolicy: no such replication policy"):
        load_deployment(path)
