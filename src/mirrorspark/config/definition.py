"""What a key is: its type, its bounds, where it may stand, and what it does here.

The tables in ``catalogue`` are made of these; checks, settings, the reference page and the REST definitions read them.
No I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any

from mirrorspark.config.start_words import start_word, topic_start_word

__all__ = ["CHECKPOINT", "CONNECTORS", "HEARTBEAT", "SOURCE", "Definition", "Kind", "Scope"]

SOURCE = "MirrorSourceConnector"
CHECKPOINT = "MirrorCheckpointConnector"
HEARTBEAT = "MirrorHeartbeatConnector"
CONNECTORS = (SOURCE, CHECKPOINT, HEARTBEAT)

INT_MAX = 2**31 - 1
_WHOLE = re.compile(r"[+-]?[0-9]+")


class Kind(Enum):
    """The type of a value; the text is what people read in the reference."""

    TEXT = "text"
    LIST = "list"
    PATTERNS = "list of names or regexes"
    SERVERS = "list of host:port"
    WHOLE = "whole number"
    FRACTION = "number"
    SWITCH = "true or false"
    CHOICE = "choice"
    CLASS = "class name"
    SECRET = "secret"
    START = "earliest, latest or a time"
    TOPIC_START = "earliest, latest, a time or offsets P:N,…"


class Scope(Flag):
    """Levels at which MirrorMaker 2 heeds a key."""

    TOP = auto()
    """``x``"""
    CLUSTER = auto()
    """``A.x``; a worker's key counts for the flows into A"""
    FLOW = auto()
    """``S->T.x``, and one connector of it: ``S->T.MirrorSourceConnector.x``"""
    CLIENT = auto()
    """behind ``consumer.``, ``producer.`` or ``admin.`` of a cluster or flow"""


@dataclass(frozen=True, slots=True)
class Definition:
    """One key. Exactly one of ``applied``, ``no_meaning`` and ``refused`` says what becomes of it.

    ``name`` may end with ``*``: a family of keys. ``default`` is MirrorMaker 2's; ``ours`` stands where we differ.
    """

    name: str
    kind: Kind
    help: str
    default: str | None = None
    ours: str | None = None
    why: str = ""
    """Why our default is another one."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    scope: Scope = Scope.TOP | Scope.FLOW
    connectors: tuple[str, ...] = ()
    applied: str = ""
    """The setting that it fills (``limits.fetch_bytes_max``), or what it does, in words with a blank in them."""
    true_when: str = ""
    """The choice for which a yes-or-no setting is yes."""
    no_meaning: str = ""
    """Why nothing comes of it; completes "has no meaning here, because …"."""
    refused: str = ""
    """Why it cannot be honoured, where ignoring it would do harm."""
    harmless: tuple[str, ...] = ()
    """Values (or last words of a class name) that are what happens anyway: nothing needs to be said about them."""
    importance: str = "low"
    required: bool = False

    def __post_init__(self) -> None:
        verdicts = [bool(text) for text in (self.applied, self.no_meaning, self.refused)]
        assert sum(verdicts) == 1, f"{self.name}: applied, without meaning or refused: one of them"
        assert not self.choices or self.kind is Kind.CHOICE, self.name

    @property
    def is_family(self) -> bool:
        return self.name.endswith("*")

    @property
    def is_secret(self) -> bool:
        return self.kind is Kind.SECRET

    @property
    def fills_a_setting(self) -> bool:
        return bool(self.applied) and " " not in self.applied

    @property
    def effective_default(self) -> str | None:
        return self.ours if self.ours is not None else self.default

    @property
    def bounds(self) -> str:
        """For people; empty if there are none."""
        if self.choices:
            return ", ".join(self.choices)
        if self.low is None and self.high is None:
            return ""
        if self.high is None or self.high >= INT_MAX:
            return f"from {_plain(self.low)}"
        return f"{_plain(self.low)} to {_plain(self.high)}"

    def is_harmless(self, text: str) -> bool:
        value = text.strip()
        return any(value.lower() == one.lower() or value.endswith(f".{one}") for one in self.harmless)

    def read(self, text: str) -> Any:
        """The value of a text. Raises ValueError whose text says what is wrong, without the value itself."""
        value = text if self.is_secret else text.strip()
        if self.kind is Kind.SWITCH:
            if value.lower() not in ("true", "false"):
                raise ValueError("must be true or false")
            return value.lower() == "true"
        if self.kind is Kind.WHOLE:
            if not _WHOLE.fullmatch(value):
                raise ValueError("not a whole number")
            return self._bounded(int(value))
        if self.kind is Kind.FRACTION:
            try:
                return self._bounded(float(value))
            except (ValueError, OverflowError) as error:
                raise ValueError(str(error) if "must be" in str(error) else "not a number") from None
        if self.kind is Kind.CHOICE:
            for choice in self.choices:
                if choice.lower() == value.lower():
                    return choice
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if self.kind is Kind.START:
            return start_word(value)
        return topic_start_word(value) if self.kind is Kind.TOPIC_START else value

    def _bounded(self, value: Any) -> Any:
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            low, high = _plain(self.low), _plain(self.high)
            if self.high is None:
                raise ValueError(f"must be {low} or more")
            raise ValueError(f"must be between {low} and {high}")
        return value


def _plain(number: float | None) -> str:
    if number is None:
        return "any"
    return str(int(number)) if float(number).is_integer() else str(number)
