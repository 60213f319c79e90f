"""What connections count: by broker, over connections that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.traffic import Traffic, traffic_by_node
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers


def test_requests_and_answers_are_counted_once_each() -> None:
    traffic = Traffic()
    traffic.asked(100)
    traffic.asked(300)
    traffic.answered(50, 0.5)
    other = Traffic()
    other.asked(200)
    traffic.add(other)
    found = traffic_by_node([(1, traffic), (2, other), (1, other)])
    assert (found[1]["requests"], found[1]["bytes_out"], found[1]["request_bytes_max"]) == (4, 800, 300)
    assert (found[1]["answers"], found[1]["bytes_in"], found[1]["answer_s_max"]) == (1, 50, 0.5)
    assert found[2]["requests"] == 1


def test_a_broker_is_counted_over_its_connections(
    target_cluster: ClusterOfBrokers, connect: Callable[..., ClusterClient], in_loop: Callable[..., Any]
) -> None:
    client = connect(target_cluster)
    node = client.nodes[0]

    async def ask() -> None:
        for _ in range(2):
            link = await client.connection(node, "of this test")
            link.close()
        await client.refresh([])

    in_loop(ask())
    book = client.traffic[node, "of this test"]
    assert (book.opened, book.closed, book.logins, book.logins_failed) == (2, 2, 0, 0)
    assert (book.requests, book.answers) == (2, 2), "the versions, once for each connection"
    assert book.bytes_in > book.bytes_out > 0
    assert 0 < book.turn_s < 60
    assert book.answer_s >= book.answer_s_max > 0
    assert client.traffic_by_node()[node]["requests"] >= book.requests
