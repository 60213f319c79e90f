"""The command ``mirrorspark``: verbs of the product, and of the lab where its extra is installed."""

from __future__ import annotations

import importlib.util
import sys

import typer

from mirrorspark import __version__
from mirrorspark.control.command.acls import acls
from mirrorspark.control.command.connectors import connectors
from mirrorspark.control.command.convert import convert
from mirrorspark.control.command.deploy import deploy, redeploy, undeploy
from mirrorspark.control.command.events import events
from mirrorspark.control.command.failover import failback, failover
from mirrorspark.control.command.flows import flows
from mirrorspark.control.command.groups import groups
from mirrorspark.control.command.lag import lag
from mirrorspark.control.command.offsets import offsets
from mirrorspark.control.command.pause import pause
from mirrorspark.control.command.plan import plan
from mirrorspark.control.command.resume import resume
from mirrorspark.control.command.run import RunCommand, run
from mirrorspark.control.command.serve import serve
from mirrorspark.control.command.status import status
from mirrorspark.control.command.top import top

app = typer.Typer(
    name="mirrorspark",
    help="Replication between Kafka clusters on Spark, by whole record batches, exactly once.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(cls=RunCommand)(run)
app.command(cls=RunCommand)(plan)
app.command(cls=RunCommand)(acls)
app.command()(serve)
app.command()(deploy)
app.command()(undeploy)
app.command()(redeploy)
app.command()(status)
app.command()(events)
app.command()(top)
app.command()(pause)
app.command()(resume)
app.command()(lag)
app.command()(failover)
app.command()(failback)
app.command()(convert)
app.add_typer(connectors, name="connectors")
app.add_typer(flows, name="flows")
app.add_typer(groups, name="groups")
app.add_typer(offsets, name="offsets")


@app.command()
def version() -> None:
    """Print the version."""
    sys.stdout.write(f"mirrorspark {__version__}\n")


def add_lab_commands() -> None:
    """The lab's verbs, where its extra (brokers, ordinary clients) is installed. Once is enough."""
    if importlib.util.find_spec("confluent_kafka") is None or importlib.util.find_spec("psutil") is None:
        return
    if any(group.name == "bench" for group in app.registered_groups):
        return
    from mirrorspark.lab.command.bench import bench
    from mirrorspark.lab.command.chaos import chaos
    from mirrorspark.lab.command.demo import demo
    from mirrorspark.lab.command.positions import positions

    app.command()(demo)
    app.command()(chaos)
    app.command()(positions)
    app.add_typer(bench, name="bench")


def command_reference() -> str:
    """The page docs/reference/cli.md, with the lab's verbs; for ``make docs`` and the test that holds the page."""
    from typer.cli import get_docs_for_click

    add_lab_commands()
    command = typer.main.get_command(app)
    pages = get_docs_for_click(obj=command, ctx=typer.Context(command), name="mirrorspark")
    return f"{pages.strip()}\n"


def main() -> None:
    add_lab_commands()
    app()


if __name__ == "__main__":
    main()
