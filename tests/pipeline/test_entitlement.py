"""Whether an attempt may append: asked of a real coordinator. How two attempts meet: ``test_attempts_at_once``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin import DescribeTransactionsRequest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import Writer, obtain_writer
from mirrorspark.errors import Fenced
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.pipeline.entitlement import Entitlement

PATIENCE_S = 60.0


@pytest.fixture
def asked(
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    topic_name: str,
) -> tuple[Callable[[], Writer], Callable[..., bool]]:
    """A way to obtain the next epoch of one id, and the question."""
    target = connect(target_cluster)

    def next_epoch() -> Writer:
        obtained: Writer = in_loop(
            obtain_writer(target, topic_name, transaction_timeout_ms=60_000, deadline=Deadline(PATIENCE_S))
        )
        return obtained

    def holds(writer: Writer, *, gives_way: bool = False) -> bool:
        return bool(in_loop(Entitlement(target, gives_way=gives_way).holds(writer, Deadline(PATIENCE_S))))

    return next_epoch, holds


def test_a_newer_epoch_ends_it(asked: Any) -> None:
    next_epoch, holds = asked
    first = next_epoch()
    assert holds(first)
    second = next_epoch()
    assert holds(second)
    assert not holds(first)
    with pytest.raises(Fenced, match="is held by a newer attempt"):
        holds(first, gives_way=True)


def test_a_broker_that_is_too_old_to_be_asked_is_told_of(
    asked: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    next_epoch, holds = asked
    first = next_epoch()
    next_epoch()
    known = Connection.version

    def as_before_kafka_3_0(self: Connection, api_key: int, *wanted: Any) -> int:
        self.versions.pop(DescribeTransactionsRequest.API_KEY, None)
        return known(self, api_key, *wanted)

    monkeypatch.setattr(Connection, "version", as_before_kafka_3_0)
    assert holds(first)
    assert "whether it is the newest attempt cannot be asked" in caplog.text
