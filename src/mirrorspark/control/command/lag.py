"""``mirrorspark lag FILE``: how far the copy is behind, by topic and partition, in records and seconds."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.control.command.flow_choice import File, FlowName, chosen_flows, end_with
from mirrorspark.control.command.tables import DASH, table
from mirrorspark.control.flow_lag import FlowLag, LagLook, PartitionLag
from mirrorspark.control.flow_on_target import NeverRan
from mirrorspark.errors import SettingsError
from mirrorspark.settings import FlowSettings

__all__ = ["lag"]

EXIT_BEHIND = 3
WATCH_INTERVAL_S = 2.0
PARTITIONS_SHOWN_MAX = 20


def lag(
    file: File,
    flow: FlowName = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Only this topic, by its name on either side. May be repeated."),
    ] = None,
    max_lag: Annotated[
        int | None,
        typer.Option("--max-lag", metavar="RECORDS", min=0, help="End with code 3 if a flow is further behind."),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", metavar="S", min=0, help="End with code 3 if a record waits for longer."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every 2 s, until interrupted.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every partition.")] = False,
) -> None:
    """Show how far each topic's copy is behind: source end, mirrored up to, records and seconds between them.

    Asks both clusters and the flow's books on the target, so it does not matter where the mirror runs, or whether it does.
    Records are counted in offsets; seconds are the age of the oldest record that is not on the target. Heartbeats topics
    are listed and not counted.

    Examples:

      mirrorspark lag mm2.properties

      mirrorspark lag mm2.properties --flow 'east->west' --topic orders --max-lag 1000

      mirrorspark lag mm2.properties --watch

    Exit codes: 0 done; 3 a flow is further behind than --max-lag or --max-seconds, or that cannot be known (source not
    reached, flow never started); 1 a target cluster cannot be reached or refuses; 2 FILE or an option is wrong.
    """
    limits = (max_lag, max_seconds)
    end_with(
        _watch(file, flow, topic or [], limits, as_json) if watch else _lag(file, flow, topic or [], limits, as_json)
    )


async def _lag(
    file: Path,
    flow: str | None,
    topics: Sequence[str],
    limits: tuple[int | None, float | None],
    as_json: bool,
) -> int:
    looks = [await _look(settings, topics) for settings in chosen_flows(file, flow)]
    missing = [name for name in topics if not any(_has(one, name) for one in looks)]
    if missing:
        raise SettingsError(f"--topic {missing[0]}: not carried by any flow that was asked for", key="--topic")
    if as_json:
        sys.stdout.write(json.dumps({"flows": [_picture(one) for one in looks]}, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for one in looks for line in _lines(one)))
    is_limited = any(one is not None for one in limits)
    return EXIT_BEHIND if is_limited and any(_is_beyond(one, *limits) for one in looks) else 0


async def _watch(
    file: Path,
    flow: str | None,
    topics: Sequence[str],
    limits: tuple[int | None, float | None],
    as_json: bool,
    rounds: int | None = None,
) -> int:
    """For ever, or so many rounds; the last one's code."""
    code = 0
    while rounds is None or rounds > 0:
        if not as_json:
            sys.stdout.write(time.strftime("%H:%M:%S\n"))
        code = await _lag(file, flow, topics, limits, as_json)
        sys.stdout.flush()
        rounds = None if rounds is None else rounds - 1
        if rounds != 0:
            await asyncio.sleep(WATCH_INTERVAL_S)
    return code


async def _look(settings: FlowSettings, topics: Sequence[str]) -> FlowLag:
    try:
        async with LagLook(settings) as look:
            found = await look.look(ages=True)
    except NeverRan as error:
        return FlowLag(str(settings.flow), source_error=str(error))
    wanted = [one for one in found.partitions if not topics or one.topic in topics or one.remote_topic in topics]
    return FlowLag(found.flow, tuple(wanted), found.source_error, found.notices)


def _has(found: FlowLag, topic: str) -> bool:
    return any(topic in (one.topic, one.remote_topic) for one in found.partitions)


def _is_beyond(found: FlowLag, max_lag: int | None, max_seconds: float | None) -> bool:
    if found.source_error:
        return True
    records, seconds = found.records, found.seconds
    too_many = max_lag is not None and (records is None or records > max_lag)
    too_long = max_seconds is not None and (seconds is None or seconds > max_seconds)
    return too_many or too_long


# -- showing -----------------------------------------------------------------------------------------------------------


def _picture(found: FlowLag) -> dict[str, Any]:
    return {
        "flow": found.flow,
        "records": found.records,
        "seconds": found.seconds,
        "looked_at_ms": found.looked_at_ms,
        "topics": [asdict(one) for one in found.topics],
        "partitions": [_partition(one) for one in found.partitions],
        "source_error": found.source_error,
        "notices": list(found.notices),
    }


def _partition(one: PartitionLag) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "remote_topic": one.remote_topic,
        "source_start": one.source_start,
        "source_end": one.source_end,
        "mirrored_to": one.mirrored_to,
        "downstream_end": one.downstream_end,
        "records": one.records,
        "seconds": one.seconds,
        "waiting_since_ms": one.waiting_since_ms,
        "heartbeat": one.is_heartbeat,
    }


def _lines(found: FlowLag) -> list[str]:
    lines = [f"{found.flow}: {words_of_lag(found.records, found.seconds)}"]
    if found.source_error:
        lines.append(f"  ! not known: {found.source_error}")
    if found.partitions:
        rows = [("TOPIC", "ON THE TARGET", "PARTITIONS", "LAG", "SECONDS")]
        rows += [
            (one.topic, one.remote_topic, str(one.partitions), _number(one.records), _seconds(one.seconds))
            for one in found.topics
        ]
        lines += table(rows)
    behind = sorted(found.behind, key=lambda one: -(one.records or 0))
    if behind:
        more: list[tuple[str, ...]] = [("PARTITION", "SOURCE END", "MIRRORED UP TO", "LAG", "SECONDS")]
        more += [
            (str(one.at), *map(_number, (one.source_end, one.mirrored_to, one.records)), _seconds(one.seconds))
            for one in behind[:PARTITIONS_SHOWN_MAX]
        ]
        lines += table(more)
    if len(behind) > PARTITIONS_SHOWN_MAX:
        lines.append(f"  … and {len(behind) - PARTITIONS_SHOWN_MAX} more partitions; --json lists all")
    return [*lines, *(f"  ! {text}" for text in found.notices)]


def words_of_lag(records: int | None, seconds: float | None) -> str:
    if records is None:
        return "lag not known"
    if not records:
        return "nothing behind"
    return f"{records} records behind" + ("" if seconds is None else f", the oldest for {seconds:.1f} s")


def _number(value: int | None) -> str:
    return DASH if value is None else str(value)


def _seconds(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"
