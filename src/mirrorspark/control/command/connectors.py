"""``mirrorspark connectors …``: what a server's connectors are and do, and steering them. Kafka Connect's REST interface."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.config.connector_secrets import hidden
from mirrorspark.control.command.server_choice import EXIT_NOT_WELL, Timeout, asks_a_server, progress
from mirrorspark.control.command.tables import DASH, AsJson, first_line, print_json, print_lines, table
from mirrorspark.control.remote.connector_files import read_connector
from mirrorspark.errors import SettingsError

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api
    from mirrorspark.control.remote.connector_states import Told

__all__ = ["connectors"]

TIMEOUT_S = 60.0

connectors = typer.Typer(
    name="connectors",
    help="Connectors of a mirrorspark serve or of a Kafka Connect, by its REST interface.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The connector's name.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of connectors.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has happened.")]


# -- see ---------------------------------------------------------------------------------------------------------------


@connectors.command("list")
@asks_a_server
def list_all(api: Api, as_json: AsJson = False) -> int:
    """List the connectors and what they do.

    Exit codes: 0 all run or are paused; 3 one does neither; 1 the server cannot be reached or refuses; 2 an option is
    wrong.
    """
    from mirrorspark.control.remote.connector_states import told_of

    found = api.ask("GET", "/connectors", expand=["status", "info"])
    told = {name: told_of(name, body.get("status")) for name, body in sorted(found.items())}
    if as_json:
        print_json({"connectors": [{**one.picture(), "class": _class(found[name])} for name, one in told.items()]})
    elif not told:
        print_lines(["no connectors"])
    else:
        rows = [("CONNECTOR", "CLASS", "STATE", "TASKS", "WORKER")]
        rows += [
            (name, _class(found[name]).rpartition(".")[2], one.state, one.tasks_text, one.worker or DASH)
            for name, one in told.items()
        ]
        print_lines([*table(rows), *_traces(told.values())])
    return 0 if all(one.is_well for one in told.values()) else EXIT_NOT_WELL


def _class(body: Mapping[str, Any]) -> str:
    return str(body.get("info", {}).get("config", {}).get("connector.class", DASH))


def _traces(told: Any) -> list[str]:
    return [f"  ! {one.name}: {first_line(one.trace)}" for one in told if one.trace]


@connectors.command()
@asks_a_server
def show(api: Api, name: Name, as_json: AsJson = False) -> int:
    """Show one connector: its state, its tasks, why one failed, its topics.

    Exit codes: 0 it runs or is paused; 3 it does neither; 1 the server cannot be reached or refuses, or has no such
    connector; 2 an option is wrong.
    """
    from mirrorspark.control.remote.api import part
    from mirrorspark.control.remote.connector_states import told_of

    path = f"/connectors/{part(name)}"
    status, topics = api.ask("GET", f"{path}/status"), _topics(api, name)
    told = told_of(name, status)
    if as_json:
        print_json({**status, "topics": topics})
    else:
        lines = [f"{name}: {told.word}, on {told.worker or DASH}"]
        rows = [("TASK", "STATE", "WORKER")]
        rows += [(str(one["id"]), one["state"], one.get("worker_id", DASH)) for one in status["tasks"]]
        traces = [text for one in (status["connector"], *status["tasks"]) if (text := one.get("trace", ""))]
        print_lines([*lines, *table(rows), *(f"  ! {line}" for text in traces for line in text.splitlines())])
        print_lines([f"  topics: {', '.join(topics) or DASH}"])
    return 0 if told.is_well else EXIT_NOT_WELL


@connectors.command()
@asks_a_server
def config(
    api: Api,
    name: Name,
    put: Annotated[
        Path | None, typer.Option("--put", metavar="FILE", help="Give it this configuration: a connector file.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print a connector's configuration, secrets hidden; with --put give it another one.

    Exit codes: 0 done; 1 the server cannot be reached or refuses; 2 FILE or an option is wrong.
    """
    from mirrorspark.control.remote.api import part

    path = f"/connectors/{part(name)}/config"
    if put is not None:
        file = read_connector(put)
        if file.name not in (name, put.stem):
            raise SettingsError(f"{put}: is the connector {file.name}, not {name}", file=str(put))
        api.ask("PUT", path, {**file.body, "name": name})
        progress(f"{name}: has its new configuration")
    # A Connect shows the secrets of connectors as they are: they are hidden here too.
    found = hidden(api.ask("GET", path))
    if as_json:
        print_json(found)
    else:
        print_lines(f"{key}={value}" for key, value in sorted(found.items()))
    return 0


@connectors.command()
@asks_a_server
def topics(
    api: Api,
    name: Name,
    reset: Annotated[bool, typer.Option("--reset", help="Count anew which topics it writes.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the topics that a connector writes.

    Exit codes: 0 done; 1 the server cannot be reached or refuses; 2 an option is wrong.
    """
    from mirrorspark.control.remote.api import part

    if reset:
        api.ask("PUT", f"/connectors/{part(name)}/topics/reset")
    found = _topics(api, name)
    if as_json:
        print_json(found)
    else:
        print_lines(found)
    return 0


def _topics(api: Api, name: str) -> list[str]:
    from mirrorspark.control.remote.api import part

    return sorted(api.ask("GET", f"/connectors/{part(name)}/topics").get(name, {}).get("topics", []))


@connectors.command()
@asks_a_server
def offsets(
    api: Api,
    name: Name,
    put: Annotated[
        Path | None,
        typer.Option(
            "--put", metavar="FILE", help='Set these: JSON as --json prints it. It must be stopped; "-" is stdin.'
        ),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget all of them: begin anew. It must be stopped.")] = False,
    as_json: AsJson = False,
) -> int:
    """List how far a source connector has come on the source; with --put or --reset change that.

    Examples:

      mirrorspark connectors stop mm2-msc-source-0

      mirrorspark connectors offsets mm2-msc-source-0 --json > offsets.json

      mirrorspark connectors offsets mm2-msc-source-0 --put offsets.json

    Exit codes: 0 done; 1 the server cannot be reached or refuses; 2 FILE or an option is wrong.
    """
    from mirrorspark.control.remote.api import part

    path = f"/connectors/{part(name)}/offsets"
    if put is not None and reset:
        raise SettingsError("--put and --reset: give one of them", key="--reset")
    if put is not None:
        progress(str(api.ask("PATCH", path, _json_of(put)).get("message", "done")))
    elif reset:
        progress(str(api.ask("DELETE", path).get("message", "done")))
    found = api.ask("GET", path)
    if as_json:
        print_json(found)
        return 0
    rows: list[tuple[str, ...]] = [("CLUSTER", "TOPIC", "PARTITION", "OFFSET")]
    for one in found.get("offsets", []):
        at, offset = one.get("partition") or {}, one.get("offset") or {}
        rows.append(
            (*(str(at.get(key, DASH)) for key in ("cluster", "topic", "partition")), str(offset.get("offset", DASH)))
        )
    print_lines(table(rows) if len(rows) > 1 else ["no offsets"])
    return 0


def _json_of(path: Path) -> Any:
    try:
        return json.loads(sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: cannot be read as JSON: {error}", file=str(path)) from None


# -- steer -------------------------------------------------------------------------------------------------------------


@connectors.command()
@asks_a_server
def pause(api: Api, names: Names, wait: Wait = True, timeout: Timeout = TIMEOUT_S, as_json: AsJson = False) -> int:
    """Pause connectors: they keep their place and their tasks.

    Exit codes: 0 they are paused; 3 one is not, in time; 1 the server cannot be reached or refuses; 2 an option is
    wrong.
    """
    return _steer(api, names, "PUT", "pause", "PAUSED" if wait else "", Deadline(timeout), as_json)


@connectors.command()
@asks_a_server
def resume(api: Api, names: Names, wait: Wait = True, timeout: Timeout = TIMEOUT_S, as_json: AsJson = False) -> int:
    """Let connectors run that were paused or stopped.

    Exit codes: 0 they run; 3 one does not, in time; 1 the server cannot be reached or refuses; 2 an option is wrong.
    """
    return _steer(api, names, "PUT", "resume", "RUNNING" if wait else "", Deadline(timeout), as_json)


@connectors.command()
@asks_a_server
def stop(api: Api, names: Names, wait: Wait = True, timeout: Timeout = TIMEOUT_S, as_json: AsJson = False) -> int:
    """Stop connectors: their tasks end, their configuration stays. Offsets can be changed then.

    Exit codes: 0 they are stopped; 3 one is not, in time; 1 the server cannot be reached or refuses; 2 an option is
    wrong.
    """
    return _steer(api, names, "PUT", "stop", "STOPPED" if wait else "", Deadline(timeout), as_json)


@connectors.command()
@asks_a_server
def restart(
    api: Api,
    names: Names,
    tasks: Annotated[bool, typer.Option("--tasks/--no-tasks", help="Its tasks too.")] = True,
    only_failed: Annotated[bool, typer.Option("--only-failed", help="Only what has failed.")] = False,
    wait: Wait = True,
    timeout: Timeout = TIMEOUT_S,
    as_json: AsJson = False,
) -> int:
    """Start connectors anew, by default with their tasks.

    Exit codes: 0 they run; 3 one does not, in time; 1 the server cannot be reached or refuses; 2 an option is wrong.
    """
    flags = f"includeTasks={str(tasks).lower()}&onlyFailed={str(only_failed).lower()}"
    return _steer(api, names, "POST", f"restart?{flags}", "RUNNING" if wait else "", Deadline(timeout), as_json)


@connectors.command()
@asks_a_server
def delete(api: Api, names: Names, wait: Wait = True, timeout: Timeout = TIMEOUT_S, as_json: AsJson = False) -> int:
    """Delete connectors. Topics on the target and the positions stay.

    Exit codes: 0 they are gone; 3 one is not, in time; 1 the server cannot be reached or refuses, or has no such
    connector; 2 an option is wrong.
    """
    from mirrorspark.control.remote.connector_states import GONE

    return _steer(api, names, "DELETE", "", GONE if wait else "", Deadline(timeout), as_json)


def _steer(
    api: Api, names: Sequence[str], method: str, verb: str, wanted: str, deadline: Deadline, as_json: bool
) -> int:
    """All of them, then wait for all together. ``wanted`` is empty where nobody waits."""
    from mirrorspark.control.remote.api import part
    from mirrorspark.control.remote.connector_states import look, wait_until

    for name in names:
        api.ask_patiently(deadline, method, f"/connectors/{part(name)}" + (f"/{verb}" if verb else ""))
        progress(f"{name}: {verb.partition('?')[0] or 'delete'} was taken")
    if wanted:
        told = wait_until(api, dict.fromkeys(names, wanted), deadline, lambda one: progress(f"{one.name}: {one.word}"))
    else:
        told = [look(api, name) for name in names]
    if as_json:
        print_json({"connectors": [one.picture() for one in told]})
    amiss = [one for one in told if wanted and not _is(one, wanted)]
    for one in amiss:
        progress(f"{one.name}: is {one.state}, not {wanted}" + (f": {first_line(one.trace)}" if one.trace else ""))
    return EXIT_NOT_WELL if amiss else 0


def _is(told: Told, wanted: str) -> bool:
    return told.runs if wanted == "RUNNING" else told.state == wanted
