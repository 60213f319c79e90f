"""What every test may ask for: two real clusters, started once per run, and names that no other test uses."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.raw_log import cluster_client

T = TypeVar("T")

IN_LOOP_TIMEOUT_S = 180.0
KEEPS_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}

# A busy machine is no finding.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_numbers = itertools.count(1)

LONGEST_FIRST = (
    "lab/test_bench.py",
    "journeys/test_kills",
    "journeys/",
    "lab/",
    "page/",
    "control/",
    "cluster/",
    "pipeline/",
    "rest/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes comes first, so that no worker waits for another's last file (``make test`` has two)."""

    def turn(item: pytest.Item) -> int:
        return next((turn for turn, name in enumerate(LONGEST_FIRST) if f"tests/{name}" in item.nodeid), 99)

    items.sort(key=turn)


@pytest.fixture(scope="session")
def two_clusters() -> Iterator[tuple[ClusterOfBrokers, ClusterOfBrokers]]:
    """Source and target, one broker each. Tests share them: whoever kills a broker makes a cluster of their own.

    Both keep ACLs; tests that ask for nothing are super users and never meet them.
    """
    source, target = (ClusterOfBrokers(name, settings=KEEPS_ACLS) for name in ("source", "target"))
    with started_together(source, target):
        yield source, target


@pytest.fixture(scope="session")
def source_cluster(two_clusters: tuple[ClusterOfBrokers, ClusterOfBrokers]) -> ClusterOfBrokers:
    return two_clusters[0]


@pytest.fixture(scope="session")
def target_cluster(two_clusters: tuple[ClusterOfBrokers, ClusterOfBrokers]) -> ClusterOfBrokers:
    return two_clusters[1]


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[ClusterOfBrokers]:
    """One broker for those who kill or freeze it and leave it running again. Its log cleaner looks around often."""
    with ClusterOfBrokers("own", settings={"log.cleaner.backoff.ms": "200"}) as cluster:
        yield cluster


@pytest.fixture
def in_loop() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs a coroutine to its end; clients live in the same loop from call to call."""
    with asyncio.Runner() as runner:

        async def bounded(work: Coroutine[Any, Any, T]) -> T:
            return await asyncio.wait_for(work, IN_LOOP_TIMEOUT_S)

        yield lambda work: runner.run(bounded(work))


@pytest.fixture
def connect(in_loop: Callable[..., Any]) -> Iterator[Callable[[ClusterOfBrokers], ClusterClient]]:
    """Our own client on a lab cluster, started; closed at the test's end."""
    opened: list[ClusterClient] = []

    def start(cluster: ClusterOfBrokers) -> ClusterClient:
        client = cluster_client(cluster.bootstrap, cluster.name)
        in_loop(client.start(60.0))
        opened.append(client)
        return client

    yield start

    async def close_all() -> None:
        for client in opened:
            client.close()

    in_loop(close_all())


@pytest.fixture
def new_topic_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes topic names that say which test they belong to and that nobody else has."""
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")[:60]

    def make() -> str:
        return f"{test}-{os.getpid()}-{next(_numbers)}"

    return make


@pytest.fixture
def topic_name(new_topic_name: Callable[[], str]) -> str:
    return new_topic_name()
