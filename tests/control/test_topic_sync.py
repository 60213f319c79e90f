"""Settings and ACLs kept in step by a flow that is led: within an interval, counted, and shown by ``status``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.topic_acls import create_acls, delete_acls, describe_acls
from mirrorspark.cluster.topic_configs import alter_configs, describe_configs
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.requests_sent import requests_sent
from mirrorspark.names import TopicAcl

from .led_flow import LedFlow

PASSES = 3


def test_a_led_flow_follows_the_source_and_sends_nothing_more(
    led_flow: Callable[..., LedFlow],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    often = {f"sync__topic__{what}__interval__seconds": "1" for what in ("configs", "acls")}
    flow = led_flow(topic_name, **often)
    sent = requests_sent(flow.runtime._target)
    source, target = connect(source_cluster), connect(target_cluster)
    remote = f"{flow.settings.flow.source}.{topic_name}"
    acl = TopicAcl("LITERAL", topic_name, f"User:{topic_name}", "*", "READ", "ALLOW")
    in_loop(alter_configs(source, {topic_name: {"retention.ms": "4242"}}))
    in_loop(create_acls(source, [acl]))

    def value() -> str | None:
        described = in_loop(describe_configs(target, [remote])).settings.get(remote, [])
        return next((one.value for one in described if one.name == "retention.ms"), None)

    flow.wait(lambda: value() == "4242", "the setting")
    flow.wait(lambda: acl._replace(name=remote) in in_loop(describe_acls(target)), "the ACL")

    def counts() -> tuple[int, int]:
        sync = flow.runtime.status.sync
        return sync.get("settings_changed", 0), sync.get("acls_granted", 0)

    flow.wait(lambda: counts() == (1, 1), "the counts")
    sent.clear()
    for what in ("DescribeConfigsRequest", "DescribeAclsRequest"):
        flow.wait(lambda what=what: sent.count(what) >= PASSES, f"{PASSES} passes of {what}")  # type: ignore[misc]
    assert set(sent) == {"DescribeConfigsRequest", "DescribeAclsRequest"}, "only looked"
    text = CliRunner().invoke(app, ["status", str(flow.file)]).stdout
    assert "  topics: settings in step, 1 changed since the start; ACLs: 1 granted, 0 revoked\n" in text
    in_loop(delete_acls(source, [acl]))
