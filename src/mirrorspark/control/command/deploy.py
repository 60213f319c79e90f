"""``mirrorspark deploy|undeploy|redeploy CLUSTER``: a folder of connector files, brought to a server and taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.command.server_choice import EXIT_NOT_WELL, Timeout, asks_a_server, progress
from mirrorspark.control.command.tables import DASH, AsJson, first_line, print_json, print_lines, table
from mirrorspark.control.remote.connector_files import clusters_in, names_of, read_cluster

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api
    from mirrorspark.control.remote.rollout import Done, Rollout

__all__ = ["FOLDER_DEFAULT", "Folder", "cluster_status", "complete_cluster", "deploy", "redeploy", "undeploy"]

FOLDER_DEFAULT = Path("mm2")
TIMEOUT_S = 120.0


def complete_cluster(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell: clusters that have files in the folder."""
    folder = ctx.params.get("folder") or FOLDER_DEFAULT
    return [name for name in clusters_in(Path(folder)) if name.startswith(incomplete)]


Cluster = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER", help="As in mm2-msc-CLUSTER.json: the source's name.", autocompletion=complete_cluster
    ),
]
Folder = Annotated[
    Path,
    typer.Option(
        "--folder", metavar="DIR", envvar="MIRRORSPARK_FOLDER", help="Where mm2-{msc,cpc,hbc}-CLUSTER.json are."
    ),
]
Partial = Annotated[bool, typer.Option("--partial", help="Also if one or two of the three files are not there.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until each does what is wanted.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, say what would be done, change nothing.")]


@asks_a_server
def deploy(
    api: Api,
    cluster: Cluster,
    folder: Folder = FOLDER_DEFAULT,
    partial: Partial = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> int:
    """Bring a cluster's three connectors to a server and wait until they run: source, then checkpoint, then heartbeat.

    A file holds a configuration, as it is PUT, or name and config, as it is POSTed. The server checks all files before
    anything is changed. What is there already and the same is left alone; what failed is restarted; what somebody paused
    stays so.

    Examples:

      mirrorspark deploy source-0

      mirrorspark deploy source-0 --folder connectors --url https://connect:8083 --user ops --password-file ~/.ops

      mirrorspark deploy source-0 --dry-run

    Exit codes: 0 all are as wanted; 3 one failed, is paused or was not ready in time; 1 the server cannot be reached or
    refuses; 2 a file or an option is wrong, nothing was changed.
    """
    files = read_cluster(folder, cluster, partial=partial)
    rollout = _rollout(api, timeout, dry_run, wait)
    rollout.check(files)
    return _tell(rollout.deploy(files), as_json, is_judged=wait and not dry_run)


@asks_a_server
def undeploy(
    api: Api,
    cluster: Cluster,
    folder: Folder = FOLDER_DEFAULT,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> int:
    """Delete a cluster's three connectors from a server: heartbeat, then checkpoint, then source.

    Names come from the files where they are there, else mm2-msc-CLUSTER and so on. Topics on the target and the
    positions stay: a deploy goes on where this ended. A connector that is not there is no error.

    Examples:

      mirrorspark undeploy source-0

    Exit codes: 0 they are gone; 3 one was not gone in time; 1 the server cannot be reached or refuses; 2 a file or an
    option is wrong.
    """
    rollout = _rollout(api, timeout, dry_run, wait)
    return _tell(rollout.undeploy(names_of(folder, cluster)), as_json, is_judged=wait and not dry_run)


@asks_a_server
def redeploy(
    api: Api,
    cluster: Cluster,
    folder: Folder = FOLDER_DEFAULT,
    partial: Partial = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> int:
    """Undeploy, then deploy. Nothing is deleted before the server has found all files right.

    A changed file needs no redeploy: deploy changes what has changed.

    Examples:

      mirrorspark redeploy source-0

    Exit codes: as of deploy.
    """
    files = read_cluster(folder, cluster, partial=partial)
    rollout = _rollout(api, timeout, dry_run, wait)
    rollout.check(files)
    gone = rollout.undeploy(names_of(folder, cluster))
    if wait and not dry_run and not all(one.is_as_wanted for one in gone):
        return _tell(gone, as_json, is_judged=True)
    return _tell(rollout.deploy(files), as_json, is_judged=wait and not dry_run)


def _rollout(api: Api, timeout: float, dry_run: bool, wait: bool) -> Rollout:
    from mirrorspark.control.remote.rollout import Rollout

    return Rollout(api, Deadline(timeout), progress, dry_run=dry_run, wait=wait)


def _tell(done: Sequence[Done], as_json: bool, *, is_judged: bool) -> int:
    if as_json:
        print_json({"connectors": [one.picture() for one in done]})
    else:
        rows = [("CONNECTOR", "ACTION", "STATE", "TASKS")]
        rows += [(one.name, one.action, one.told.state, one.told.tasks_text) for one in done]
        print_lines(table(rows))
        print_lines(f"  ! {one.name}: {first_line(one.told.trace)}" for one in done if one.told.trace)
    amiss = [one for one in done if not one.is_as_wanted] if is_judged else []
    for one in amiss:
        progress(f"{one.name}: is {one.told.state}, not {one.wanted}{_advice(one)}")
    return EXIT_NOT_WELL if amiss else 0


def _advice(one: Done) -> str:
    if one.told.state in ("PAUSED", "STOPPED"):
        return f"; somebody wants it so: mirrorspark connectors resume {one.name}"
    return "" if one.told.has_failed else "; not within --timeout"


def cluster_status(api: Api, cluster: str, folder: Path, as_json: bool) -> int:
    """For ``mirrorspark status CLUSTER``."""
    from mirrorspark.control.remote.connector_states import look

    found = [look(api, name) for name in names_of(folder, cluster)]
    if as_json:
        print_json({"connectors": [one.picture() for one in found]})
    else:
        rows = [("CONNECTOR", "STATE", "TASKS", "WORKER")]
        rows += [(one.name, one.state, one.tasks_text, one.worker or DASH) for one in found]
        print_lines(table(rows))
        print_lines(f"  ! {one.name}: {first_line(one.trace)}" for one in found if one.trace)
    return 0 if all(one.is_well for one in found) else EXIT_NOT_WELL
