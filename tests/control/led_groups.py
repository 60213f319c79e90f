"""Groups on both clusters of a led flow, and a ledger that a test writes in the lanes' place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.group_sync import read_checkpoints
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry

from .led_flow import LedFlow

DEADLINE_S = 60.0


class LedGroups:
    """Both clusters' groups, the ledger and the checkpoints of a led flow."""

    def __init__(
        self, flow: LedFlow, source: ClusterClient, target: ClusterClient, in_loop: Callable[..., Any], topic: str
    ) -> None:
        self.flow = flow
        self.alias = flow.settings.flow.source
        self.source, self.target = GroupAdmin(source), GroupAdmin(target)
        self.client = target
        self.at = TopicPartition(topic, 0)
        self.remote = TopicPartition(f"{self.alias}.{topic}", 0)
        self.in_loop = in_loop

    def mirror(self, upstream_next: int, ahead: int = 100) -> None:
        """Of offsets 0 and on, all records lie ``ahead`` further on the target."""
        run = Run(0, upstream_next - 1, ahead, ahead + upstream_next - 1, upstream_next)
        page = LedgerPage.of([run], upstream_start=0, upstream_next=upstream_next, downstream_start=ahead)
        self.append(ledger_topic(self.alias), *ledger_entry(self.remote, page))

    def append(self, topic: str, key: bytes, value: bytes | None) -> None:
        self.in_loop(KeyedTopic(self.client, topic).append([(key, value)], Deadline(DEADLINE_S)))

    def commit(self, group: str, offset: int, *, on: str = "source", metadata: str = "") -> None:
        admin, at = (self.source, self.at) if on == "source" else (self.target, self.remote)
        answers = self.in_loop(admin.commit({group: {at: (offset, metadata)}}, Deadline(DEADLINE_S)))
        assert not answers.refused
        assert not answers.found[group]

    def on_target(self, group: str) -> tuple[int, str] | None:
        found: dict[TopicPartition, tuple[int, str]]
        found = self.in_loop(self.target.offsets({group: None}, Deadline(DEADLINE_S))).found[group]
        return found.get(self.remote)

    def checkpoint(self, group: str) -> GroupCheckpoint | None:
        topic = KeyedTopic(self.client, f"{self.alias}.checkpoints.internal")
        found, _ = self.in_loop(read_checkpoints(topic, Deadline(DEADLINE_S)))
        return found.get((group, self.remote))

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        self.flow.wait(is_so, what)

    @property
    def picture(self) -> dict[str, Any]:
        return self.flow.runtime.status.groups
