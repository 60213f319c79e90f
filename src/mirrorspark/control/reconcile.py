"""Making the target ready: internal topics, remote topics with the source's settings and partition counts.

``plan.desired_topics`` decides; this file shows it both clusters and carries its actions out. A topic that a cluster
refuses is an event of its own; the others go on. What lanes may still hold is changed only in the pass after the plan
let go of it: a remote topic that vanished is made anew then, the copy of a deleted source topic deleted then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, delete_topics, grow_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.topic_configs import describe_configs
from mirrorspark.control.cluster_snapshot import await_visible, inflows_of, seen
from mirrorspark.errors import BrokerError, ClusterError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.offsets.internal_topics import (
    PROGRESS_PARTITIONS,
    ledger_topic,
    plan_topic,
    progress_topic_of,
    status_topic,
)
from mirrorspark.plan.desired_topics import Action, ActionKind, Reason, SeenTopic, TopicRules, desired_topics
from mirrorspark.plan.lanes import Assignment
from mirrorspark.plan.name_patterns import names_in
from mirrorspark.plan.topic_filter import Refusal
from mirrorspark.settings import FlowSettings

__all__ = ["Reconciled", "Reconciler", "ensure_internal_topics"]

log = logging.getLogger("mirrorspark.flow")

NAMES_TOLD_MAX = 5
NAMES_ASKED_MAX = 200
"""Wanted topics that the source does not list, asked for by name in one pass."""
MADE_ANEW = (Reason.TARGET_TOPIC_DELETED, Reason.TARGET_TOPIC_RECREATED)
COMPACT = {"cleanup.policy": "compact"}
COMPACT_SOON = {**COMPACT, "segment.bytes": "16777216", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}
"""Lanes report every second and only the newest report counts: a log that is compacted late would be long to read."""


@dataclass
class Reconciled:
    """Partitions that exist on both sides, what could not be made ready, and how many source topics are wanted."""

    assignments: list[Assignment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    matched: int = 0
    notes: list[str] = field(default_factory=list)
    """For the log, once."""
    unfinished: str = ""
    """What a quota or a moving controller holds up; the next pass goes on with it."""


async def ensure_internal_topics(target: ClusterClient, settings: FlowSettings) -> None:
    """The flow's own topics; their replication factor is what the cluster has brokers for, at most."""
    books = settings.flow.books
    factor = min(settings.internal_replication_factor, max(1, len(target.nodes)))
    wanted = [
        NewTopic(plan_topic(books), 1, factor, COMPACT_SOON),
        NewTopic(status_topic(books), 1, factor, COMPACT_SOON),
        NewTopic(ledger_topic(books), 1, factor, COMPACT_SOON),
        NewTopic(progress_topic_of(settings), PROGRESS_PARTITIONS, factor, COMPACT),
    ]
    names = [topic.name for topic in wanted]
    known = {topic.name for topic in await target.refresh(names) if topic.error_code == 0}
    missing = [topic for topic in wanted if topic.name not in known]
    if missing:
        refused = await create_topics(target, missing)
        if refused:
            raise ClusterError(
                f"cluster {target.alias}: internal topics cannot be made: " + "; ".join(map(str, refused.values()))
            )
        await target.refresh(names)


class Reconciler:
    """One flow's; remembers from pass to pass only what the next one is to delete, or to make anew."""

    def __init__(self, source: ClusterClient, target: ClusterClient) -> None:
        self._source = source
        self._target = target
        self._doomed: dict[str, Assignment] = {}
        self._vanished: set[str] = set()
        self._is_first = True
        self._rules: TopicRules | None = None
        self._named: frozenset[str] = frozenset()
        self._noted: set[str] = set()

    async def reconcile(self, settings: FlowSettings, carried: Iterable[Assignment] = ()) -> Reconciled:
        """One pass. ``carried`` is what the last plan held."""
        there = seen(await self._source.refresh(None))
        inflows = inflows_of(there, settings)
        if self._rules is None or self._rules.settings is not settings or self._rules.inflows != inflows:
            self._rules = TopicRules(settings, inflows)
            self._named = names_in(settings.topics, "topics") | {HEARTBEATS_TOPIC}
        one_pass = _Pass(self._source, self._target, self._rules, list(carried), self._named)
        result = await one_pass.run(there, self._doomed, self._vanished, may_make_deleted=self._is_first)
        self._is_first = False
        for note in result.notes:
            if note not in self._noted:
                self._noted.add(note)
                log.warning("%s: %s", settings.flow, note)
        return result


class _Pass:
    """Look at both clusters, decide, make, list what can be carried, tell."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        rules: TopicRules,
        carried: list[Assignment],
        named: frozenset[str],
    ) -> None:
        self._source = source
        self._target = target
        self._rules = rules
        self._carried = carried
        self._named = named
        self._denied: frozenset[str] = frozenset()
        self._result = Reconciled()

    async def run(
        self,
        there: Mapping[str, SeenTopic],
        doomed: dict[str, Assignment],
        vanished: set[str],
        *,
        may_make_deleted: bool,
    ) -> Reconciled:
        remote = seen(await self._target.refresh(None))
        actions = desired_topics(there, remote, self._rules, self._carried)
        await self._delete(doomed, there, remote)
        missing = [one for one in actions if one.kind is ActionKind.CREATE]
        if may_make_deleted:  # the first pass of a lead: its lanes do not run yet
            missing += [one for one in actions if one.reason == Reason.TARGET_TOPIC_DELETED]
        changed = await self._create(missing)
        changed |= await self._grow([one for one in actions if one.kind is ActionKind.GROW])
        remote |= await await_visible(self._target, changed)
        vanished |= {one.remote for one in actions if one.reason in MADE_ANEW}
        self._list(actions, there, remote, vanished)
        await self._ask_for_unlisted(there)
        self._tell(actions)
        doomed.update(self._to_delete(actions))
        return self._result

    # -- make -------------------------------------------------------------------------------------------------------

    async def _create(self, missing: list[Action]) -> dict[str, int]:
        """Returns the partition counts of what was created."""
        if not missing:
            return {}
        described = await describe_configs(self._source, [one.topic for one in missing])
        remote_names = {one.topic: one.remote for one in missing}
        self._refused(
            {remote_names[topic]: error for topic, error in described.refused.items()}, "its settings on the source: "
        )
        rules = self._rules.configs
        factor = self._rules.settings.replication_factor
        ready = [one for one in missing if one.topic in described.settings]
        wanted = [
            NewTopic(one.remote, one.partitions, factor, rules.at_creation(described.settings[one.topic]))
            for one in ready
        ]
        refused = await create_topics(self._target, wanted)
        refused = await self._create_without_unknown(wanted, refused)
        self._refused(refused)
        return {one.remote: one.partitions for one in ready if one.remote not in refused}

    async def _create_without_unknown(
        self, wanted: list[NewTopic], refused: dict[str, BrokerError]
    ) -> dict[str, BrokerError]:
        """A source of another version may have settings that the target has no name for: those are left out, as the sync of
        settings leaves them out (and shows them). Which names there are, a topic of the target tells; only asked for when
        something was refused. Returns what is still refused."""
        doubtful = [one for one in wanted if _is_about_settings(refused.get(one.name))]
        if not doubtful:
            return refused
        own = plan_topic(self._rules.settings.flow.books)
        known = {one.name for one in (await describe_configs(self._target, [own])).settings.get(own, [])}
        again = []
        for topic in doubtful:
            unknown = sorted(set(topic.configs) - known) if known else []
            if unknown:
                log.info("%s: made without %s, unknown to %s", topic.name, ", ".join(unknown), self._target.alias)
                kept = {name: value for name, value in topic.configs.items() if name in known}
                again.append(replace(topic, configs=kept))
        still = {name: error for name, error in refused.items() if name not in {topic.name for topic in again}}
        return still | (await create_topics(self._target, again) if again else {})

    async def _grow(self, growing: list[Action]) -> dict[str, int]:
        """Returns the partition counts of what was grown."""
        if not growing:
            return {}
        refused = await grow_topics(self._target, {one.remote: one.partitions for one in growing})
        self._refused(refused)
        return {one.remote: one.partitions for one in growing if one.remote not in refused}

    def _refused(self, refused: Mapping[str, BrokerError], where: str = "") -> None:
        """An event for each topic that a person must look at; what passes by itself is not their business."""
        for topic, error in sorted(refused.items()):
            if error.retriable:
                self._result.unfinished = f"{sum(one.retriable for one in refused.values())} topics: {where}{error}"
            else:
                self._result.events.append(Event(EventKind.TOPIC_REFUSED, f"{where}{error}", topic=topic))

    # -- delete -----------------------------------------------------------------------------------------------------

    def _to_delete(self, actions: Iterable[Action]) -> dict[str, Assignment]:
        topics = {one.topic for one in actions if one.kind is ActionKind.DELETE}
        return {one.source.topic: one for one in self._carried if one.source.topic in topics}

    async def _delete(
        self, doomed: dict[str, Assignment], there: Mapping[str, SeenTopic], remote: Mapping[str, SeenTopic]
    ) -> None:
        """Copies whose source topic was gone in the last pass, if it is still gone: asked for by its name.

        A topic that may not be seen any more is missing from the list, too; asked by name, the source says which. What is
        refused, or cannot be said now, stays for the next pass.
        """
        is_wanted = self._rules.settings.policies.on_source_topic_deleted == "delete"
        for topic in [one for one in doomed if one in there or not self._rules.wants(one) or not is_wanted]:
            del doomed[topic]
        if not doomed or not there:
            return
        answers = {topic.name: topic.error_code for topic in await self._source.refresh(sorted(doomed))}
        for topic, one in list(doomed.items()):
            is_hidden = answers.get(topic) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if is_hidden or not _is_still(one, remote.get(one.remote_topic)):
                del doomed[topic]
        gone = [topic for topic in doomed if answers.get(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        copies = {doomed[topic].remote_topic: topic for topic in gone}
        refused = await delete_topics(self._target, copies) if copies else {}
        flow = self._rules.settings.flow
        for copy, topic in copies.items():
            if copy not in refused:
                del doomed[topic]
                text = f"is gone from {flow.source}; its copy {copy} on {flow.target} was deleted"
                self._result.events.append(Event(EventKind.SOURCE_TOPIC_DELETED, text, topic=topic))
        self._refused(refused, "its source topic is gone and it shall be deleted: ")

    # -- list and tell ----------------------------------------------------------------------------------------------

    def _list(
        self,
        actions: Iterable[Action],
        there: Mapping[str, SeenTopic],
        remote: Mapping[str, SeenTopic],
        vanished: set[str],
    ) -> None:
        """What can be carried. A topic that a cluster lists with an error just now stays with its lane.

        A topic in place of a deleted one is marked as such for as long as it lives: a lane may ask at any time.
        """
        kept: dict[str, list[Assignment]] = {}
        remade = set()
        for one in self._carried:
            kept.setdefault(one.source.topic, []).append(one)
            if one.is_remade:
                remade.add(one.remote_id)
        for action in actions:
            is_named_wrong = action.reason in (Reason.REMOTE_NAME_TAKEN, Reason.REMOTE_NAME_INVALID)
            if action.topic in there and (action.kind is not ActionKind.SKIP or is_named_wrong):
                self._result.matched += 1
            copy = remote.get(action.remote)
            is_placed = action.kind in (ActionKind.CREATE, ActionKind.GROW, ActionKind.CARRY)
            if is_placed or action.reason == Reason.TARGET_TOPIC_DELETED:
                if copy is not None:
                    is_remade = copy.name in vanished or copy.topic_id in remade
                    self._result.assignments += _assignments(there[action.topic], copy, is_remade)
                    vanished.discard(copy.name)
            elif action.kind is ActionKind.WAIT:
                self._result.assignments += kept.get(action.topic, [])

    async def _ask_for_unlisted(self, there: Mapping[str, SeenTopic]) -> None:
        """Topics that are carried, or wanted by their names, and not in the source's list: it leaves out what we may not
        see. Asked for by name it says so."""
        missing = ({one.source.topic for one in self._carried} | self._named) - there.keys()
        asked = sorted(filter(self._rules.wants, missing))[:NAMES_ASKED_MAX]
        if not asked:
            return
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._denied = frozenset(one.name for one in await self._source.refresh(asked) if one.error_code == code)
        for topic in sorted(self._denied):
            error = broker_error(code, "Metadata", f"{topic} on cluster {self._source.alias}", before="Fetch")
            text = f"is wanted but not carried, since the source does not show it: {error}"
            if topic == HEARTBEATS_TOPIC and topic not in names_in(self._rules.settings.topics, "topics"):
                self._result.notes.append(f"{topic} {text}")  # perhaps there is none: a source hides that, too
            else:
                self._result.events.append(Event(EventKind.TOPIC_REFUSED, text, topic=topic))

    def _tell(self, actions: Iterable[Action]) -> None:
        flow = self._rules.settings.flow
        events = self._result.events
        held_back = []
        for one in actions:
            if one.reason in (Reason.REMOTE_NAME_TAKEN, Reason.REMOTE_NAME_INVALID, Refusal.LOOKS_LIKE_CYCLE):
                events.append(Event(EventKind.TOPIC_NOT_CARRIED, one.text, topic=one.topic))
            elif one.reason in MADE_ANEW:
                events.append(Event(EventKind.TARGET_TOPIC_DELETED, one.text, topic=one.remote))
            elif one.kind in (ActionKind.KEEP, ActionKind.DELETE) and one.topic not in self._denied:
                then = "is deleted" if one.kind is ActionKind.DELETE else "stays"
                text = (
                    f"is gone from {flow.source}: deleted, or no longer allowed to be seen. It is no longer carried; "
                    f"its copy {one.remote} {then} on {flow.target}"
                )
                events.append(Event(EventKind.SOURCE_TOPIC_DELETED, text, topic=one.topic))
                if one.reason in (Reason.TOO_MANY_DELETIONS, Reason.SOURCE_LIST_EMPTY):
                    held_back.append(one)
        if held_back:
            names = ", ".join(one.remote for one in held_back[:NAMES_TOLD_MAX])
            more = f" and {len(held_back) - NAMES_TOLD_MAX} more" if len(held_back) > NAMES_TOLD_MAX else ""
            text = f"{held_back[0].text}. Check {flow.source}; if it is right, delete them yourself: {names}{more}"
            events.append(Event(EventKind.DELETIONS_HELD_BACK, text))


def _assignments(topic: SeenTopic, remote: SeenTopic, is_remade: bool) -> list[Assignment]:
    return [
        Assignment(TopicPartition(topic.name, number), remote.name, topic.topic_id, remote.topic_id, is_remade)
        for number in range(min(topic.partitions, remote.partitions))
    ]


def _is_about_settings(error: BrokerError | None) -> bool:
    return error is not None and error.error_code == ErrorCode.INVALID_CONFIG


def _is_still(copy: Assignment, remote: SeenTopic | None) -> bool:
    """Whether the remote topic is the one that was carried, and not another of that name."""
    return remote is not None and copy.remote_id in ("", remote.topic_id)
