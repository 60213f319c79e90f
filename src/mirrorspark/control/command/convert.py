"""``mirrorspark convert FROM… --to FORM``: the same mirror in another form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.config.forms.front_door import read_forms
from mirrorspark.config.forms.strimzi_writer import API_VERSIONS
from mirrorspark.config.forms.writing import FORMS, Written, write_form
from mirrorspark.control.command.file_reading import Secrets
from mirrorspark.errors import SettingsError

__all__ = ["convert"]

EXIT_INPUT = 2
SECRET_MODE = 0o600
"""Only this user may read what has secrets in it."""


def convert(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FROM…",
            help="mm2.properties, Connect's JSON files or their folder, Strimzi's or plain YAML.",
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORM", help=f"One of {', '.join(FORMS)}.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="Write here, not to stdout; for json a folder."),
    ] = None,
    secrets: Secrets = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Write secrets as they are, not as references.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out what the form has no room for, and say what.")
    ] = False,
    api_version: Annotated[
        str | None,
        typer.Option(
            "--api-version", help=f"Of Strimzi's resources: {' or '.join(API_VERSIONS)}; chosen if not given."
        ),
    ] = None,
) -> None:
    """Write the mirror that FROM describes in another form. Nothing is lost: what is written is read back and compared.

    Examples:

      mirrorspark convert mm2.properties --to strimzi > mirror.yaml

      mirrorspark convert mm2-msc-a.json mm2-cpc-a.json mm2-hbc-a.json --to properties

      mirrorspark convert mirror.yaml --secrets /run/secrets --to json -o connectors/

    Notes go to stderr. Exit codes: 0 written, 2 FROM cannot be read, or the form has no room for something in it.
    """
    try:
        _check(to, api_version)
        document = read_forms(paths, secrets, needs_secrets=with_secrets)
        written = write_form(document, to, with_secrets=with_secrets, is_partial=partial, api_version=api_version)
        _hand_out(written, to, output, with_secrets=with_secrets)
    except SettingsError as error:
        sys.stderr.write(f"mirrorspark: {error.code}: {error}\n")
        raise typer.Exit(EXIT_INPUT) from None
    for note in written.notes:
        sys.stderr.write(f"mirrorspark: note: {note}\n")


def _check(to: str, api_version: str | None) -> None:
    if to not in FORMS:
        raise SettingsError(f"--to {to}: no such form; there is {', '.join(FORMS)}", key="--to")
    if api_version is not None and (to != "strimzi" or api_version not in API_VERSIONS):
        raise SettingsError(
            f"--api-version {api_version}: {' or '.join(API_VERSIONS)}, with --to strimzi", key="--api-version"
        )


def _hand_out(written: Written, to: str, output: Path | None, *, with_secrets: bool) -> None:
    if output is None:
        sys.stdout.write(written.text)
        return
    is_folder = to == "json" and output.suffix != ".json"
    files = {output / name: text for name, text in written.files.items()} if is_folder else {output: written.text}
    try:
        (output if is_folder else output.parent).mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            if with_secrets:
                path.touch(mode=SECRET_MODE)
                path.chmod(SECRET_MODE)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{output}: cannot be written: {error.strerror}", file=str(output)) from error
