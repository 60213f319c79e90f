"""The ACLs that the flows of a file need, cluster by cluster, for the users that they log in as.

``plan.required_acls`` says what one flow needs; here its names are filled in, the flows of a file are put together, and the
users are found out. Called by the command ``acls`` and by the journey that proves the list. Changes nothing; asks a cluster
only for the topics that a flow wants, where somebody wants them written out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.principal import principal_of
from mirrorspark.control.cluster_snapshot import inflows_of, seen
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC, ledger_topic, plan_topic, progress_topic_of, status_topic
from mirrorspark.offsets.position import positions_group
from mirrorspark.pipeline.recovery import transactional_id
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.plan.required_acls import OwnNames, RequiredAcl, for_heartbeats, required_acls, without_included
from mirrorspark.settings import ClusterSettings, FlowSettings

__all__ = ["PRINCIPAL_OPTION", "AclChoices", "ClusterAcls", "acls_of", "own_names", "topics_on_source"]

PRINCIPAL_OPTION = "--principal"


@dataclass(frozen=True, slots=True)
class AclChoices:
    """``principals`` by alias go before what the file says. ``listed``: by flow, its topics written out."""

    principals: Mapping[str, str]
    listed: Mapping[Flow, Collection[str]]
    with_failover: bool = False
    with_takeover: bool = False


@dataclass(frozen=True, slots=True)
class ClusterAcls:
    """What one user needs on one cluster."""

    cluster: ClusterSettings
    principal: str
    principal_from: str
    flows: tuple[Flow, ...]
    acls: tuple[RequiredAcl, ...]


def acls_of(
    pairs: Sequence[FlowSettings], choices: AclChoices, *, others: Sequence[FlowSettings] = ()
) -> list[ClusterAcls]:
    """Of flows, and of pairs of clusters that have heartbeats alone. ``others``: pairs of the same file that somebody else
    runs, whose heartbeats are carried all the same. Raises SettingsError where nobody says who we are on a cluster."""
    needed: dict[str, list[RequiredAcl]] = {}
    clusters: dict[str, ClusterSettings] = {}
    users: dict[str, list[Flow]] = {}
    for one in pairs:
        for acl in _needed(one, (*pairs, *others), choices):
            needed.setdefault(acl.cluster, []).append(acl)
            if one.flow not in users.setdefault(acl.cluster, []):
                users[acl.cluster].append(one.flow)
        clusters |= {one.flow.source: one.source, one.flow.target: one.target}
    _check_aliases(choices.principals, clusters)
    return [
        ClusterAcls(
            clusters[alias],
            *_principal(clusters[alias], choices.principals),
            tuple(users[alias]),
            tuple(without_included(acls)),
        )
        for alias, acls in needed.items()
    ]


def _needed(one: FlowSettings, pairs: Iterable[FlowSettings], choices: AclChoices) -> list[RequiredAcl]:
    if not one.enabled:
        return for_heartbeats(one)
    return required_acls(
        one,
        own_names(one),
        listed=choices.listed.get(one.flow),
        heartbeats=_heartbeats_on_source(one, pairs),
        with_failover=choices.with_failover,
        with_takeover=choices.with_takeover,
    )


def _heartbeats_on_source(one: FlowSettings, pairs: Iterable[FlowSettings]) -> list[str]:
    """Heartbeats that pairs of this file write there, or that flows of this file bring there from elsewhere."""
    into = [other for other in pairs if other.flow.target == one.flow.source]
    found = {HEARTBEATS_TOPIC for other in into if other.heartbeats.emitted}
    found |= {
        policy_for(other).remote(HEARTBEATS_TOPIC)
        for other in into
        if other.enabled and other.heartbeats.replicated and other.flow.source != one.flow.target
    }
    return sorted(found)


def own_names(settings: FlowSettings) -> OwnNames:
    flow = settings.flow
    books = flow.books
    back = Flow(flow.target, flow.source, flow.instance)
    return OwnNames(
        plan=plan_topic(books),
        status=status_topic(books),
        ledger=ledger_topic(books),
        progress=progress_topic_of(settings),
        writers=WRITERS_TOPIC,
        dead_letters=f"mirrorspark-dead-letters.{books}.internal",
        positions_group=positions_group(flow),
        transactional_ids=transactional_id(settings, 0).removesuffix("0"),
        mirror_maker_group=settings.connect.group or f"{flow.source}-mm2",
        mirror_maker_status=settings.connect.status_topic or f"mm2-status.{flow.source}.internal",
        positions_group_back=positions_group(back),
        plan_back=plan_topic(back.books),
        status_back=status_topic(back.books),
    )


def _check_aliases(principals: Mapping[str, str], clusters: Mapping[str, ClusterSettings]) -> None:
    for alias in principals:
        if alias not in clusters:
            known = ", ".join(sorted(clusters))
            raise SettingsError(
                f"{PRINCIPAL_OPTION} {alias}=…: not a cluster of these flows; there is {known}", key=PRINCIPAL_OPTION
            )


def _principal(cluster: ClusterSettings, given: Mapping[str, str]) -> tuple[str, str]:
    """Its name, and where it was found."""
    if cluster.alias in given:
        return given[cluster.alias], PRINCIPAL_OPTION
    found = principal_of(cluster.login)
    if not found.name:
        raise SettingsError(
            f"{PRINCIPAL_OPTION} {cluster.alias}=User:…: missing; the file does not say who we are on {cluster.alias} "
            f"({found.how})",
            key=PRINCIPAL_OPTION,
        )
    return found.name, found.how


async def topics_on_source(settings: FlowSettings) -> list[str]:
    """The topics that the flow wants and that the source shows us now. Raises ClusterError."""
    client = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|acls")
    try:
        await reach_cluster(client)
        there = seen(await client.refresh(None))
    finally:
        client.close()
    rules = TopicRules(settings, inflows_of(there, settings))
    return sorted(name for name in there if rules.wants(name))
