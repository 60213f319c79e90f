"""``mirrorspark bench``: measured against others (``mm2``), and on a Spark cluster against embedded (``spark-cluster``)."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, TypeVar

import psutil
import typer
from confluent_kafka import KafkaException
from rich.console import Console

from mirrorspark.errors import MirrorError
from mirrorspark.lab.bench.comparison import ComparisonOrder, run_comparison
from mirrorspark.lab.bench.latency import LatencyOrder
from mirrorspark.lab.bench.narration import Narrator
from mirrorspark.lab.bench.parties import PARTIES
from mirrorspark.lab.bench.report import as_json, as_markdown, print_report
from mirrorspark.lab.bench.result import Comparison
from mirrorspark.lab.bench.shapes import SHAPES, Load
from mirrorspark.lab.bench.spark_cluster import ClusterOrder, compare_with_cluster, verdict

__all__ = ["bench"]

BATCH_BYTES = 1_000_000
"""librdkafka's default."""
PLAIN_WIDTH = 160
T = TypeVar("T")

bench = typer.Typer(help="Measure mirrorspark against others.", no_args_is_help=True, rich_markup_mode=None)


@bench.callback()
def _bench() -> None:
    """Measure mirrorspark against others."""


@bench.command()
def mm2(
    records_1k: Annotated[int, typer.Option(min=4, help="How many records of 1 KB.")] = 4_000_000,
    records_200b: Annotated[int, typer.Option(min=4, help="How many records of 200 B.")] = 20_000_000,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="How often each party carries each topic.")] = 2,
    start_rounds: Annotated[int, typer.Option(min=0, max=20, help="How often each start-up is measured.")] = 3,
    shapes: Annotated[str, typer.Option(help=f"Comma list of {', '.join(SHAPES)}.")] = ",".join(SHAPES),
    parties: Annotated[
        str, typer.Option(help=f"Comma list of {', '.join(f'{key} ({one.label})' for key, one in PARTIES.items())}.")
    ] = ",".join(PARTIES),
    batch_bytes: Annotated[
        int, typer.Option(min=1_000, max=1_000_000, help="Batch size of the producer that preloads.")
    ] = BATCH_BYTES,
    tasks_max: Annotated[int, typer.Option(min=1, help="tasks.max of every party.")] = 2,
    folder: Annotated[
        Path | None, typer.Option(help="Where the brokers' data goes; else memory or the temporary folder.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="All parties speak TLS with the brokers.")] = False,
    skip_latency: Annotated[bool, typer.Option("--skip-latency", help="Leave the latency phase out.")] = False,
    latency_seconds: Annotated[float, typer.Option(min=1, help="How long latency is measured, each party.")] = 300.0,
    latency_rate: Annotated[float, typer.Option(min=1, help="Records a second meanwhile.")] = 1_000.0,
    latency_warm_seconds: Annotated[float, typer.Option(min=0, help="From process start until it counts.")] = 30.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures there.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write the tables there.")] = None,
) -> None:
    """The real MirrorMaker 2 (default and tuned), mirrorspark and its loop without Spark, in turn, on the same brokers.

    Takes about half an hour; ends 0 when the run completed, whatever the verdicts, and 1 otherwise.

    Example: mirrorspark bench mm2 --json bench.json --markdown bench.md
    """
    for path in (json_file, markdown_file):
        if path is not None and not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{path}: there is no folder {path.absolute().parent}")
    records = {"1k": records_1k, "200b": records_200b}
    order = ComparisonOrder(
        loads=[Load(shape, records[shape.key]) for shape in _chosen("--shapes", shapes, SHAPES)],
        parties=_chosen("--parties", parties, PARTIES),
        rounds=rounds,
        tasks_max=tasks_max,
        batch_bytes=batch_bytes,
        folder=folder,
        latency=None if skip_latency else LatencyOrder(latency_seconds, latency_rate, latency_warm_seconds),
        start_rounds=start_rounds,
        over_tls=tls,
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    result = Comparison()
    try:
        with _terminated_like_ctrl_c():
            run_comparison(order, result, Narrator(console))
    except (MirrorError, KafkaException, psutil.Error) as error:
        code = error.code if isinstance(error, MirrorError) else type(error).__name__
        console.print(f"mirrorspark: {code}: {error}", markup=False, highlight=False, soft_wrap=True)
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
    print_report(result, console)
    for path, text in ((json_file, as_json(result)), (markdown_file, as_markdown(result))):
        if path is not None:
            path.write_text(text + "\n", encoding="utf-8")
    raise typer.Exit(0 if result.is_complete else 1)


@bench.command("spark-cluster")
def spark_cluster(
    records: Annotated[int, typer.Option(min=4, help="How many records.")] = 2_000_000,
    shape: Annotated[str, typer.Option(help=f"One of {', '.join(SHAPES)}.")] = "1k",
    rounds: Annotated[int, typer.Option(min=1, max=20, help="How often each carries the topic.")] = 3,
    tasks_max: Annotated[int, typer.Option(min=1, help="tasks.max of both.")] = 2,
    folder: Annotated[
        Path | None, typer.Option(help="Where the brokers' data goes; else memory or the temporary folder.")
    ] = None,
) -> None:
    """mirrorspark with its embedded Spark and on a standalone cluster with two executors, in turn.

    Example: mirrorspark bench spark-cluster --rounds 3
    """
    (chosen,) = _chosen("--shape", shape, SHAPES)[:1]
    narrator = Narrator(Console(width=PLAIN_WIDTH))
    try:
        with _terminated_like_ctrl_c():
            found = compare_with_cluster(ClusterOrder(Load(chosen, records), rounds, tasks_max, folder), narrator.tell)
    except (MirrorError, KafkaException, psutil.Error) as error:
        code = error.code if isinstance(error, MirrorError) else type(error).__name__
        narrator.tell(f"mirrorspark: {code}: {error}")
        raise typer.Exit(1) from None
    narrator.tell(verdict(found))


def _chosen(option: str, text: str, known: Mapping[str, T]) -> list[T]:
    """In the order of the table; at least one."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    unknown = sorted(names - set(known))
    if unknown or not names:
        raise typer.BadParameter(f"{option}: {', '.join(unknown) or 'nothing'} is not among {', '.join(known)}")
    return [one for name, one in known.items() if name in names]


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """SIGTERM cleans up too: gigabytes in memory must not outlive the run."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
