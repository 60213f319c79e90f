"""Rules between the keys of one flow: values that contradict each other, or that MirrorMaker 2 would not start with."""

from __future__ import annotations

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.definition import CHECKPOINT, CONNECTORS, SOURCE
from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.config.flow_settings import BuiltFlow
from mirrorspark.config.levels import Effective

__all__ = ["check_rules"]

_SAME_FOR_ALL = (
    "replication.policy.class",
    "replication.policy.separator",
    "replication.policy.internal.topic.separator.enabled",
    "offset-syncs.topic.location",
)
"""Connectors of a flow that disagree on these look for each other's topics in vain."""
_SAME_TOPICS = ("topics", "topics.exclude")


def check_rules(built: BuiltFlow, document: Document, findings: Findings) -> None:
    _separator(built, findings)
    _offset_syncs(built, document, findings)
    _checkpoints(built, findings)
    _exactly_once(built, findings)
    _connectors_agree(built, findings)
    _identical_offsets(built, findings)
    _acls(built, findings)
    _overruled(built, document, findings)


def _asked(built: BuiltFlow, name: str, connector: str = "") -> Effective:
    return built.levels.plain(PLAIN[name], connector)


def _key(found: Effective) -> str:
    return found.entry.key if found.entry is not None else found.name


def _separator(built: BuiltFlow, findings: Findings) -> None:
    if not built.settings.naming.separator and not built.settings.keeps_names:
        key = _key(_asked(built, "replication.policy.separator"))
        findings.error(key, "must not be empty, since names of remote topics could not be taken apart again")


def _offset_syncs(built: BuiltFlow, document: Document, findings: Findings) -> None:
    if built.settings.group_sync.offset_syncs_enabled:
        return
    off = _key(_asked(built, "emit.offset-syncs.enabled"))
    flow = built.settings.flow
    for key in document:
        names = (key, key.removeprefix(f"{flow}."), key.removeprefix(f"{flow}.{SOURCE}."))
        if any(name.startswith(("offset-syncs-", "offset-syncs.topic.")) for name in names):
            findings.error(key, f"offset syncs are switched off by {off}=false; remove one of the two")


def _checkpoints(built: BuiltFlow, findings: Findings) -> None:
    """Groups' offsets come from checkpoints, and those from offset syncs."""
    sync = built.settings.group_sync
    offsets = _asked(built, "sync.group.offsets.enabled", CHECKPOINT)
    checkpoints = _asked(built, "emit.checkpoints.enabled", CHECKPOINT)
    if sync.offsets_enabled and not sync.checkpoints_enabled:
        findings.error(_key(checkpoints), f"{_key(offsets)}=true needs checkpoints; remove this, or set that to false")
    if sync.offset_syncs_enabled:
        return
    syncs = _key(_asked(built, "emit.offset-syncs.enabled"))
    if sync.offsets_enabled:
        findings.error(syncs, f"{_key(offsets)}=true needs offset syncs; remove this, or set that to false")
    elif sync.checkpoints_enabled and checkpoints.entry is not None:
        findings.error(syncs, f"{_key(checkpoints)}=true needs offset syncs; remove this, or set that to false")
    elif sync.checkpoints_enabled:
        findings.warn(syncs, "without offset syncs there are no checkpoints either, as in MirrorMaker 2")


def _exactly_once(built: BuiltFlow, findings: Findings) -> None:
    wanted = _asked(built, "exactly.once.support")
    if (wanted.value or "").strip().lower() != "required":
        return
    flow = built.settings.flow
    if not built.settings.transactions:
        findings.error(_key(wanted), f"required, but {flow.target}.exactly.once.source.support is not enabled")
    if not built.settings.read_committed:
        findings.error(_key(wanted), f"required, but {flow.source}.consumer.isolation.level is not read_committed")


def _connectors_agree(built: BuiltFlow, findings: Findings) -> None:
    for name in _SAME_FOR_ALL:
        ours = _asked(built, name, SOURCE)
        for connector in CONNECTORS[1:]:
            other = _asked(built, name, connector)
            if connector in PLAIN[name].connectors and other.value != ours.value and other.entry is not None:
                findings.error(
                    other.entry.key, f"must be the same as for the {SOURCE}; the connectors of a flow need it"
                )
    for name in _SAME_TOPICS:
        theirs = _asked(built, name, CHECKPOINT)
        if theirs.value != _asked(built, name, SOURCE).value and theirs.entry is not None:
            findings.warn(theirs.entry.key, f"not used; groups follow the topics that the {SOURCE} carries")


def _identical_offsets(built: BuiltFlow, findings: Findings) -> None:
    settings, key = built.settings, _key(_asked(built, "offsets"))
    if not settings.identical_offsets:
        return
    if settings.transactions:
        findings.error(
            key,
            "identical offsets leave no room for transactions of the mirror's own, whose markers take offsets: remove this, "
            f"or set {settings.flow.target}.exactly.once.source.support = disabled; records go over exactly once without it",
        )
    if settings.naming.policy == "same-name":
        findings.error(
            key,
            "the policy same-name means topics to which producers of both clusters write, so that offsets must differ: "
            "remove this, or use IdentityReplicationPolicy in one direction at a time",
        )


def _acls(built: BuiltFlow, findings: Findings) -> None:
    sync = built.settings.topic_sync
    for name, is_on in (
        ("sync.topic.acls.revoke.enabled", sync.acls_revoke),
        ("sync.topic.acls.prefixed.enabled", sync.acls_prefixed),
    ):
        if is_on and not sync.acls_enabled:
            findings.warn(_key(_asked(built, name)), "has no effect while sync.topic.acls.enabled is false")


def _overruled(built: BuiltFlow, document: Document, findings: Findings) -> None:
    """A flow's value that loses to a cluster's, which few expect; the remedy is the flow's most specific key."""
    flow = built.settings.flow
    for found in built.effective:
        side, _, rest = found.name.partition(".")
        role, _, name = rest.partition(".")
        if found.entry is None or side not in ("source", "target") or role not in ("consumer", "producer"):
            continue
        if found.entry.key.startswith(f"{flow}."):
            continue
        right = f"{flow}.source.consumer.{name}" if side == "source" else f"{flow}.producer.override.{name}"
        for prefix in (f"{role}.", f"{side}.cluster."):
            for key in (f"{flow}.{SOURCE}.{prefix}{name}", f"{flow}.{prefix}{name}"):
                if key in document and document[key] != found.value and prefix != "producer.":
                    findings.warn(key, f"has no effect: {found.entry.key} wins, as in MirrorMaker 2; write {right}")
