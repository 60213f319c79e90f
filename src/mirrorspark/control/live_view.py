"""What a person sees while mirrors run: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mirrorspark.events import Event
from mirrorspark.log_lines import fields_of, is_json, say
from mirrorspark.observe.flow_status import FlowStatus

__all__ = ["LiveView", "complain", "last_words", "latency_text", "summary_line"]

log = logging.getLogger("mirrorspark")

LINE_INTERVAL_S = 10.0
NOTICES_SHOWN_MAX = 8
STYLES = {
    "running": "green",
    **dict.fromkeys(("starting", "stopping", "stopped", "paused", "idle"), "cyan"),
    **dict.fromkeys(("degraded", "restarting"), "yellow"),
    **dict.fromkeys(("silent", "failed", "superseded"), "red"),
}
HOUR_MS = 3_600_000


def complain(text: str) -> None:
    """One line on stderr, which may begin with an error's code. A terminal that has hung up is no reason to end."""
    first, _, _ = text.partition(":")
    say(text, code=first if first.isupper() else "complaint", level="WARNING")


def last_words(lines: Sequence[str]) -> None:
    """On stdout, when all is over."""
    with suppress(OSError):
        for line in lines:
            if is_json():
                say(line.strip(), code="flow.report", stream=sys.stdout)
            else:
                sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


class LiveView:
    """``tick`` a few times a second; ``event`` as they come; ``close`` at the end. Ends quietly when nobody can look."""

    def __init__(self, statuses: Sequence[FlowStatus], *, terminal: bool | None = None) -> None:
        self._statuses = statuses
        self._console = Console(stderr=False)
        is_terminal = (sys.stdout.isatty() if terminal is None else terminal) and not is_json()
        self._live = Live(console=self._console, refresh_per_second=4, transient=False) if is_terminal else None
        self._next_line = 0.0
        self._verdicts: dict[str, str] = {}
        self._is_over = False
        if self._live:
            self._live.start()

    def tick(self) -> None:
        if self._is_over:
            return
        try:
            self._tick()
        except OSError as error:
            self._is_over = True
            log.warning("nobody can look any more (%s); the mirror goes on", error)

    def _tick(self) -> None:
        if self._live:
            self._live.update(self._picture())
            return
        changed = any(self._verdicts.get(s.flow) != s.verdict for s in self._statuses)
        if changed or time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_INTERVAL_S
            for status in self._statuses:
                self._verdicts[status.flow] = status.verdict
                self._line(summary_line(status), code="flow.status", **_figures(status))

    def event(self, flow: str, event: Event) -> None:
        with suppress(OSError):
            self._line(f"{flow} EVENT {event}", flow=flow, **fields_of(event))

    def _line(self, text: str, *, code: str, **facts: Any) -> None:
        stamp = time.strftime("%H:%M:%S")
        if is_json():
            say(text, code=code, stream=sys.stdout, **facts)
        elif self._live:
            self._console.print(f"{stamp} {text}", markup=False, highlight=False)
        else:
            sys.stdout.write(f"{stamp} {text}\n")
            sys.stdout.flush()

    def close(self) -> None:
        if self._live:
            with suppress(OSError):
                self._live.update(self._picture())
                self._live.stop()

    def _picture(self) -> Group:
        flows = Table(title="mirrorspark", title_justify="left", expand=False)
        for name in ("flow", "state", "lanes", "partitions", "records", "records/s", "MB/s", "lag", "latency ms"):
            flows.add_column(name, justify="left" if name in ("flow", "state") else "right")
        for status in self._statuses:
            records_s, bytes_s = status.rates
            flows.add_row(
                status.flow,
                Text(status.verdict, style=STYLES.get(status.verdict, "")),
                lanes_text(status),
                str(status.partition_count),
                f"{status.records:,}",
                f"{records_s:,.0f}",
                f"{bytes_s / 1e6:,.1f}",
                f"{status.lag_records:,}",
                latency_text(status),
            )
        notes = [
            Text(f"{status.flow}  {text}", style="yellow")
            for status in self._statuses
            for text in status.notices[:NOTICES_SHOWN_MAX]
        ]
        return Group(flows, *notes)


def _figures(status: FlowStatus) -> dict[str, Any]:
    """Of a line about a flow, for machines."""
    records_s, bytes_s = status.rates
    return {
        "flow": status.flow,
        "state": status.verdict,
        "lanes": len(status.lanes),
        "lanes_expected": status.lanes_expected,
        "partitions": status.partition_count,
        "records": status.records,
        "records_per_s": round(records_s, 1),
        "bytes_per_s": round(bytes_s, 1),
        "lag_records": status.lag_records,
        "latency_ms": status.latency_ms,
    }


def lanes_text(status: FlowStatus) -> str:
    """Lanes that reported, of those that there should be."""
    return f"{len(status.lanes)}/{status.lanes_expected}"


def latency_text(status: FlowStatus) -> str:
    """Milliseconds; "-" where nothing moved just now; the age of the records where they are too old to tell a latency."""
    if status.latency_ms is not None:
        return f"{status.latency_ms}"
    age = status.record_age_ms
    return "-" if age is None else f"- (records {age_text(age)} old)"


def age_text(age_ms: int) -> str:
    hours = age_ms / HOUR_MS
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"


def summary_line(status: FlowStatus) -> str:
    records_s, bytes_s = status.rates
    line = (
        f"{status.flow} {status.verdict} lanes={lanes_text(status)} partitions={status.partition_count} "
        f"records={status.records} records/s={records_s:.0f} MB/s={bytes_s / 1e6:.1f} lag={status.lag_records} "
        f"latency_ms={latency_text(status)}"
    )
    found = status.notices
    return f"{line} notices={len(found)} [{found[0]}]" if found else line
