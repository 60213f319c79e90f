"""Several flows in one process: a chain, a fan-out and an aggregation beside flows that fail, and edits while they run.

The flows, their heartbeats and edits of the file are the mirror's own (``control.flow_set``, ``control.reload``); only the
lanes are plain processes instead of Spark's. ``test_start_before_spark`` edits the file of a whole process with Spark.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.control import flow_life, plan_lead
from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.reload import Reload, all_pairs
from mirrorspark.control.watch import FileWatch
from mirrorspark.errors import SettingsError
from mirrorspark.lab.clients import admin, create_topic, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import LaneProcesses
from mirrorspark.lab.mirror import mirror_properties
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.lab.preload import preload
from mirrorspark.lab.workload import Workload
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.plan.upstream_clusters import replication_hops, upstream_clusters
from mirrorspark.settings import FlowSettings

SEED = 20261117
DEADLINE_S = 120.0
NOBODY = "127.0.0.1:1"
_runs = itertools.count(1)


class Lanes:
    """In Spark's place: one plain process for each lane."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.of_flow: dict[Flow, LaneProcesses] = {}

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        return None

    async def up(self) -> None:
        return None

    def make_query(self, settings: FlowSettings, generation: int) -> Query:
        folder = self._folder / f"{settings.flow.source}-{settings.flow.target}"
        folder.mkdir(parents=True, exist_ok=True)
        self.of_flow[settings.flow] = LaneProcesses(settings, generation, folder)
        return self.of_flow[settings.flow]

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return False

    def kill(self) -> None:
        for lanes in self.of_flow.values():
            lanes.kill()


class Process:
    """The flows of a file, as ``runner`` would run them, in a thread with a loop of its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file = file
        self.lanes = Lanes(folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flows", daemon=True)
        self._thread.start()
        self.flows = FlowSet(self.lanes)
        self._reload: Reload | None = None

    def load(self) -> Deployment:
        return load_deployment(self.file, apart=True)

    def start(self) -> Deployment:
        deployment = self.load()

        async def begin() -> None:
            self.flows.refuse(deployment.refused)
            for settings in all_pairs(deployment):
                self.flows.begin(settings)
            self._reload = Reload(
                deployment,
                self.load,
                FileWatch([self.file]),
                apply=self.flows.apply,
                refuse=self.flows.refuse,
                show=self.flows.show_edit,
                is_watched=False,
            )

        self.call(begin())
        return deployment

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)

    def read_again(self) -> None:
        assert self._reload is not None
        self.call(self._reload.read_again())

    def status(self, flow: Flow) -> FlowStatus:
        return next(one for one in self.flows.look() if one.flow == str(flow))

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        try:
            self.call(self.flows.stop())
        finally:
            self.lanes.kill()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(DEADLINE_S)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[[Path], Process]]:
    begun: list[Process] = []

    def begin(file: Path) -> Process:
        begun.append(Process(file, tmp_path / "lanes"))
        return begun[-1]

    yield begin
    for one in begun:
        one.stop()


@pytest.fixture
def guarded() -> Iterator[ClusterOfBrokers]:
    """A cluster that keeps ACLs, also against us: nobody is a super user."""
    rules = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with ClusterOfBrokers("guarded", settings=rules) as cluster:
        yield cluster


def _forbid_writing(bootstrap: str, topic: str) -> None:
    """A topic with an ACL is closed but for what its ACLs allow: everything, then, and no writing."""
    rules = ((AclOperation.ALL, AclPermissionType.ALLOW), (AclOperation.WRITE, AclPermissionType.DENY))
    who = ("User:ANONYMOUS", "*")
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    client = admin(bootstrap)  # kept until it has answered
    for answer in client.create_acls([AclBinding(*place, *who, *rule) for rule in rules]).values():
        answer.result(30)


def _write(file: Path, properties: dict[str, str]) -> None:
    beside = file.with_suffix(".new")
    beside.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    beside.replace(file)


def _values(bootstrap: str, topic: str) -> list[bytes | None]:
    if not topic_partitions(bootstrap, topic):
        return []
    return [record.value for part in read_records(bootstrap, topic).values() for record in part]


def _names(bootstrap: str) -> list[str]:
    return list(admin(bootstrap).list_topics(timeout=30).topics)


def test_flows_side_by_side_fail_and_change_alone(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    guarded: ClusterOfBrokers,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    process: Callable[[Path], Process],
) -> None:
    """A chain a->b->c and a fan-out a->b, a->g; beside them a target that is down, an ACL that forbids a topic, a bad regex.

    The aliases a, c and x are one cluster: names, not brokers, make a topology.
    """
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MAX", 1.0)
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    run = f"-topology{next(_runs)}-{os.getpid()}"
    a, b, c, x, g, down, bad = (f"{name}{run}" for name in ("a", "b", "c", "x", "g", "down", "bad"))
    secret, late = f"{topic_name}-secret", f"{topic_name}-late"
    workload = Workload(source, topic_name, 2, SEED)
    workload.create_topic()
    create_topic(source, secret)
    create_topic(source, late)
    _forbid_writing(guarded.bootstrap, f"{a}.{secret}")
    properties = {
        "clusters": ", ".join((a, b, c, x, g, down, bad)),
        **{f"{alias}.bootstrap.servers": source for alias in (a, c, x)},
        f"{b}.bootstrap.servers": target,
        f"{bad}.bootstrap.servers": "127.0.0.1:2",
        f"{g}.bootstrap.servers": guarded.bootstrap,
        f"{down}.bootstrap.servers": NOBODY,
        f"{a}->{b}.enabled": "true",
        f"{a}->{b}.topics": topic_name,
        f"{b}->{c}.enabled": "true",
        f"{b}->{c}.topics": f"{a}.{topic_name}",
        f"{a}->{g}.enabled": "true",
        f"{a}->{g}.topics": f"{topic_name}, {secret}",
        f"{a}->{down}.enabled": "true",
        f"{a}->{bad}.enabled": "true",
        f"{a}->{bad}.topics": "[a",
        "emit.heartbeats.enabled": "false",
        f"{a}->{b}.emit.heartbeats.enabled": "true",
        f"{b}->{a}.emit.heartbeats.enabled": "true",
        "replication.factor": "1",
        "refresh.topics.interval.seconds": "1",
    }
    file = tmp_path / "mm2.properties"
    _write(file, properties)
    flows = process(file)
    deployment = flows.start()
    ab, bc, ag = Flow(a, b), Flow(b, c), Flow(a, g)
    workload.start(150)

    # Each that fails says so by its name; the chain and the fan-out carry.
    assert list(deployment.refused) == [Flow(a, bad)]
    failed = {Flow(a, bad): "not a regular expression", Flow(a, down): f"{down}.bootstrap.servers: {NOBODY}"}
    for flow, words in failed.items():
        wait_for(lambda flow=flow: flows.status(flow).verdict == "failed", f"{flow} to be shown as failed", DEADLINE_S)
        assert words in flows.status(flow).failures["the flow"]
    wait_for(lambda: len(_values(source, f"{b}.{a}.{topic_name}")) > 200, "records at the chain's end", DEADLINE_S)
    wait_for(lambda: flows.status(ab).verdict == "running", f"{flows.status(ab).notices}", DEADLINE_S)
    write_values(source, secret, [b"hush"])
    wait_for(lambda: bool(flows.status(ag).waiting), "the forbidden topic to be named", DEADLINE_S)
    assert all(place.startswith(f"{a}.{secret}-0") for place in flows.status(ag).waiting)
    assert any(event.topic == f"{a}.{secret}" or event.topic == secret for event in flows.status(ag).events.values())

    # They carry at the producers' pace, with nothing left over, while the others keep failing.
    before = {flow: (flows.status(flow).generation, flows.lanes.of_flow[flow].pids) for flow in (ab, bc, ag)}
    carried = flows.status(ab).records
    wait_for(lambda: flows.status(ab).records > carried + 400, "a->b to carry on", DEADLINE_S)
    for flow in (ab, bc, ag):
        wait_for(lambda flow=flow: flows.status(flow).lag_records < 200, f"{flow} to keep up", DEADLINE_S)
    assert before == {flow: (flows.status(flow).generation, flows.lanes.of_flow[flow].pids) for flow in before}

    # Heartbeats: on each target of a pair, and along the chain.
    beats = [Heartbeat.from_record(one.key, one.value) for one in read_records(target, HEARTBEATS_TOPIC)[0]]
    ours = [beat for beat in beats if beat is not None and (beat.source, beat.target) == (a, b)]
    assert len(ours) >= 2
    wait_for(lambda: bool(_values(source, f"{b}.{a}.{HEARTBEATS_TOPIC}")), "heartbeats at the chain's end", DEADLINE_S)
    policy = policy_for(flows.load().flows[0])
    assert replication_hops(policy, _names(source), a) == 2
    assert {a, b} <= upstream_clusters(policy, _names(source))
    age_s = flows.status(ab).heartbeat_age_s
    assert age_s is not None
    assert age_s < 30
    wait_for(lambda: flows.status(ab).heartbeat_mirrored_age_s is not None, "the age of a mirrored one", DEADLINE_S)

    # An edit that is wrong changes nothing and is shown.
    _write(file, {**properties, f"{a}->{b}.topcis": topic_name})
    flows.read_again()
    wait_for(
        lambda: any("topcis" in event.text for event in flows.status(ab).events.values()), "the bad edit", DEADLINE_S
    )
    with pytest.raises(SettingsError, match="topcis"):
        load_deployment(file)

    # A good one: another topic for a->b, more lanes for b->c, x->b is new (an aggregation), the flow that was down is gone.
    edited = {key: value for key, value in properties.items() if down not in key and bad not in key}
    edited |= {
        "clusters": ", ".join((a, b, c, x, g)),
        f"{a}->{b}.topics": f"{topic_name}, {late}",
        f"{b}->{c}.tasks.max": "2",
        f"{x}->{b}.enabled": "true",
        f"{x}->{b}.topics": late,
    }
    _write(file, edited)
    write_values(source, late, [b"late"])
    flows.read_again()
    for remote in (f"{a}.{late}", f"{x}.{late}"):
        wait_for(lambda remote=remote: _values(target, remote) == [b"late"], remote, DEADLINE_S)
    wait_for(lambda: not flows.status(ab).events, "the bad edit to be forgotten", DEADLINE_S)
    wait_for(lambda: flows.status(bc).verdict == "running", f"{flows.status(bc).notices}", DEADLINE_S)
    assert {status.flow for status in flows.flows.look()} == {str(one) for one in (ab, bc, ag, Flow(x, b))}
    for flow in (ab, ag):
        assert before[flow] == (flows.status(flow).generation, flows.lanes.of_flow[flow].pids), "its lanes were touched"
    assert flows.status(bc).generation == (before[bc][0] or 0) + 1
    assert len(flows.lanes.of_flow[bc].pids) == 2

    # A target that goes away later: its flow says so, the others go on. In the end every copy is whole.
    monkeypatch.setattr(plan_lead, "PUBLISH_STOPPING_S_MAX", 1.0)  # for the end of this test
    guarded.broker(1).kill()
    wait_for(lambda: flows.status(ag).verdict not in ("running", "idle"), "a->g to notice", DEADLINE_S)
    carried = flows.status(ab).records
    wait_for(lambda: flows.status(ab).records > carried + 200, "a->b to carry on without g", DEADLINE_S)
    workload.stop()
    written = sorted(_values(source, topic_name), key=repr)
    for bootstrap, remote in ((target, f"{a}.{topic_name}"), (source, f"{b}.{a}.{topic_name}")):
        wait_for(
            lambda bootstrap=bootstrap, remote=remote: sorted(_values(bootstrap, remote), key=repr) == written,
            f"{remote} to be whole, each record once",
            DEADLINE_S,
            every_s=0.5,
        )
    flows.lanes.of_flow[ag].kill()


# -- how much the others carry -----------------------------------------------------------------------------------------


class CatchUps:
    """Backlogs of one flow, taken up one after the other by an edit of ``topics``: how fast, in records a second."""

    def __init__(self, flows: Process, properties: dict[str, str], flow: Flow, target: str) -> None:
        self._flows, self._properties, self._flow, self._target = flows, properties, flow, target
        self._topics: list[str] = []

    def of(self, topic: str, records: int) -> float:
        self._topics.append(topic)
        _write(self._flows.file, {**self._properties, f"{self._flow}.topics": ", ".join(self._topics)})
        self._flows.read_again()
        remote = f"{self._flow.source}.{topic}"

        def arrived() -> int:
            return total_records(self._target, remote) if topic_partitions(self._target, remote) else 0

        empty_s = time.monotonic()

        def has_begun() -> bool:
            nonlocal empty_s
            looked_s = time.monotonic()
            if arrived() > 0:
                return True  # perhaps all at once: what counts is when there was nothing yet
            empty_s = looked_s
            return False

        wait_for(has_begun, f"the first record of {remote}", DEADLINE_S, every_s=0.02)
        wait_for(lambda: arrived() >= records, f"all of {remote}", DEADLINE_S, every_s=0.02)
        return records / (time.monotonic() - empty_s)


@pytest.mark.parametrize(
    ("records", "rounds", "ratio_min"),
    [
        (20_000, 1, 0.05),  # others use the machine too: what is meant is that nothing stands still
        pytest.param(200_000, 4, 0.7, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_flows_that_fail_take_no_throughput_from_the_others(
    records: int,
    rounds: int,
    ratio_min: float,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    guarded: ClusterOfBrokers,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    process: Callable[[Path], Process],
) -> None:
    """The same backlogs by one flow: alone, then beside a target that is down, a forbidden topic and a bad regex."""
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MAX", 1.0)
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    secret, topics = f"{topic_name}-secret", [f"{topic_name}-{number}" for number in range(rounds)]
    for topic in topics:
        create_topic(source, topic, 2)
        preload(source, topic, 2, records)
    create_topic(source, secret)
    write_values(source, secret, [b"hush"])

    def rate(case: str, broken: Callable[[str], dict[str, str]]) -> float:
        """Of the flow a->b, the best of all backlogs; ``broken`` are flows out of a that cannot work."""
        a = f"a-{case}-{topic_name[-20:]}"
        more = broken(a)
        properties = {
            "clusters": ", ".join((a, "b", *(key.split(".")[0] for key in more if key.endswith("servers")))),
            f"{a}.bootstrap.servers": source,
            "b.bootstrap.servers": target,
            f"{a}->b.enabled": "true",
            f"{a}->b.topics": "none-yet",
            "emit.heartbeats.enabled": "false",
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            **more,
        }
        file = tmp_path / f"{case}.properties"
        _write(file, properties)
        flows = process(file)
        flows.start()
        if broken is three_that_fail:
            wait_for(lambda: bool(flows.status(Flow(a, "g")).waiting), "the forbidden topic to be named", DEADLINE_S)
            for flow in (Flow(a, "down"), Flow(a, "bad")):
                wait_for(lambda flow=flow: flows.status(flow).verdict == "failed", f"{flow} to fail", DEADLINE_S)
        catch_ups = CatchUps(flows, properties, Flow(a, "b"), target)
        best = max(catch_ups.of(topic, records) for topic in topics)
        assert flows.status(Flow(a, "b")).verdict == "running", flows.status(Flow(a, "b")).notices
        flows.stop()
        return best

    def three_that_fail(a: str) -> dict[str, str]:
        _forbid_writing(guarded.bootstrap, f"{a}.{secret}")
        return {
            "g.bootstrap.servers": guarded.bootstrap,
            "down.bootstrap.servers": NOBODY,
            "bad.bootstrap.servers": "127.0.0.1:2",
            f"{a}->g.enabled": "true",
            f"{a}->g.topics": secret,
            f"{a}->down.enabled": "true",
            f"{a}->bad.enabled": "true",
            f"{a}->bad.topics": "[a",
        }

    alone, beside = rate("alone", lambda a: {}), rate("beside", three_that_fail)
    print(f"\n{alone:,.0f} records/s alone, {beside:,.0f} beside three that fail: {beside / alone:.2f}")
    assert beside >= ratio_min * alone


def test_two_mirrors_share_a_flow_with_topics_of_their_own(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    tmp_path: Path,
    process: Callable[[Path], Process],
) -> None:
    """Equal aliases, families of topics apart by ``group.id``: neither takes the flow from the other."""
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    alias = f"east-{topic_name}"
    mirrors = {}
    for family in ("orders", "bills"):
        create_topic(source, f"{family}-{topic_name}")
        file = tmp_path / f"{family}.properties"
        extra = {f"{alias}->west.topics": f"{family}-.*{topic_name}", "west.group.id": family}
        quick = {"emit.heartbeats.enabled": "false", "refresh.topics.interval.seconds": "1"}
        _write(file, mirror_properties((alias, source), ("west", target), tasks_max=1, extra={**extra, **quick}))
        mirrors[family] = process(file)
        mirrors[family].start()
    for family, mirror in mirrors.items():
        flow = Flow(alias, "west", family)
        wait_for(lambda mirror=mirror, flow=flow: mirror.status(flow).verdict == "running", f"{flow}", DEADLINE_S)
    for family, mirror in mirrors.items():
        write_values(source, f"{family}-{topic_name}", [family.encode()])
        remote = f"{alias}.{family}-{topic_name}"
        wait_for(lambda r=remote, f=family: _values(target, r) == [f.encode()], remote, DEADLINE_S)
        assert mirror.flows.errors == []
    plans = [name for name in _names(target) if name.startswith(f"mirrorspark-plan.{alias}.")]
    assert sorted(plans) == [f"mirrorspark-plan.{alias}.group.{family}.internal" for family in ("bills", "orders")]
