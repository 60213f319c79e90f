"""One sync of single groups, by hand: from the ledger of a flow, or from checkpoints that any mirror wrote.

The second way needs only the target cluster, the source's alias and the policy, as AWS' MM2GroupOffsetSync does. Whichever
way: a group with members on the target is not touched, one that is further there is not taken back, an offset that the
target's log does not reach is not written. Per group all or nothing. For commands and whoever else wants it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.group_sync import read_checkpoints
from mirrorspark.control.group_view import GroupDescription, GroupView, UnknownGroup
from mirrorspark.control.target_groups import Outcome, TargetGroups, Wanted
from mirrorspark.errors import SettingsError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_sync import Synced
from mirrorspark.settings import ClusterSettings

__all__ = ["GroupSynced", "sync_from_checkpoints", "sync_from_ledger"]

READ_TIMEOUT_S = 60.0
NAMES_SHOWN_MAX = 5
CHECKPOINTS_SUFFIX = "checkpoints"


@dataclass
class GroupSynced:
    """What became of one group. ``refused`` says why nothing was written; "" if there was nothing against it."""

    group: str
    refused: str = ""
    written: dict[str, int] = field(default_factory=dict)
    """Remote partition -> offset."""
    kept: dict[str, str] = field(default_factory=dict)
    """Remote partition -> why it stayed as it was."""
    dry_run: bool = False

    @property
    def is_done(self) -> bool:
        return not self.refused


async def sync_from_ledger(
    view: GroupView, group: str, *, dry_run: bool = False, allow_inexact: bool = False
) -> GroupSynced:
    """As the running mirror would do it now. Raises UnknownGroup."""
    described = await view.describe(group)
    against = _against(described, allow_inexact)
    if against:
        return GroupSynced(group, against, dry_run=dry_run)
    wanted = {
        TopicPartition(one.remote_topic, one.partition): Wanted(
            Synced(one.upstream_offset, one.downstream_offset), one.metadata
        )
        for one in described.partitions
        if one.downstream_offset is not None
    }
    return await _write(view.target, group, wanted, dry_run)


def _against(described: GroupDescription, allow_inexact: bool) -> str:
    """Why the group is better not written now."""
    if not described.partitions:
        reads = ", ".join(f"{topic} ({why})" for topic, why in list(described.left_out.items())[:NAMES_SHOWN_MAX])
        return f"it has no offsets in topics of this flow; it reads {reads}" if reads else "it has no offsets"
    for one in described.partitions:
        at = f"{one.topic}-{one.partition}"
        if one.is_beyond_end:
            return f"its offset {one.upstream_offset} in {at} is beyond the end of the source's log, {one.upstream_end}"
        if not one.exact and not allow_inexact:
            return (
                f"its offset {one.upstream_offset} in {at} cannot be translated exactly: {one.reason}. Wait for the mirror, "
                "or give --allow-inexact: no record is skipped then, some may be read again"
            )
    return ""


async def sync_from_checkpoints(
    cluster: ClusterSettings, checkpoints_topic: str, group: str, *, dry_run: bool = False
) -> GroupSynced:
    """By the newest checkpoints of the group on this cluster. Raises UnknownGroup, SettingsError for a wrong alias."""
    client = ClusterClient(cluster, "mirrorspark|groups sync")
    try:
        await reach_cluster(client)
        await _check_topic(client, checkpoints_topic)
        found, damaged = await read_checkpoints(KeyedTopic(client, checkpoints_topic), Deadline(READ_TIMEOUT_S))
        if not any(name == group for name, _ in found):
            others = sorted({name for name, _ in found})
            shown = ", ".join(others[:NAMES_SHOWN_MAX]) + (" …" if len(others) > NAMES_SHOWN_MAX else "")
            more = f" ({damaged} records there are no checkpoints)" if damaged else ""
            raise UnknownGroup(
                f"{checkpoints_topic} has no checkpoint of group {group}{more}; there are: {shown or 'none'}",
                group=group,
            )
        wanted = {
            remote: Wanted(Synced(one.upstream_offset, one.downstream_offset), one.metadata)
            for (name, remote), one in found.items()
            if name == group
        }
        return await _write(client, group, wanted, dry_run)
    finally:
        client.close()


async def _check_topic(client: ClusterClient, checkpoints_topic: str) -> None:
    (found,) = await client.refresh([checkpoints_topic])
    if found.error_code == 0:
        return
    known = sorted(
        topic.name
        for topic in await client.refresh(None)
        if CHECKPOINTS_SUFFIX in topic.name and topic.name.endswith("internal")
    )
    raise SettingsError(
        f"cluster {client.alias} has no topic {checkpoints_topic}: is --source the alias that the mirror knows, and "
        f"--policy its policy? Checkpoints there are: {', '.join(known) or 'none'}",
        key="--source",
    )


async def _write(
    client: ClusterClient, group: str, wanted: Mapping[TopicPartition, Wanted], dry_run: bool
) -> GroupSynced:
    result = GroupSynced(group, dry_run=dry_run)
    deadline = Deadline(READ_TIMEOUT_S)
    await client.refresh(sorted({remote.topic for remote in wanted}), deadline)
    missing = [remote for remote in wanted if client.leader(remote) is None]
    if missing:
        result.refused = f"{missing[0]} is not on cluster {client.alias}, or has no leader there now"
        return result
    ends = await list_offsets(client, list(wanted), LATEST, deadline)
    for remote, one in wanted.items():
        if one.synced.downstream > ends[remote]:
            result.refused = (
                f"offset {one.synced.downstream} of {remote} is beyond its end on cluster {client.alias}, {ends[remote]}: "
                "the topic was made anew, or what told the offset is damaged"
            )
            return result
    targets = TargetGroups(client)
    try:
        outcome = await targets.sync({group: wanted}, dry_run=dry_run)
    finally:
        targets.close()
    _take_outcome(result, group, wanted, outcome)
    return result


def _take_outcome(result: GroupSynced, group: str, wanted: Mapping[TopicPartition, Wanted], outcome: Outcome) -> None:
    if group in outcome.members:
        state = outcome.members[group]
        result.refused = (
            f"it is in use on the target ({state.state}, {state.members} members): stop its consumers there first"
        )
        return
    if group in outcome.refused:
        result.refused = str(outcome.refused[group])
        return
    for (_, remote), verdict in outcome.verdicts.items():
        if verdict.writes:
            result.written[str(remote)] = wanted[remote].synced.downstream
        else:
            there = outcome.target_offsets.get((group, remote))
            result.kept[str(remote)] = f"{verdict.value}: the target's group is at {there}"
