"""How often a source that refuses us is asked again, and what is said meanwhile. Used by the lane's carrying loop alone.

A leader that moved is found within a tenth of a second. A login or a certificate that is refused does not pass by itself so
soon: a source that is asked ten times a second for as long as that lasts logs each of them, and may lock the user out.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirrorspark.errors import ClusterError
from mirrorspark.pipeline.track import Track

__all__ = ["REFUSED_PAUSE_S_MAX", "RELOCATE_PAUSE_S", "STREAM_PAUSE_S", "SourceRefusals"]

RELOCATE_PAUSE_S = 0.1
STREAM_PAUSE_S = 0.2
REFUSED_PAUSE_S_MAX = 5.0
"""Between two tries while the source refuses who we are; the first pauses are short, each one twice the last."""


class SourceRefusals:
    """``text`` is empty unless the source refuses us."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self.text = ""

    def pause_after(self, error: ClusterError, least_s: float) -> float:
        """Seconds to wait before the next try; ``least_s`` after an error that passes by itself."""
        if error.retriable:
            self._pause_s, self.text = 0.0, ""
            return least_s
        self._pause_s = min(max(2 * self._pause_s, least_s), REFUSED_PAUSE_S_MAX)
        self.text = f"the source refuses us: {error}"
        return self._pause_s

    def answered(self, tracks: Iterable[Track]) -> None:
        """It gives data again."""
        for track in tracks:
            if track.why == self.text:
                track.why = ""
        self._pause_s, self.text = 0.0, ""
