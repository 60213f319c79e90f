"""``offsets show``, ``set`` and ``reset``: Connect's rules and shape; lanes obey; wrong input writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.config.load import load_deployment
from mirrorspark.control.flow_offsets import OffsetsRefused, offsets_document, parse_offsets
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.settings import ClusterSettings, FlowSettings

DEADLINE_S = 60.0
SETTINGS = FlowSettings(Flow("east", "west"), ClusterSettings("east", ()), ClusterSettings("west", ()))
PLACE = {"cluster": "east", "topic": "orders", "partition": 0}


def command(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["offsets", *map(str, words)])
    assert result.exit_code == code, result.output
    return str(result.output)


def document(**entry: object) -> dict[str, object]:
    return {"offsets": [{"partition": PLACE, "offset": {"offset": 5}, **entry}]}


# -- Connect's shape ---------------------------------------------------------------------------------------------------


def test_the_shape_is_connects_both_ways() -> None:
    offsets: dict[TopicPartition, int | None] = {TopicPartition("b", 0): 7, TopicPartition("a", 1): None}
    told = offsets_document(SETTINGS, offsets)
    assert told == {
        "offsets": [
            {"partition": {"cluster": "east", "partition": 1, "topic": "a"}, "offset": None},
            {"partition": {"cluster": "east", "partition": 0, "topic": "b"}, "offset": {"offset": 7}},
        ]
    }
    assert parse_offsets(SETTINGS, json.loads(json.dumps(told))) == offsets


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (None, "not of the form"),
        ([], "not of the form"),
        ({"offsets": {}}, "not of the form"),
        ({"offsets": []}, "the list is empty"),
        ({"offsets": ["x"]}, "must have partition and offset"),
        ({"offsets": [{"partition": PLACE}]}, "must have partition and offset"),
        (document(more=1), "nothing else"),
        (document(partition={"topic": "orders", "partition": 0}), "must have cluster, topic and partition"),
        (document(partition={**PLACE, "cluster": "west"}), "'west' is not the source of east->west"),
        (document(partition={**PLACE, "cluster": 5}), "5 is not the source"),
        (document(partition={**PLACE, "topic": ""}), "topic: must be"),
        (document(partition={**PLACE, "topic": 1}), "topic: must be"),
        (document(partition={**PLACE, "partition": -1}), "from 0 to 2147483647"),
        (document(partition={**PLACE, "partition": "0"}), "from 0 to 2147483647"),
        (document(partition={**PLACE, "partition": True}), "from 0 to 2147483647"),
        (document(partition={**PLACE, "partition": 2**31}), "from 0 to 2147483647"),
        (document(offset={"offset": -1}), "must be null or"),
        (document(offset={"offset": 1.0}), "must be null or"),
        (document(offset={"offset": None}), "must be null or"),
        (document(offset={}), "must be null or"),
        (document(offset=5), "must be null or"),
        ({"offsets": 2 * document()["offsets"]}, "orders-0 is given twice"),  # type: ignore[operator]
    ],
)
def test_what_is_not_of_that_shape_is_refused(wrong: object, why: str) -> None:
    with pytest.raises(OffsetsRefused) as caught:
        parse_offsets(SETTINGS, wrong)
    assert why in str(caught.value)


# -- with brokers ------------------------------------------------------------------------------------------------------


class Mirrored:
    """One topic, mirrored by real lanes that a test starts and stops."""

    def __init__(self, file: Path, topic: str, source: str, target: str, folder: Path) -> None:
        self.file, self.topic, self.source, self.target = file, topic, source, target
        self.settings = load_deployment(file).flows[0]
        self.remote = f"{self.settings.flow.source}.{topic}"
        self._folder = folder
        self._written = 0
        self._starts = 0

    def write(self, count: int) -> None:
        values = [str(number).encode() for number in range(self._written, self._written + count)]
        write_values(self.source, self.topic, values)
        self._written += count

    @property
    def copied(self) -> list[int]:
        return [int(record.value or b"-1") for record in read_records(self.target, self.remote)[0]]

    def run_until(self, copied: list[int], meanwhile: Callable[[], None] = lambda: None) -> None:
        self._starts += 1
        flow = FlowWithoutSpark(self.settings, folder=self._folder / f"flow-{self._starts}")
        with flow:
            wait_for(lambda: len(self.copied) >= len(copied), f"{len(copied)} records", DEADLINE_S, every_s=0.2)
            meanwhile()
        assert self.copied == copied

    def shown(self) -> Any:
        return json.loads(command("show", self.file, "--json"))

    def entry(self, last: int | None, **place: object) -> dict[str, object]:
        where = {"cluster": self.settings.flow.source, "partition": 0, "topic": self.topic, **place}
        return {"partition": where, "offset": None if last is None else {"offset": last}}


def test_offsets_are_shown_set_and_reset_and_lanes_obey(
    flow_file: Callable[..., Path],
    topic_name: str,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    tmp_path: Path,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    create_topic(source_cluster.bootstrap, f"{topic_name}-other", 1)
    file = flow_file(topic_name)
    one = Mirrored(file, topic_name, source_cluster.bootstrap, target_cluster.bootstrap, tmp_path)
    at = ("--topic", topic_name, "--partition", 0, "--offset")
    one.write(20)
    assert "is not on cluster west yet" in command("set", file, *at, 3, code=2)

    def refused_while_it_runs() -> None:
        assert "FLOW_NOT_STOPPED" in command("set", file, *at, 3, code=1)
        assert "runs, led by mirrorspark pid" in command("reset", file, "--force", code=1)

    copied = list(range(20))
    one.run_until(copied, refused_while_it_runs)
    assert one.shown() == {"offsets": [one.entry(19)]}
    assert f"{topic_name}-0 19" in command("show", file)

    _assert_bad_input_changes_nothing(one, tmp_path)

    assert "1 partitions would be changed" in command("set", file, *at, 9, "--dry-run")
    assert one.shown() == {"offsets": [one.entry(19)]}
    assert f"{topic_name}-0: goes on at 10, was at 20" in command("set", file, *at, 9)
    assert one.shown() == {"offsets": [one.entry(9)]}
    copied += range(10, 20)
    one.run_until(copied)  # back: copied again, behind what is there

    one.write(5)
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"offsets": [one.entry(22)]}))
    command("set", file, wanted)
    copied += [23, 24]
    one.run_until(copied)  # forward: those in between are left out

    assert "goes on at 0 (starts over), was at 25" in command("reset", file, "--topic", topic_name)
    assert one.shown() == {"offsets": []}
    copied += range(25)
    one.run_until(copied)
    assert one.shown() == {"offsets": [one.entry(24)]}


def _assert_bad_input_changes_nothing(one: Mirrored, folder: Path) -> None:
    file, topic = one.file, one.topic
    wanted = folder / "wrong.json"

    def refuse(*entries: object, why: str) -> None:
        wanted.write_text(json.dumps({"offsets": list(entries)}))
        assert why in command("set", file, wanted, code=2)

    good = one.entry(5)
    refuse(good, one.entry(20), why="is given twice")
    refuse(one.entry(20), why="beyond the end: the last record on cluster")
    refuse(one.entry(5, partition=7), why=f"{topic} has 1 partitions")
    refuse(good, one.entry(5, topic="nowhere"), why="has no topic nowhere")
    refuse(good, one.entry(5, topic=f"{topic}-other"), why="not carried by")
    refuse(one.entry(5, cluster="wrong"), why="'wrong' is not the source of")
    wanted.write_text("{")
    assert "not JSON" in command("set", file, wanted, code=2)
    assert "cannot be read" in command("set", file, folder / "none.json", code=2)
    assert "give OFFSETS, or" in command("set", file, code=2)
    assert "give OFFSETS, or" in command("set", file, wanted, "--topic", topic, code=2)
    assert "has no topic nowhere" in command("reset", file, "--topic", "nowhere", code=2)
    assert "not an enabled flow" in command("show", file, "--flow", "a->b", code=2)
    assert one.shown() == {"offsets": [one.entry(19)]}
