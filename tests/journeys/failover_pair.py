"""Two clusters whose work moves there and back: one file with a flow each way, real producers, real members of groups.

Used by ``test_failover`` and ``test_required_acls_of_failover``.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.config.load import load_deployment
from mirrorspark.control.failover.failover import Choices, Failover
from mirrorspark.control.failover.report import Report
from mirrorspark.control.failover.reverse_flow import ReverseFlow, reversed_settings
from mirrorspark.lab.clients import consumer, producer
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records

__all__ = ["EXACTLY_ONCE", "PARTITIONS", "PATIENCE_S", "Pair"]

PARTITIONS = 2
PATIENCE_S = 120.0
EXACTLY_ONCE = "exactly.once.source.support"

_pairs = itertools.count(1)


class Pair:
    """Two clusters, one file with both flows, one topic, and what was written and read so far.

    ``logins``: by side, what the file says of that cluster besides, with its bootstrap servers if they are others.
    """

    def __init__(
        self,
        east: ClusterOfBrokers,
        west: ClusterOfBrokers,
        case: Mapping[str, str],
        folder: Path,
        logins: Mapping[str, Mapping[str, str]] | None = None,
        *,
        is_one_way: bool = False,
    ) -> None:
        number = f"{os.getpid()}x{next(_pairs)}"
        self.aliases = {"east": f"fe{number}", "west": f"fw{number}"}
        self.bootstrap = {"east": east.bootstrap, "west": west.bootstrap}
        self.topic = f"orders{number}"
        self._logins = logins or {}
        self._is_one_way = is_one_way
        self.keeps_names = "replication.policy.class" in case
        self.file = folder / f"{number}.properties"
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in self._keys(dict(case)).items()))
        flows = load_deployment(self.file).flows
        by_source = {one.flow.source: one for one in flows}
        self.westward = by_source[self.aliases["east"]]
        self.eastward = reversed_settings(self.westward) if is_one_way else by_source[self.aliases["west"]]
        self.flow = str(self.westward.flow)
        self.written: list[str] = []
        self.read: dict[str, list[str]] = {}
        self._numbers = itertools.count()

    def _keys(self, case: dict[str, str]) -> dict[str, str]:
        east, west = self.aliases["east"], self.aliases["west"]
        keys = {
            "clusters": f"{east}, {west}",
            f"{east}.bootstrap.servers": self.bootstrap["east"],
            f"{west}.bootstrap.servers": self.bootstrap["west"],
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
        }
        if once := case.pop(EXACTLY_ONCE, ""):
            keys |= {f"{alias}.{EXACTLY_ONCE}": once for alias in (east, west)}
        for pair in (f"{east}->{west}", f"{west}->{east}"):
            keys |= {f"{pair}.enabled": "true", f"{pair}.topics": self.topic, f"{pair}.groups": f"{self.topic}-.*"}
        if self._is_one_way:
            keys[f"{west}->{east}.enabled"] = "false"
        for side, login in self._logins.items():
            keys |= {f"{self.aliases[side]}.{key}": value for key, value in login.items()}
        return keys | case

    def group(self, name: str) -> str:
        return f"{self.topic}-{name}"

    def topics_on(self, side: str) -> list[str]:
        """What a consumer subscribes to there."""
        other = self.aliases["west" if side == "east" else "east"]
        return [self.topic] if self.keeps_names else [self.topic, f"{other}.{self.topic}"]

    def produce(self, side: str, count: int) -> None:
        client = producer(self.bootstrap[side], {"enable.idempotence": True})
        for number in itertools.islice(self._numbers, count):
            value = f"{side}/{number:06d}"
            client.produce(self.topic, value.encode(), partition=number % PARTITIONS)
            self.written.append(value)
        assert client.flush(PATIENCE_S) == 0

    def consume(self, side: str, name: str, count: int | None) -> None:
        """As a member of the group: so many records, or (None) all that are left; then commit and leave."""
        settings = {
            "group.id": self.group(name),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "queued.min.messages": 1,
            "fetch.queue.backoff.ms": 10,
        }
        client = consumer(self.bootstrap[side], {**settings, "max.partition.fetch.bytes": 1_000})
        client.subscribe(self.topics_on(side))
        read = self.read.setdefault(name, [])
        wanted = len(self.written) if count is None else len(read) + count
        end = time.monotonic() + PATIENCE_S
        while (len(read) < wanted or not client.assignment()) and time.monotonic() < end:
            message = client.poll(0.2)
            if message is not None and message.error() is None:
                read.append(message.value().decode())
        if count is None:
            late = client.poll(0.3)
            assert late is None or late.error() is not None, f"{late.value()} is one too many"
        if client.position(client.assignment()):
            client.commit(asynchronous=False)
        client.close()

    def assert_all_read_once(self) -> None:
        for name, read in self.read.items():
            twice = [value for value, count in Counter(read).items() if count > 1]
            missing = set(self.written) - set(read)
            assert (twice, missing) == ([], set()), f"{name}: twice {sorted(twice)[:9]}, never {sorted(missing)[:9]}"

    def assert_nothing_went_round(self) -> None:
        for side in ("east", "west"):
            found = [
                (record.value or b"").decode()
                for topic in self.topics_on(side)
                for records in read_records(self.bootstrap[side], topic).values()
                for record in records
            ]
            assert sorted(found) == sorted(self.written), side

    # -- commands ---------------------------------------------------------------------------------------------------

    def command(self, *words: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [words[0], str(self.file), *words[1:], "--json"])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def attempt(self, hook: Callable[[str, str], None], *, back: bool = False) -> Report:
        moved, other = (self.eastward, self.westward) if back else (self.westward, self.eastward)

        async def run() -> Report:
            reverse = ReverseFlow(other, is_in_file=True)
            async with Failover(moved, reverse, Choices(), hook=hook, goes_back=back) as moving:
                report = await moving.plan()
                assert report.is_well, "\n".join(report.lines())
                return await moving.run()

        return asyncio.run(run())
