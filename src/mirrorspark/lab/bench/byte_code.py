"""Python parties start as an installed mirrorspark does: with byte code that was compiled before.

Used around the whole comparison. Where Python was told to keep none, each start would compile pyspark and us anew, in
several processes, which no installation does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["byte_code_kept", "is_byte_code_off"]

_OFF, _FOLDER = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


def is_byte_code_off() -> bool:
    return bool(os.environ.get(_OFF))


@contextmanager
def byte_code_kept(folder: Path) -> Iterator[None]:
    """Processes that are started meanwhile keep it in ``folder``, if they would else keep none."""
    if not is_byte_code_off():
        yield
        return
    before = {name: os.environ.pop(name, None) for name in (_OFF, _FOLDER)}
    os.environ[_FOLDER] = str(folder)
    try:
        yield
    finally:
        del os.environ[_FOLDER]
        os.environ.update({name: value for name, value in before.items() if value is not None})
