"""``mirrorspark groups``: what consumer groups would find on the target, and one sync by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.config.connector_secrets import sealed
from mirrorspark.config.properties_syntax import read_entries
from mirrorspark.control.command.flow_choice import FlowName, chosen_flows, end_with
from mirrorspark.control.command.tables import print_json, print_lines, table
from mirrorspark.control.group_sync_once import GroupSynced, sync_from_checkpoints, sync_from_ledger
from mirrorspark.control.group_view import GroupDescription, GroupPartition, GroupView, UnknownGroup
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.names import Flow
from mirrorspark.plan.replication_policy import policy_choice, policy_for
from mirrorspark.settings import ClusterSettings, FlowSettings, Naming, parse_bootstrap

__all__ = ["groups"]

EXIT_NOT_SYNCED = 3
DASH = "-"

groups = typer.Typer(
    help="Consumer groups: list, describe and translate their offsets, and sync single ones by hand.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file that the mirror runs with.")]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="A group, by its name on the source.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


# -- list and describe -------------------------------------------------------------------------------------------------


@groups.command("list")
def list_groups(file: File, flow: FlowName = None, as_json: AsJson = False) -> None:
    """List the source's groups that the flows take: state, lag, whether exact, and how the target's group stands.

    Examples:

      mirrorspark groups list mm2.properties

      mirrorspark groups list mm2.properties --flow 'east->west' --json

    Exit codes: 0 done, 1 a cluster cannot be reached or refuses, or the flow has never run, 2 FILE or --flow is wrong.
    """
    end_with(_list(file, flow, as_json))


async def _list(file: Path, flow: str | None, as_json: bool) -> int:
    pictures = []
    for settings in chosen_flows(file, flow):
        async with GroupView(settings) as view:
            found = await view.list_all()
            pictures.append(
                {"flow": str(settings.flow), "groups": [_summary(one) for one in found], "notices": view.notices}
            )
            if not as_json:
                print_lines(_list_lines(settings, found, view.notices))
    if as_json:
        print_json({"flows": pictures})
    return 0


def _summary(one: GroupDescription) -> dict[str, Any]:
    return {
        "group": one.group,
        "kind": one.kind,
        "state": one.state,
        "partitions": len(one.partitions),
        "lag": one.lag,
        "exact": one.is_exact,
        "in_step": one.is_in_step,
        "target_state": one.target_state,
        "target_members": one.target_members,
        "text": one.word,
    }


def _list_lines(settings: FlowSettings, found: Sequence[GroupDescription], notices: Iterable[str]) -> list[str]:
    behind = sum(not one.is_in_step for one in found)
    state = "all in step" if not behind else f"{behind} not in step"
    lines = [f"{settings.flow}: {len(found)} groups, {state}"]
    if not settings.group_sync.offsets_enabled:
        lines.append("  sync.group.offsets.enabled is false: checkpoints are written, the target's groups are not")
    rows = [("GROUP", "STATE", "PARTITIONS", "LAG", "EXACT", "ON THE TARGET")]
    for one in found:
        lag = DASH if one.lag is None else str(one.lag)
        exact = ("yes" if one.is_exact else "no") if one.partitions else DASH
        rows.append((one.group, one.state or DASH, str(len(one.partitions)), lag, exact, one.word))
    return [*lines, *table(rows), *(f"  ! {text}" for text in notices)]


@groups.command()
def describe(file: File, group: GroupName, flow: FlowName = None, as_json: AsJson = False) -> None:
    """Show one group, partition by partition: its offset, what it means on the target, what the target's group has.

    Examples:

      mirrorspark groups describe mm2.properties billing

    Exit codes: 0 done, 1 a cluster cannot be reached or refuses, or the flow has never run, 2 FILE, --flow or GROUP is
    wrong.
    """
    end_with(_describe(file, group, flow, as_json))


async def _describe(file: Path, group: str, flow: str | None, as_json: bool) -> int:
    pictures = []
    unknown: UnknownGroup | None = None
    for settings in chosen_flows(file, flow):
        async with GroupView(settings) as view:
            try:
                found = await view.describe(group)
            except UnknownGroup as error:
                unknown = error
                continue
            pictures.append({"flow": str(settings.flow), **asdict(found), "text": found.word, "notices": view.notices})
            if not as_json:
                print_lines(_describe_lines(settings, found, view.notices))
    if unknown is not None and not pictures:
        raise unknown
    if as_json:
        print_json({"groups": pictures})
    return 0


def _describe_lines(settings: FlowSettings, found: GroupDescription, notices: Iterable[str]) -> list[str]:
    lines = [f"{settings.flow} {found.group}: {found.kind} group, {found.state or 'state not known'}; {found.word}"]
    if not found.chosen:
        lines.append(f"  not synced: {found.why_not_chosen}")
    rows: list[tuple[str, ...]] = [
        ("PARTITION", "COMMITTED", "END", "LAG", "ON THE TARGET", "OFFSET THERE", "THE TARGET'S GROUP HAS", "")
    ]
    rows += [_partition_row(one) for one in found.partitions]
    lines += table(rows) if found.partitions else []
    lines += [f"  left out: {topic}: {why}" for topic, why in sorted(found.left_out.items())]
    return [*lines, *(f"  ! {text}" for text in notices)]


def _partition_row(one: GroupPartition) -> tuple[str, ...]:
    numbers = (one.upstream_offset, one.upstream_end, one.lag)
    texts = [DASH if number is None else str(number) for number in numbers]
    there = DASH if one.downstream_offset is None else f"{one.downstream_offset}{'' if one.exact else ' (not exact)'}"
    theirs = DASH if one.target_offset is None else str(one.target_offset)
    note = "beyond the end of the source's log" if one.is_beyond_end else "" if one.exact else one.reason
    if one.verdict == "target.ahead" and not note:
        note = "the target's group is further; it is left so"
    return f"{one.topic}-{one.partition}", *texts, f"{one.remote_topic}-{one.partition}", there, theirs, note


# -- translate ---------------------------------------------------------------------------------------------------------


@groups.command()
def translate(
    file: File,
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="A group; or give an offset.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="A topic of the source.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", metavar="N", min=0)] = None,
    offset: Annotated[int | None, typer.Option("--offset", metavar="N", min=0)] = None,
    flow: FlowName = None,
    as_json: AsJson = False,
) -> None:
    """Say where a group, or any offset of the source, goes on in the copy. Nothing is written.

    Examples:

      mirrorspark groups translate mm2.properties billing

      mirrorspark groups translate mm2.properties --topic orders --partition 0 --offset 4711

    Exit codes: 0 exact, 3 not exact, 1 a cluster cannot be reached or refuses, or the flow has never run, 2 FILE or an
    option is wrong, or the offset is beyond the end.
    """
    end_with(_translate(file, group, (topic, partition, offset), flow, as_json))


async def _translate(
    file: Path,
    group: str | None,
    place: tuple[str | None, int | None, int | None],
    flow: str | None,
    as_json: bool,
) -> int:
    topic, partition, offset = place
    if (group is None) == (topic is None and partition is None and offset is None):
        raise SettingsError("give a GROUP, or --topic, --partition and --offset")
    found: list[tuple[str, GroupPartition]] = []
    wrong: MirrorError | None = None
    for settings in chosen_flows(file, flow):
        async with GroupView(settings) as view:
            try:
                if group is not None:
                    some = list((await view.describe(group)).partitions)
                elif topic is not None and partition is not None and offset is not None:
                    some = [await view.translate(topic, partition, offset)]
                else:
                    raise SettingsError("--topic, --partition and --offset go together")
            except SettingsError as error:  # another flow may know it
                wrong = error
                continue
            found += [(str(settings.flow), one) for one in some]
    if wrong is not None and not found:
        raise wrong
    if as_json:
        print_json({"translations": [{"flow": name, **asdict(one)} for name, one in found]})
    else:
        print_lines(_translate_lines(found, group))
    return 0 if all(one.exact for _, one in found) else EXIT_NOT_SYNCED


def _translate_lines(found: Sequence[tuple[str, GroupPartition]], group: str | None) -> list[str]:
    if not found:
        return [f"group {group} has no offsets in topics of these flows"]
    lines = []
    for flow, one in found:
        there = "nowhere" if one.downstream_offset is None else str(one.downstream_offset)
        exact = "exactly" if one.exact else "not exactly"
        lines.append(
            f"{flow} {one.topic}-{one.partition} {one.upstream_offset} -> {one.remote_topic}-{one.partition} {there} "
            f"({exact}: {one.reason})"
        )
    return lines


# -- sync --------------------------------------------------------------------------------------------------------------


@groups.command()
def sync(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file that the mirror runs with; with --source, client properties of the target."
        ),
    ],
    group: Annotated[list[str], typer.Argument(metavar="GROUP…", help="Groups, by their names on the source.")],
    flow: FlowName = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="ALIAS", help="Go by the checkpoints of this source, on FILE's cluster."),
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="With --source: the mirror's replication policy, or its class."),
    ] = "default",
    separator: Annotated[
        str, typer.Option("--separator", metavar="TEXT", help="With --source: replication.policy.separator.")
    ] = ".",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be written.")] = False,
    allow_inexact: Annotated[
        bool, typer.Option("--allow-inexact", help="Also write offsets from which some records are read again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the translated offsets of these groups to the target, once. Only for groups that nobody uses there.

    Nothing is taken back: where the target's group is further, its offset stays. Per group all or nothing.

    Examples:

      mirrorspark groups sync mm2.properties billing --dry-run

      mirrorspark groups sync mm2.properties billing shipping --flow 'east->west'

      mirrorspark groups sync west-client.properties billing --source east

    Exit codes: 0 all groups are written or were in step, 3 one was not written (the output says why), 1 a cluster cannot be
    reached or refuses, 2 FILE, GROUP or an option is wrong.
    """
    if source is None:
        work = _sync_flows(file, group, flow, dry_run, allow_inexact)
    else:
        work = _sync_checkpoints(file, group, source, (policy, separator), dry_run)
    end_with(_sync(work, as_json))


async def _sync(work: Any, as_json: bool) -> int:
    results: list[tuple[str, GroupSynced]] = await work
    if as_json:
        print_json({"groups": [{"flow": name, **asdict(one)} for name, one in results]})
    else:
        print_lines(line for name, one in results for line in _sync_lines(name, one))
    return 0 if all(one.is_done for _, one in results) else EXIT_NOT_SYNCED


async def _sync_flows(
    file: Path, names: Sequence[str], flow: str | None, dry_run: bool, allow_inexact: bool
) -> list[tuple[str, GroupSynced]]:
    """A group that is known to none of the flows is said before anything is written."""
    flows = chosen_flows(file, flow)
    if len(flows) > 1:
        known = ", ".join(str(one.flow) for one in flows)
        raise SettingsError(f"--flow: {file} has several flows; say which one is meant: {known}", key="--flow")
    async with GroupView(flows[0]) as view:
        for name in names:
            await view.describe(name)
        return [
            (str(flows[0].flow), await sync_from_ledger(view, name, dry_run=dry_run, allow_inexact=allow_inexact))
            for name in names
        ]


async def _sync_checkpoints(
    file: Path, names: Sequence[str], source: str, naming: tuple[str, str], dry_run: bool
) -> list[tuple[str, GroupSynced]]:
    cluster = _client_settings(file)
    chosen = Naming(policy_choice(naming[0], key="--policy").name, naming[1])
    settings = FlowSettings(Flow(source, cluster.alias), cluster, cluster, naming=chosen)
    topic = policy_for(settings).checkpoints_topic(source)
    return [
        (f"{source}->{cluster.alias}", await sync_from_checkpoints(cluster, topic, name, dry_run=dry_run))
        for name in names
    ]


def _client_settings(file: Path) -> ClusterSettings:
    """Of a client's properties file. Raises SettingsError."""
    properties = {entry.key: entry.value for entry in read_entries(file)}
    if "bootstrap.servers" not in properties:
        more = "; it looks like the mirror's own file: leave out --source" if "clusters" in properties else ""
        raise SettingsError(f"{file}: bootstrap.servers is missing{more}", key="bootstrap.servers")
    servers = parse_bootstrap(properties["bootstrap.servers"], f"{file}: bootstrap.servers")
    client = {key: value for key, value in properties.items() if key.startswith(("ssl.", "sasl.", "security."))}
    return ClusterSettings("target", servers, sealed(client))


def _sync_lines(name: str, one: GroupSynced) -> list[str]:
    would = "would be" if one.dry_run else "is"
    if one.refused:
        return [f"{name} {one.group}: not written: {one.refused}"]
    if not one.written:
        lines = [f"{name} {one.group}: nothing to write"]
    else:
        lines = [f"{name} {one.group}: {len(one.written)} offsets {'would be ' if one.dry_run else ''}written"]
    lines += [f"  {remote} {would} at {offset}" for remote, offset in sorted(one.written.items())]
    return [*lines, *(f"  {remote} stays: {why}" for remote, why in sorted(one.kept.items()))]
