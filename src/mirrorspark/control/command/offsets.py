"""``mirrorspark offsets``: the source offsets of flows, shown at any time, set and reset while a flow is stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.control.command.flow_choice import File, FlowName, chosen_flows, end_with
from mirrorspark.control.flow_offsets import Altered, FlowOffsets, OffsetsRefused, offsets_document, parse_offsets
from mirrorspark.errors import SettingsError
from mirrorspark.names import TopicPartition
from mirrorspark.settings import FlowSettings

__all__ = ["offsets"]

STDIN = "-"

offsets = typer.Typer(
    help="Source offsets, as Kafka Connect has them: show them, and set or reset them while a flow is stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as Connect's REST interface does.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check, and say what would be written.")]
Force = Annotated[bool, typer.Option("--force", help="The mirror was not stopped in order, and is known to be dead.")]


@offsets.command()
def show(file: File, flow: FlowName = None, as_json: AsJson = False) -> None:
    """Show the last mirrored offset of each partition. The flow may run.

    Examples:

      mirrorspark offsets show mm2.properties

      mirrorspark offsets show mm2.properties --flow 'east->west' --json > offsets.json

    Exit codes: 0 done, 1 a cluster cannot be reached or refuses, 2 FILE or --flow is wrong.
    """
    end_with(_show(file, flow, as_json))


async def _show(file: Path, flow: str | None, as_json: bool) -> int:
    flows = [_one_flow(file, flow)] if as_json else chosen_flows(file, flow)
    for settings in flows:
        async with FlowOffsets(settings) as there:
            found = await there.show()
        if as_json:
            _print_json(offsets_document(settings, found))
            continue
        sys.stdout.write(f"{settings.flow}: {len(found)} partitions\n")
        for at, last in sorted(found.items()):
            sys.stdout.write(f"  {at} {last}\n")
    return 0


@offsets.command("set")
def set_offsets(
    file: File,
    document: Annotated[
        str | None,
        typer.Argument(metavar="OFFSETS", help="A JSON file of the form that show --json prints; - for stdin."),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Instead of OFFSETS.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", metavar="N", min=0)] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", min=0, help="Of the last record that counts as mirrored.")
    ] = None,
    flow: FlowName = None,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Set offsets of partitions; the flow goes on with the record after. All of them are right, or none is written.

    Back: those records are copied again, behind what is there. Forward: those in between are left out.

    Examples:

      mirrorspark offsets set mm2.properties --flow 'east->west' --topic orders --partition 0 --offset 4711

      mirrorspark offsets set mm2.properties offsets.json --dry-run

    Exit codes: 0 written, 1 the flow runs, or a cluster cannot be reached or refuses, 2 FILE, OFFSETS or an option is
    wrong.
    """
    end_with(_set(file, flow, (document, topic, partition, offset), dry_run, force, as_json))


async def _set(
    file: Path,
    flow: str | None,
    given: tuple[str | None, str | None, int | None, int | None],
    dry_run: bool,
    force: bool,
    as_json: bool,
) -> int:
    settings = _one_flow(file, flow)
    wanted = _wanted(settings, *given)
    async with FlowOffsets(settings) as there:
        altered = await there.alter(wanted, dry_run=dry_run, force=force)
    _tell(settings, altered, dry_run, as_json)
    return 0


def _wanted(
    settings: FlowSettings, document: str | None, topic: str | None, partition: int | None, offset: int | None
) -> dict[TopicPartition, int | None]:
    if document is not None:
        if topic is not None or partition is not None or offset is not None:
            raise SettingsError("give OFFSETS, or --topic, --partition and --offset")
        return parse_offsets(settings, _read_json(document))
    if topic is None or partition is None or offset is None:
        raise SettingsError("give OFFSETS, or --topic, --partition and --offset together")
    return {TopicPartition(topic, partition): offset}


def _read_json(document: str) -> object:
    try:
        text = sys.stdin.read() if document == STDIN else Path(document).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{document}: cannot be read: {error}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise OffsetsRefused(f"{document}: not JSON: {error}") from error


@offsets.command()
def reset(
    file: File,
    flow: FlowName = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="A topic of the source. May be repeated.")
    ] = None,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Start over: all that the source has is copied again, behind what is there. All topics if none is named.

    Examples:

      mirrorspark offsets reset mm2.properties --flow 'east->west' --topic orders --dry-run

    Exit codes: 0 written, 1 the flow runs, or a cluster cannot be reached or refuses, 2 FILE or an option is wrong.
    """
    end_with(_reset(file, flow, topic or [], dry_run, force, as_json))


async def _reset(file: Path, flow: str | None, topics: Iterable[str], dry_run: bool, force: bool, as_json: bool) -> int:
    settings = _one_flow(file, flow)
    async with FlowOffsets(settings) as there:
        altered = await there.reset(topics, dry_run=dry_run, force=force)
    _tell(settings, altered, dry_run, as_json)
    return 0


def _one_flow(file: Path, flow: str | None) -> FlowSettings:
    flows = chosen_flows(file, flow)
    if len(flows) > 1:
        known = ", ".join(str(one.flow) for one in flows)
        raise SettingsError(f"--flow: {file} has several flows; say which one is meant: {known}", key="--flow")
    return flows[0]


def _tell(settings: FlowSettings, altered: list[Altered], dry_run: bool, as_json: bool) -> None:
    if as_json:
        after = {one.at: None if one.is_reset else one.after - 1 for one in altered}
        _print_json({**offsets_document(settings, after), "dry_run": dry_run})
        return
    would = "would be changed" if dry_run else "changed"
    sys.stdout.write(f"{settings.flow}: {len(altered)} partitions {would}\n")
    for one in altered:
        sys.stdout.write(f"  {one}\n")


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
