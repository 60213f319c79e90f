"""What the processes of a mirror say, line by line: for people, or as JSON with a stable code for machines.

``run``, ``serve``, the bridge and the lanes in Spark's workers call ``begin_logging``; the form is inherited from process to
process by an environment variable. Secrets are taken out of every line, stacks included (``secret.masked``).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from mirrorspark.errors import MirrorError
from mirrorspark.events import Event
from mirrorspark.names import Flow
from mirrorspark.secret import masked

__all__ = ["FORMATS", "FORMAT_VARIABLE", "JSON", "TEXT", "begin_logging", "fields_of", "is_json", "say", "tell_error"]

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
FORMAT_VARIABLE = "MIRRORSPARK_LOG_FORMAT"
NO_CODE = "message"
"""The code of a line that is neither an event nor an error of ours."""
_FACTS = ("flow", "topic", "partition", "address", "error_name", "key", "file", "line", "status")
"""Facts of an error that are worth a field of their own; values of settings are none of them."""
_HUMAN = "%(asctime)s %(levelname)s %(name)s %(message)s"


def is_json() -> bool:
    """Whether this process was told to speak JSON, by ``begin_logging`` or by the process that started it."""
    return os.environ.get(FORMAT_VARIABLE) == JSON


def begin_logging(form: str | None = None) -> None:
    """Log to stderr from WARNING on. ``form`` is for this process and those that it starts; None: as they were told."""
    if form is not None:
        os.environ[FORMAT_VARIABLE] = form
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if is_json() else HumanLines(_HUMAN))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class HumanLines(logging.Formatter):
    """Time, level, logger, text."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class JsonLines(logging.Formatter):
    """One object a line. ``code`` is the event's kind or the error's code; the reference lists the fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": _stamp(record.created),
            "level": record.levelname,
            "code": NO_CODE,
            "text": masked(record.getMessage()),
            "logger": record.name,
            "process": record.process,
        }
        arguments = record.args if isinstance(record.args, tuple) else ()
        for argument in arguments:
            line |= fields_of(argument)
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error": type(record.exc_info[1]).__name__, **fields_of(record.exc_info[1])}
            line["stack"] = masked(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def fields_of(value: object) -> Mapping[str, Any]:
    """What a line is about, from the event or the error in it."""
    if isinstance(value, Event):
        found: dict[str, Any] = {"code": value.kind, "waits": value.waits}
        places = {"topic": value.topic, "partition": value.partition}
        places |= {"offset_first": value.offset_first, "offset_last": value.offset_last}
        return found | {name: one for name, one in places.items() if one not in ("", -1)}
    if isinstance(value, Flow):
        return {"flow": str(value)}
    if isinstance(value, MirrorError):
        facts = {name: value.facts[name] for name in _FACTS if name in value.facts}
        return {"code": value.code, "retriable": value.retriable} | facts
    return {}


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def say(text: str, *, code: str, stream: TextIO | None = None, level: str = "INFO", **facts: Any) -> None:
    """One line that is no log line (a start, a status, a refusal). A stream that is gone is no reason to end."""
    line = f"mirrorspark: {masked(text)}"
    if is_json():
        now = _stamp(datetime.now(UTC).timestamp())
        fields = {"at": now, "level": level, "code": code, "text": masked(text), **facts, "process": os.getpid()}
        line = json.dumps(fields, ensure_ascii=False, default=str)
    stream = stream or sys.stderr
    with suppress(OSError):
        stream.write(f"{line}\n")
        stream.flush()


def tell_error(error: MirrorError, about: str = "") -> None:
    """What ends a command: on stderr, a line for each of its own. ``about`` names what it happened to."""
    where = f"{about}: " if about else ""
    for line in str(error).splitlines():
        if is_json():
            say(f"{where}{line}", level="ERROR", **fields_of(error))
        else:
            say(f"{error.code}: {where}{line}", code=error.code)
