"""Where a flow starts, as people write it: a time with its zone becomes epoch milliseconds, which settings hold.

The rest of the words is read by ``plan.start_positions``, which knows no calendar. Called by ``definition``. No I/O.
"""

from __future__ import annotations

from datetime import datetime

from mirrorspark.plan.start_positions import read_start, read_topic_start

__all__ = ["start_word", "topic_start_word"]

_DATE_DASHES = 2


def start_word(text: str) -> str:
    """A flow's ``start.at``, without a calendar. Raises ValueError that says what is wrong. Empty stays empty."""
    word = _without_calendar(text.strip())
    if word:
        read_start(word)
    return word


def topic_start_word(text: str) -> str:
    """The same for one topic, which may also give offsets; never empty."""
    word = _without_calendar(text.strip())
    read_topic_start(word)
    return word


def _without_calendar(value: str) -> str:
    if not value[:1].isdigit() or value.count("-") < _DATE_DASHES:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"no time ({error}); write it as 2026-11-01T00:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"the time needs a zone, e.g. {moment.isoformat()}Z")
    return str(int(moment.timestamp() * 1000))
