"""Locked flows of other ways of mirroring: each needs ACLs that a flow with everything switched on does not.

Names that stay, offsets that stay, records that are set aside, topics that are deleted with their sources.
``test_required_acls_of_ways`` proves their lists as ``test_required_acls`` proves the ordinary one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.journeys.locked_flows import REQUEST_S, LockedFlow, admin, has_records

from mirrorspark.lab.clients import create_topic, delete_records, delete_topic, producer, topic_partitions
from mirrorspark.lab.locked_pair import LockedPair
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.plan.required_acls import RequiredAcl
from mirrorspark.settings import CONFIG_PROPERTIES_EXCLUDE, Naming, Policies, TopicSync

__all__ = ["WAYS", "DeadLetterFlow", "DeletingFlow", "IdenticalFlow", "SameNameFlow"]

GONE = 7
"""Records before the first one, taken by retention."""
LARGE_BYTES = 1_500_000
"""More than a topic takes by default."""
QUICK = {"refresh_interval_s": 0.5, "configs_interval_s": 0.5, "acls_interval_s": 0.5}


class SameNameFlow(LockedFlow):
    """Topics keep their names, and producer ids tell what a mirror wrote."""

    def __init__(self, pair: LockedPair, number: int, folder: Path) -> None:
        super().__init__(pair, number, folder, naming=Naming("same-name"))


class IdenticalFlow(LockedFlow):
    """Records keep their offsets, from one that is not nought; settings are made once and not kept in step."""

    def __init__(self, pair: LockedPair, number: int, folder: Path) -> None:
        sync = TopicSync(**QUICK, configs_enabled=False)
        super().__init__(pair, number, folder, offsets="identical", topic_sync=sync)
        self.first = GONE

    def before_records(self) -> None:
        source = self.pair.source.bootstrap
        client = producer(source)
        partitions = {self.plain: 2, f"{self.more}-1": 1, HEARTBEATS_TOPIC: 1}
        for topic, count in partitions.items():
            for number in range(count * GONE):
                client.produce(topic, value=b"gone", partition=number % count)
        assert client.flush(REQUEST_S) == 0
        for topic, count in partitions.items():
            delete_records(source, topic, dict.fromkeys(range(count), GONE))


class DeadLetterFlow(LockedFlow):
    """A record that is too large for the target is set aside."""

    def __init__(self, pair: LockedPair, number: int, folder: Path) -> None:
        sync = TopicSync(**QUICK, config_properties_exclude=f"{CONFIG_PROPERTIES_EXCLUDE}, max.message.bytes")
        aside = Policies(on_record_too_large="dead-letter")
        super().__init__(pair, number, folder, policies=aside, topic_sync=sync)

    def before_records(self) -> None:
        source, topic = self.pair.source.bootstrap, f"{self.more}-large"
        create_topic(source, topic, 1, 1, {"max.message.bytes": str(2 * LARGE_BYTES)}, client=admin(source))
        client = producer(source, {"message.max.bytes": 2 * LARGE_BYTES})
        client.produce(topic, value=os.urandom(LARGE_BYTES), partition=0)
        assert client.flush(REQUEST_S) == 0

    def checks(self, whole: bool) -> dict[str, Callable[[], bool]]:
        topic = f"mirrorspark-dead-letters.{self.alias}.internal"
        return {**super().checks(whole), "dead letters": lambda: has_records(self.pair.target.bootstrap, topic)}


class DeletingFlow(LockedFlow):
    """A topic that is deleted on the source goes on the target too: ``deleted``, once everything else was driven."""

    def __init__(self, pair: LockedPair, number: int, folder: Path) -> None:
        super().__init__(pair, number, folder, policies=Policies(on_source_topic_deleted="delete"))
        self.deleted = f"{self.more}-1"

    def lacks(self, acl: RequiredAcl) -> None:
        """Delete what that line is for."""
        named = {self.policy.remote(topic): topic for topic in (self.plain, HEARTBEATS_TOPIC)}
        self.deleted = named.get(acl.name, self.deleted)

    def _drive(self) -> None:
        super()._drive()
        delete_topic(self.pair.source.bootstrap, self.deleted, client=admin(self.pair.source.bootstrap))

    def nudge(self) -> None:
        if not self.is_driven:
            super().nudge()  # who writes to a topic that is gone makes it anew

    def topics(self, whole: bool) -> dict[str, int]:
        found = super().topics(whole)
        if whole:
            found.pop(self.deleted, None)
        return found

    def checks(self, whole: bool) -> dict[str, Callable[[], bool]]:
        found = super().checks(whole)
        if not whole:
            return found
        target, remote = self.pair.target.bootstrap, self.policy.remote(self.deleted)
        gone_with_it = {self.plain: ("settings", "an ACL", "a group"), HEARTBEATS_TOPIC: ("heartbeats carried",)}
        for what in gone_with_it.get(self.deleted, ()):
            del found[what]
        return {**found, f"deletion of {remote}": lambda: topic_partitions(target, remote, admin(target)) == 0}

    def check_copy(self) -> None:
        if self.deleted != self.plain:
            super().check_copy()


WAYS: dict[str, type[LockedFlow]] = {
    "same-name": SameNameFlow,
    "identical": IdenticalFlow,
    "dead letters": DeadLetterFlow,
    "deletions": DeletingFlow,
}
