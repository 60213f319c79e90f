"""Keys, values and the places where they stand."""

from __future__ import annotations

from mirrorspark.config.document import Document, Entry


def test_the_last_value_wins_and_tells_its_place() -> None:
    document = Document([Entry("a", "1", "f:1"), Entry("b", "2", "f:2"), Entry("a", "3", "f:3")])
    assert dict(document) == {"a": "3", "b": "2"}
    assert list(document) == ["a", "b"]
    assert document.place("a") == "f:3"


def test_values_do_not_show() -> None:
    document = Document.of({"sasl.jaas.config": "geheim"})
    assert "geheim" not in repr(document)
    assert "geheim" not in repr(document.entry("sasl.jaas.config"))
    assert document.entries[0].value == "geheim"
