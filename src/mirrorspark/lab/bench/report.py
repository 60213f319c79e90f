"""The comparison for people and machines: tables on a terminal, Markdown, JSON.

Called by ``command/bench.py``. All three are made from the same sheets, so none says what another one does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mirrorspark import __version__
from mirrorspark.lab.bench.latency import NO_MIRROR, Latency
from mirrorspark.lab.bench.parties import PARTIES
from mirrorspark.lab.bench.ratios import Check, all_checks
from mirrorspark.lab.bench.result import Comparison
from mirrorspark.lab.bench.shapes import SHAPES
from mirrorspark.lab.bench.throughput import Carry

__all__ = ["as_json", "as_markdown", "print_report"]

STYLES = {"PASS": "green", "MISS": "red"}
TEXT_COLUMNS = 1
"""The first is a name, the others are figures."""


@dataclass(frozen=True, slots=True)
class _Sheet:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f} k" if value >= 10_000 else f"{value:,.0f}"


# heading, the carry's figure, how it is written
_FIGURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("records/s", "records_per_s", _thousands),
    ("MB/s", "mb_per_s", lambda value: f"{value:,.0f}"),
    ("records/s, 5 to 100 %", "steady_records_per_s", _thousands),
    ("MB/s, 5 to 100 %", "steady_mb_per_s", lambda value: f"{value:,.0f}"),
    ("start-up s", "startup_s", lambda value: f"{value:.1f}"),
    ("CPU us/record", "cpu_us_per_record", lambda value: f"{value:.2f}"),
    ("CPU us/record, 5 to 100 %", "steady_cpu_us_per_record", lambda value: f"{value:.2f}"),
    ("CPU us/record, with start-up", "cpu_us_per_record_with_startup", lambda value: f"{value:.2f}"),
    ("brokers' CPU us/record", "brokers_cpu_us_per_record", lambda value: f"{value:.2f}"),
    ("peak RSS MB", "rss_peak_mb", lambda value: f"{value:,.0f}"),
    ("peak PSS MB", "pss_peak_mb", lambda value: f"{value:,.0f}"),
    ("benchmark's own cores", "bench_cores", lambda value: f"{value:.2f}"),
    ("others' cores", "others_cores", lambda value: f"{value:.2f}"),
    ("seconds", "seconds", lambda value: f"{value:.1f}"),
)


def print_report(result: Comparison, console: Console) -> None:
    console.print()
    for line in _preface(result):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for sheet in _sheets(result):
        table = Table(title=Text(sheet.title), title_justify="left")
        for number, column in enumerate(sheet.columns):
            table.add_column(column, justify="left" if number < TEXT_COLUMNS else "right")
        for row in sheet.rows:
            table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
        console.print(table)


def as_markdown(result: Comparison) -> str:
    lines = ["# mirrorspark and MirrorMaker 2", "", *(f"- {line}" for line in _preface(result)), ""]
    for sheet in _sheets(result):
        rule = [":--" if number < TEXT_COLUMNS else "--:" for number in range(len(sheet.columns))]
        lines += [f"## {sheet.title}", ""]
        lines += [f"| {' | '.join(row)} |" for row in (sheet.columns, rule, *sheet.rows)]
        lines.append("")
    return "\n".join(lines)


def as_json(result: Comparison) -> str:
    """``carries`` has every single measurement, ``summary`` their medians and values, ``checks`` the verdicts."""
    document = {
        "mirrorspark": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": result.is_complete,
        "machine": dict(result.machine),
        "settings": result.settings,
        "notes": result.notes,
        "preloads": [asdict(one) for one in result.preloads],
        "carries": [asdict(one) for one in result.carries],
        "starts": [{"party": one.party, "round": one.round, "seconds": one.startup_s} for one in result.starts],
        "summary": _summary(result.carries),
        "latency": [asdict(one) for one in result.latencies],
        "checks": [{**asdict(one), "wanted": one.wanted, "verdict": one.verdict} for one in _checks(result)],
    }
    return json.dumps(document, indent=2)


def _checks(result: Comparison) -> list[Check]:
    over_tls = bool(result.settings.get("over_tls"))
    return all_checks(result.carries, result.starts, result.latencies, over_tls=over_tls)


def _preface(result: Comparison) -> list[str]:
    machine = ", ".join(f"{key} {value}" for key, value in result.machine.items())
    settings = ", ".join(f"{key} {value}" for key, value in result.settings.items())
    lines = [] if result.is_complete else ["INCOMPLETE: the run ended early; this is what it had measured."]
    lines += [f"machine: {machine}", f"settings: {settings}"]
    lines += [
        f"{SHAPES[one.shape].label}: {one.records:,} records in {one.batches:,} batches of "
        f"{one.batch_bytes_mean:,.0f} B on average, {one.stored_bytes / 1e9:.2f} GB on the source"
        for one in result.preloads
    ]
    return [*lines, *result.notes]


def _sheets(result: Comparison) -> list[_Sheet]:
    sheets = [_throughput(key, result.carries) for key in SHAPES if any(one.shape == key for one in result.carries)]
    if result.latencies:
        sheets.append(_latency(result.latencies))
    checks = _checks(result)
    if checks:
        sheets.append(_verdicts(checks))
    return sheets


def _throughput(shape: str, carries: Sequence[Carry]) -> _Sheet:
    """A column for each party: the figures are many, the parties are few."""
    of_shape = [one for one in carries if one.shape == shape]
    parties = [key for key in PARTIES if any(one.party == key for one in of_shape)]
    rows = [
        [heading, *(_cell([one for one in of_shape if one.party == key], name, write) for key in parties)]
        for heading, name, write in _FIGURES
    ]
    title = f"{SHAPES[shape].label}: median [every round]"
    return _Sheet(title, ["", *(PARTIES[key].label for key in parties)], rows)


def _cell(carries: Sequence[Carry], name: str, write: Callable[[float], str]) -> str:
    values = _values(carries, name)
    if not values:
        return "not known"
    return f"{write(median(values))} [{', '.join(map(write, values))}]" if len(values) > 1 else write(values[0])


def _values(carries: Sequence[Carry], name: str) -> list[float]:
    return [value for one in carries if (value := getattr(one, name)) is not None]


def _latency(latencies: Sequence[Latency]) -> _Sheet:
    columns = ["", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "records", "records/s", "seconds", "epoch s"]
    columns += ["epoch boundaries", "new topic after s"]
    rows = []
    for one in latencies:
        figures = [f"{value:.2f}" for value in (one.p50_ms, one.p90_ms, one.p99_ms, one.p999_ms, one.max_ms)]
        events = [one.epoch_s, one.epoch_boundaries, None if one.new_topic_s is None else round(one.new_topic_s, 1)]
        name = NO_MIRROR if one.party == NO_MIRROR else PARTIES[one.party].label
        totals = [f"{one.received:,}", f"{one.rate:,.0f}", f"{one.seconds:.0f}"]
        rows.append([name, *figures, *totals, *("-" if value is None else str(value) for value in events)])
    return _Sheet("Latency from produce on the source to consume on the target", columns, rows)


def _verdicts(checks: Sequence[Check]) -> _Sheet:
    rows = [
        [one.what, f"{one.measured:.3g}", ", ".join(f"{value:.3g}" for value in one.by_round), one.wanted, one.verdict]
        for one in checks
    ]
    return _Sheet("mirrorspark's part", ["", "ratio of medians", "round by round", "wanted", "verdict"], rows)


def _summary(carries: Sequence[Carry]) -> dict[str, dict[str, dict[str, object]]]:
    summary: dict[str, dict[str, dict[str, object]]] = {}
    for shape in SHAPES:
        for party in PARTIES:
            own = [one for one in carries if one.shape == shape and one.party == party]
            if own:
                figures = {name: _values(own, name) for _, name, _ in _FIGURES}
                summary.setdefault(shape, {})[party] = {
                    name: {"median": median(values) if values else None, "values": values}
                    for name, values in figures.items()
                }
    return summary
