"""What every test may ask for: two real clusters, started once per run, and names that no other test uses."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together

# A busy machine is no finding.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def two_clusters() -> Iterator[tuple[ClusterOfBrokers, ClusterOfBrokers]]:
    """Source and target, one broker each. Tests share them: whoever kills a broker makes a cluster of their own."""
    source, target = ClusterOfBrokers("source"), ClusterOfBrokers("target")
    with started_together(source, target):
        yield source, target


@pytest.fixture(scope="session")
def source_cluster(two_clusters: tuple[ClusterOfBrokers, ClusterOfBrokers]) -> ClusterOfBrokers:
    return two_clusters[0]


@pytest.fixture(scope="session")
def target_cluster(two_clusters: tuple[ClusterOfBrokers, ClusterOfBrokers]) -> ClusterOfBrokers:
    return two_clusters[1]


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
