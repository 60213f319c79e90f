"""``mirrorspark run FILE``: the drop-in for connect-mirror-maker.sh."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.config.metrics_settings import listener_of_option
from mirrorspark.control.command.file_reading import Lenient, Secrets
from mirrorspark.control.command.log_choice import TEXT, LogFormat
from mirrorspark.control.runner import EXIT_SETTINGS, Edits, run_deployment
from mirrorspark.errors import MirrorError
from mirrorspark.log_lines import begin_logging, say, tell_error
from mirrorspark.pipeline.spark_conf import parse_conf
from mirrorspark.pipeline.spark_master import check_master
from mirrorspark.settings import RestSettings

__all__ = ["RunCommand", "repeat_clusters", "run"]


OPTIONS_WITH_VALUES = (
    *("--master", "--conf", "--secrets", "--metrics", "--log-format"),
    *("--listen", "--users", "--tls-certificate", "--tls-key"),
    *("--principal", "--format"),
)


def repeat_clusters(arguments: list[str]) -> list[str]:
    """``--clusters A B`` as MirrorMaker 2 takes it -> ``--clusters A --clusters B``, which our parser takes.

    Where no other word could be FILE, the last value is it: ``--clusters A B mm2.properties``.
    """
    out: list[str] = []
    values: list[int] = []  # places in ``out`` of words that follow --clusters
    has_file = False
    option = ""
    for argument in [*arguments, "--"]:
        if argument.startswith("-"):
            if option == "--clusters":
                out.append(option)  # without a value: the parser says so
            option = argument
            if argument != "--clusters":
                out.append(argument)
        elif option in ("--clusters", "more clusters"):
            option = "more clusters"
            out += ["--clusters", argument]
            values.append(len(out) - 1)
        else:
            has_file = has_file or option not in OPTIONS_WITH_VALUES
            option = ""
            out.append(argument)
    if not has_file and len(values) > 1:
        at = values[-1]
        out[at - 1 : at + 1] = [out[at]]
    return out[:-1]


class RunCommand(TyperCommand):
    """A command whose ``--clusters`` takes several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeat_clusters(args))


def _rest(
    given: RestSettings, listen: str | None, users: Path | None, certificate: str | None, private_key: str | None
) -> RestSettings:
    """Options win over the file."""
    return RestSettings(
        (listen,) if listen is not None else given.listeners,
        certificate if certificate is not None else given.certificate,
        private_key or "",
        str(users) if users is not None else given.users,
        given.tls,
    )


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An mm2.properties file, as MirrorMaker 2 takes it.")],
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--clusters",
            metavar="ALIAS…",
            help="Run only flows INTO these clusters: --clusters A B, --clusters A,B, or repeat it.",
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark master; embedded, with a slot for each lane, if not given.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark, as spark-submit takes it; repeat it."),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve Spark's own web page.")] = False,
    lenient: Lenient = False,
    secrets: Secrets = None,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Apply edits of FILE as they are made; SIGHUP does so once.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics", metavar="HOST:PORT", help="Serve /metrics to Prometheus; wins over metrics.listener."
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Serve REST, /metrics and the page; wins over listeners."),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="Who may do what by REST; everybody everything without it."),
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--tls-certificate", metavar="FILE", help="PEM, PKCS12 or JKS; REST is https.")
    ] = None,
    private_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="PEM; the certificate's key, if not in it.")
    ] = None,
    log_format: LogFormat = TEXT,
) -> None:
    """Mirror topics as FILE says, until SIGTERM or Ctrl-C.

    Examples:

      mirrorspark run mm2.properties

      mirrorspark run mm2.properties --clusters backup archive

      mirrorspark run --watch mm2.properties

    A flow that fails, or whose own keys are wrong, is named and left out; the others run.

    Exit codes: 0 stopped by a signal, 1 a cluster or a flow failed, 2 FILE or an option is wrong, 4 another mirror took
    the flow over, 5 Spark could not be started or is gone.
    """
    begin_logging(log_format)
    targets = [alias.strip() for text in clusters or [] for alias in text.split(",") if alias.strip()]

    def load() -> Deployment:
        return load_deployment(file, targets, secrets=secrets, lenient=lenient, apart=True)

    edits = Edits([file], load, is_watched=watch)
    try:
        if master is not None:
            check_master(master)
        spark = parse_conf(conf or [])
        deployment = load()
        if metrics is not None:
            deployment.metrics = replace(deployment.metrics, listener=listener_of_option(metrics))
        deployment.rest = _rest(deployment.rest, listen, users, certificate, private_key)
    except MirrorError as error:
        tell_error(error)
        raise typer.Exit(EXIT_SETTINGS) from None
    for remark in deployment.remarks:
        say(f"{remark.kind}: {remark}", code=f"settings.{remark.kind}", key=remark.key)
    raise typer.Exit(run_deployment(deployment, master=master, ui=ui, conf=spark, edits=edits))
