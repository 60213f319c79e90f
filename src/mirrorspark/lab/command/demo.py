"""``mirrorspark demo``: see it work in a minute or two."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.errors import MirrorError
from mirrorspark.lab.demo import run_demo

__all__ = ["demo"]


def demo(
    rate: Annotated[float, typer.Option(help="Records a second into the source.")] = 500.0,
    seed: Annotated[int, typer.Option(help="Seed of the workload and of what is killed.")] = 1,
    plot: Annotated[Path, typer.Option(help="Where the plot goes.")] = Path("mirrorspark-demo.png"),
) -> None:
    """Two real Kafka clusters, a live flow, a kill -9 of a lane and of brokers, a failover, and the verdict.

    Example: mirrorspark demo --rate 1000
    """
    started = time.monotonic()

    def tell(text: str) -> None:
        print(f"[{time.monotonic() - started:6.1f} s] {text}", flush=True)

    try:
        report = run_demo(rate=rate, seed=seed, plot=plot, tell=tell)
    except MirrorError as error:
        print(f"mirrorspark: {error.code}: {error}")
        raise typer.Exit(1) from None
    print("\nReport")
    for number, (at, what) in enumerate(report.marks, 1):
        print(f"  {number:2}. {at:6.1f} s  {what}")
    print(f"  {report.records} records acknowledged by east, {report.verdict.read} read from west")
    if report.plot:
        print(f"  plot: {report.plot}")
    print(report.verdict.report())
    raise typer.Exit(0 if report.verdict.is_clean else 1)
