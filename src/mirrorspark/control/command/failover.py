"""``mirrorspark failover`` and ``failback``: move the work of a flow's source to its target, and back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.config.load import load_deployment
from mirrorspark.control.command.flow_choice import File, end_with, flows_of
from mirrorspark.control.failover.failover import DRAIN_TIMEOUT_S, Choices, Failover
from mirrorspark.control.failover.journal import Journal
from mirrorspark.control.failover.moving_groups import GroupChoice
from mirrorspark.control.failover.record import Mode
from mirrorspark.control.failover.report import Report
from mirrorspark.control.failover.reverse_flow import ReverseFlow, reversed_settings
from mirrorspark.control.flow_on_target import FlowOnTarget
from mirrorspark.errors import SettingsError
from mirrorspark.settings import FlowSettings

__all__ = ["failback", "failover"]

EXIT_NOT_DONE = 3

FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow", metavar="A->B", help="The flow, in quotes: --flow 'east->west'. Needed if FILE has several."
    ),
]
Drain = Annotated[
    bool,
    typer.Option("--drain", help="Wait until everything is on the target (the default). Stop the producers first."),
]
Cut = Annotated[bool, typer.Option("--cut", help="Take what is on the target now; say what is left behind.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group", metavar="GROUP", help="Move only this group. May be repeated. Else all that the flow takes."
    ),
]
LeftAlone = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-group", metavar="GROUP", help="Leave this group as it is: it has moved already. May be repeated."
    ),
]
AllowInexact = Annotated[
    bool, typer.Option("--allow-inexact", help="Move groups also where they would read some records again.")
]
Timeout = Annotated[
    float, typer.Option("--drain-timeout", metavar="S", min=0, help="Give a drain up after so many seconds.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check and show the plan; change nothing.")]
Abandon = Annotated[
    bool,
    typer.Option("--abandon", help="Take back an unfinished one: the flow is no longer paused, the next begins anew."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON; progress goes to stderr.")]


def failover(
    file: File,
    flow: FlowName = None,
    drain: Drain = False,
    cut: Cut = False,
    group: Groups = None,
    leave_group: LeftAlone = None,
    allow_inexact: AllowInexact = False,
    drain_timeout: Timeout = DRAIN_TIMEOUT_S,
    dry_run: DryRun = False,
    abandon: Abandon = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move the work from a flow's source to its target: check, drain, pause the flow, move the groups, set the flow back up.

    Each step is written down on the target when it is done. A run that fails or is killed is taken up by the next one.

    Examples:

      mirrorspark failover mm2.properties --flow 'east->west' --dry-run

      mirrorspark failover mm2.properties --flow 'east->west' --yes

      mirrorspark failover mm2.properties --flow 'east->west' --cut --yes      (east is lost, or is to be left at once)

    Exit codes: 0 done, or ready in a dry run; 3 something is in the way or a step failed (the report says what); 1 a
    cluster that is needed cannot be reached or refuses; 2 FILE or an option is wrong.
    """
    choices = _choices(drain, cut, group, leave_group, allow_inexact, drain_timeout)
    end_with(_failover(file, flow, choices, dry_run, abandon, yes, as_json))


def failback(
    file: File,
    flow: FlowName = None,
    drain: Drain = False,
    cut: Cut = False,
    group: Groups = None,
    leave_group: LeftAlone = None,
    allow_inexact: AllowInexact = False,
    drain_timeout: Timeout = DRAIN_TIMEOUT_S,
    dry_run: DryRun = False,
    abandon: Abandon = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move the work back to the source of a flow that was failed over: the same steps for the flow in the other direction.

    --flow is the flow that was failed over, as it was given then. When done, it is no longer paused and carries on.

    Examples:

      mirrorspark failback mm2.properties --flow 'east->west' --dry-run

      mirrorspark failback mm2.properties --flow 'east->west' --yes

    Exit codes: as failover.
    """
    choices = _choices(drain, cut, group, leave_group, allow_inexact, drain_timeout)
    end_with(_failback(file, flow, choices, dry_run, abandon, yes, as_json))


def _choices(
    drain: bool, cut: bool, only: list[str] | None, left: list[str] | None, allow_inexact: bool, drain_timeout: float
) -> Choices:
    if drain and cut:
        raise typer.BadParameter("--drain and --cut exclude each other")
    groups = GroupChoice(tuple(only or ()), tuple(left or ()), allow_inexact)
    return Choices(Mode.CUT if cut else Mode.DRAIN, groups, drain_timeout)


async def _failover(
    file: Path, flow: str | None, choices: Choices, dry_run: bool, abandon: bool, yes: bool, as_json: bool
) -> int:
    settings, reverse = _directions(file, flow)
    return await _act(settings, reverse, choices, dry_run, abandon, yes, as_json)


async def _failback(
    file: Path, flow: str | None, choices: Choices, dry_run: bool, abandon: bool, yes: bool, as_json: bool
) -> int:
    settings, reverse = _directions(file, flow)
    there = ReverseFlow(settings, is_in_file=True)
    async with FlowOnTarget(settings) as target:
        record = await Journal(target.target, settings.flow).read()
    has_gone = record is not None and record.is_finished
    if not has_gone:
        how = "is not finished" if record is not None else "has not been made"
        raise SettingsError(
            f"the failover of {settings.flow} {how}, so there is nothing to take back. To move from {settings.flow.target} "
            f"to {settings.flow.source} all the same: mirrorspark failover FILE --flow '{reverse.flow}'",
            key="--flow",
        )
    return await _act(reverse.settings, there, choices, dry_run, abandon, yes, as_json, goes_back=True)


def _directions(file: Path, flow: str | None) -> tuple[FlowSettings, ReverseFlow]:
    """The flow that is meant, and the one in the other direction. Raises SettingsError."""
    deployment = load_deployment(file, lenient=True, apart=True)
    chosen = flows_of(deployment, file, flow)
    if len(chosen) > 1:
        known = ", ".join(str(one.flow) for one in chosen)
        raise SettingsError(f"--flow: {file} has several flows; say which one is meant: {known}", key="--flow")
    settings = chosen[0]
    for one in deployment.flows:
        if (one.flow.source, one.flow.target) == (settings.flow.target, settings.flow.source):
            return settings, ReverseFlow(one, is_in_file=True)
    return settings, ReverseFlow(reversed_settings(settings), is_in_file=False)


async def _act(
    settings: FlowSettings,
    reverse: ReverseFlow,
    choices: Choices,
    dry_run: bool,
    abandon: bool,
    yes: bool,
    as_json: bool,
    *,
    goes_back: bool = False,
) -> int:
    async with Failover(settings, reverse, choices, tell=_tell, goes_back=goes_back) as moving:
        if abandon:
            return _end(await moving.abandon(), as_json)
        report = await moving.plan()
        is_over = report.state == "done" and report.record is not None and not report.record.postponed
        if dry_run or not report.is_well or is_over:
            return _end(report, as_json)
        if not yes:
            if not as_json:
                _print(report)
            _ask(settings)
        return _end(await moving.run(), as_json)


def _ask(settings: FlowSettings) -> None:
    if not sys.stdin.isatty():
        raise SettingsError("nobody can be asked here: give --yes, or --dry-run to see the plan", key="--yes")
    typer.confirm(f"Move from {settings.flow.source} to {settings.flow.target} now?", abort=True, err=True)


def _end(report: Report, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(json.dumps(report.to_json(), indent=2) + "\n")
    else:
        _print(report)
    return 0 if report.is_well else EXIT_NOT_DONE


def _print(report: Report) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in report.lines()))


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
