"""One flow between two locked-down clusters with everything switched on, under users that have some ACLs and no others.

``test_required_acls`` grants it all that the list says, or all but one, and watches what it does: every feature is driven,
and what the flow says is searched for the ACL that it lacks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from mirrorspark.control.acl_list import AclChoices, ClusterAcls, acls_of
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.heartbeats import HeartbeatJob
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import admin as new_admin
from mirrorspark.lab.clients import create_topic, end_offsets, producer, topic_partitions, wait_for
from mirrorspark.lab.flow_without_spark import LaneProcesses
from mirrorspark.lab.locked_pair import LockedPair, grant, revoke
from mirrorspark.lab.workload import Workload
from mirrorspark.names import Flow
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat
from mirrorspark.plan.name_patterns import PREFIXED
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.plan.required_acls import INCLUDED, RequiredAcl, Resource
from mirrorspark.settings import FlowSettings, GroupSync, Heartbeats, TopicSync

__all__ = ["DEADLINE_S", "LockedFlow", "admin", "beyond", "has_records", "is_seen_only_when_carried", "naming"]

SEED = 20261118
DEADLINE_S = 120.0
REQUEST_S = 30.0
RETENTIONS = ("7777000", "8888000")
LANE_PATCHES: dict[str, object] = {
    "mirrorspark.pipeline.troubles.RETRY_WAITING_S": 1.0,
    "mirrorspark.pipeline.ownership.RETRY_OWNING_S": 1.0,
    "mirrorspark.pipeline.worker.FAILED_PAUSE_S": 1.0,
}
"""What waits for a person waits less long here."""


class LockedFlow:
    """``number`` tells apart users, aliases and topics of flows that share the clusters."""

    def __init__(self, pair: LockedPair, number: int, folder: Path, **changes: Any) -> None:
        self.pair, self.number, self.folder = pair, number, folder
        self.alias, self.target_alias = f"lockeast{number}-{os.getpid()}", f"lockwest{number}-{os.getpid()}"
        self.plain, self.more = f"{self.alias}-plain", f"{self.alias}-more"
        self.group = f"{self.alias}-readers"
        self.first = 0  # offset of the first record, in every topic
        self.settings = FlowSettings(
            Flow(self.alias, self.target_alias),
            pair.settings("source", self.alias, number),
            pair.settings("target", self.target_alias, number),
            **{
                "topics": f"{self.plain}, {self.more}.*",
                "replication_factor": 1,
                "topic_sync": TopicSync(refresh_interval_s=0.5, configs_interval_s=0.5, acls_interval_s=0.5),
                "group_sync": GroupSync(groups=f"{self.group}.*", offsets_enabled=True, refresh_interval_s=5.0),
                "heartbeats": Heartbeats(interval_s=0.5),
                "enabled": True,
                **changes,
            },
        )
        self.policy = policy_for(self.settings)
        self.choices = AclChoices({}, {})
        self.life = FlowLife(self.settings, self._make_lanes, _is_up)
        self.lanes: list[LaneProcesses] = []
        self.logged: list[str] = []
        self.workload = Workload(pair.source.bootstrap, self.plain, 2, SEED)
        self.is_driven = False

    # -- ACLs -------------------------------------------------------------------------------------------------------

    def required(self) -> list[ClusterAcls]:
        """As the command lists them for a file with both clusters in it, where heartbeats go both ways."""
        back = Flow(self.target_alias, self.alias)
        other = replace(
            self.settings, flow=back, source=self.settings.target, target=self.settings.source, enabled=False
        )
        return acls_of([self.settings], self.choices, others=[other])

    def lines(self) -> list[RequiredAcl]:
        return [acl for one in self.required() for acl in one.acls]

    def grant_all_but(self, left_out: RequiredAcl | None = None) -> None:
        for one in self.required():
            wanted = [acl for acl in one.acls if left_out is None or acl.key != left_out.key]
            grant(self.bootstrap(one.cluster.alias), one.principal, wanted)

    def lacks(self, acl: RequiredAcl) -> None:
        """For flows of another way: be about to do what that one is for."""

    def grant(self, acl: RequiredAcl) -> None:
        grant(self.bootstrap(acl.cluster), self._principal(acl.cluster), [acl])

    def revoke(self, acl: RequiredAcl) -> None:
        revoke(self.bootstrap(acl.cluster), self._principal(acl.cluster), acl)

    def bootstrap(self, alias: str) -> str:
        return (self.pair.source if alias == self.alias else self.pair.target).bootstrap

    def _principal(self, alias: str) -> str:
        return f"User:{'source' if alias == self.alias else 'target'}-{self.number}"

    # -- life -------------------------------------------------------------------------------------------------------

    def _make_lanes(self, settings: FlowSettings, generation: int) -> LaneProcesses:
        place = self.folder / f"{self.alias}-{generation}"
        place.mkdir(parents=True)
        self.lanes.append(LaneProcesses(settings, generation, place, LANE_PATCHES))
        return self.lanes[-1]

    def prepare(self) -> None:
        """What is on the source before the flow begins."""
        source = self.pair.source.bootstrap
        self.workload.create_topic({"retention.ms": RETENTIONS[0]})
        create_topic(source, f"{self.more}-1", 1, client=admin(source))
        self.before_records()
        self.workload.produce(20, has_ancient=False)
        self._write(f"{self.more}-1", 5)
        self._write_heartbeat()
        self._commit(3)
        _allow_reader(source, self.plain, self.alias)

    def before_records(self) -> None:
        """For flows of another way: what the source has to have before the first record."""

    async def live(self, work: Callable[[], Any]) -> None:
        """Run the flow and its heartbeats for as long as ``work`` takes."""
        beating = HeartbeatJob(self.settings, self.life.status)
        jobs = [asyncio.ensure_future(one) for one in (self.life.live(), beating.run())]
        try:
            await work()
        finally:
            await end_tasks(jobs)
            await self.life.stop()
            for lanes in self.lanes:
                lanes.kill()

    async def drive(self) -> None:
        """Once: a new topic, more partitions, other settings, another commit, and a lane that is killed."""
        if not self.is_driven:
            self.is_driven = True
            await asyncio.to_thread(self._drive)

    def _drive(self) -> None:
        source = self.pair.source.bootstrap
        create_topic(source, f"{self.more}-2", 1, client=admin(source))
        self._write(f"{self.more}-2", 5)
        client = admin(source)
        wanted = [NewPartitions(self.plain, 3), NewPartitions(f"{self.more}-1", 2)]
        for answer in client.create_partitions(wanted, request_timeout=REQUEST_S).values():
            answer.result(REQUEST_S)
        entry = ConfigEntry("retention.ms", RETENTIONS[1], incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.plain, incremental_configs=[entry])
        for answer in client.incremental_alter_configs([resource]).values():
            answer.result(REQUEST_S)
        self._commit(9)
        for lanes in self.lanes[-1:]:
            for pid in lanes.pids.values():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.nudge()

    def nudge(self) -> None:
        """Something new of everything that a flow does only when there is something new."""
        self.workload.produce(4, has_ancient=False)
        self._write_heartbeat()
        self._commit(10)

    def grow_heartbeats(self) -> None:
        source = self.pair.source.bootstrap
        count = _partitions(source, HEARTBEATS_TOPIC) + 1
        answers = admin(source).create_partitions([NewPartitions(HEARTBEATS_TOPIC, count)], request_timeout=REQUEST_S)
        answers[HEARTBEATS_TOPIC].result(REQUEST_S)

    def _write(self, topic: str, count: int) -> None:
        client = producer(self.pair.source.bootstrap)
        for number in range(count):
            client.produce(topic, value=f"record {number}".encode(), partition=0)
        assert client.flush(REQUEST_S) == 0

    def _write_heartbeat(self) -> None:
        beat = Heartbeat(self.target_alias, self.alias, int(time.time() * 1000))
        client = producer(self.pair.source.bootstrap)
        client.produce(HEARTBEATS_TOPIC, key=beat.key, value=beat.value, partition=0)
        assert client.flush(REQUEST_S) == 0

    def _commit(self, offset: int) -> None:
        """Until it is taken: a cluster refuses its first commits while their coordinator loads, partition by partition."""
        at = TopicPartition(self.plain, 0, self.first + offset)
        wanted = [ConsumerGroupTopicPartitions(self.group, [at])]
        client = admin(self.pair.source.bootstrap)

        def is_taken() -> bool:
            answers = client.alter_consumer_group_offsets(wanted, request_timeout=REQUEST_S)
            return all(one.error is None for one in answers[self.group].result(REQUEST_S).topic_partitions)

        wait_for(is_taken, f"a commit of {self.group}", DEADLINE_S)

    # -- what it says -----------------------------------------------------------------------------------------------

    def texts(self) -> Iterator[str]:
        """Everything that an operator can read: state, events, waiting partitions, log, and what lanes leave behind."""
        status = self.life.status
        yield str(self.life.error or "")
        yield from status.failures.values()
        yield from map(str, status.events.values())
        yield from (f"{place}: {why}" for place, why in status.waiting.items())
        yield from self.logged
        for lanes in self.lanes:
            for path in lanes._folder.glob("lane-*.log"):
                yield from path.read_text(errors="replace").splitlines()

    def report(self) -> str:
        return "\n".join(filter(None, [*self.texts(), f"groups: {self.life.status.groups}", self.life.status.state]))

    def told(self, acl: RequiredAcl) -> str:
        return naming(acl, self.texts())

    # -- what it does -----------------------------------------------------------------------------------------------

    def missing(self, *, whole: bool) -> str:
        """What does not work yet, in a word; empty when all does. ``whole``: after everything was driven."""
        target, remote = self.pair.target.bootstrap, self.policy.remote
        for topic, partitions in self.topics(whole).items():
            if _partitions(target, remote(topic)) < partitions:
                return f"partitions of {topic}"
            if _records(target, remote(topic)) < _records(self.pair.source.bootstrap, topic):
                return f"records of {topic}"
        return next((what for what, holds in self.checks(whole).items() if not holds()), "")

    def topics(self, whole: bool) -> dict[str, int]:
        """Those that shall be on the target, with so many partitions."""
        found = {self.plain: 3 if whole else 2, f"{self.more}-1": 2 if whole else 1}
        return found | ({f"{self.more}-2": 1} if whole else {})

    def checks(self, whole: bool) -> dict[str, Callable[[], bool]]:
        target, remote, status = self.pair.target.bootstrap, self.policy.remote, self.life.status
        sync = self.settings.topic_sync
        return {
            "heartbeats sent": lambda: status.heartbeats_sent > 0,
            "heartbeats carried": lambda: has_records(target, remote(HEARTBEATS_TOPIC)),
            "settings": lambda: not sync.configs_enabled or _retention(target, remote(self.plain)) == RETENTIONS[whole],
            "an ACL": lambda: _has_reader(target, remote(self.plain), self.alias),
            "a group": lambda: self._group_on_target() >= self.first + (9 if whole else 3),
            "checkpoints": lambda: has_records(target, self.policy.checkpoints_topic(self.alias)),
            "commits followed": lambda: status.groups.get("mode") == "following",
            "offset syncs": lambda: has_records(
                self.pair.source.bootstrap, f"mm2-offset-syncs.{self.target_alias}.internal"
            ),
            "no failure": lambda: self.life.error is None and not status.failures,
        }

    def _group_on_target(self) -> int:
        client = admin(self.pair.target.bootstrap)
        wanted = [ConsumerGroupTopicPartitions(self.group)]
        found = client.list_consumer_group_offsets(wanted, request_timeout=REQUEST_S)[self.group].result(REQUEST_S)
        remote = self.policy.remote(self.plain)
        return max((at.offset for at in found.topic_partitions if (at.topic, at.partition) == (remote, 0)), default=-1)

    async def until_works(self, *, whole: bool) -> None:
        began, seen = time.monotonic(), ""
        while missing := await asyncio.to_thread(self.missing, whole=whole):
            waited_s = time.monotonic() - began
            if missing != seen:
                print(f"{self.alias}: after {waited_s:.1f} s: {missing}", flush=True)
            if waited_s > DEADLINE_S:
                raise AssertionError(f"{self.alias}: waited for {missing}\n{self.report()}")
            seen = missing
            await asyncio.sleep(0.25)

    def check_copy(self) -> None:
        """Nothing lost, nothing twice."""
        source, target = self.pair.source.bootstrap, self.pair.target.bootstrap
        remote = self.policy.remote(self.plain)
        wait_until_caught_up(source, target, self.plain, remote)
        verdict = check_copy(target, remote, self.workload.ledger)
        assert verdict.is_clean, verdict.report()


def naming(acl: RequiredAcl, texts: Iterable[str]) -> str:
    """The text that names what is missing: operation, resource, and its name; "" if none does."""
    operations = {acl.operation, *INCLUDED.get(acl.operation, ())}
    kind = str(acl.resource).replace("-", " ")
    words = [f"our user lacks the ACL {operation} on the {kind}:" for operation in operations]
    name = acl.cluster if acl.resource is Resource.CLUSTER else acl.name
    return next((text for text in texts if name in text and any(word in text for word in words)), "")


def beyond(lines: Sequence[RequiredAcl], usual: Iterable[RequiredAcl]) -> list[int]:
    """Numbers of the lines that are not among the usual ones."""
    known = {acl.key for acl in usual}
    return [number for number, acl in enumerate(lines) if acl.key not in known]


@cache
def admin(bootstrap: str) -> Any:
    """One for each cluster: whoever asks ten times a second need not connect ten times."""
    return new_admin(bootstrap)


def _partitions(bootstrap: str, topic: str) -> int:
    return topic_partitions(bootstrap, topic, admin(bootstrap))


def _records(bootstrap: str, topic: str) -> int:
    """Offsets between first and end, markers among them."""
    return sum(end - first for first, end in end_offsets(bootstrap, topic, client=admin(bootstrap)).values())


async def _is_up() -> None:
    """There is no Spark to wait for."""


def has_records(bootstrap: str, topic: str) -> bool:
    return _partitions(bootstrap, topic) > 0 and _records(bootstrap, topic) > 0


def _retention(bootstrap: str, topic: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (answer,) = admin(bootstrap).describe_configs([resource]).values()
    return str(answer.result(REQUEST_S)["retention.ms"].value)


def _reader(topic: str, alias: str) -> AclBinding:
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    return AclBinding(*place, f"User:reader-of-{alias}", "*", AclOperation.READ, AclPermissionType.ALLOW)


def _allow_reader(bootstrap: str, topic: str, alias: str) -> None:
    for answer in admin(bootstrap).create_acls([_reader(topic, alias)]).values():
        answer.result(REQUEST_S)


def _has_reader(bootstrap: str, topic: str, alias: str) -> bool:
    wanted = _reader(topic, alias)
    place = (wanted.restype, topic, wanted.resource_pattern_type, wanted.principal, "*", wanted.operation)
    found = admin(bootstrap).describe_acls(AclBindingFilter(*place, AclPermissionType.ALLOW)).result(REQUEST_S)
    return bool(found)


def is_seen_only_when_carried(acl: RequiredAcl, flow: LockedFlow) -> bool:
    """Topics of the source that nobody has named and that are hidden from us: only the loss of one can be told."""
    return acl.cluster == flow.alias and acl.operation == "Read" and acl.pattern == PREFIXED
