"""What is wrong or worth saying about a configuration: everything is collected, then told together.

Every check of the room gets a ``Findings``. An error or a remark names the place, the key and what to do; a value that is
secret, or that a config provider gave, is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mirrorspark.config.catalogue import CLIENTS, PLAIN
from mirrorspark.config.document import Document, Entry
from mirrorspark.errors import SettingsError

__all__ = ["GIVEN", "Findings", "Remark", "shown"]

GIVEN = "given"
"""The place of what comes from no file (``Document.of``)."""
VALUE_LETTERS_MAX = 120
"""Of a value that is shown."""
_WITH_LINE = re.compile(r"(.+):([0-9]+)")
_SECRETS = frozenset(
    one.name for table in (PLAIN, *CLIENTS.values()) for one in table.values() if one.is_secret
) | {"password", "username"}  # fmt: skip


def shown(key: str, raw: str) -> str:
    """A value as it may be shown: as it stands in the file, and nothing of a secret.

    ``raw`` is the text before config providers were asked: ``${env:X}`` stays as it is.
    """
    if "${" not in raw and any(key == name or key.endswith(f".{name}") for name in _SECRETS):
        return "(hidden)"
    text = raw.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= VALUE_LETTERS_MAX else text[:VALUE_LETTERS_MAX] + "…"


@dataclass(frozen=True, slots=True)
class Remark:
    """``kind`` is ``warning`` (MirrorMaker 2 would mislead, or something is left out) or ``note`` (has no meaning here)."""

    kind: str
    place: str
    key: str
    text: str

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place not in ("", GIVEN) else ""
        return f"{where}{self.key}: {self.text}"


class Findings:
    """``raw`` is the document as written; with ``lenient`` what is not understood is a warning instead of an error."""

    def __init__(self, raw: Document, *, file: str = "", lenient: bool = False) -> None:
        self.errors: list[SettingsError] = []
        self.remarks: list[Remark] = []
        self._raw = raw
        self._file = file
        self._lenient = lenient

    # -- errors ----------------------------------------------------------------------------------------------------

    def bad_value(self, key: str, reason: str) -> None:
        """The value of a key that the document has."""
        value = shown(key, self._raw[key])
        self._add(f"{key}={value}: {reason}" if value != "(hidden)" else f"{key}: {reason}", key)

    def error(self, key: str, reason: str) -> None:
        """Something about a key, its value aside; the document may not have it."""
        self._add(f"{key}: {reason}", key)

    def not_understood(self, key: str, reason: str) -> None:
        """A key that nobody knows, or that stands where nobody reads it."""
        if self._lenient:
            self.warn(key, f"{reason}. It is ignored")
        else:
            self._add(f"{key}: {reason}", key)

    def take(self, error: SettingsError, key: str) -> None:
        """An error that was raised elsewhere about a key; its text may start with a shorter name of that key."""
        name = str(error.facts.get("key", ""))
        text = error.message.removeprefix(name) if name else f": {error.message}"
        self._add(f"{key}{text}", key)

    def _add(self, text: str, key: str) -> None:
        place = self.place(key)
        facts: dict[str, Any] = {"key": key}
        if match := _WITH_LINE.fullmatch(place):
            facts |= {"file": match[1], "line": int(match[2])}
        elif place:
            facts["file"] = place
        message = f"{place}: {text}" if place else text
        if message not in [error.message for error in self.errors]:
            self.errors.append(SettingsError(message, **facts))

    def place(self, key: str) -> str:
        place = self._raw.place(key) if key in self._raw else self._file
        return "" if place == GIVEN else place

    # -- remarks ---------------------------------------------------------------------------------------------------

    def warn(self, key: str, text: str) -> None:
        self._remark("warning", key, text)

    def note(self, key: str, text: str) -> None:
        self._remark("note", key, text)

    def repeated(self, pairs: Iterable[tuple[Entry, Entry]]) -> None:
        for earlier, later in pairs:
            self.remarks.append(
                Remark("warning", later.place, later.key, f"given twice; this one counts, not {earlier.place}")
            )

    def _remark(self, kind: str, key: str, text: str) -> None:
        remark = Remark(kind, self.place(key), key, text)
        if remark not in self.remarks:
            self.remarks.append(remark)

    # -- the end ---------------------------------------------------------------------------------------------------

    def raise_if_any(self) -> None:
        """One error as it is; several as one, a line for each, with all of them in its facts."""
        if not self.errors:
            return
        first = self.errors[0]
        if len(self.errors) == 1:
            raise first
        message = "\n".join(str(error) for error in self.errors)
        raise SettingsError(message, **first.facts, problems=[error.as_dict() for error in self.errors])
