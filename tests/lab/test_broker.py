"""Real brokers: start, stop, kill, pause, restart; their data and ports stay; their end is told with its reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaException

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.errors import AuthenticationFailed, LabError
from mirrorspark.lab.clients import admin, create_topic, delete_topic, end_offsets, producer, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.settings import ClusterSettings, parse_bootstrap


def _write(cluster: ClusterOfBrokers, topic: str, value: bytes) -> None:
    client = producer(cluster.bootstrap)
    client.produce(topic, value, partition=0)
    assert client.flush(60) == 0


def test_broker_keeps_data_and_port_over_kill_and_orderly_restart(tmp_path: Path) -> None:
    with ClusterOfBrokers("lives", folder=tmp_path / "lives") as cluster:
        create_topic(cluster.bootstrap, "kept", 1)
        _write(cluster, "kept", b"one")
        bootstrap, broker = cluster.bootstrap, cluster.broker(1)

        broker.kill()
        assert not broker.is_alive
        broker.start()
        assert cluster.bootstrap == bootstrap
        _write(cluster, "kept", b"two")

        broker.restart()
        assert end_offsets(cluster.bootstrap, "kept") == {0: (0, 2)}

    with ClusterOfBrokers("lives", folder=tmp_path / "lives") as again:
        assert again.cluster_id == cluster.cluster_id
        assert end_offsets(again.bootstrap, "kept") == {0: (0, 2)}


def test_paused_broker_does_not_answer_until_resumed() -> None:
    with ClusterOfBrokers("paused") as cluster:
        cluster.broker(1).pause()
        with pytest.raises(KafkaException):
            admin(cluster.bootstrap).list_topics(timeout=1)
        cluster.broker(1).resume()
        assert admin(cluster.bootstrap).list_topics(timeout=60).brokers


def test_three_brokers_form_one_cluster_that_survives_a_kill() -> None:
    with ClusterOfBrokers("three", brokers=3) as cluster:
        folder = cluster.folder
        assert len(cluster.bootstrap.split(",")) == 3
        create_topic(cluster.bootstrap, "copied", 3, replication_factor=3)
        cluster.broker(2).kill()
        client = producer(cluster.bootstrap, {"acks": "all"})
        for partition in range(3):
            client.produce("copied", b"x", partition=partition)
        assert client.flush(120) == 0
        assert end_offsets(cluster.bootstrap, "copied") == {number: (0, 1) for number in range(3)}
    assert not folder.exists()


def test_broker_that_dies_tells_why() -> None:
    cluster = ClusterOfBrokers("wrong", settings={"log.retention.ms": "not a number"})
    with pytest.raises(LabError, match="not a number") as caught:
        cluster.start()
    assert "broker 1 of cluster wrong" in str(caught.value)
    assert not cluster.folder.exists()


def test_settings_reach_the_broker_and_topics_come_and_go(source_cluster: ClusterOfBrokers, topic_name: str) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 2)
    assert topic_partitions(source_cluster.bootstrap, topic_name) == 2
    with pytest.raises(LabError, match="already exists"):
        create_topic(source_cluster.bootstrap, topic_name, 2)
    delete_topic(source_cluster.bootstrap, topic_name)
    assert topic_partitions(source_cluster.bootstrap, topic_name) == 0


def test_cluster_that_asks_who_we_are(in_loop: Callable[..., Any]) -> None:
    """Ordinary clients and our own log in; ours with a JAAS text, in which a quote stands with a backslash before it."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    password = 'mirror "word"; x=y'
    quoted = password.replace('"', '\\"')
    in_file = quoted.replace("\\", "\\\\")
    users = f'{module} username="admin" password="admin-word" user_admin="admin-word" user_mirror="{in_file}";'
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "mirror"}
    settings = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": users,
    }
    known = {**login, "sasl.password": password}
    with ClusterOfBrokers("guarded", settings=settings, client=known) as cluster:
        create_topic(cluster.bootstrap, "secret", 1, client=admin(cluster.bootstrap, known))
        with pytest.raises(KafkaException):
            admin(cluster.bootstrap, {**login, "sasl.password": "guess"}).list_topics(timeout=2)

        def ours(text: str) -> ClusterClient:
            jaas = {"sasl.jaas.config": f'{module} username="mirror" password="{text}";'}
            client = {name: value for name, value in login.items() if name != "sasl.username"} | jaas
            return ClusterClient(ClusterSettings("guarded", parse_bootstrap(cluster.bootstrap, "x"), client), "test")

        async def listed(client: ClusterClient) -> list[str]:
            try:
                await client.start(60.0)
                return [one.name for one in await client.refresh(["secret"]) if not one.error_code]
            finally:
                client.close()

        assert in_loop(listed(ours(quoted))) == ["secret"]
        with pytest.raises(AuthenticationFailed) as caught:
            in_loop(listed(ours("guess-at-it")))
        assert "guess-at-it" not in str(caught.value)


def test_misuse_is_told() -> None:
    with pytest.raises(LabError, match="2 brokers but 1 ports"):
        ClusterOfBrokers("few", brokers=2, ports=[15001])
    idle = ClusterOfBrokers("idle")
    with pytest.raises(LabError, match="is not running"):
        idle.broker(1).pause()
    idle.stop()


def test_brokers_end_with_their_parent_and_do_not_hear_its_interrupt(tmp_path: Path) -> None:
    """A parent that is killed outright cannot clean up; its brokers must end all the same."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, pathlib, sys, time
            from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
            cluster = ClusterOfBrokers("orphan", folder=pathlib.Path(sys.argv[1]))
            cluster.start()
            assert os.getpgid(cluster.broker(1).pid) != os.getpgid(0)
            print(cluster.broker(1).pid, flush=True)
            time.sleep(600)
            """
        )
    )
    parent = subprocess.Popen([sys.executable, script, tmp_path / "data"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        broker = psutil.Process(int(parent.stdout.readline()))
        assert broker.is_running()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not broker.is_running() or broker.status() == psutil.STATUS_ZOMBIE, "the broker's end", 60)
