"""Which ACLs the remote topics shall have, and what must change for that: MirrorMaker 2's rules, and two of our own.

ACLs of both sides in, changes out. Principals and hosts stay as they are. A literal ``*`` (all topics) becomes the prefix
of the remote topics where names are prefixed: as the literal ``east.*`` that MirrorMaker 2 writes it would match nothing.
Called by ``control.acl_sync`` and by the dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from mirrorspark.names import TopicAcl

__all__ = ["AclChanges", "AclNote", "AclRules", "acl_changes", "put_before"]

LITERAL, PREFIXED = "LITERAL", "PREFIXED"
ALL_TOPICS = "*"
PROBES = ("orders", "a.b_c-1")
"""Names to see what a policy does to names: nothing, or one and the same prefix."""


class AclNote(StrEnum):
    """Why an ACL of the source is not on the target as it is on the source."""

    WRITE_NOT_GRANTED = "write.not.granted"  # only the mirror writes to remote topics
    ALL_BECOMES_READ = "all.becomes.read"
    NOT_MIRRORED = "topic.not.mirrored"
    PREFIXED_LEFT_OUT = "prefixed.left.out"  # sync.topic.acls.prefixed.enabled is false
    PREFIX_UNSUITED = "prefix.unsuited"  # the policy does not keep a name's beginning: no prefix says the same
    ALL_TOPICS_BECOMES_PREFIX = "all.topics.becomes.prefix"
    REACHES_ALL_TOPICS = "reaches.all.topics"  # a policy that keeps names: * covers the target's own topics, too

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    AclNote.WRITE_NOT_GRANTED: "left out, only the mirror writes to remote topics",
    AclNote.ALL_BECOMES_READ: "becomes READ, only the mirror writes to remote topics",
    AclNote.NOT_MIRRORED: "left out, no such topic is mirrored",
    AclNote.PREFIXED_LEFT_OUT: "left out, sync.topic.acls.prefixed.enabled is false",
    AclNote.PREFIX_UNSUITED: "left out, the replication policy does not keep the beginning of names",
    AclNote.ALL_TOPICS_BECOMES_PREFIX: "becomes a prefix that covers the remote topics of this source",
    AclNote.REACHES_ALL_TOPICS: "stays as it is and so covers the target's own topics, too",
}


@dataclass(frozen=True, slots=True)
class AclRules:
    """``wants`` says whether the flow mirrors a topic of this name, ``remote`` how it is called on the target."""

    wants: Callable[[str], bool]
    remote: Callable[[str], str]
    topics: tuple[str, ...] = ()
    """The source topics that are mirrored: a prefix that none of them begins with is nobody's business."""
    prefixed: bool = False

    def wanted(self, source: Iterable[TopicAcl]) -> tuple[set[TopicAcl], dict[TopicAcl, AclNote]]:
        """ACLs as they shall be on the target, and a note for each source ACL that is another there, or none."""
        found: set[TopicAcl] = set()
        notes: dict[TopicAcl, AclNote] = {}
        for acl in source:
            renamed, note = self._place(acl)
            if renamed is not None:
                renamed, changed = _for_readers(renamed)
                note = (note or changed) if renamed is not None else changed
            if renamed is not None:
                found.add(renamed)
            if note is not None:
                notes[acl] = note
        return found, notes

    def _place(self, acl: TopicAcl) -> tuple[TopicAcl | None, AclNote | None]:
        """The ACL on the remote topics; which operations it grants is not asked here."""
        if acl.pattern == LITERAL and acl.name == ALL_TOPICS:
            return self._all_topics(acl)
        if acl.pattern == LITERAL:
            if not self.wants(acl.name):
                return None, AclNote.NOT_MIRRORED
            return acl._replace(name=self.remote(acl.name)), None
        if acl.pattern != PREFIXED or not self.prefixed:
            return None, AclNote.PREFIXED_LEFT_OUT
        before = put_before(self.remote)
        if before is None:
            return None, AclNote.PREFIX_UNSUITED
        if not any(topic.startswith(acl.name) for topic in self.topics):
            return None, AclNote.NOT_MIRRORED
        return acl._replace(name=f"{before}{acl.name}"), None

    def _all_topics(self, acl: TopicAcl) -> tuple[TopicAcl | None, AclNote | None]:
        before = put_before(self.remote)
        if before is None:
            return None, AclNote.PREFIX_UNSUITED
        if before:
            return acl._replace(pattern=PREFIXED, name=before), AclNote.ALL_TOPICS_BECOMES_PREFIX
        if not self.wants(ALL_TOPICS):
            return None, AclNote.NOT_MIRRORED
        return acl, AclNote.REACHES_ALL_TOPICS


def put_before(remote: Callable[[str], str]) -> str | None:
    """What a policy puts before a name ("" if it keeps names); None if it does something else to it."""
    found = {named.removesuffix(name) if (named := remote(name)).endswith(name) else None for name in PROBES}
    return found.pop() if len(found) == 1 else None


def _for_readers(acl: TopicAcl) -> tuple[TopicAcl | None, AclNote | None]:
    """Rule 3: nobody but the mirror writes to a remote topic; what is denied stays denied."""
    is_allowed = acl.permission == "ALLOW"
    if is_allowed and acl.operation == "WRITE":
        return None, AclNote.WRITE_NOT_GRANTED
    if is_allowed and acl.operation == "ALL":
        return acl._replace(operation="READ"), AclNote.ALL_BECOMES_READ
    return acl, None


@dataclass(frozen=True)
class AclChanges:
    grant: frozenset[TopicAcl] = field(default_factory=frozenset)
    revoke: frozenset[TopicAcl] = field(default_factory=frozenset)
    granted: frozenset[TopicAcl] = field(default_factory=frozenset)
    """What the mirror itself will have granted afterwards: the only ACLs that it may ever take away."""

    def __bool__(self) -> bool:
        return bool(self.grant or self.revoke)


def acl_changes(
    wanted: Iterable[TopicAcl], there: Iterable[TopicAcl], granted: Iterable[TopicAcl], *, revoke: bool
) -> AclChanges:
    """The difference. What others put on the target stays, whether it is wanted or not."""
    wanted, there, granted = frozenset(wanted), frozenset(there), frozenset(granted)
    grant = wanted - there
    stale = (granted & there) - wanted
    taken = stale if revoke else frozenset()
    return AclChanges(grant, taken, ((granted & there) | grant) - taken)
