"""``mirrorspark acls FILE``: the ACLs that the mirror's users need, no more. Changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.config.load import load_deployment
from mirrorspark.control.acl_list import PRINCIPAL_OPTION, AclChoices, ClusterAcls, acls_of, topics_on_source
from mirrorspark.control.acl_list_view import as_json, as_kafka_users, as_shell
from mirrorspark.control.command.file_reading import Lenient, Secrets
from mirrorspark.control.command.flow_choice import Clusters, FlowName, end_with, flows_of, targets_of
from mirrorspark.errors import SettingsError

__all__ = ["acls"]

FORMATS: dict[str, Callable[[Sequence[ClusterAcls]], str]] = {
    "kafka-acls": as_shell,
    "json": as_json,
    "strimzi": as_kafka_users,
}


def acls(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="mm2.properties, Strimzi's YAML, a connector's JSON, or a folder of them."),
    ],
    flow: FlowName = None,
    clusters: Clusters = None,
    as_json_too: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "kafka-acls",
    principal: Annotated[
        list[str] | None,
        typer.Option(
            "--principal",
            metavar="ALIAS=User:X",
            help="Who the mirror is on a cluster, where the file does not say or brokers map names. Repeat it.",
        ),
    ] = None,
    topics_from_source: Annotated[
        bool,
        typer.Option(
            "--topics-from-source",
            help="Where topics cannot be said by prefixes: write out those that the source shows now, not '*'.",
        ),
    ] = False,
    with_failover: Annotated[
        bool,
        typer.Option(
            "--with-failover", help="Also what mirrorspark failover does; for failback, of a file with the flow back."
        ),
    ] = False,
    with_takeover: Annotated[
        bool, typer.Option("--with-takeover", help="Also what going on after a MirrorMaker 2 reads.")
    ] = False,
    lenient: Lenient = False,
    secrets: Secrets = None,
) -> None:
    """List the ACLs that the mirror's users need on every cluster of its flows, and nothing more, each with its reason.

    Examples:

      mirrorspark acls mm2.properties > grant.sh

      mirrorspark acls mm2.properties --principal east=User:mirror --json | jq '.clusters[].acls | length'

      mirrorspark acls mirror.yaml --format strimzi | kubectl apply -f -

    Exit codes: 0 listed, 1 the source cannot be asked for its topics, 2 FILE or an option is wrong.
    """

    async def work() -> int:
        write = _form("json" if as_json_too else form)
        targets = targets_of(clusters)
        deployment = load_deployment(file, targets, secrets=secrets, lenient=lenient)
        whole = load_deployment(file, secrets=secrets, lenient=lenient) if targets else deployment
        has_flows = bool(deployment.flows) or flow is not None
        chosen = flows_of(deployment, file, flow) if has_flows else []
        listed = {one.flow: await topics_on_source(one) for one in chosen} if topics_from_source else {}
        choices = AclChoices(
            _principals(principal or []), listed, with_failover=with_failover, with_takeover=with_takeover
        )
        pairs = [*chosen, *(deployment.heartbeats_only if flow is None else [])]
        everybody = [*whole.flows, *whole.heartbeats_only]
        sys.stdout.write(write(acls_of(pairs, choices, others=everybody)))
        return 0

    end_with(work())


def _form(name: str) -> Callable[[Sequence[ClusterAcls]], str]:
    if name not in FORMATS:
        raise SettingsError(f"--format {name}: no such form; there is {', '.join(FORMATS)}", key="--format")
    return FORMATS[name]


def _principals(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        alias, equals, name = text.partition("=")
        kind, colon, rest = name.partition(":")
        if not (alias and equals and kind and colon and rest):
            raise SettingsError(
                f"{PRINCIPAL_OPTION} {text}: not ALIAS=User:NAME, as east=User:mirror", key=PRINCIPAL_OPTION
            )
        found[alias] = name
    return found
