"""Java's regular expressions, compared with Java itself where a compiler is on the machine, and by hand where not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mirrorspark.plan.java_regex import RegexRefused, compile_java

from .java_patterns import PatternMaker

PATTERNS_PER_SEED = 500
NAMES_PER_PATTERN = 12
REFUSED_SHARE_MAX = 0.25
"""Of what Java accepts. A translation that refuses would pass any comparison."""

Oracle = Callable[[Sequence[tuple[str, Sequence[str]]]], list[str]]


@pytest.fixture(scope="session")
def java_says(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("no javac on the PATH: Java's own answers cannot be had; the vectors below are still checked")
    folder = tmp_path_factory.mktemp("oracle")
    source = Path(__file__).with_name("RegexOracle.java")
    subprocess.run(["javac", "-encoding", "UTF-8", "-d", folder, source], check=True, timeout=120)

    def ask(questions: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        lines = [",".join(_hex(text) for text in (pattern, *names)) for pattern, names in questions]
        answer = subprocess.run(
            ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss16m", "-cp", folder, "RegexOracle"],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return answer.stdout.splitlines()

    return ask


def _hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def _we_say(pattern: str, names: Sequence[str]) -> str:
    try:
        compiled = compile_java(pattern)
    except RegexRefused as refused:
        return "beyond us" if refused.is_java else "refused"
    return "".join("1" if compiled.matches(name) else "0" for name in names)


@pytest.mark.parametrize(("seed", "ways_quick_max"), [(1, None), (2, None), (3, 0.0)])
def test_random_patterns_match_what_java_matches(
    java_says: Oracle, seed: int, ways_quick_max: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last seed with the linear matcher wherever it can be taken."""
    if ways_quick_max is not None:
        monkeypatch.setattr("mirrorspark.plan.java_regex.WAYS_QUICK_MAX", ways_quick_max)
    maker = PatternMaker(seed)
    patterns = [maker.pattern() for _ in range(PATTERNS_PER_SEED)]
    questions = [(pattern, maker.names(pattern, NAMES_PER_PATTERN)) for pattern in patterns]
    answers = list(zip(questions, java_says(questions), (_we_say(*question) for question in questions), strict=True))
    differences = [
        f"{pattern!r} on {names}: Java {java}, we {ours}"
        for (pattern, names), java, ours in answers
        if ours not in (java, "beyond us") and java != "broken"
    ]
    assert differences == []
    accepted = [ours for _, java, ours in answers if java != "refused"]
    assert accepted.count("beyond us") <= REFUSED_SHARE_MAX * len(accepted)


# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (r"(?<env>dev|prod)-\k<env>", "dev-dev", True),
        (r"(?<env>dev|prod)-\k<env>", "dev-prod", False),
        (r"\p{Alpha}+", "orders", True),
        (r"\p{L}+", "größe", True),
        (r"\p{Alpha}+", "größe", False),
        (r"\w+", "größe", False),
        (r"\d", "٣", False),
        ("(?i)É", "é", False),
        ("(?iu)É", "é", True),
        ("(?i)K", "\u212a", False),  # the Kelvin sign
        ("(?iu)k", "\u212a", True),
        ("[a-z&&[^aeiou]]+", "xyz", True),
        ("[a-z&&[^aeiou]]+", "xya", False),
        ("[a[bc]]+", "abc", True),
        ("[^a[bc]]", "b", False),  # the negation counts for the whole class
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\Q[", "[", True),
        ("a*+a", "aaa", False),
        ("(?>a*)a", "aaa", False),
        ("a*a", "aaa", True),
        (r"\x{1F600}|\uD83D\uDE01", "\U0001f600", True),
        (r"\x{1F600}|\uD83D\uDE01", "\U0001f601", True),
        (r"\0101\x42\u0043\cA", "ABC\x01", True),
        (r"a\hb", "a\xa0b", True),
        (r"a\Rb", "a\r\nb", True),
        (".", "\n", False),
        (".", "\r", False),
        ("(?d).", "\r", True),
        ("(?s).", "\n", True),
        ("(?s:.)(?-s:.)", "\n\n", False),
        ("a$\n", "a\n", True),
        ("a\\z\n", "a\n", False),
        ("(?m)a$\n^b", "a\nb", True),
        ("(?i)a|b", "B", True),
        ("(?i:a)|b", "B", False),
        ("(?<=ab?)c", "c", False),
        ("a(?<=ab?)c", "ac", True),
        (".*(?<!-tmp|-test)", "orders-test", False),
        (".*(?<!-tmp|-test)", "orders", True),
        ("]}-", "]}-", True),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        (r"[\w-z]", "-", True),
        ("", "", True),
        ("|a", "", True),
    ],
)
def test_meaning(pattern: str, name: str, matches: bool) -> None:
    assert compile_java(pattern).matches(name) == matches


@pytest.mark.parametrize(
    ("pattern", "construct", "position"),
    [
        (r"a\G", "\\G (the end of the last match)", 1),
        (r"\X", "\\X (a grapheme cluster)", 0),
        (r"\b{g}", "\\b{g}", 0),
        (r"x\p{IsLatin}", "\\p{IsLatin}", 1),
        (r"[\P{InGreek}]", "\\P{InGreek}", 1),
        (r"\p{IsAlphabetic}", "\\p{IsAlphabetic}", 0),
        ("(?x)a b", "the flag x", 2),
        ("(?iU)a", "the flag U", 3),
        (r"\1(a)", "\\1 (a reference to a group that is not complete before it)", 0),
        ("(?<=(a))b", "a look-behind of no fixed length", 0),
        ("(?<=a{1,99})b", "a look-behind", 0),
        ("[a&&&b]", "'&&&' in a class", 4),
        ("[a-z&&[bc]d]", "characters behind the inner class", 10),
        ("(" * 60 + ")" * 60, "more than 50 groups or classes inside one another", 50),
        ("(?:a{1000}){1000}.*b.*c.*d.*e", "5000 states", None),
        ("(?!(a+)+b).*", "take hours", None),
    ],
)
def test_what_we_cannot_express_is_refused_by_name(pattern: str, construct: str, position: int | None) -> None:
    with pytest.raises(RegexRefused) as caught:
        compile_java(pattern)
    assert construct in caught.value.why
    assert caught.value.position == position
    assert caught.value.is_java


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("a)", 1),
        ("(a", 0),
        ("a|(b", 2),
        ("[a", 0),
        ("*a", 0),
        ("a**", 2),
        ("a{x}", 1),
        ("a{1|3}", 1),
        ("a{3,1}", 1),
        ("[z-a]", 1),
        (r"a\y", 1),
        (r"\E", 0),
        (r"\x{110000}", 0),
        (r"\u12", 0),
        ("(?P<n>a)", 0),
        ("(?<n>a)(?<n>b)", 7),
        (r"\k<n>", 0),
        ("a\\", 2),
        (r"\p{L", 2),
        ("(?<=a*)b", 0),
    ],
)
def test_what_java_refuses_is_refused_with_its_place(pattern: str, position: int) -> None:
    with pytest.raises(RegexRefused) as caught:
        compile_java(pattern)
    assert caught.value.position == position


HOSTILE = "a" * 249


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|aa)+b",
        "(.*)*b",
        "(a|a?)+b",
        "(?:a{1,20}){1,20}b",
        ".*a.*a.*a.*a.*a.*b",
        "(?i)(a*)*b",
        "^(a+)+$b?x",
    ],
)
@pytest.mark.timeout(20)
def test_no_pattern_is_slow_on_a_hostile_name(pattern: str) -> None:
    assert not compile_java(pattern).matches(HOSTILE)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("dash", ["-", ".", "\\."])
def test_thousands_of_plain_names_are_one_look(dash: str) -> None:
    names = [f"team{number % 50}{dash}topic{dash}{number}" for number in range(5_000)]
    compiled = compile_java("|".join(names))
    assert all(compiled.matches(name.replace("\\", "")) for name in names)
    assert compiled.matches("team7-topic-7") == (dash != "\\.")
    assert not compiled.matches("team7\ntopic\n7")
    assert not compiled.matches(f"team0{dash}topic{dash}5000")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"(?:orders|clicks)*|(a|b)*c", ["", "orders", "ordersclicks", "abbac", "abba", "ordersc"]),
        (r"^(?:a+b?)*$|(x{2,4})+", ["", "aab", "aabab", "xxx", "xxxxx", "x", "b"]),
        (r"\b(?:[a-z]+-?)*\b.*z\z", ["a-b-z", "z", "-z", "a-b"]),
    ],
)
def test_both_matchers_agree(pattern: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for ways in (0, 1e300):
        monkeypatch.setattr("mirrorspark.plan.java_regex.WAYS_QUICK_MAX", ways)
        monkeypatch.setattr("mirrorspark.plan.java_regex.WAYS_MAX", 1e301)
        answers.append(_we_say(pattern, names))
    assert answers[0] == answers[1]
    assert "1" in answers[0]
