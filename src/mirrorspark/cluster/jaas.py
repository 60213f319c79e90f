"""``sasl.jaas.config`` taken apart: a login module, its flag and its options, as Java reads them.

The one reader of such texts: ``security`` logs in with what it finds, the room ``config`` checks and converts it. Raises
ValueError whose text shows nothing of the options: they are secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["MODULES", "Login", "parse_jaas"]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<double>"(?:[^"\\]|\\.)*") | (?P<single>'(?:[^'\\]|\\.)*') | (?P<mark>[=;])
      | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/) | (?P<word>[^\s=;"']+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
    "IAMLoginModule": ("AWS_MSK_IAM",),
}
"""Login modules by the last word of their class, and the mechanisms that they are for."""


@dataclass(frozen=True, slots=True)
class Login:
    module: str
    options: dict[str, str] = field(repr=False)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that the module is for; none if nobody knows the module."""
        return MODULES.get(self.module.rsplit(".", 1)[-1], ())


def parse_jaas(text: str) -> Login:
    """One login module; a second one is refused, as Kafka's clients refuse it."""
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("it is empty")
    if tokens[-1] != ("mark", ";"):
        raise ValueError("it does not end with ';'; if it goes on in the next line, end the line with a backslash")
    if len(tokens) < 3 or tokens[0][0] != "word" or tokens[1][1].lower() not in _FLAGS:
        raise ValueError(f"it must begin with a login module's class and one of {', '.join(_FLAGS)}")
    return Login(tokens[0][1], _options(tokens[2:-1]))


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    if ("mark", ";") in tokens:
        raise ValueError("it has more than one login module")
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        group = tokens[at : at + 3]
        if len(group) < 3 or group[0][0] != "word" or group[1] != ("mark", "=") or group[2][0] == "mark":
            raise ValueError("after the flag there must be name=value pairs; put values in double quotes")
        options[group[0][1]] = group[2][1]
    return options


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise ValueError("a quote is not closed")
        at = match.end()
        kind = str(match.lastgroup)
        if kind in ("double", "single"):
            found.append(("text", _unquoted(match[kind][1:-1])))
        elif kind != "comment":
            found.append((kind, match[kind]))
    return found


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)
