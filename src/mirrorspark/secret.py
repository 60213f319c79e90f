"""A text that nobody may see: a type of its own, so that whoever shows it shows ``[hidden]``.

``config`` makes one of every setting of the kind secret, ``rest`` and the commands of passwords and tokens. It is a
``str``: TLS, SASL and pickle take its letters as they are; ``str()``, ``repr()``, f-strings and log lines do not get
them.

``masked`` is the second line of defence, for texts that others wrote (a library's error that quotes what it was given):
the secrets of this process are taken out of them by their value. Errors, events and log lines pass it; patterns play no
part.
"""

from __future__ import annotations

from typing import Any

__all__ = ["HIDDEN", "Secret", "masked"]

HIDDEN = "[hidden]"
"""What Kafka itself writes for a password."""
MASKED_LETTERS_MIN = 8
WORD_LETTERS_MAX = 15
"""A secret that is shorter, or one plain word, is not looked for in texts: it would be found where it has no business (who
takes ``password`` for a password would read ``ssl.key.[hidden]``)."""
KNOWN_MAX = 10_000
"""Secrets of a process that are looked for; beyond it the oldest is forgotten."""

_known: dict[str, None] = {}


class Secret(str):
    """``Secret("x")`` equals ``"x"`` and works as it. Stays one when pickled, sliced no more: take no parts of it."""

    __slots__ = ()

    def __new__(cls, text: str = "") -> Secret:
        made = super().__new__(cls, text)
        _remember(str.__str__(made))
        return made

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (str.__str__(self),)

    @property
    def letters(self) -> str:
        """The secret itself, for whoever must send it."""
        return "".join(self)


def _remember(text: str) -> None:
    is_word = text.isalpha() and text.islower() and len(text) <= WORD_LETTERS_MAX
    if len(text) >= MASKED_LETTERS_MIN and not is_word and text not in _known:
        _known[text] = None
        if len(_known) > KNOWN_MAX:
            del _known[next(iter(_known))]


def masked(text: str) -> str:
    """The text without the secrets that this process knows."""
    for secret in tuple(_known):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text
