from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.errors import SettingsError, Unreachable
from mirrorspark.events import Event, EventKind
from mirrorspark.log_lines import FORMAT_VARIABLE, HumanLines, JsonLines, say, tell_error
from mirrorspark.names import Flow
from mirrorspark.secret import Secret

GAP = Event(EventKind.DATA_GAP, "deleted", "orders", 3, 10, 19)


@pytest.fixture
def line() -> Callable[..., dict[str, Any]]:
    """What a log call becomes."""

    def log(text: str, *arguments: object, error: BaseException | None = None) -> dict[str, Any]:
        raised = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord("mirrorspark.flow", logging.WARNING, "f.py", 1, text, arguments, raised)
        found: dict[str, Any] = json.loads(JsonLines().format(record))
        return found

    return log


def test_an_event_has_its_kind_as_code(line: Callable[..., dict[str, Any]]) -> None:
    found = line("%s: %s", Flow("a", "b"), GAP)
    assert found["flow"] == "a->b"
    assert (found["code"], found["topic"], found["partition"]) == ("data.gap", "orders", 3)
    assert (found["offset_first"], found["offset_last"], found["waits"]) == (10, 19, False)
    assert found["text"] == "a->b: data.gap orders-3 offsets 10..19: deleted"
    assert (found["level"], found["logger"]) == ("WARNING", "mirrorspark.flow")
    assert found["at"].endswith("Z")


def test_an_error_has_its_code_and_its_place(line: Callable[..., dict[str, Any]]) -> None:
    found = line("%s; trying again", Unreachable("no answer", address="a:1", password="marked"))
    assert (found["code"], found["retriable"], found["address"]) == ("UNREACHABLE", True, "a:1")
    assert "marked" not in json.dumps(found)


def test_other_lines(line: Callable[..., dict[str, Any]]) -> None:
    assert line("as it is")["code"] == "message"
    try:
        raise ValueError(Secret("marked-value").letters)
    except ValueError as error:
        found = line("failed", error=error)
    assert (found["error"], "ValueError" in found["stack"]) == ("ValueError", True)
    assert "marked" not in json.dumps(found)


def test_a_human_line_hides_them_too() -> None:
    Secret("marked-in-a-line")
    record = logging.LogRecord("a", logging.WARNING, "f.py", 1, "x %s", ("marked-in-a-line",), None)
    assert HumanLines("%(message)s").format(record) == "x [hidden]"


def test_lines_for_people_and_for_machines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(FORMAT_VARIABLE, raising=False)
    stream = io.StringIO()
    say("listening", code="server.listening", stream=stream, address="a:1")
    tell_error(SettingsError("x: wrong\ny: wrong", key="x"))
    assert stream.getvalue() == "mirrorspark: listening\n"
    assert capsys.readouterr().err == "mirrorspark: SETTINGS: x: wrong\nmirrorspark: SETTINGS: y: wrong\n"
    monkeypatch.setenv(FORMAT_VARIABLE, "json")
    say("listening", code="server.listening", stream=stream, address="a:1")
    found = json.loads(stream.getvalue().splitlines()[1])
    assert (found["code"], found["address"], found["level"]) == ("server.listening", "a:1", "INFO")
    tell_error(SettingsError("x: wrong", key="x"), "flow a->b")
    told = json.loads(capsys.readouterr().err)
    assert (told["code"], told["text"], told["key"], told["level"]) == ("SETTINGS", "flow a->b: x: wrong", "x", "ERROR")


def test_children_speak_as_their_parent_was_told() -> None:
    """Lanes in Spark's workers and the bridge begin like this."""
    program = "import logging; from mirrorspark.log_lines import begin_logging; begin_logging(); logging.warning('x')"
    for form, first in (("json", "{"), ("text", "2")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, FORMAT_VARIABLE: form},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr[0] == first
