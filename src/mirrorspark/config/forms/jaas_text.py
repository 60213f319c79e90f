"""JAAS texts put together again, and their secret options. The reading is ``cluster.jaas``'s. Nothing here shows a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.cluster.jaas import parse_jaas

__all__ = ["JaasText", "quoted"]

_SECRET_OPTION = re.compile(r"password|secret|token(?!\.endpoint|\.is|\.location)|assertion(?!\.type|\.location)", re.I)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class JaasText:
    """Option values are as Kafka gets them, without quotes and escapes."""

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @staticmethod
    def read(text: str) -> JaasText | None:
        """None for what is not one login module with plain options."""
        try:
            login = parse_jaas(text)
        except ValueError:
            return None
        return JaasText(login.module, text.split()[1].lower(), login.options)

    def text(self) -> str:
        options = "".join(f" {name}={quoted(value)}" for name, value in self.options.items())
        return f"{self.module} {self.flag}{options};"

    @property
    def secret_options(self) -> list[str]:
        return [name for name in self.options if _SECRET_OPTION.search(name)]


def quoted(value: str) -> str:
    return '"' + "".join(_ESCAPES.get(char, char) for char in value) + '"'
