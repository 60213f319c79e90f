"""The words everybody shares: values without behaviour that waits.

All are frozen and picklable, since they cross from the driver to Spark's executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Flow", "OffsetRange", "SettingOrigin", "TopicAcl", "TopicPartition", "TopicSetting"]


class TopicPartition(NamedTuple):
    """One partition of one topic, on whichever cluster the context says."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class SettingOrigin:
    """Where the value of a topic's setting comes from, as brokers number it."""

    TOPIC = 1  # set on the topic itself
    STATIC_BROKER = 4  # in a broker's server.properties
    DEFAULT = 5  # Kafka's own default


class TopicSetting(NamedTuple):
    """One setting of a topic as a cluster describes it; sensitive ones come without a value."""

    name: str
    value: str | None
    origin: int
    read_only: bool = False
    sensitive: bool = False


class TopicAcl(NamedTuple):
    """One ACL on topics. ``pattern`` is LITERAL or PREFIXED, ``permission`` ALLOW or DENY."""

    pattern: str
    name: str
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        name = f"{self.name}*" if self.pattern == "PREFIXED" else self.name
        return f"{self.permission} {self.operation} on {name} to {self.principal} from {self.host}"


@dataclass(frozen=True, slots=True)
class Flow:
    """A directed pair of cluster aliases, written ``source->target`` as MirrorMaker 2 writes it.

    Several mirrors may share a pair, each with topics of its own; then each has an ``instance`` (its ``group.id``) and is
    written ``source->target/instance``.
    """

    source: str
    target: str
    instance: str = ""

    def __str__(self) -> str:
        return f"{self.source}->{self.target}" + (f"/{self.instance}" if self.instance else "")

    @property
    def books(self) -> str:
        """What the flow's own topics on the target are called after; what MirrorMaker 2 keeps goes by the source alone."""
        return f"{self.source}.group.{self.instance}" if self.instance else self.source


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``first`` to ``last``, both inclusive."""

    first: int
    last: int

    def __post_init__(self) -> None:
        assert self.first <= self.last, f"empty range {self.first}..{self.last}"

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"
