"""What a replication policy is: how a topic of the source is called on the target, and what a name tells about its past.

``policy_for`` gives the policy of a flow; filter, reconciler, heartbeats and status ask it. Own policies come by an entry
point in the group ``mirrorspark.replication_policy``: a callable that takes ``NamingFacts`` and returns a policy. Its name
may be the Java class that stands in the users' files. A policy only computes: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, runtime_checkable

from mirrorspark.errors import SettingsError
from mirrorspark.plan.topic_naming import HEARTBEATS, DefaultNaming, IdentityNaming, NamingFacts, SameNaming
from mirrorspark.settings import FlowSettings

__all__ = ["PolicyChoice", "ReplicationPolicy", "is_heartbeats", "original_topic", "policy_choice", "policy_for"]

ENTRY_POINT_GROUP = "mirrorspark.replication_policy"
KEY = "replication.policy.class"
HOPS_MAX = 250
"""A name of 249 characters cannot tell of more; an own policy that never comes to an end is cut off here."""


@runtime_checkable
class ReplicationPolicy(Protocol):
    """Questions about names. Each must give the same answer every time."""

    @property
    def needs_origin_check(self) -> bool:
        """Whether names do not tell where a record began, so that lanes must look at each batch's producer id."""
        ...

    def remote(self, topic: str) -> str:
        """The name on the target of a topic of the source."""
        ...

    def source_of(self, topic: str) -> str | None:
        """The alias of the cluster that a topic was mirrored from, by its name; None if it looks local."""
        ...

    def upstream(self, topic: str) -> str | None:
        """How the topic is called on that cluster; None if it looks local."""
        ...

    def is_internal(self, topic: str) -> bool:
        """Whether the topic is Kafka's or a mirror's own, and so never mirrored."""
        ...

    def is_checkpoints(self, topic: str) -> bool: ...

    def checkpoints_topic(self, alias: str) -> str:
        """On the target, for the source ``alias``."""
        ...

    def offset_syncs_topic(self, alias: str) -> str:
        """``alias`` is the other cluster: the target's for a topic on the source, the source's for one on the target."""
        ...


PolicyFactory = Callable[[NamingFacts], ReplicationPolicy]

_BUILT_IN: dict[str, PolicyFactory] = {"default": DefaultNaming, "identity": IdentityNaming, "same-name": SameNaming}


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy's name as ``settings.Naming.policy`` has it, and what to tell the user about it ("" for nothing)."""

    name: str
    note: str = ""


_JAVA_CLASSES = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": PolicyChoice("default"),
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": PolicyChoice("identity"),
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": PolicyChoice("identity"),
    "mirrorspark.SameNameReplicationPolicy": PolicyChoice("same-name"),
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy": PolicyChoice(
        "same-name", "a Java class that keeps topic names; the policy same-name does that here, and cuts loops"
    ),
}


def policy_choice(value: str, *, key: str = KEY) -> PolicyChoice:
    """What a file's ``replication.policy.class`` stands for. Raises SettingsError that names the key and what is known."""
    if value in _BUILT_IN:
        return PolicyChoice(value)
    own = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    if value in own:  # before the Java classes: an own policy may take the place of one of them
        return PolicyChoice(value)
    if value in _JAVA_CLASSES:
        return _JAVA_CLASSES[value]
    raise SettingsError(
        f"{key}={value}: no such replication policy. Known are {', '.join((*_BUILT_IN, *_JAVA_CLASSES, *sorted(own)))}. "
        f"Java code cannot run here: a Python policy under this very name, as an entry point in the group "
        f"{ENTRY_POINT_GROUP}, takes its place without a change to the file",
        key=key,
    )


def policy_for(settings: FlowSettings, aliases: Iterable[str] = ()) -> ReplicationPolicy:
    """The policy of one flow; ``aliases`` are the deployment's clusters, which matters to aliases with a separator in them.

    Raises SettingsError for a name that is not known, and for an own policy that cannot be built.
    """
    naming = settings.naming
    name = policy_choice(naming.policy).name
    facts = NamingFacts(
        settings.flow.source,
        settings.flow.target,
        naming.separator,
        naming.internal_separator_enabled,
        frozenset(aliases) | frozenset(settings.aliases),
    )
    if name in _BUILT_IN:
        return _BUILT_IN[name](facts)
    return _build_own(next(iter(entry_points(group=ENTRY_POINT_GROUP, name=name))), facts)


def _build_own(point: EntryPoint, facts: NamingFacts) -> ReplicationPolicy:
    try:
        policy = point.load()(facts)
    except Exception as error:  # somebody else's code; whatever it raises is told with its name
        raise SettingsError(
            f"{KEY}={point.name}: the policy {point.value} cannot be built: {type(error).__name__}: {error}", key=KEY
        ) from error
    if not isinstance(policy, ReplicationPolicy):
        missing = sorted(name for name in _members() if not hasattr(policy, name))
        raise SettingsError(f"{KEY}={point.name}: the policy {point.value} lacks {', '.join(missing)}", key=KEY)
    return policy


def _members() -> list[str]:
    return [name for name in vars(ReplicationPolicy) if not name.startswith("_")]


# -- what follows from a policy's answers ------------------------------------------------------------------------------


def original_topic(policy: ReplicationPolicy, topic: str) -> str:
    """The topic's name where it began: all aliases taken off."""
    for _ in range(HOPS_MAX):
        before = policy.upstream(topic)
        if before is None or before == topic:
            break
        topic = before
    return topic


def is_heartbeats(policy: ReplicationPolicy, topic: str) -> bool:
    return original_topic(policy, topic) == HEARTBEATS
