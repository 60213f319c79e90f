"""A lane's clock: every so often it tells the lane's state, commits positions, writes the books, wakes waiting partitions.

Runs on the lane's event loop until the attempt's end. In transactions positions and progress are the transactions' own, and
only what is in none of them is committed between two.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.bookkeeping import Bookkeeping
from mirrorspark.pipeline.company import step_past_company
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.ownership import Ownership
from mirrorspark.pipeline.position_commits import PositionCommits
from mirrorspark.pipeline.track import LEDGER_PAGES_PENDING_MAX, Track
from mirrorspark.pipeline.transaction import Transactions
from mirrorspark.settings import FlowSettings

__all__ = ["LaneClock"]

log = logging.getLogger("mirrorspark.lane")

LOOK_INTERVAL_S = 0.1
COMPANY_TIMEOUT_S = 2.0
"""For asking where the target's logs end; the clock has more to do."""


class LaneClock:
    def __init__(
        self,
        lane: int,
        settings: FlowSettings,
        target: ClusterClient,
        express: Express,
        *,
        books: Bookkeeping,
        commits: PositionCommits,
        ownership: Ownership,
        tracks: Mapping[TopicPartition, Track],
        has_company: bool,
        end: asyncio.Event,
        tell_state: Callable[[], Awaitable[None]],
    ) -> None:
        """``tracks`` is the lane's own; ``has_company``: topics keep their names, so others append to them, too."""
        self._lane = lane
        self._settings = settings
        self._limits = settings.limits
        self._target = target
        self._express = express
        self._books = books
        self._commits = commits
        self._ownership = ownership
        self._tracks = tracks
        self._has_company = has_company
        self._end = end
        self._tell_state = tell_state
        self._next_report = self._next_commit = self._next_books = 0.0

    async def run(self) -> None:
        while not self._end.is_set():
            try:
                await self._look()
            except ClusterError as error:
                if not error.retriable:
                    raise
                log.warning("%s lane %d: writing the books: %s; trying again", self._settings.flow, self._lane, error)
            try:
                async with asyncio.timeout(LOOK_INTERVAL_S):
                    await self._end.wait()
            except TimeoutError:
                pass

    async def _look(self) -> None:
        limits = self._limits
        now = time.monotonic()
        if now >= self._next_report or self._books.has_events:
            # Events first: what a position moves past must have been told before.
            self._next_report = now + limits.report_interval_ms / 1000
            await self._tell_state()
        if now >= self._next_commit or self._many_uncommitted():
            self._next_commit = now + limits.position_commit_interval_ms / 1000
            if not self._settings.transactions:
                await self._commits.commit()
            self._ownership.retry(self._tracks.values(), self._express)
            self._express.appender.drop_frozen()
        if now >= self._next_books:
            self._next_books = now + limits.progress_interval_ms / 1000
            if not self._settings.transactions:
                await self._books.write_progress(self._tracks.values())
            if self._has_company:
                await step_past_company(self._target, self._tracks.values(), Deadline(COMPANY_TIMEOUT_S))

    def _many_uncommitted(self) -> bool:
        uncommitted = self._express.uncommitted_bytes
        return uncommitted >= self._limits.position_commit_bytes_max or (
            uncommitted > 0
            and any(track.ledger.pages_pending > LEDGER_PAGES_PENDING_MAX for track in self._tracks.values())
        )

    async def commit_between(self, transactions: Transactions, turn: asyncio.Lock) -> None:
        """What was passed over (markers, what a mirror wrote) is in no transaction: committed between two of them."""
        while not self._end.is_set():
            await asyncio.sleep(self._limits.position_commit_interval_ms / 1000)
            async with turn:
                if transactions.failed:
                    return
                await self._commits.commit_or_warn()
