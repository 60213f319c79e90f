"""``status``, ``events``, ``pause`` and ``resume`` beside a flow that is led elsewhere, and where none ever was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import create_topic, producer
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

from .led_flow import LedFlow

MakeFlow = Callable[..., LedFlow]
GAP = Event(EventKind.DATA_GAP, "gone", "orders", 3, 1200, 1899)
REFUSED = Event(EventKind.TOPIC_REFUSED, "no", "east.clicks")


def _command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def _done(*words: object, code: int = 0) -> str:
    result = _command(*words)
    assert result.exit_code == code, result.output
    return str(result.stdout)


def _status(flow: LedFlow, code: int) -> dict[str, Any]:
    [found] = json.loads(_done("status", flow.file, "--json", code=code))["flows"]
    return dict(found)


def _open_events(flow: LedFlow, *events: Event) -> None:
    for event in events:
        flow.append("status", event.key, event.to_json())


def _holds(flow: LedFlow, topics: set[str]) -> None:
    """The driver's own picture follows its plan by a moment."""
    flow.wait(lambda: flow.runtime.status.paused == topics, f"{topics} to be paused")


@pytest.fixture
def flow(led_flow: MakeFlow, source_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]) -> LedFlow:
    """Of two topics, ``flow.names``, with 4 records in the first one's second partition."""
    names = sorted(new_topic_name() for _ in range(2))
    for name in names:
        create_topic(source_cluster.bootstrap, name, 2)
    client = producer(source_cluster.bootstrap)
    for _ in range(4):
        client.produce(names[0], b"x", partition=1)
    assert client.flush(60) == 0
    made = led_flow(", ".join(names))
    made.names = names
    made.remote = [f"{made.settings.flow.source}.{name}" for name in names]
    made.wait(lambda: len(made.planned) == 4, "a plan with both topics")
    return made


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_of_a_flow_that_runs(flow: LedFlow) -> None:
    waiting = {f"{flow.remote[0]}-1": "too large"}
    flow.report(partitions=4)
    end = flow.keep_reporting()
    try:
        found = _status(flow, code=0)
        assert found["state"] == "running"
        assert found["owner"]["generation"] == flow.runtime.generation
        assert [(lane["lane"], lane["state"], lane["reports"]) for lane in found["lanes"]] == [(0, "carrying", True)]
        assert len(found["partitions"]) == 4
        ends = {(one["topic"], one["partition"]): one["upstream_end"] for one in found["partitions"]}
        assert ends[(flow.names[0], 1)] == 4
        assert sum(ends.values()) == 4
        text = _done("status", flow.file)
        assert text.startswith(f"{flow.settings.flow} running lanes=1 partitions=4")
    finally:
        end()
    _open_events(flow, GAP)
    flow.report(waiting=waiting)
    found = _status(flow, code=3)
    assert [event["key"] for event in found["events"]] == [GAP.key]
    assert [one["waits"] for one in found["partitions"] if one["waits"]] == ["too large"]
    assert any("too large" in notice for notice in found["notices"])


def test_status_of_a_flow_whose_lanes_are_gone(flow: LedFlow) -> None:
    flow.report()
    found = _status(flow, code=3)
    assert found["state"] == "silent"
    assert [lane["reports"] for lane in found["lanes"]] == [False]
    assert "does not report" in _done("status", flow.file, code=3)


def test_status_of_a_flow_that_was_stopped(flow: LedFlow) -> None:
    flow.report(state="ended")
    flow.stop()
    assert _status(flow, code=3)["state"] == "stopped"


def test_status_and_events_of_a_flow_that_never_ran(flow_file: Callable[..., Path]) -> None:
    file = flow_file("x")
    text = _done("status", file, code=3)
    assert "never started" in text
    assert "no mirrorspark has run this flow there yet" in text
    assert _done("events", file) == "no unacknowledged events\n"
    assert json.loads(_done("events", file, "--json")) == []
    result = _command("pause", file)
    assert result.exit_code == 1
    assert "NEVER_RAN" in result.stderr


# -- events ------------------------------------------------------------------------------------------------------------


def test_events_are_listed_and_acknowledged(flow: LedFlow) -> None:
    _open_events(flow, GAP, REFUSED)
    text = _done("events", flow.file)
    assert str(GAP) in text
    assert f"key: {REFUSED.key}" in text
    listed = json.loads(_done("events", flow.file, "--json", "--flow", flow.settings.flow))
    assert {(one["flow"], one["key"], one["kind"]) for one in listed} == {
        (str(flow.settings.flow), GAP.key, GAP.kind),
        (str(flow.settings.flow), REFUSED.key, REFUSED.kind),
    }
    result = _command("events", flow.file, "--ack", GAP.key, "--ack", "event/none/such/0/0")
    assert result.exit_code == 2
    assert "--ack event/none/such/0/0: no such unacknowledged event" in result.stderr
    assert len(json.loads(_done("events", flow.file, "--json"))) == 2
    assert _done("events", flow.file, "--ack", GAP.key.removeprefix("event/")).endswith(f"acknowledged {GAP.key}\n")
    assert [one["key"] for one in json.loads(_done("events", flow.file, "--json"))] == [REFUSED.key]
    flow.wait(lambda: list(flow.runtime.status.events) == [REFUSED.key], "the driver to know")
    _done("events", flow.file, "--ack", "all")
    assert _done("events", flow.file, "--ack", "all") == "no unacknowledged events\n"


# -- pause and resume --------------------------------------------------------------------------------------------------


def test_a_whole_flow_is_paused_and_goes_on(flow: LedFlow) -> None:
    assert "paused: everything (the mirror obeys it)" in _done("pause", flow.file)
    _holds(flow, {"*"})
    assert "paused: nothing (the mirror obeys it)" in _done("resume", flow.file, "--flow", flow.settings.flow)
    _holds(flow, set())


def test_topics_are_paused_by_either_name_and_one_after_the_other(flow: LedFlow) -> None:
    first, second = flow.remote
    _done("pause", flow.file, "--topic", flow.names[0])
    _holds(flow, {first})
    done = json.loads(_done("pause", flow.file, "--topic", second, "--json"))
    assert done == {"flows": [{"flow": str(flow.settings.flow), "paused": sorted([first, second]), "is_taken": True}]}
    _holds(flow, {first, second})
    done = json.loads(_done("resume", flow.file, "--topic", first, "--json"))
    assert done == {"flows": [{"flow": str(flow.settings.flow), "paused": [second], "is_taken": True}]}
    _holds(flow, {second})
    _done("pause", flow.file)
    _done("resume", flow.file, "--topic", flow.names[1])
    _holds(flow, {first})


def test_a_pause_waits_for_the_next_mirror(flow: LedFlow) -> None:
    flow.stop()
    assert "no mirror has taken it up yet" in _done("pause", flow.file, "--topic", flow.names[0])
    again = LedFlow(flow.file)
    again.start()
    assert again.runtime.status.paused == {flow.remote[0]}
    again.stop()


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_topic_that_nobody_carries(flow: LedFlow, verb: str) -> None:
    result = _command(verb, flow.file, "--topic", "none-such")
    assert result.exit_code == 2
    assert (
        f"--topic none-such: not carried by {flow.settings.flow}; carried are: {', '.join(flow.names)}" in result.stderr
    )


# -- what is wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["status", "events", "pause", "resume"])
def test_bad_input_is_one_line(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    result = _command(verb, file)
    assert (result.exit_code, result.stderr) == (2, f"mirrorspark: SETTINGS: {file}: no such file\n")
    lines = [
        "clusters = a, b",
        "a.bootstrap.servers = 127.0.0.1:1",
        "b.bootstrap.servers = 127.0.0.1:1",
        "a->b.enabled = true",
    ]
    file.write_text("\n".join(lines))
    result = _command(verb, file, "--flow", "a-")
    assert result.exit_code == 2
    assert "there is a->b; the shell took the >" in result.stderr
    result = _command(verb, file)
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("mirrorspark: UNREACHABLE: b.bootstrap.servers: 127.0.0.1:1: cannot connect")
