"""``mirrorspark serve``: Kafka Connect's REST interface for MirrorMaker 2's connectors, which run as flows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.control.command.log_choice import TEXT, LogFormat
from mirrorspark.control.runner import EXIT_FAILED, EXIT_SETTINGS
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.log_lines import begin_logging, say, tell_error
from mirrorspark.pipeline.spark_conf import parse_conf
from mirrorspark.pipeline.spark_master import check_master

__all__ = ["serve"]


def serve(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A Connect worker's file, connect-distributed.properties.")
    ] = None,
    bootstrap: Annotated[
        str, typer.Option("--bootstrap", metavar="HOST:PORT,…", help="The cluster that keeps the connectors.")
    ] = "",
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen; 127.0.0.1:8083 if nothing says so.")
    ] = "",
    users: Annotated[
        Path | None, typer.Option("--users", metavar="FILE", help="Who may do what; everybody everything without it.")
    ] = None,
    certificate: Annotated[
        str, typer.Option("--tls-certificate", metavar="FILE", help="PEM, PKCS12 or JKS; serves https.")
    ] = "",
    private_key: Annotated[
        str, typer.Option("--tls-key", metavar="FILE", help="PEM; the certificate's key, if not in it.")
    ] = "",
    master: Annotated[str | None, typer.Option("--master", help="Spark master; embedded if not given.")] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark, as spark-submit takes it; repeat it."),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve Spark's own web page.")] = False,
    log_format: LogFormat = TEXT,
) -> None:
    """Take connectors by Kafka Connect's REST interface and run them, until SIGTERM or Ctrl-C.

    Connectors are kept in Kafka, in Connect's own topics: a start after any end brings them back.

    Examples:

      mirrorspark serve --bootstrap backup:9092

      mirrorspark serve connect-distributed.properties --listen 0.0.0.0:8083 --users users.txt

    Exit codes: 0 stopped by a signal, 1 the cluster cannot be reached, 2 FILE or an option is wrong, 5 Spark could not be
    started or is gone.
    """
    # Here, not above: FastAPI takes a second to load, which no other command needs.
    from mirrorspark.control.connect.serving import serve_connectors
    from mirrorspark.control.connect.worker_file import worker_settings
    from mirrorspark.rest.access import Access, read_access

    begin_logging(log_format)
    try:
        if master is not None:
            check_master(master)
        spark = parse_conf(conf or [])
        settings = worker_settings(
            file, bootstrap=bootstrap, listen=listen, certificate=certificate, private_key=private_key
        )
        access = read_access(users) if users is not None else Access()
        if access.is_open and not settings.listener.is_local:
            say(f"warning: {settings.listener} is open to everybody who can reach it; give --users", code="server.open")
        code = serve_connectors(settings, access, master=master, ui=ui, conf=spark)
    except MirrorError as error:
        tell_error(error)
        raise typer.Exit(EXIT_SETTINGS if isinstance(error, SettingsError) else EXIT_FAILED) from None
    raise typer.Exit(code)
