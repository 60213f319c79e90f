"""What the commands that ask a server have in common: its address and login as options, and how such a command ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

import typer

from mirrorspark.control.command.flow_choice import EXIT_FAILED, EXIT_INPUT
from mirrorspark.control.remote.address import PASSWORD_VARIABLE, TOKEN_VARIABLE, URL_DEFAULT, Address, address_of
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.log_lines import say, tell_error

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api

__all__ = ["EXIT_NOT_WELL", "Timeout", "asks_a_server", "end_with_api", "progress", "with_server_options"]

EXIT_NOT_WELL = 3
EXIT_INTERRUPTED = 130

Timeout = Annotated[float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds to wait, all in all.")]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "url": (
        Annotated[
            str,
            typer.Option(
                "--url", metavar="URL", envvar="MIRRORSPARK_URL", help="Of a mirrorspark serve, or a Kafka Connect."
            ),
        ],
        URL_DEFAULT,
    ),
    "token_file": (
        Annotated[
            Path | None,
            typer.Option(
                "--token-file",
                metavar="FILE",
                envvar="MIRRORSPARK_TOKEN_FILE",
                help=f"Holds a bearer token; {TOKEN_VARIABLE} may hold it instead.",
            ),
        ],
        None,
    ),
    "user": (
        Annotated[
            str, typer.Option("--user", metavar="NAME", envvar="MIRRORSPARK_USER", help="Logs in by basic auth.")
        ],
        "",
    ),
    "password_file": (
        Annotated[
            Path | None,
            typer.Option(
                "--password-file",
                metavar="FILE",
                envvar="MIRRORSPARK_PASSWORD_FILE",
                help=f"Holds that user's password; {PASSWORD_VARIABLE} may hold it instead.",
            ),
        ],
        None,
    ),
    "ca_file": (
        Annotated[
            Path | None,
            typer.Option(
                "--ca-file", metavar="FILE", envvar="MIRRORSPARK_CA_FILE", help="Certificates to trust for https, PEM."
            ),
        ],
        None,
    ),
}
"""Of every command that asks a server: annotation and default."""


def with_server_options(work: Callable[..., None]) -> Callable[..., None]:
    """A command of ``work(server, …)``: its own parameters, and behind them the options above, handed on as ``server``."""
    hints = get_type_hints(work, localns={"Api": object}, include_extras=True)
    _, *own = inspect.signature(work).parameters.values()

    def command(**given: Any) -> None:
        work({name: given.pop(name) for name in _OPTIONS}, **given)

    named = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [one.replace(annotation=hints[one.name]) for one in own]
    parameters += [
        inspect.Parameter(name, named, annotation=hint, default=default) for name, (hint, default) in _OPTIONS.items()
    ]
    command.__name__, command.__doc__, command.__module__ = work.__name__, work.__doc__, work.__module__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def asks_a_server(work: Callable[..., int]) -> Callable[..., None]:
    """A command of ``work(api, …)``, which returns the exit code."""

    @wraps(work)
    def asking(server: dict[str, Any], **given: Any) -> None:
        end_with_api(server, lambda api: work(api, **given))

    return with_server_options(asking)


def end_with_api(server: dict[str, Any], work: Callable[[Api], int]) -> NoReturn:
    """``server``: the options above. The work's number is the exit code, an error is one line on stderr."""
    from mirrorspark.control.remote.api import Api  # here: httpx takes a third of a second, which others need not pay

    try:
        with Api(_address(server)) as api:
            code = work(api)
    except MirrorError as error:
        tell_error(error)
        raise typer.Exit(EXIT_INPUT if isinstance(error, SettingsError) else EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    raise typer.Exit(code)


def _address(server: dict[str, Any]) -> Address:
    url = server["url"] or URL_DEFAULT
    found = address_of(url, **{name: value for name, value in server.items() if name != "url"})
    if found.shows_secrets_on_the_way:
        progress(f"warning: the login goes to {found.url} unencrypted; use https")
    return found


def progress(text: str) -> None:
    """For whoever watches; answers go to stdout."""
    say(text, code="progress")
