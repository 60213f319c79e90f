"""Rounds: what groups committed since the last one is translated together, and written together.

At most a few rounds a second, so that commits which come close together cost one. A commit that is ahead of the mirror
waits a while before it is written as far as the copy goes: at the end of a log its records arrive a moment later.
``control.group_sync`` feeds the book and runs ``go_round``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.group_translation import WAITING, GroupTranslation
from mirrorspark.control.target_groups import TargetGroups, Wanted
from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.observe.sampled_window import SampledWindow
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.group_sync import GroupBook, Place, Synced, is_worth_a_checkpoint
from mirrorspark.settings import GroupSync

__all__ = ["GroupRounds"]

log = logging.getLogger("mirrorspark.groups")

ROUND_INTERVAL_S = 0.2
"""Between two rounds, at least."""
LATER_S = 1.0
"""After so long a round comes back to groups that it had to leave."""
INEXACT_AFTER_S = 5.0
"""A commit that is ahead of the mirror for so long is written as far as the copy goes."""
LOGS_DEADLINE_S, NEW_LOGS_DEADLINE_S = 30.0, 5.0
WRITE_DEADLINE_S = 30.0
GROUPS_PER_WRITE_MAX = 500
"""Groups in one go: others need not wait for thousands that come at the start."""
CHECKPOINTS_PER_APPEND_MAX = 2_000
"""In one batch: well below what a topic takes by default."""
LATENCIES_KEPT = 1_000
LATENCY_SERIES_MAX = 20_000
"""Groups times partitions; beyond that those are forgotten that committed nothing in the last minute."""


class GroupRounds:
    """``previous`` is what checkpoints said last. Counters tell what was written since the begin."""

    def __init__(
        self,
        settings: GroupSync,
        book: GroupBook,
        translation: GroupTranslation,
        targets: TargetGroups,
        checkpoints: KeyedTopic,
    ) -> None:
        self._settings = settings
        self._book = book
        self._translation = translation
        self._targets = targets
        self._checkpoints = checkpoints
        self._wake = asyncio.Event()
        self._later: set[str] = set()
        self._ahead_since: dict[Place, float] = {}
        self._looked_at: set[TopicPartition] = set()
        self._latencies_ms: deque[int] = deque(maxlen=LATENCIES_KEPT)
        self._inexact: set[Place] = set()
        self.previous: dict[tuple[str, TopicPartition], Synced] = {}
        self.checkpoints_written = 0
        self.checkpoint_appends = self.checkpoint_append_max = 0  # batches, and records of the largest
        self.offsets_written = 0
        self.latencies_ms: dict[tuple[str, TopicPartition], SampledWindow] = {}
        """By group and remote partition, as far as they are exact."""

    def wake(self) -> None:
        """Something was added to the book."""
        if self._book.changed:
            self._wake.set()

    async def look_at_logs(self, partitions: Iterable[TopicPartition], within_s: float = LOGS_DEADLINE_S) -> None:
        """Where these logs begin; if it cannot be known now, what was known stands."""
        wanted = set(partitions)
        self._looked_at |= wanted
        try:
            await self._translation.look_at_logs(wanted, Deadline(within_s))
        except ClusterError as error:
            if not error.retriable:
                raise
            log.info("groups: where logs begin is not known anew: %s", error)

    async def go_round(self) -> None:
        """For ever; raises ClusterError for what does not pass by itself."""
        while True:
            has_left_some = self._later or self._ahead_since
            with suppress(TimeoutError):  # then it is time for those that were left
                async with asyncio.timeout(LATER_S if has_left_some else None):
                    await self._wake.wait()
            self._wake.clear()
            self._come_back()
            places = self._book.take_changed()
            if places:
                await self._round(places)
                await asyncio.sleep(ROUND_INTERVAL_S)

    def _come_back(self) -> None:
        """To groups that nobody holds any more, and to commits that have been ahead of the mirror for long."""
        self._book.look_again_at(group for group in self._later if not self._targets.is_held(group))
        self._later = {group for group in self._later if self._targets.is_held(group)}
        overdue = time.monotonic() - INEXACT_AFTER_S
        self._book.look_again([place for place, since in self._ahead_since.items() if since <= overdue])
        # From now on each of their rounds writes them; the ledger brings them back.
        self._ahead_since = {
            place: since
            for place, since in self._ahead_since.items()
            if since > overdue and place in self._book.commits
        }

    async def _round(self, places: list[Place]) -> None:
        new = {place.at for place in places} - self._looked_at
        if new:
            await self.look_at_logs(new, NEW_LOGS_DEADLINE_S)
        wanted: dict[str, dict[TopicPartition, Wanted]] = {}
        checkpoints: list[GroupCheckpoint] = []
        exact: dict[Place, TopicPartition] = {}
        for place in places:
            found = self._translate(place)
            if found is None:
                continue
            remote, synced, is_exact = found
            metadata = self._book.commits[place].metadata
            wanted.setdefault(place.group, {})[remote] = Wanted(synced, metadata)
            if is_worth_a_checkpoint(synced, self.previous.get((place.group, remote))):
                checkpoints.append(GroupCheckpoint(place.group, remote, synced.upstream, synced.downstream, metadata))
            if is_exact:
                exact[place] = remote
        # Offsets first: what a checkpoint says was written may be taken for it at the next start.
        if self._settings.offsets_enabled:
            await self._write_offsets(wanted)
        if self._settings.checkpoints_enabled:
            await self._write_checkpoints(checkpoints)
        self._note_latency({place: remote for place, remote in exact.items() if place.group not in self._later})

    def _translate(self, place: Place) -> tuple[TopicPartition, Synced, bool] | None:
        """Where the group goes on; None where nothing is to be written now. What becomes exact later is noted."""
        commit = self._book.commits.get(place)
        found = self._translation.translate(place.at, commit.offset, place.group) if commit is not None else None
        if commit is None or found is None:
            return None
        remote, answer = found
        if answer.exact:
            self._inexact.discard(place)
        else:
            self._inexact.add(place)
        if answer.reason in WAITING:
            if place not in self._book.waiting_at(remote):
                self._ahead_since[place] = time.monotonic()
            self._book.wait(place, remote)
        else:
            self._ahead_since.pop(place, None)
            self._book.done(place, remote)
        if answer.downstream_offset is None or place in self._ahead_since:
            return None
        return remote, Synced(commit.offset, answer.downstream_offset), answer.exact

    # -- writing ----------------------------------------------------------------------------------------------------

    async def _write_offsets(self, wanted: dict[str, dict[TopicPartition, Wanted]]) -> None:
        names = sorted(wanted)
        for first in range(0, len(names), GROUPS_PER_WRITE_MAX):
            some = names[first : first + GROUPS_PER_WRITE_MAX]
            outcome = await self._targets.sync({group: wanted[group] for group in some})
            self.offsets_written += len(outcome.written)
            self._later |= outcome.later

    async def _write_checkpoints(self, checkpoints: list[GroupCheckpoint]) -> None:
        entries: list[tuple[bytes, bytes | None]] = [(one.key, one.value) for one in checkpoints]
        for first in range(0, len(entries), CHECKPOINTS_PER_APPEND_MAX):
            some = entries[first : first + CHECKPOINTS_PER_APPEND_MAX]
            await self._checkpoints.append(some, Deadline(WRITE_DEADLINE_S))
            self.checkpoint_appends += 1
            self.checkpoint_append_max = max(self.checkpoint_append_max, len(some))
        self.checkpoints_written += len(checkpoints)
        for one in checkpoints:
            self.previous[one.group, one.at] = Synced(one.upstream_offset, one.downstream_offset)

    # -- numbers ----------------------------------------------------------------------------------------------------

    def _note_latency(self, places: Mapping[Place, TopicPartition]) -> None:
        now_ms, now = int(time.time() * 1000), time.monotonic()
        for place, remote in places.items():
            commit = self._book.commits.get(place)
            if commit is not None and commit.committed_ms >= 0:
                latency_ms = max(0, now_ms - commit.committed_ms)
                self._latencies_ms.append(latency_ms)
                self.latencies_ms.setdefault((place.group, remote), SampledWindow()).add(now, latency_ms)
        if len(self.latencies_ms) > LATENCY_SERIES_MAX:
            self.latencies_ms = {at: one for at, one in self.latencies_ms.items() if one.mean(now) is not None}

    @property
    def latency_ms_p95(self) -> int | None:
        latencies = sorted(self._latencies_ms)
        return latencies[int(len(latencies) * 0.95)] if latencies else None

    @property
    def inexact(self) -> int:
        """How many offsets are not translated exactly now."""
        self._inexact = {place for place in self._inexact if place in self._book.commits}
        return len(self._inexact)
