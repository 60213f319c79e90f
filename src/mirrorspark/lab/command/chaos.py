"""``mirrorspark chaos``: seeded kills under load, and the verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from mirrorspark.errors import MirrorError
from mirrorspark.lab.chaos import KINDS, run_chaos
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together

__all__ = ["chaos"]


def chaos(
    kills: Annotated[int, typer.Option(help="How many kills -9.")] = 30,
    seed: Annotated[int, typer.Option(help="The same seed gives the same kills.")] = 1,
    rate: Annotated[float, typer.Option(help="Records a second into the source.")] = 400.0,
    transactions: Annotated[bool, typer.Option(help="Run with exactly.once.source.support=enabled.")] = False,
    kinds: Annotated[str, typer.Option(help="Comma list of what may be killed.")] = ",".join(KINDS),
) -> None:
    """Kill lanes, executors, drivers and brokers at random moments under load; nothing may be lost or doubled.

    Example: mirrorspark chaos --kills 40 --seed 7 --transactions
    """
    chosen = tuple(kind.strip() for kind in kinds.split(","))
    unknown = [kind for kind in chosen if kind not in KINDS]
    if unknown:
        raise typer.BadParameter(f"--kinds: {unknown[0]} is not one of {', '.join(KINDS)}")
    east, west = ClusterOfBrokers("east"), ClusterOfBrokers("west")
    try:
        with started_together(east, west):
            result = run_chaos(
                east,
                west,
                seed=seed,
                kills=kills,
                topic="chaos",
                rate=rate,
                transactions=transactions,
                kinds=chosen,
                tell=lambda text: print(text, flush=True),
            )
    except MirrorError as error:
        print(f"mirrorspark: {error.code}: {error}")
        raise typer.Exit(1) from None
    print(result.report())
    raise typer.Exit(0 if result.is_clean else 1)
