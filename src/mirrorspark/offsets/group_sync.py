"""What of a source group's commits becomes a checkpoint, and what is written to the group of that name on the target.

Pure decisions over what was seen; ``control.group_sync`` looks and writes, the commands show the same verdicts.

Invariant E. A target group's offset never goes back unless the source group did, and then only where the offset that is
there is still the one that we wrote: whatever a consumer on the target committed by itself is never taken back. (An offset
beyond the end of the target's log is nobody's: the topic was made anew since.)
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import Commit, CommitRecord

__all__ = ["GroupBook", "Place", "Synced", "Verdict", "decide", "decide_again", "is_worth_a_checkpoint"]


class Place(NamedTuple):
    """One group in one partition of the source."""

    group: str
    at: TopicPartition


@dataclass(frozen=True, slots=True)
class Synced:
    """A source group's offset and what it means on the target: of a checkpoint, or of what we wrote last."""

    upstream: int
    downstream: int


class Verdict(StrEnum):
    """What to do with one partition of a target group, and why."""

    WRITE_FIRST = "write.first"  # the target group has no offset there
    WRITE_FORWARD = "write.forward"
    WRITE_BACK = "write.back"  # the source group went back, and nobody but us moved the target's
    WRITE_INTO_LOG = (
        "write.into.log"  # the target's offset is beyond its log: that topic was made anew, or lost records
    )
    IN_STEP = "in.step"
    TARGET_AHEAD = "target.ahead"  # somebody on the target went further by themselves: left alone

    @property
    def writes(self) -> bool:
        return self not in (Verdict.IN_STEP, Verdict.TARGET_AHEAD)


def decide(wanted: Synced, target_offset: int | None, ours: Synced | None) -> Verdict:
    """``target_offset`` is what the target group has there now, ``ours`` what we wrote there last (None: nothing known)."""
    if target_offset is None or target_offset < 0:
        return Verdict.WRITE_FIRST
    if wanted.downstream == target_offset:
        return Verdict.IN_STEP
    if wanted.downstream > target_offset:
        return Verdict.WRITE_FORWARD
    has_source_gone_back = ours is not None and wanted.upstream < ours.upstream
    is_still_ours = ours is not None and target_offset == ours.downstream
    return Verdict.WRITE_BACK if has_source_gone_back and is_still_ours else Verdict.TARGET_AHEAD


def decide_again(verdict: Verdict, target_offset: int, log_end: int) -> Verdict:
    """For a group that is ahead on the target: beyond the log's end nobody can have read anything."""
    is_beyond = verdict is Verdict.TARGET_AHEAD and target_offset > log_end
    return Verdict.WRITE_INTO_LOG if is_beyond else verdict


def is_worth_a_checkpoint(wanted: Synced, previous: Synced | None) -> bool:
    """MirrorMaker 2's rule: forward on the target, or back if the source group went back."""
    is_first = previous is None
    has_source_gone_back = previous is not None and wanted.upstream < previous.upstream
    is_forward = previous is not None and wanted.downstream > previous.downstream
    return is_first or has_source_gone_back or is_forward


class GroupBook:
    """What the groups of a source committed, which of it is to be looked at, and what waits for records to arrive.

    Costs per change: a group that commits nothing is never looked at again.
    """

    def __init__(self) -> None:
        self.commits: dict[Place, Commit] = {}
        self.changed: set[Place] = set()
        self._vanished: set[str] = set()
        self._waiting: dict[TopicPartition, set[Place]] = {}
        self._places: dict[str, set[Place]] = {}

    @property
    def groups(self) -> Iterable[str]:
        return self._places.keys()

    @property
    def waiting(self) -> set[Place]:
        """Commits whose translation is not exact yet."""
        return {place for places in self._waiting.values() for place in places}

    def take(self, record: CommitRecord) -> None:
        """A commit, or the end of one."""
        place = Place(record.group, record.at)
        if record.commit is None:
            self._drop(place)
            return
        before = self.commits.get(place)
        self.commits[place] = record.commit
        self._places.setdefault(place.group, set()).add(place)
        self._vanished.discard(place.group)
        if before is None or (before.offset, before.metadata) != (record.commit.offset, record.commit.metadata):
            self.changed.add(place)

    def take_all(self, group: str, offsets: Mapping[TopicPartition, Commit], newer: Container[Place] = ()) -> None:
        """Everything that the group has now, but for places of which something ``newer`` is known; the rest is gone."""
        for place in list(self._places.get(group, ())):
            if place.at not in offsets and place not in newer:
                self._drop(place)
        for at, commit in offsets.items():
            if Place(group, at) not in newer:
                self.take(CommitRecord(group, at, commit))

    def keep_only(self, groups: Iterable[str]) -> None:
        """These are all the groups that there are."""
        for gone in set(self._places) - set(groups):
            self.take_all(gone, {})

    def look_again(self, places: Iterable[Place]) -> None:
        self.changed.update(place for place in places if place in self.commits)

    def look_again_at(self, groups: Iterable[str]) -> None:
        for group in groups:
            self.changed |= self._places.get(group, set())

    def take_changed(self) -> list[Place]:
        changed, self.changed = self.changed, set()
        return [place for place in changed if place in self.commits]

    def take_vanished(self) -> list[str]:
        """Groups that had offsets and have none any more, since the last call."""
        vanished, self._vanished = self._vanished, set()
        return sorted(vanished)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def waiting_at(self, remote: TopicPartition) -> Collection[Place]:
        return self._waiting.get(remote, ())

    def wait(self, place: Place, remote: TopicPartition) -> None:
        """Its records are not all on the target: look again when that partition's ledger has moved."""
        self._waiting.setdefault(remote, set()).add(place)

    def done(self, place: Place, remote: TopicPartition) -> None:
        waiting = self._waiting.get(remote)
        if waiting is not None:
            waiting.discard(place)
            if not waiting:
                del self._waiting[remote]

    def moved(self, remotes: Iterable[TopicPartition]) -> None:
        """The ledger tells more of these partitions."""
        for remote in remotes:
            self.look_again(self._waiting.get(remote, ()))

    def _drop(self, place: Place) -> None:
        if self.commits.pop(place, None) is None:
            return
        self.changed.discard(place)
        for remote in [remote for remote, places in self._waiting.items() if place in places]:
            self.done(place, remote)
        places = self._places[place.group]
        places.discard(place)
        if not places:
            del self._places[place.group]
            self._vanished.add(place.group)
