"""``mirrorspark chaos``: seeded faults under load, and the verdict."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.errors import MirrorError
from mirrorspark.lab.broker_faults import NAMES
from mirrorspark.lab.chaos import BROKER_SETTINGS, ChaosResult, run_broker_chaos, run_chaos
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.kills import KINDS
from mirrorspark.lab.proxied_cluster import ProxiedCluster
from mirrorspark.lab.secured_cluster import SecuredPair

__all__ = ["chaos"]

TOPIC = "chaos"
BROKERS_MIN = 3
RATE, RATE_OF_SEVERAL = 400.0, 100.0
PLAINTEXT = "PLAINTEXT"
SECURED = {
    "plaintext": PLAINTEXT,
    "ssl": "SSL",
    "mtls": "MTLS",
    "sasl_ssl_scram": "SCRAM",
    "sasl_ssl_oauth": "OAUTH",
}
"""Names of ``--security``, and the lab's listeners that they mean."""


def chaos(
    brokers: Annotated[int, typer.Option(help="Brokers of each cluster: 1, or 3 and more.")] = 1,
    kills: Annotated[int, typer.Option(help="How many kills -9, of processes and lone brokers.")] = 30,
    faults: Annotated[int, typer.Option(help="With --brokers 3: how many faults of brokers and the way there.")] = 20,
    seed: Annotated[int, typer.Option(help="The same seed gives the same faults.")] = 1,
    rate: Annotated[float | None, typer.Option(help="Records a second into the source; else 400, or 100.")] = None,
    transactions: Annotated[bool, typer.Option(help="Run with exactly.once.source.support=enabled.")] = False,
    kinds: Annotated[str, typer.Option(help="Comma list of what may happen; else everything.")] = "",
    security: Annotated[
        str, typer.Option(help=f"How the mirror is connected to lone brokers: {', '.join(SECURED)}.")
    ] = "plaintext",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the verdicts and stalls there.")] = None,
) -> None:
    """Kill processes at random moments under load, or do to brokers what happens to brokers; nothing may be lost or doubled.

    With --brokers 3 the longest stall that each fault caused is told too.

    Examples:

      mirrorspark chaos --kills 40 --seed 7 --transactions

      mirrorspark chaos --brokers 3 --faults 20 --seed 7 --json stalls.json
    """
    if brokers != 1 and brokers < BROKERS_MIN:
        raise typer.BadParameter(f"--brokers: {brokers} is neither 1 nor {BROKERS_MIN} or more")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise typer.BadParameter(f"--json: there is no folder {json_file.absolute().parent}")
    if security not in SECURED or (brokers != 1 and security != "plaintext"):
        raise typer.BadParameter(f"--security: {security} is not one of {', '.join(SECURED)}, with --brokers 1")
    known = KINDS if brokers == 1 else NAMES
    chosen = tuple(kind.strip() for kind in kinds.split(",")) if kinds else known
    unknown = [kind for kind in chosen if kind not in known]
    if unknown:
        raise typer.BadParameter(f"--kinds: {unknown[0]} is not one of {', '.join(known)}")
    try:
        if brokers == 1:
            result = _of_processes(seed, kills, rate or RATE, transactions, chosen, SECURED[security])
        else:
            result = _of_brokers(brokers, seed, faults, rate or RATE_OF_SEVERAL, transactions, chosen)
    except MirrorError as error:
        print(f"mirrorspark: {error.code}: {error}")
        raise typer.Exit(1) from None
    if brokers > 1:
        print(result.stalls())
    print(result.report())
    if json_file is not None:
        json_file.write_text(json.dumps(result.to_json(), indent=2) + "\n")
    raise typer.Exit(0 if result.is_clean else 1)


def _of_processes(
    seed: int, kills: int, rate: float, transactions: bool, kinds: tuple[str, ...], listener: str
) -> ChaosResult:
    with tempfile.TemporaryDirectory(prefix="mirrorspark-secured-") as folder:
        pair = SecuredPair(Path(folder), name="chaos") if listener != PLAINTEXT else None
        sides = (pair.source, pair.target) if pair else (ClusterOfBrokers("east"), ClusterOfBrokers("west"))
        extra = pair.mirror_settings(listener, east=pair.source, west=pair.target) if pair else {}
        with pair or started_together(*sides):
            return run_chaos(
                *sides, seed=seed, kills=kills, topic=TOPIC, rate=rate, transactions=transactions, kinds=kinds,
                extra=extra, tell=_tell,
            )  # fmt: skip


def _of_brokers(
    brokers: int, seed: int, faults: int, rate: float, transactions: bool, kinds: tuple[str, ...]
) -> ChaosResult:
    east, west = (ProxiedCluster(name, brokers=brokers, settings=BROKER_SETTINGS) for name in ("east", "west"))
    with started_together(east, west):
        return run_broker_chaos(
            east, west, seed=seed, faults=faults, topic=TOPIC, rate=rate, transactions=transactions, kinds=kinds,
            tell=_tell,
        )  # fmt: skip


def _tell(text: str) -> None:
    print(text, flush=True)
