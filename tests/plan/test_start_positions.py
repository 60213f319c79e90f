"""Where a partition begins: the words of the file, and which of them counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirrorspark.names import Flow
from mirrorspark.plan.start_positions import Start, StartKind, flow_start, read_start, read_topic_start, start_of
from mirrorspark.settings import ClusterSettings, FlowSettings

FLOW = FlowSettings(Flow("a", "b"), ClusterSettings("a", ()), ClusterSettings("b", ()))


@pytest.mark.parametrize(
    ("text", "kind", "time_ms"),
    [
        ("earliest", StartKind.EARLIEST, -1),
        (" Latest ", StartKind.LATEST, -1),
        ("1793491200000", StartKind.TIME, 1_793_491_200_000),
    ],
)
def test_words_of_a_flow(text: str, kind: StartKind, time_ms: int) -> None:
    start = read_start(text)
    assert (start.kind, start.time_ms) == (kind, time_ms)
    assert read_topic_start(text) == start


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be earliest, latest, or a time"),
        ("soon", "must be earliest, latest, or a time"),
        ("1793491200", "is it seconds"),
        ("100", "or an offset"),
        ("offsets 0:1", "belong to one topic"),
        ("9999999999999999999", "no time"),
    ],
)
def test_what_is_no_place_is_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_start(text)


def test_offsets_of_a_topic() -> None:
    assert read_topic_start("offsets 1:200, 0:100").offsets == ((0, 100), (1, 200))
    for text, why in (
        ("offsets", "must be offsets PARTITION:OFFSET"),
        ("offsets 0", "must be offsets PARTITION:OFFSET"),
        ("offsets 0:-1", "must be offsets PARTITION:OFFSET"),
        ("offsets 0:1,0:2", "partition 0 is given twice"),
        ("offsets 0:9999999999999999999", "larger than any"),
    ):
        with pytest.raises(ValueError, match=why):
            read_topic_start(text)


def test_a_topics_word_goes_before_the_flows_and_that_before_the_consumers() -> None:
    topics = (("x", "offsets 1:7"), ("y", "earliest"))
    settings = replace(FLOW, start_at_latest=True, start_at_topics=topics)
    assert start_of(settings, "x", 1) == Start(StartKind.OFFSETS, offsets=((1, 7),), text="offsets 1:7")
    assert start_of(settings, "x", 0).kind is StartKind.LATEST, "as the flow's others"
    assert start_of(settings, "y", 0).kind is StartKind.EARLIEST
    assert start_of(settings, "z", 0).kind is flow_start(settings).kind is StartKind.LATEST
    assert flow_start(replace(settings, start_at="earliest")).kind is StartKind.EARLIEST
    assert start_of(FLOW, "x", 0).kind is StartKind.EARLIEST
