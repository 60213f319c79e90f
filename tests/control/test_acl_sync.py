"""ACLs of remote topics kept in step on real clusters: by difference, and nothing of others is ever taken away."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.topic_acls import create_acls, delete_acls, describe_acls
from mirrorspark.control.acl_sync import AclSync, format_granted, parse_granted
from mirrorspark.control.reconcile import ensure_internal_topics
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.requests_sent import requests_sent
from mirrorspark.names import Flow, TopicAcl
from mirrorspark.offsets.internal_topics import plan_topic
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.settings import ClusterSettings, FlowSettings, TopicSync

SEEN_S = 30.0
_aliases = itertools.count(1)


class World:
    """One principal of its own on both clusters: tests share them, and their ACLs are everybody's."""

    def __init__(self, source: ClusterClient, target: ClusterClient, in_loop: Callable[..., Any]) -> None:
        self.alias = f"l{next(_aliases)}-{os.getpid()}"
        self.principal = f"User:{self.alias}"
        self.source, self.target, self.in_loop = source, target, in_loop
        source.alias, target.alias = self.alias, "west"
        self.settings = FlowSettings(
            Flow(self.alias, "west"),
            ClusterSettings(self.alias, source.settings.bootstrap),
            ClusterSettings("west", target.settings.bootstrap),
            topics=f"{self.alias}-.*",
        )
        in_loop(ensure_internal_topics(target, self.settings))
        self.begin()
        self.sent = requests_sent(target)

    def begin(self) -> None:
        """As a new driver does."""
        self.sync = AclSync(self.source, self.target, KeyedTopic(self.target, plan_topic(self.alias)))

    def acl(self, operation: str, permission: str = "ALLOW", name: str = "a", pattern: str = "LITERAL") -> TopicAcl:
        return TopicAcl(pattern, f"{self.alias}-{name}", self.principal, "*", operation, permission)

    def change(self, client: ClusterClient, work: Any, acls: list[TopicAcl], there: bool) -> None:
        assert not self.in_loop(work(client, acls)).refused
        wait_for(lambda: all((one in self.of(client)) is there for one in acls), f"{acls}", SEEN_S)
        self.sent.clear()

    def grant(self, *acls: TopicAcl) -> None:
        self.change(self.source, create_acls, list(acls), True)

    def revoke(self, *acls: TopicAcl) -> None:
        self.change(self.source, delete_acls, list(acls), False)

    def of(self, client: ClusterClient) -> set[TopicAcl]:
        return {one for one in self.in_loop(describe_acls(client)) if one.principal == self.principal}

    def pass_over(self, **changes: Any) -> list[Any]:
        rules = TopicRules(replace(self.settings, topic_sync=TopicSync(**changes)))
        self.sent.clear()
        return list(self.in_loop(self.sync.sync(rules, [f"{self.alias}-a"])))

    def changes_sent(self) -> list[str]:
        return [name for name in self.sent if name in ("CreateAclsRequest", "DeleteAclsRequest")]

    def wait_target(self, *acls: TopicAcl) -> None:
        wanted = {one._replace(name=f"{self.alias}.{one.name}") for one in acls}
        wait_for(lambda: self.of(self.target) == wanted, f"{wanted}, not {self.of(self.target)}", SEEN_S)


@pytest.fixture
def world(
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
) -> World:
    return World(connect(source_cluster), connect(target_cluster), in_loop)


def test_2_6_6_acls_are_granted_by_difference_and_only_our_own_are_revoked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    read, write, everything, deny = world.acl("READ"), world.acl("WRITE"), world.acl("ALL"), world.acl("ALL", "DENY")
    describe, prefixed = world.acl("DESCRIBE"), world.acl("READ", pattern="PREFIXED", name="")
    elsewhere = TopicAcl("LITERAL", f"not-{world.alias}", world.principal, "*", "READ", "ALLOW")
    world.grant(write, everything, deny, describe, prefixed, elsewhere)

    # BB-18: ALL becomes READ, WRITE and what is not mirrored are absent, DENY ALL is kept; prefixed ones only if wanted.
    assert world.pass_over() == []
    assert world.changes_sent() == ["CreateAclsRequest"]
    world.wait_target(read, deny, describe)
    assert (world.sync.granted, world.sync.revoked) == (3, 0)

    # The second pass sends nothing, nor does one of a new driver.
    assert (world.pass_over(), world.changes_sent()) == ([], [])
    world.begin()
    assert (world.pass_over(), world.changes_sent()) == ([], [])

    # Prefixed ones, where wanted.
    assert world.pass_over(acls_prefixed=True) == []
    world.wait_target(read, deny, describe, prefixed)

    # Somebody else's ACL on the target, and one of the source that was granted there by hand before us.
    foreign = world.acl("ALTER")._replace(name=f"{world.alias}.{world.alias}-a")
    world.change(world.target, create_acls, [foreign], True)
    by_hand = world.acl("DELETE")
    world.change(world.target, create_acls, [by_hand._replace(name=foreign.name)], True)
    world.grant(by_hand)
    world.revoke(everything, by_hand)

    # 2.6.4: without revocation all stays; with it, only what we granted goes. A new driver knows what that was.
    assert (world.pass_over(acls_prefixed=True), world.changes_sent()) == ([], [])
    world.begin()
    assert world.pass_over(acls_prefixed=True, acls_revoke=True) == []
    assert world.changes_sent() == ["DeleteAclsRequest"]
    world.wait_target(deny, describe, prefixed, world.acl("ALTER"), by_hand)
    assert world.sync.revoked == 1
    assert (world.pass_over(acls_prefixed=True, acls_revoke=True), world.changes_sent()) == ([], [])

    # A literal * covers the remote topics of this source, and says so.
    all_topics = world.acl("READ")._replace(name="*")
    with caplog.at_level(logging.WARNING, "mirrorspark.flow"):
        world.grant(all_topics)
        world.pass_over(acls_prefixed=True)
        world.pass_over(acls_prefixed=True)
    assert caplog.text.count("becomes a prefix that covers the remote topics of this source") == 1
    as_prefix = all_topics._replace(pattern="PREFIXED", name=f"{world.alias}.")
    wait_for(lambda: as_prefix in world.of(world.target), f"{as_prefix}", SEEN_S)
    world.revoke(all_topics)


def test_2_6_1_a_cluster_without_an_authorizer_is_no_failure(
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    own_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
) -> None:
    """BB-19."""
    world = World(connect(own_cluster), connect(target_cluster), in_loop)
    assert world.pass_over() == []
    assert world.sync.notice == f"cluster {world.alias} has no authorizer: no ACLs are synced"
    assert world.changes_sent() == []


def test_the_record_of_what_was_granted() -> None:
    acls = {
        TopicAcl("LITERAL", "a", "User:b", "*", "READ", "ALLOW"),
        TopicAcl("PREFIXED", "c", "d", "e", "ALL", "DENY"),
    }
    assert parse_granted(format_granted(acls)) == acls
    assert parse_granted(None) == frozenset()


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"v":2,"granted":[["a"]]}', b'{"v":1,"granted":[["a"]]}', b'{"v":1}'])
def test_a_record_that_cannot_be_read_revokes_nothing(raw: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert parse_granted(raw) == frozenset()
    assert "none of them will be revoked" in caplog.text
