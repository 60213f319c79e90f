"""``mirrorspark positions``: where groups go on after a move, ours and MirrorMaker 2's answers side by side."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.errors import MirrorError
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.exact_positions import (
    Answer,
    commit_groups,
    fill,
    judge,
    run_mirror_maker,
    table,
    wait_for_checkpoints,
)
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.numbered_log import KINDS, NumberedTopic
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings, parse_bootstrap

__all__ = ["positions"]

GROUPS = "reader"


def positions(
    records: Annotated[int, typer.Option(help="Records in each of the three topics.", min=1_000)] = 1_000_000,
    kills: Annotated[int, typer.Option(help="How often all lanes are killed while they carry.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same pauses.")] = 1,
    transactions: Annotated[bool, typer.Option(help="Run with exactly.once.source.support=enabled.")] = False,
    mirror_maker: Annotated[bool, typer.Option(help="Run the real MirrorMaker 2 over the same topics.")] = True,
) -> None:
    """Groups at 1 to 100 % of a plain, a compacted and a transactional topic: at which record do they go on?

    Example: mirrorspark positions --records 200000 --kills 3
    """
    cleaner = {"log.cleaner.backoff.ms": "200"}
    east, west = ClusterOfBrokers("east", settings=cleaner), ClusterOfBrokers("west")
    try:
        with started_together(east, west), tempfile.TemporaryDirectory(prefix="mirrorspark-positions-") as folder:
            answers, theirs = _measure(east, west, Path(folder), records, kills, seed, transactions, mirror_maker)
    except MirrorError as error:
        print(f"mirrorspark: {error.code}: {error}")
        raise typer.Exit(1) from None
    print(
        f"{records} records in each topic, {kills} kills, seed {seed}, transactions {'on' if transactions else 'off'}\n"
    )
    print(table(answers, theirs))
    raise typer.Exit(0 if all(answer.is_exact for answer in answers) else 1)


def _measure(
    east: ClusterOfBrokers,
    west: ClusterOfBrokers,
    folder: Path,
    records: int,
    kills: int,
    seed: int,
    transactions: bool,
    mirror_maker: bool,
) -> tuple[list[Answer], list[Answer]]:
    topics = [NumberedTopic(east.bootstrap, f"numbers-{kind}", kind) for kind in KINDS]
    settings = FlowSettings(
        Flow("east", "west"),
        ClusterSettings("east", parse_bootstrap(east.bootstrap, "source")),
        ClusterSettings("west", parse_bootstrap(west.bootstrap, "target")),
        topics="numbers-.*",
        replication_factor=1,
        read_committed=True,
        transactions=transactions,
    )

    def start() -> FlowWithoutSpark:
        flow = FlowWithoutSpark(settings, folder=folder / "flow")
        flow.start()
        return flow

    flow = fill(topics, records, start, kills=kills, seed=seed, tell=_tell)
    try:
        for topic in topics:
            wait_until_caught_up(east.bootstrap, west.bootstrap, topic.topic, f"east.{topic.topic}", 600.0)
        committed = commit_groups(topics, GROUPS)
        wait_for_checkpoints(west.bootstrap, "east", committed)
        flow.stop()
    finally:
        flow.kill()
    answers = judge(topics, committed, west.bootstrap, "east", GROUPS)
    theirs: list[Answer] = []
    if mirror_maker:
        theirs = run_mirror_maker(east.bootstrap, west.bootstrap, topics, f"{GROUPS}-2", folder / "mm2", _tell)
    return answers, theirs


def _tell(text: str) -> None:
    print(text, flush=True)
