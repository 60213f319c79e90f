"""The command ``mirrorspark``: verbs of the product, and of the lab where its extra is installed."""

from __future__ import annotations

import sys

import typer

from mirrorspark import __version__
from mirrorspark.control.command.run import run

app = typer.Typer(
    name="mirrorspark",
    help="Replication between Kafka clusters on Spark, by whole record batches, exactly once.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run)


@app.command()
def version() -> None:
    """Print the version."""
    sys.stdout.write(f"mirrorspark {__version__}\n")


def main() -> None:
    app()


if __name__ == "__main__":
    main()
