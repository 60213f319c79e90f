"""The comparison with MirrorMaker 2: a tiny real run, and what is made of its figures. In ``make test`` it runs over TLS,
and without what only repeats it: MirrorMaker 2 with its defaults takes no part, starts are not measured on their own, and
nothing is warmed up.

No figure is held against a bound here: that is for a quiet machine and ``mirrorspark bench mm2``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from mirrorspark.errors import LabError
from mirrorspark.lab.bench.byte_code import byte_code_kept
from mirrorspark.lab.bench.comparison import ComparisonOrder, run_comparison
from mirrorspark.lab.bench.latency import NO_MIRROR, Latency, LatencyOrder
from mirrorspark.lab.bench.log_files import stored
from mirrorspark.lab.bench.narration import Narrator
from mirrorspark.lab.bench.parties import BARE, MM2, MM2_TUNED, OURS, PARTIES, Party
from mirrorspark.lab.bench.ratios import Check, all_checks
from mirrorspark.lab.bench.report import as_json, as_markdown, print_report
from mirrorspark.lab.bench.result import Comparison
from mirrorspark.lab.bench.room import Room, find_room, fit
from mirrorspark.lab.bench.shapes import SHAPES, Load
from mirrorspark.lab.bench.throughput import Carry
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.command.bench import bench
from mirrorspark.lab.preload import preload

# Whichever test comes first waits for the whole run, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)

RECORDS = 20_000
SHAPE = SHAPES["200b"]


class Finished:
    """A comparison, what was told meanwhile, and where its data lay."""

    def __init__(self, folder: Path, parties: Sequence[Party], *, start_rounds: int, is_whole: bool) -> None:
        self.folder = folder
        self.parties = {party.key: party for party in parties}
        self.start_rounds = start_rounds
        self.result = Comparison()
        self.told = StringIO()
        order = ComparisonOrder(
            loads=[Load(SHAPE, RECORDS)],
            parties=list(parties),
            rounds=1,
            tasks_max=2,
            batch_bytes=100_000,
            folder=folder,
            latency=LatencyOrder(seconds=6.0, rate=200.0, warm_s=2.0),
            start_rounds=start_rounds,
            over_tls=not is_whole,
            warms_up=is_whole,
        )
        run_comparison(order, self.result, Narrator(Console(file=self.told, width=200)))


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.slow)])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("bench")
    if request.param == "short":
        return Finished(folder, [MM2_TUNED, OURS, BARE], start_rounds=0, is_whole=False)
    return Finished(folder, list(PARTIES.values()), start_rounds=1, is_whole=True)


def test_every_party_carries_everything_and_every_figure_is_there(finished: Finished) -> None:
    result = finished.result
    assert result.is_complete
    carried = {(one.shape, one.party): one for one in result.carries}
    assert set(carried) == {(SHAPE.key, party) for party in finished.parties}
    for one in carried.values():
        assert one.records == RECORDS
        assert one.duplicates == 0
        for name in (field.name for field in fields(Carry)):
            value = getattr(one, name)
            assert isinstance(value, str) or (value is not None and math.isfinite(value) and value >= 0), name
        assert min(one.records_per_s, one.mb_per_s, one.steady_records_per_s, one.startup_s, one.rss_peak_mb) > 0
    assert {one.party for one in result.starts} == ({MM2.key, OURS.key} if finished.start_rounds else set())
    assert all(one.startup_s > 0 and one.duplicates == 0 for one in result.starts)
    assert result.preloads[0].records == RECORDS
    assert all(0 < one.batch_bytes_mean < 110_000 for one in result.preloads)


def test_latency_holds_an_epoch_boundary_and_a_new_topic(finished: Finished) -> None:
    by_party = {one.party: one for one in finished.result.latencies}
    assert set(by_party) == {NO_MIRROR, *({MM2.key, OURS.key} & set(finished.parties))}
    for one in by_party.values():
        assert one.received >= one.sent > 0
        assert 0 < one.p50_ms <= one.p90_ms <= one.p99_ms <= one.p999_ms <= one.max_ms
    ours = by_party[OURS.key]
    assert ours.new_topic_s is not None
    assert ours.epoch_boundaries is not None
    assert ours.epoch_boundaries >= 1


def test_tables_and_json_have_every_figure(finished: Finished) -> None:
    result = finished.result
    document = json.loads(as_json(result))
    assert document["complete"] is True
    assert document["settings"]["batch_bytes"] == 100_000
    assert str(finished.folder) in document["settings"]["data"]
    for party in finished.parties:
        figures = document["summary"][SHAPE.key][party]
        assert all(len(figures[name]["values"]) == 1 for name in figures)
        assert {"records_per_s", "startup_s", "cpu_us_per_record", "rss_peak_mb", "pss_peak_mb"} <= set(figures)
    whats = [check["what"] for check in document["checks"]]
    expected = 7 + 1 + 4 if MM2.key in finished.parties else 4 + 2  # of the shape, of starts, of latency
    assert len(whats) == len(set(whats)) == expected
    assert {check["verdict"] for check in document["checks"]} <= {"PASS", "MISS", "info"}

    table = StringIO()
    print_report(result, Console(file=table, width=250))
    for text in (table.getvalue(), as_markdown(result)):
        for word in (*(one.label for one in finished.parties.values()), SHAPE.label, *whats):
            assert word in text
        for word in ("records/s", "MB/s", "start-up", "CPU us/record", "peak RSS", "peak PSS", "p99.9", "wanted"):
            assert word in text


def test_nothing_is_left_behind(finished: Finished) -> None:
    assert list(finished.folder.iterdir()) == []
    below = [" ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)]
    assert not [line for line in below if str(finished.folder) in line]


def test_progress_is_told(finished: Finished) -> None:
    for party in finished.parties.values():
        assert f"round 1, {party.label}" in finished.told.getvalue()


def test_log_files_are_counted_as_clients_count(source_cluster: ClusterOfBrokers, topic_name: str) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 4)
    preload(source_cluster.bootstrap, topic_name, 4, 12_345, 100)
    held = stored(source_cluster.broker(1).data, topic_name)
    assert held.total == 12_345
    assert set(held.records) == {0, 1, 2, 3}
    assert held.bytes > 12_345 * 100
    assert held.batches > 0


def _carry(party: str, shape: str, number: int, rate: float, cpu_us: float) -> Carry:
    blank = Carry(party, shape, number, *([1.0] * (len(fields(Carry)) - 3)))  # type: ignore[arg-type]
    return replace(
        blank,
        records_per_s=rate,
        steady_records_per_s=rate,
        cpu_us_per_record=cpu_us,
        steady_cpu_us_per_record=cpu_us,
    )


def test_ratios_are_of_medians_and_against_the_right_peer() -> None:
    carries = [
        *(_carry(MM2.key, "1k", number, 10.0, 99.0) for number in (1, 2, 3)),
        *(_carry(MM2_TUNED.key, "1k", number, 100.0 * number, 20.0) for number in (1, 2, 3)),
        *(_carry(BARE.key, "1k", number, 1_000.0, 1.0) for number in (1, 2, 3)),
        *(_carry(OURS.key, "1k", number, 650.0, 1.9) for number in (1, 2, 3)),
    ]
    latencies = [
        Latency(MM2.key, 1, 1, 1, 1, 4.0, 5.0, 10.0, 20.0, 30.0),
        Latency(OURS.key, 1, 1, 1, 1, 2.0, 5.0, 10.1, 20.0, 30.0, 300, 0, None),
    ]
    starts = [
        replace(_carry(MM2.key, "1k", 1, 1.0, 1.0), startup_s=10.0),
        replace(_carry(OURS.key, "1k", 1, 1.0, 1.0), startup_s=5.1),
    ]
    found = {check.what: check for check in all_checks(carries, starts, latencies)}
    tuned = found["1 KB uncompressed: throughput / MirrorMaker 2 tuned"]
    assert tuned.measured == pytest.approx(3.25)
    assert tuned.by_round == pytest.approx((6.5, 3.25, 650 / 300))
    assert tuned.verdict == "PASS"
    assert found["1 KB uncompressed: CPU per record / MirrorMaker 2 tuned"].verdict == "PASS"
    assert found["1 KB uncompressed: CPU per record / MirrorMaker 2 tuned, start-up included"].verdict == "info"
    assert found["1 KB uncompressed: throughput / bare loop"].verdict == "MISS"
    assert found["start to first record / MirrorMaker 2 default"].verdict == "MISS"
    assert found["latency p50 / MirrorMaker 2 default"].verdict == "PASS"
    assert found["latency p99 / MirrorMaker 2 default"].verdict == "MISS"
    assert found["epoch boundaries while latency was measured"].verdict == "MISS"
    assert found["new topics carried meanwhile"].verdict == "MISS"
    assert not any("200 B" in what for what in found)


def test_what_was_not_measured_is_not_judged() -> None:
    assert all_checks([_carry(OURS.key, "1k", 1, 1.0, 1.0)], [], []) == []
    assert Check("x", 1.0, at_least=1.0).verdict == Check("x", 1.0, at_most=1.0).verdict == "PASS"


def test_an_interrupted_run_says_so() -> None:
    result = Comparison()
    assert "INCOMPLETE" in as_markdown(result)
    assert json.loads(as_json(result))["complete"] is False


def test_the_epoch_is_the_default_one_unless_its_boundary_would_fall_outside() -> None:
    assert LatencyOrder(300.0, 1_000.0, 30.0).epoch_s == 300
    for seconds, warm_s in ((60.0, 30.0), (20.0, 15.0), (5.0, 2.0)):
        assert 2 <= LatencyOrder(seconds, 1_000.0, warm_s).epoch_s < warm_s + seconds


def test_python_parties_keep_byte_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    with byte_code_kept(tmp_path):
        assert "PYTHONDONTWRITEBYTECODE" not in os.environ
        assert os.environ["PYTHONPYCACHEPREFIX"] == str(tmp_path)
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "PYTHONPYCACHEPREFIX" not in os.environ
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    with byte_code_kept(tmp_path):
        assert "PYTHONPYCACHEPREFIX" not in os.environ


def test_too_little_room_means_fewer_records_and_a_note(tmp_path: Path) -> None:
    load = Load(SHAPES["1k"], 1_000_000)
    fitting, notes = fit([load], Room(tmp_path, load.room_bytes // 2, is_memory=False))
    assert 0 < fitting[0].records <= 500_000
    assert "instead of 1,000,000" in notes[0]
    assert fit([load], Room(tmp_path, load.room_bytes, is_memory=False)) == ([load], [])
    assert find_room(tmp_path, [load]).folder == tmp_path
    with pytest.raises(LabError, match="no such folder"):
        find_room(tmp_path / "nowhere", [load])


@pytest.mark.parametrize(
    "arguments", [["--shapes", "2k"], ["--parties", "bare,brooklin"], ["--parties", ","], ["--json", "no/where/x"]]
)
def test_a_wrong_word_is_refused_before_anything_starts(arguments: list[str]) -> None:
    run = CliRunner().invoke(bench, ["mm2", *arguments])
    assert run.exit_code == 2
