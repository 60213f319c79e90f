"""A Document as a properties text that Java and we read alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.config.document import Document
from mirrorspark.config.forms.properties_text import properties_text
from mirrorspark.config.properties_syntax import parse_entries

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_whatever_is_written_reads_back(keys: dict[str, str]) -> None:
    text = properties_text(Document.of(keys), ["a comment\nof two lines"])
    assert text.isascii()
    assert {entry.key: entry.value for entry in parse_entries(text)} == keys


def test_levels_are_grouped() -> None:
    keys = {
        "a->b.MirrorSourceConnector.topics": "t",
        "clusters": "a, b",
        "b.client.id": "x",
        "a->b.enabled": "true",
        "tasks.max": "2",
        "strimzi/m/spec.replicas": "1",
    }
    assert properties_text(Document.of(keys)) == (
        "clusters = a, b\ntasks.max = 2\n\n# cluster b\nb.client.id = x\n\n"
        "# flow a->b\na->b.enabled = true\na->b.MirrorSourceConnector.topics = t\n\n"
        "# strimzi/\\u2026 has no meaning for a mirror; kept for conversions back\nstrimzi/m/spec.replicas = 1\n"
    )
