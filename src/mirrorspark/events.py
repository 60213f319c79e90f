"""What must never pass silently, each with a name. An event is shown until somebody acknowledges it.

Lanes and drivers write events to the flow's status topic; log, status and the exit report show them.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field

from mirrorspark.secret import masked

__all__ = ["Event", "EventKind"]


class EventKind:
    DATA_GAP = "data.gap"  # source retention passed our position
    TOPIC_RECREATED = "topic.recreated"  # the source topic was deleted and created again
    RECORD_TOO_LARGE = "record.too.large"  # the target refuses a record's size
    SOURCE_TRUNCATED = "source.truncated"  # the source lost records that we had read (unclean leader election)
    TARGET_TRUNCATED = "target.truncated"  # the target lost records that it had acknowledged
    BATCH_DAMAGED = "batch.damaged"  # a source batch fails its checksum or cannot be read
    APPEND_REFUSED = "append.refused"  # the target refuses a batch for another reason
    FETCH_REFUSED = "fetch.refused"  # the source refuses to give a partition's data
    FOREIGN_RECORDS = "foreign.records"  # somebody else wrote into the remote topic
    MIRROR_MAKER_RUNNING = "mirror.maker.running"  # MirrorMaker 2 was started beside a flow that runs
    TAKEOVER_UNPROVED = "takeover.unproved"  # taken over from MirrorMaker 2 by its word alone
    POSITION_LOST = "position.lost"  # no position and no ledger, yet the target is not empty
    START_OUT_OF_RANGE = "start.out.of.range"  # start.at.topic.NAME asks for an offset that the source does not have
    NO_FENCE = "fence.unavailable"  # the target forbids transactional ids: at least once
    TOPIC_REFUSED = "topic.refused"  # a cluster refuses to describe, create or grow a topic
    TOPIC_NOT_CARRIED = "topic.not.carried"  # a wanted topic that no remote topic can be made for
    SETTINGS_REFUSED = "settings.refused"  # the target refuses a change of a topic's settings
    ACLS_REFUSED = "acls.refused"  # a cluster refuses to show, take or drop ACLs, or one cannot be carried as it is
    SOURCE_TOPIC_DELETED = "source.topic.deleted"  # a topic that was carried is gone from the source
    DELETIONS_HELD_BACK = "deletions.held.back"  # more copies would be deleted at once than topic.deletions.max
    TARGET_TOPIC_DELETED = "target.topic.deleted"  # a remote topic that was carried is gone, or was made anew
    NOT_FORWARDED = "not.forwarded"  # a mirror wrote it on the source, and the flow keeps topic names
    GROUPS_POLLED = "groups.polled"  # the source does not let commits be followed: groups are asked at an interval
    GROUP_REFUSED = "group.refused"  # a cluster refuses to show a group's offsets, or to take them
    OFFSET_SYNCS_REFUSED = (
        "offset.syncs.refused"  # a cluster does not take the offset syncs; nothing of ours needs them
    )
    INTERNAL_RECORD_DAMAGED = "internal.record.damaged"  # records of a mirror's own topics that cannot be read
    PARITY_LOST = "parity.lost"  # offsets=identical: from here on a record lies at another offset than on the source
    PARITY_REFUSED = "parity.refused"  # offsets=identical cannot be had for this topic or partition from the start
    LANE_FAILED = "lane.failed"  # a lane's attempt ended by an error that does not pass by itself
    EDIT_REFUSED = "edit.refused"  # the file was edited and is wrong; the mirror goes on with what it had


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    text: str
    topic: str = ""
    partition: int = -1
    offset_first: int = -1
    offset_last: int = -1
    waits: bool = False  # whether the partition waits because of it
    at_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def key(self) -> str:
        """One event of a kind for each place: a repeat replaces the earlier one, a new range does not."""
        return f"event/{self.kind}/{self.topic}/{self.partition}/{self.offset_first}"

    def __str__(self) -> str:
        where = f" {self.topic}-{self.partition}" if self.partition >= 0 else (f" {self.topic}" if self.topic else "")
        span = f" offsets {self.offset_first}..{self.offset_last}" if self.offset_first >= 0 else ""
        return f"{self.kind}{where}{span}: {self.text}"

    def to_json(self) -> bytes:
        return json.dumps({**asdict(self), "text": masked(self.text)}, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> Event:
        return cls(**json.loads(raw))
