"""Our own YAML: flat or by levels, the same Document."""

from __future__ import annotations

from pathlib import Path

from mirrorspark.config.document import Document
from mirrorspark.config.forms.front_door import read_forms
from mirrorspark.config.forms.plain_yaml import plain_yaml

DATA = Path(__file__).parent / "data"


def test_levels_lists_and_switches() -> None:
    assert dict(read_forms([DATA / "plain.yaml"])) == {
        "clusters": "east, west",
        "tasks.max": "4",
        "east.bootstrap.servers": "east:9092",
        "east.consumer.client.rack": "r1",
        "west.bootstrap.servers": "west:9092",
        "east->west.enabled": "true",
        "east->west.topics": r"orders, payments\..*",
        "east->west.MirrorCheckpointConnector.sync.group.offsets.enabled": "true",
    }


def test_it_is_written_by_levels_and_without_needless_quotes() -> None:
    keys = {"clusters": "a, b", "a->b.enabled": "true", "a.x": "one\ntwo\n", "b.y": "007", "tasks.max": "2"}
    assert plain_yaml(Document.of(keys), ("why",)) == (
        "# why\nclusters: a, b\ntasks.max: 2\na:\n  x: |\n    one\n    two\nb:\n  y: '007'\na->b:\n  enabled: true\n"
    )


def test_a_setting_with_the_name_of_a_cluster_keeps_the_keys_flat() -> None:
    assert plain_yaml(Document.of({"clusters": "a, b", "a": "x", "a.y": "z"})) == "clusters: a, b\na: x\na.y: z\n"
