"""Who carries: MirrorMaker 2 with its defaults, a tuned one, mirrorspark, and its loop without Spark.

Used by the throughput and the latency phase. Every run of a party has a source alias of its own, so its remote topic and
its internal topics are its own too, and no party finds anything that another one left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mirrorspark.lab.bench.bare_loop import BareLoop
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.mirror_maker import Endpoint, MirrorMaker, flow_properties
from mirrorspark.lab.process_tree import descendants, kill_tree

__all__ = [
    "BARE",
    "MM2",
    "MM2_TUNED",
    "OURS",
    "PARTIES",
    "TARGET",
    "Errand",
    "Party",
    "Running",
    "end",
    "launch",
    "prepare",
]

TARGET = "to"
"""The target's alias, for all."""
STOP_TIMEOUT_S = 60.0

# The lab shortens this to 5 s for tests; a peer with its defaults has MirrorMaker 2's own 10 minutes.
_AS_SHIPPED = {"refresh.topics.interval.seconds": "600", "refresh.groups.interval.seconds": "600"}


class Running(Protocol):
    """A party's process."""

    @property
    def pid(self) -> int: ...
    @property
    def is_alive(self) -> bool: ...
    def log_tail(self, lines: int = 20) -> str: ...


@dataclass(frozen=True, slots=True)
class Party:
    """``heap_mb`` is for a JVM that carries; Kafka's own script gives MirrorMaker 2 two gigabytes."""

    key: str
    label: str
    heap_mb: int = 0


MM2 = Party("m2d", "MirrorMaker 2 default", 2_048)
MM2_TUNED = Party("m2t", "MirrorMaker 2 tuned", 4_096)
OURS = Party("spk", "mirrorspark")
BARE = Party("bare", "bare loop")
PARTIES = {party.key: party for party in (MM2, MM2_TUNED, OURS, BARE)}


@dataclass(frozen=True, slots=True)
class Errand:
    """What a party shall do: carry ``topics`` from one bootstrap to another under a source alias of its own."""

    alias: str
    source: str
    target: str
    topics: str
    codec: str
    tasks_max: int
    folder: Path
    starts_before_spark: bool = True
    """As mirrorspark does; without it all that is measured is what Spark's own lanes do."""
    arguments: tuple[str, ...] = ()
    """Of ``mirrorspark run``."""
    link: Mapping[str, str] = field(default_factory=dict)
    """Properties of every party's file that say how to reach the clusters, where that is not plain."""

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"


def prepare(party: Party, errand: Errand, extra: Mapping[str, str] | None = None) -> Mirror | MirrorMaker:
    """Ready to be started. ``extra`` are further properties, for mirrorspark and the bare loop."""
    if party in (MM2, MM2_TUNED):
        return MirrorMaker(_mm2_properties(party, errand), errand.folder, heap_mb=party.heap_mb)
    topics = {f"{errand.alias}->{TARGET}.topics": errand.topics}
    properties = mirror_properties(
        (errand.alias, errand.source),
        (TARGET, errand.target),
        tasks_max=errand.tasks_max,
        extra={**topics, "start.before.spark": str(errand.starts_before_spark).lower(), **errand.link, **(extra or {})},
    )
    return (BareLoop if party == BARE else Mirror)(properties, folder=errand.folder, arguments=errand.arguments)


def _mm2_properties(party: Party, errand: Errand) -> dict[str, str]:
    """The tuned one compresses as the source does; the default one writes uncompressed, as it does unless told."""
    is_tuned = party == MM2_TUNED
    return flow_properties(
        Endpoint(errand.alias, errand.source),
        Endpoint(TARGET, errand.target),
        topics=errand.topics,
        variant="tuned" if is_tuned else "default",
        tasks_max=errand.tasks_max,
        codec=errand.codec if is_tuned else "none",
        extra={**_AS_SHIPPED, **errand.link},
    )


def launch(process: Mirror | MirrorMaker) -> None:
    """Start and return at once."""
    if isinstance(process, MirrorMaker):
        process.start(wait=False)
    else:
        process.start()


def end(process: Mirror | MirrorMaker) -> None:
    """Ask it to stop; whatever is left of it and of what was below it is killed."""
    if not process.is_alive:
        return
    below = descendants(process.pid)
    try:
        process.stop(STOP_TIMEOUT_S)
    finally:
        for one in below:
            # Compares start times too: an id that is used again by somebody else is left alone.
            if one.is_running():
                kill_tree(one.pid)
