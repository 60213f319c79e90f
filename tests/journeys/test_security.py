"""Secured clusters: every protocol in both modes with lanes killed; each failure told apart, and mended without a restart.

One source and one target broker with a listener for each way to be secured; the five ways share a workload.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.control import flow_life
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.flow_runtime import Query
from mirrorspark.errors import ClusterError
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.chaos import run_chaos
from mirrorspark.lab.checker import Verdict, check_copy
from mirrorspark.lab.clients import admin, create_topic, total_records, wait_for
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark, LaneProcesses
from mirrorspark.lab.secured_cluster import MATRIX, SESSION_MS, SecuredPair, librdkafka_settings, set_password
from mirrorspark.lab.workload import Workload
from mirrorspark.names import Flow
from mirrorspark.offsets.internal_topics import plan_topic
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats, TopicSync, parse_bootstrap

SEED = 20261117
RECORDS = 150
LONG_KILLS = 12
KILLS_WITH_SPARK = 10
TOLD_WITHIN_S = 10.0
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPair]:
    with SecuredPair(tmp_path_factory.mktemp("secured")) as pair:
        yield pair


def _side(pair: SecuredPair, side: str, listener: str, alias: str, **changes: str) -> ClusterSettings:
    cluster = pair.source if side == "source" else pair.target
    client = {**pair.settings(listener), **{name.replace("_", "."): value for name, value in changes.items()}}
    return ClusterSettings(alias, parse_bootstrap(pair.bootstrap(cluster, listener), side), client)


def _flow(source: ClusterSettings, target: ClusterSettings, topics: str, **changes: Any) -> FlowSettings:
    return FlowSettings(
        Flow(source.alias, target.alias),
        source,
        target,
        topics=topics,
        replication_factor=1,
        topic_sync=TopicSync(refresh_interval_s=1.0),
        heartbeats=Heartbeats(emitted=False, replicated=False),
        **changes,
    )


# -- the matrix --------------------------------------------------------------------------------------------------------


def _carry_over_all(
    pair: SecuredPair, folder: Path, topic: str, listeners: Sequence[str], *, transactions: bool, kills: int
) -> None:
    """One workload, carried by a flow for each listener; their lanes are killed, then all copies are compared."""
    source, target = pair.source.bootstrap, pair.target.bootstrap
    workload = Workload(source, topic, 3, SEED)
    workload.create_topic()
    workload.produce(RECORDS)
    flows = {}
    for listener in listeners:
        alias = f"sec{listener.lower()}-{int(transactions)}-{os.getpid()}"
        sides = _side(pair, "source", listener, alias), _side(pair, "target", listener, "vault")
        settings = _flow(*sides, topic, tasks_max=1, transactions=transactions)
        flows[listener] = FlowWithoutSpark(settings, folder=folder / listener)
    try:
        with ThreadPoolExecutor(len(flows)) as together:
            list(together.map(FlowWithoutSpark.start, flows.values()))
        workload.start(100)
        dice = random.Random(SEED)
        for _ in range(kills):
            _kill_all_lanes(list(flows.values()), target, topic, dice)
        workload.stop()

        def compare(listener: str) -> Verdict:
            remote = f"{flows[listener].settings.flow.source}.{topic}"
            wait_until_caught_up(source, target, topic, remote)
            return check_copy(target, remote, workload.ledger, isolation="read_uncommitted")

        with ThreadPoolExecutor(len(flows)) as together:
            verdicts = dict(zip(flows, together.map(compare, flows), strict=True))
        for listener, verdict in verdicts.items():
            lanes = flows[listener].lanes
            assert lanes is not None
            print(f"{listener}: {verdict} ({verdict.read} records read), {lanes.starts} starts of its lane")
            assert verdict.is_clean, f"{listener}: {verdict.report()}\n{flows[listener].log_text()}"
            assert lanes.starts > kills, listener
    finally:
        with ThreadPoolExecutor(len(flows)) as together:
            list(together.map(FlowWithoutSpark.kill, flows.values()))


def _kill_all_lanes(flows: list[FlowWithoutSpark], target: str, topic: str, dice: random.Random) -> None:
    """While they carry: records have come since they were started. One after the other, with the load still on."""
    remotes = [f"{flow.settings.flow.source}.{topic}" for flow in flows]
    before = [total_records(target, remote) for remote in remotes]
    for flow, remote, carried in zip(flows, remotes, before, strict=True):
        wait_for(lambda: total_records(target, remote) > carried, f"records of {flow.settings.flow}", DEADLINE_S)  # noqa: B023
    for flow in flows:
        time.sleep(dice.uniform(0.0, 0.2))
        assert flow.lanes is not None
        for pid in flow.lanes.pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_every_protocol_leaves_an_exact_copy_after_a_kill(
    pair: SecuredPair, tmp_path: Path, topic_name: str, transactions: bool
) -> None:
    """Of PLAINTEXT the same is told by ``test_kills``."""
    _carry_over_all(pair, tmp_path, topic_name, MATRIX[1:], transactions=transactions, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_every_protocol_leaves_an_exact_copy_after_many_kills(
    pair: SecuredPair, tmp_path: Path, topic_name: str, transactions: bool
) -> None:
    _carry_over_all(pair, tmp_path, topic_name, MATRIX, transactions=transactions, kills=LONG_KILLS)


# -- logins ------------------------------------------------------------------------------------------------------------


async def _outlive_sessions(pair: SecuredPair) -> None:
    """Brokers of the lab close a connection that does not log in again in time; a token's end is a session's end, too."""

    async def use(listener: str) -> None:
        client = ClusterClient(_side(pair, "source", listener, "sessions"), "test")
        await client.start(60.0)
        link = await client.connection(1)
        ends_at = time.monotonic() + 1.4 * SESSION_MS / 1000
        while time.monotonic() < ends_at:
            await asyncio.gather(*(client.refresh(None) for _ in range(5)))
            await asyncio.sleep(0.01)
        assert link.closed is None, f"{listener}: {link.closed}"
        assert await client.connection(1) is link
        client.close()

    before, pair.tokens.life_s = pair.tokens.given, 5.0
    try:
        await asyncio.gather(use("SCRAM"), use("OAUTH"))
    finally:
        pair.tokens.life_s = 600.0
    assert pair.tokens.given >= before + 2, "a token of 5 s does not last"


def test_ordinary_clients_take_the_same_settings(pair: SecuredPair) -> None:
    for listener in MATRIX:
        client = admin(pair.bootstrap(pair.target, listener), librdkafka_settings(pair.settings(listener)))
        assert 1 in client.list_topics(timeout=60).brokers, listener


# -- what is wrong is told, and mended ---------------------------------------------------------------------------------


@dataclass
class _Case:
    """A flow that cannot start: what it says, and what mends it."""

    settings: FlowSettings
    says: tuple[str, ...]
    mend: Callable[[], None]
    told_after_s: float = 0.0
    text: str = ""


def _change_store(pair: SecuredPair, listener: str, store: str) -> None:
    """Another certificate for a listener of the running source broker."""
    entry = ConfigEntry(
        f"listener.name.{listener}.ssl.keystore.location",
        str(pair.folder / f"{store}.p12"),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    client = admin(pair.source.bootstrap)
    for answer in client.incremental_alter_configs([resource]).values():
        answer.result(30)


_NO_WRITING = ((AclOperation.ALL, AclPermissionType.ALLOW), (AclOperation.WRITE, AclPermissionType.DENY))


def _forbid(bootstrap: str, topic: str, user: str) -> None:
    client = admin(bootstrap)
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    bindings = [AclBinding(*place, f"User:{user}", "*", *rule) for rule in _NO_WRITING]
    for answer in client.create_acls(bindings).values():
        answer.result(30)


def _allow(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    for answer in client.delete_acls([AclBindingFilter(*place, None, None, *_NO_WRITING[1])]).values():
        answer.result(30)


def _cases(pair: SecuredPair, topic: str) -> dict[str, _Case]:
    run = os.getpid()

    def alias(name: str) -> str:
        return f"broken{name}-{run}"

    def source(name: str, listener: str, **changes: str) -> ClusterSettings:
        return _side(pair, "source", listener, alias(name), **changes)

    def flow(given: ClusterSettings, target: str = "SSL") -> FlowSettings:
        return _flow(given, _side(pair, "target", target, "vault"), topic, tasks_max=1)

    clerk = f"clerk-{run}"
    set_password(pair.source.bootstrap, clerk, "the former one")
    login = pair.scram("the new one").replace('username="mirror"', f'username="{clerk}"')
    trust = pair.folder / "rotated.pem"
    trust.write_text(pair.other_authority.pem())
    renewed = pair.authority.issue("broker", "127.0.0.1")
    pair.store("renewed", renewed)
    plans = plan_topic(alias("acl"))
    _forbid(pair.target.bootstrap, plans, "mirror")
    key = "ssl.endpoint.identification.algorithm"
    return {
        "wrong password": _Case(
            flow(source("password", "SCRAM", sasl_jaas_config=login)),
            (f"{alias('password')}.sasl.jaas.config: 127.0.0.1:", f"refused the login of user {clerk}"),
            lambda: set_password(pair.source.bootstrap, clerk, "the new one"),
        ),
        "expired certificate": _Case(
            flow(source("expired", "EXPIRED")),
            (f"{alias('expired')}.ssl.truststore.location: 127.0.0.1:", "the broker's certificate", "expired on 20"),
            lambda: _change_store(pair, "expired", "renewed"),
        ),
        "wrong CA": _Case(
            flow(source("ca", "SSL", ssl_truststore_location=str(trust))),
            (f"{alias('ca')}.ssl.truststore.location: 127.0.0.1:", "issued by CN=the lab's CA", "is not trusted"),
            lambda: (trust.write_text(pair.authority.pem()), None)[1],
        ),
        "wrong host": _Case(
            flow(source("host", "ELSEWHERE")),
            (f"{alias('host')}.{key}: 127.0.0.1:", "is not for 127.0.0.1 (it is for elsewhere.example)"),
            lambda: _change_store(pair, "elsewhere", "renewed"),
        ),
        "missing ACL": _Case(
            flow(source("acl", "SSL"), "SCRAM"),
            (plans, "on cluster vault", "our user lacks the ACL Write on the topic"),
            lambda: _allow(pair.target.bootstrap, plans),
        ),
    }


def _lanes(folder: Path) -> Callable[[FlowSettings, int], Query]:
    def make(settings: FlowSettings, generation: int) -> Query:
        place = folder / f"{settings.flow.source}-{generation}"
        place.mkdir(parents=True)
        return LaneProcesses(settings, generation, place)

    return make


async def _is_up() -> None:
    """There is no Spark to wait for."""


def test_each_failure_is_told_apart_and_the_flow_recovers_when_it_is_mended(
    pair: SecuredPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
    in_loop: Callable[[Coroutine[Any, Any, Any]], Any],
) -> None:
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MAX", 1.0)
    create_topic(pair.source.bootstrap, topic_name, 1)
    cases = _cases(pair, topic_name)
    workload = Workload(pair.source.bootstrap, topic_name, 1, SEED)
    workload.produce(20)

    async def until(is_so: Callable[[], bool], what: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not is_so():
                await asyncio.sleep(0.05)
        assert is_so(), what

    async def fail_and_mend(name: str, case: _Case) -> None:
        life = FlowLife(case.settings, _lanes(tmp_path), _is_up)
        living = asyncio.ensure_future(life.live())
        began = time.monotonic()
        try:
            await until(lambda: life.error is not None, f"{name}: a failure")
            case.told_after_s, case.text = time.monotonic() - began, str(life.error)
            assert isinstance(life.error, ClusterError), repr(life.error)
            assert life.status.state == "failed"
            for part in case.says:
                assert part in case.text, f"{name}: {case.text}"
            await asyncio.to_thread(case.mend)
            remote = f"{case.settings.flow.source}.{topic_name}"
            await until(lambda: life.error is None and life.has_led, f"{name}: mended")
            await asyncio.to_thread(
                wait_until_caught_up, pair.source.bootstrap, pair.target.bootstrap, topic_name, remote
            )
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
            await life.stop()

    async def all_of_them() -> None:
        """Beside them, what takes time only: connections that outlive their sessions."""
        await asyncio.gather(_outlive_sessions(pair), *(fail_and_mend(name, case) for name, case in cases.items()))

    in_loop(all_of_them())
    for name, case in cases.items():
        print(f"{name}: after {case.told_after_s:.2f} s: {case.text}")
        assert case.told_after_s < TOLD_WITHIN_S, name
    assert len({case.text for case in cases.values()}) == len(cases)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_password_that_changes_while_the_flow_runs(
    pair: SecuredPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
    in_loop: Callable[[Coroutine[Any, Any, Any]], Any],
) -> None:
    """Sessions end and are not renewed: the flow says why, and goes on when the password is the old one again."""
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MAX", 1.0)
    source, target, clerk = pair.source.bootstrap, pair.target.bootstrap, f"clerk-of-a-run-{os.getpid()}"
    set_password(source, clerk, "the old one")
    login = pair.scram("the old one").replace('username="mirror"', f'username="{clerk}"')
    alias = f"changed-{os.getpid()}"
    sides = _side(pair, "source", "SCRAM", alias, sasl_jaas_config=login), _side(pair, "target", "MTLS", "vault")
    settings = _flow(*sides, topic_name, tasks_max=1)
    remote = f"{alias}.{topic_name}"
    workload = Workload(source, topic_name, 2, SEED)
    workload.create_topic()
    workload.produce(50)

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not is_so():
                await asyncio.sleep(0.05)

    async def run() -> None:
        life = FlowLife(settings, _lanes(tmp_path), _is_up)
        living = asyncio.ensure_future(life.live())
        try:
            await asyncio.to_thread(wait_until_caught_up, source, target, topic_name, remote)
            set_password(source, clerk, "a new one")
            workload.produce(50)
            told = f"{alias}.sasl.jaas.config: "
            await until(lambda: any(told in text for text in life.status.failures.values()))
            print(life.status.failures)
            set_password(source, clerk, "the old one")
            await asyncio.to_thread(wait_until_caught_up, source, target, topic_name, remote)
            await until(lambda: not life.status.failures)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
            await life.stop()

    in_loop(run())
    verdict = check_copy(target, remote, workload.ledger)
    assert verdict.is_clean, verdict.report()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_our_renewed_certificate_is_taken_without_a_restart(
    pair: SecuredPair, tmp_path: Path, topic_name: str, in_loop: Callable[[Coroutine[Any, Any, Any]], Any]
) -> None:
    """The key store's file is replaced while the flow runs, and the target denies the former name everything: whatever
    connects from then on is let in by the new one alone. Then the target is killed, so that everything connects anew."""
    source, target, alias = pair.source.bootstrap, pair.target.bootstrap, f"renewed-{os.getpid()}"
    store = tmp_path / "own.p12"
    former, renewed = f"former-{os.getpid()}", f"renewed-{os.getpid()}"
    store.write_bytes(pair.authority.issue(former).pkcs12())
    sides = (
        _side(pair, "source", "SSL", alias),
        _side(pair, "target", "MTLS", "vault", ssl_keystore_location=str(store)),
    )
    settings, remote = _flow(*sides, topic_name, tasks_max=1), f"{alias}.{topic_name}"
    workload = Workload(source, topic_name, 2, SEED)
    workload.create_topic()
    workload.produce(50)

    async def run() -> None:
        life = FlowLife(settings, _lanes(tmp_path), _is_up)
        living = asyncio.ensure_future(life.live())
        try:
            await asyncio.to_thread(wait_until_caught_up, source, target, topic_name, remote)
            store.write_bytes(pair.authority.issue(renewed).pkcs12())
            place = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, f"User:CN={former}", "*")
            client = admin(target)  # to be kept: what it was asked for ends with it
            wanted = [
                AclBinding(*place, AclOperation.ALL, AclPermissionType.DENY),
                AclBinding(*place[:3], "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW),
            ]
            for answer in client.create_acls(wanted).values():
                answer.result(30)
            await asyncio.to_thread(pair.target.brokers[0].kill)
            await asyncio.to_thread(pair.target.brokers[0].start)
            workload.produce(50)
            await asyncio.to_thread(wait_until_caught_up, source, target, topic_name, remote)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
            await life.stop()

    in_loop(run())
    verdict = check_copy(target, remote, workload.ledger)
    assert verdict.is_clean, verdict.report()


# -- kills of everything, on Spark's workers -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_brokers_and_drivers_killed_over_sasl_ssl_leave_an_exact_copy(pair: SecuredPair, transactions: bool) -> None:
    """As ``mirrorspark chaos --security sasl_ssl_scram``; sessions end every five seconds here, too."""
    result = run_chaos(
        pair.source,
        pair.target,
        seed=SEED,
        kills=KILLS_WITH_SPARK,
        topic=f"kills-over-scram-{int(transactions)}",
        transactions=transactions,
        extra=pair.mirror_settings("SCRAM", east=pair.source, west=pair.target),
        tell=print,
    )
    print(result.report())
    assert sum(result.kills.values()) == KILLS_WITH_SPARK
    assert result.is_clean, result.report()
