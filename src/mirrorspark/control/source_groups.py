"""Knowing what the source's groups commit: their state once, then commit by commit from ``__consumer_offsets``.

Where that topic may not be read (managed services, ACLs), groups are asked again and again instead, at an interval that
keeps the cost below ``POLLED_SHARE_MAX`` of a core. Fills a ``GroupBook``; decides only which groups and topics count.
Called by ``control.group_sync``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.commit_log import CommitLog
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.errors import BrokerError, WireError
from mirrorspark.offsets.consumer_offsets_record import CONSUMER_OFFSETS_TOPIC, Commit, parse_commit
from mirrorspark.offsets.group_sync import GroupBook, Place
from mirrorspark.plan.group_filter import GroupFilter

__all__ = ["SourceGroups"]

log = logging.getLogger("mirrorspark.groups")

FOLLOW_WAIT_MS = 1_000
POLL_INTERVAL_S = 5.0
FIRST_COMMIT_POLL_S = 1.0
"""While no group has ever committed on the cluster: one look at whether its topic is there by now."""
POLLED_SHARE_MAX = 0.02
"""Of the time: a look that took 0.5 s is followed by 25 s of rest."""
FOLLOW_AGAIN_S = 60.0
"""Where commits may not be followed: how often that is tried again, in case somebody has allowed it."""
REQUEST_DEADLINE_S = 60.0
NAMES_REMEMBERED_MAX = 100_000
_NOT_ALLOWED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class SourceGroups:
    """``open``, then ``next`` for ever. ``not_followed`` says why commits are asked for rather than followed."""

    def __init__(
        self, client: ClusterClient, book: GroupBook, chosen: GroupFilter, is_wanted: Callable[[str], bool]
    ) -> None:
        """``is_wanted`` says whether a topic has a place on the target."""
        self._client = client
        self._admin = GroupAdmin(client)
        self._book = book
        self._chosen = chosen
        self._is_wanted = is_wanted
        self._names: dict[str, bool] = {}
        self._meanwhile: set[Place] | None = None
        self._log: CommitLog | None = None
        self.not_followed = ""
        self.damaged = 0
        self._listed: set[str] = set()
        self._unlisted: set[str] = set()
        self._follow_again_at = 0.0
        self.share_groups: list[str] = []
        self.refused: dict[str, BrokerError] = {}

    async def open(self) -> None:
        """Begin to follow, then take the state of all groups: in this order nothing is missed in between."""
        await self._open_log()
        await self.look(follows_up=True)

    async def _open_log(self) -> None:
        self.close()
        self.not_followed = ""
        opened = CommitLog(self._client, CONSUMER_OFFSETS_TOPIC)
        try:
            await opened.start(Deadline(REQUEST_DEADLINE_S))
        except BrokerError as error:
            self._log = None
            if error.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.not_followed = "no group has ever committed there"
                return
            if error.error_code not in _NOT_ALLOWED:
                raise
            self.not_followed = f"topic {CONSUMER_OFFSETS_TOPIC} may not be read: {error}"
            self._follow_again_at = time.monotonic() + FOLLOW_AGAIN_S
        else:
            self._log = opened

    @property
    def may_not_follow(self) -> bool:
        return self._log is None and CONSUMER_OFFSETS_TOPIC in self.not_followed

    async def next(self) -> None:
        """Take what was committed since; waits for something, or for the time of the next look."""
        if self._log is None:
            await self._poll()
            return
        try:
            entries = await self._log.poll(FOLLOW_WAIT_MS)
        except BrokerError as error:
            if error.error_code not in (*_NOT_ALLOWED, ErrorCode.OFFSET_OUT_OF_RANGE):
                raise
            log.warning("cluster %s: %s; looking at all groups anew", self._client.alias, error)
            await self.open()
            return
        self._take(entries)
        await self._ask_for_unlisted()

    async def _ask_for_unlisted(self) -> None:
        """Groups that commit and that the cluster does not list: new ones, or ones that it does not show us."""
        unlisted, self._unlisted = self._unlisted, set()
        if unlisted:
            self._listed |= unlisted  # asked once between two looks
            answers = await self._admin.offsets(dict.fromkeys(unlisted), Deadline(REQUEST_DEADLINE_S))
            self.refused |= {group: error for group, error in answers.refused.items() if not error.retriable}

    async def _poll(self) -> None:
        """A look at all groups, and a rest that is in proportion to what it cost."""
        before = time.thread_time()
        if CONSUMER_OFFSETS_TOPIC not in self.not_followed or time.monotonic() >= self._follow_again_at:
            await self._open_log()  # perhaps somebody has committed by now
            if self._log is not None:
                await self.look(follows_up=True)
                return  # from now on commits are followed
            if CONSUMER_OFFSETS_TOPIC not in self.not_followed:
                await asyncio.sleep(FIRST_COMMIT_POLL_S)
                return
        await self.look()
        await asyncio.sleep(max(POLL_INTERVAL_S, (time.thread_time() - before) / POLLED_SHARE_MAX))

    async def look(self, *, follows_up: bool = False) -> None:
        """All groups as they are now. What is followed meanwhile is newer than the answers, and stands."""
        self._meanwhile = set()
        try:
            await self._look(self._meanwhile, follows_up)
        finally:
            self._meanwhile = None

    async def _look(self, meanwhile: set[Place], follows_up: bool) -> None:
        deadline = Deadline(REQUEST_DEADLINE_S)
        listed = await self._admin.list_groups(deadline)
        self._listed = set(listed)
        self.share_groups = sorted(name for name, group in listed.items() if group.is_share)
        wanted = [name for name, group in listed.items() if group.commits_offsets and self._wants(name)]
        wanted += [name for name in self._chosen.named if name not in listed]  # hidden from us, or not there
        answers = await self._admin.offsets(dict.fromkeys(wanted), deadline)
        self.refused = {group: error for group, error in answers.refused.items() if not error.retriable}
        followed = await self._log.catch_up(deadline) if self._log is not None and follows_up else []
        for group, offsets in answers.found.items():
            self._book.take_all(
                group,
                {at: Commit(offset, text) for at, (offset, text) in offsets.items() if self._is_wanted(at.topic)},
                meanwhile,
            )
        self._book.keep_only({*wanted, *(place.group for place in meanwhile)})
        self._take(followed)

    def _take(self, entries: list[tuple[bytes | None, bytes | None]]) -> None:
        for key, value in entries:
            try:
                record = parse_commit(key, value)
            except WireError as error:
                self.damaged += 1
                log.warning("cluster %s: left out: %s", self._client.alias, error)
                continue
            if record is not None and self._wants(record.group) and self._is_wanted(record.at.topic):
                self._book.take(record)
                if record.group not in self._listed:
                    self._unlisted.add(record.group)
                if self._meanwhile is not None:
                    self._meanwhile.add(Place(record.group, record.at))

    def _wants(self, group: str) -> bool:
        known = self._names.get(group)
        if known is None:
            if len(self._names) >= NAMES_REMEMBERED_MAX:
                self._names.clear()
            known = self._names[group] = self._chosen.refusal(group) is None
        return known

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
