"""Java's properties syntax, line by line, and any map through a writer of it and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorspark.config.document import Document
from mirrorspark.config.properties_syntax import parse_entries, read_entries, repeats
from mirrorspark.errors import SettingsError


def parse_properties(text: str, name: str = "properties") -> dict[str, str]:
    return dict(Document(parse_entries(text, name)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # separators
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("a\fb", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a \t\f=\t\f b", {"a": "b"}),
        ("a == b", {"a": "= b"}),  # only the first one separates
        ("a : = b", {"a": "= b"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=b:c d", {"a": "b:c d"}),
        ("east->west.enabled = true", {"east->west.enabled": "true"}),
        # blanks
        ("  a=b", {"a": "b"}),
        ("\t\f a=b", {"a": "b"}),
        ("a=b  ", {"a": "b  "}),  # what follows the value belongs to it
        ("a=  b c ", {"a": "b c "}),
        # empty values and keys
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a:", {"a": ""}),
        ("a ", {"a": ""}),
        ("=b", {"": "b"}),
        (":b", {"": "b"}),
        # comments and empty lines
        ("", {}),
        ("\n\n", {}),
        ("   \n\t\n", {}),
        ("# a=b", {}),
        ("! a=b", {}),
        ("  # a=b", {}),
        ("\t! a=b", {}),
        ("#a\\\nb=c", {"b": "c"}),  # a comment does not continue
        ("a=#b", {"a": "#b"}),
        ("a#=b", {"a#": "b"}),
        ("a=b # c", {"a": "b # c"}),
        # several lines, in each of the three ways to end one
        ("a=1\nb=2\n", {"a": "1", "b": "2"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("a=1\rb=2\r", {"a": "1", "b": "2"}),
        ("a=1\n\r\n\rb=2", {"a": "1", "b": "2"}),
        ("# c\ra=1\r\n! d\nb=2", {"a": "1", "b": "2"}),
        # the last one wins
        ("a=1\na=2", {"a": "2"}),
        ("a=1\na", {"a": ""}),
    ],
)
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b\\\nc", {"a": "bc"}),
        ("a=b\\\r\nc", {"a": "bc"}),
        ("a=b\\\rc", {"a": "bc"}),
        ("a=b,\\\n   \t c", {"a": "b,c"}),  # leading blanks of the next line are dropped
        ("a=b \\\n c", {"a": "b c"}),  # those before the backslash are not
        ("a=b\\\n  # c", {"a": "b# c"}),  # no comment in the middle of a line
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\\n   \nc=d", {"a": "b", "c": "d"}),
        ("a=1\\\n2\\\n3", {"a": "123"}),
        ("a\\\n=b", {"a": "b"}),
        ("a\\\nb=c", {"ab": "c"}),
        ("a=\\\nb", {"a": "b"}),
        ("a=b\\", {"a": "b"}),  # the file ends
        ("a=b\\\n", {"a": "b"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),  # two backslashes are one, and the line ends
        ("a=b\\\\\\\nc=d", {"a": "b\\c=d"}),  # three are one and a continuation
        ("a=b\\\\\\\\\nc=d", {"a": "b\\\\", "c": "d"}),
        ("a=b\\ \nc=d", {"a": "b ", "c": "d"}),  # a blank after the backslash: an escaped blank
        ("a=1\\\nb=2\\\nc=3\nd=4", {"a": "1b=2c=3", "d": "4"}),
    ],
)
def test_continuations(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a=\t\n\r\f", {"a": "\t\n\r\f"}),
        (r"a=\u0041\u00e9\u20AC", {"a": "Aé€"}),
        (r"\u0061=b", {"a": "b"}),
        (r"a=\u00410", {"a": "A0"}),
        (r"a=\\u0041", {"a": r"\u0041"}),
        (r"a=\b\z\"\'", {"a": "bz\"'"}),  # other letters stand for themselves
        (r"a=\\", {"a": "\\"}),
        (r"a=c:\\temp\\new", {"a": r"c:\temp\new"}),
        (r"a\=b=c", {"a=b": "c"}),
        (r"a\:b=c", {"a:b": "c"}),
        (r"a\ b=c", {"a b": "c"}),
        (r"a\ b c", {"a b": "c"}),
        (r"a\\=b", {"a\\": "b"}),  # the backslash is escaped, the separator is not
        (r"a\\\=b=c", {"a\\=b": "c"}),
        (r"\#a=b", {"#a": "b"}),
        (r"\!a=b", {"!a": "b"}),
        (r"\ a=b", {" a": "b"}),
        (r"a=\ b", {"a": " b"}),
        (r"a=\=b", {"a": "=b"}),
        (r"topics.exclude = .*[\\-\\.]internal, __.*", {"topics.exclude": r".*[\-\.]internal, __.*"}),
        (r"topics = my\.topic", {"topics": "my.topic"}),  # as in Java: a single backslash is gone
        ("a=\\\tb", {"a": "\tb"}),
    ],
)
def test_escapes(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", [r"a=\u", r"a=\u12", r"a=\u12G4", r"a=\u 123", r"\u00=b", r"a=\u+123"])
def test_a_broken_unicode_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(SettingsError, match=r"mm2\.properties:3: ") as caught:
        parse_properties(f"# one\ntwo=2\n{text}\n", "mm2.properties")
    assert caught.value.facts == {"file": "mm2.properties", "line": 3}


def test_the_order_of_the_file_is_kept() -> None:
    assert list(parse_properties("c=1\na=2\nb=3")) == ["c", "a", "b"]


def test_each_key_has_the_line_where_it_begins() -> None:
    entries = parse_entries("# one\n\na=1\r\nb=2,\\\n  3\nc=4\r! x\ra=5", "f")
    assert [(entry.key, entry.value, entry.place) for entry in entries] == [
        ("a", "1", "f:3"),
        ("b", "2,3", "f:4"),
        ("c", "4", "f:6"),
        ("a", "5", "f:8"),
    ]


def test_a_key_that_is_given_again_is_told() -> None:
    [(earlier, later), (_, last)] = repeats(parse_entries("a=1\nb=2\na=3\na=4", "f"))
    assert (earlier.place, later.place, last.place) == ("f:1", "f:3", "f:4")
    assert repeats(parse_entries("a=1\nb=1")) == []


def test_what_java_writes_as_two_escapes_is_one_character() -> None:
    assert parse_properties(r"a=\ud83d\ude00") == {"a": "\U0001f600"}


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes("# größen\r\nclusters = a, \\\r\n    b\r\n".encode())
    [entry] = read_entries(path)
    assert (entry.key, entry.value, entry.place) == ("clusters", "a, b", f"{path}:2")


@pytest.mark.parametrize("kind", ["missing", "folder", "bytes"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mm2.properties"
    if kind == "folder":
        path.mkdir()
    elif kind == "bytes":
        path.write_bytes(b"a=\xff\xfe\x80")
    with pytest.raises(SettingsError) as caught:
        read_entries(path)
    assert str(path) in str(caught.value)
    assert caught.value.facts["file"] == str(path)


# -- any map, written and read -----------------------------------------------------------------------------------------

# Surrogates are no characters; the line ends that only Python knows (U+0085, U+2028 …) are ordinary ones here.
texts = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("\\=: \t\f\n\r#!\x85\u2028\v"), max_size=20)
ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f"}


def _escaped(text: str, *, key: bool, unicode: bool) -> str:
    out = []
    for index, char in enumerate(text):
        if char in ESCAPES:
            out.append(ESCAPES[char])
        elif char == "\\" or (char in "=:#!" and key) or (char == " " and (key or index == 0)):
            out.append(f"\\{char}")
        elif unicode and 126 < ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(char)
    return "".join(out)


@st.composite
def written(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """A map, and one of the many ways to write it."""
    wanted = draw(st.dictionaries(texts, texts, max_size=6))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    unicode = draw(st.booleans())
    lines = []
    for key, value in wanted.items():
        lines += draw(st.lists(st.sampled_from(["", "   ", "# note", "! note = 1", "\t#\\"]), max_size=2))
        separator = draw(st.sampled_from(["=", ":", " = ", "\t:\f", "= "]))
        name = draw(st.sampled_from(["", " ", "\t"])) + _escaped(key, key=True, unicode=unicode)
        text = _escaped(value, key=False, unicode=unicode)
        if value[:1] in ("=", ":"):
            text = f"\\{text}"
        blanks = draw(st.sampled_from(["", "  ", "\t"]))
        folded = f"{separator}\\{end}{blanks}" if draw(st.booleans()) else separator
        lines.append(f"{name}{folded}{text}")
    return wanted, end.join(lines) + draw(st.sampled_from(["", end]))


@settings(deadline=None, max_examples=150)
@given(written())
def test_any_map_reads_back(pair: tuple[dict[str, str], str]) -> None:
    wanted, text = pair
    assert parse_properties(text) == wanted


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\\=: \t\f\n\r#!u0"), max_size=60))
def test_any_text_gives_a_map_or_a_settings_error(text: str) -> None:
    try:
        found = parse_properties(text)
    except SettingsError:
        return
    assert all(isinstance(part, str) for pair in found.items() for part in pair)
