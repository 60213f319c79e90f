"""A configuration as a list of keys and values, each with the place where it stands.

Whatever form a user's files have, they become one of these, in the words of mm2.properties: ``clusters``, ``A.x``,
``A->B.x`` and plain names. What belongs to one connector alone is ``A->B.MirrorSourceConnector.x`` (…Checkpoint…,
…Heartbeat…).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Document", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """``place`` is for people: ``mm2.properties:12``, ``source.json: config.topics``. The value may be a secret."""

    key: str
    value: str = field(repr=False)
    place: str


class Document(Mapping[str, str]):
    """Keys in the order of the file; a key that is given twice keeps its first place in the order and its last value."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self._entries[entry.key] = entry

    @staticmethod
    def of(properties: Mapping[str, str], place: str = "given") -> Document:
        return Document(Entry(key, value, place) for key, value in properties.items())

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries.values())

    def entry(self, key: str) -> Entry:
        return self._entries[key]

    def place(self, key: str) -> str:
        return self._entries[key].place

    def __getitem__(self, key: str) -> str:
        return self._entries[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Document({len(self)} keys)"
