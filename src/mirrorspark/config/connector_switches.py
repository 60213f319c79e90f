"""Connectors of a flow that are switched on or off by themselves, where that does not do what it says.

``load`` asks once for a whole file. In mm2.properties ``S->T.enabled`` switches all connectors; a Connect cluster or Strimzi
runs each by itself, which its form turns into ``S->T.<connector>.enabled``.
"""

from __future__ import annotations

from collections.abc import Sequence

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.definition import CHECKPOINT, HEARTBEAT, SOURCE
from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.config.key_path import flow_pairs
from mirrorspark.config.levels import Levels
from mirrorspark.names import Flow

__all__ = ["check_connector_switches"]


def check_connector_switches(document: Document, aliases: Sequence[str], findings: Findings) -> None:
    for flow in flow_pairs(aliases):
        _checkpoints_alone(flow, document, findings)
        _heartbeats(flow, document, findings)


def _checkpoints_alone(flow: Flow, document: Document, findings: Findings) -> None:
    levels = Levels(document, document, flow)
    ours, theirs = (levels.plain(PLAIN["enabled"], connector) for connector in (SOURCE, CHECKPOINT))
    if theirs.entry is not None and _is(theirs.value, "true") and not _is(ours.value, "true"):
        findings.warn(
            theirs.entry.key,
            f"has no effect: checkpoints are made from what a flow carries, and {flow} carries nothing; set "
            f"{flow}.enabled = true, or leave them to the mirror that carries it",
        )


def _heartbeats(flow: Flow, document: Document, findings: Findings) -> None:
    key = f"{flow}.{HEARTBEAT}.enabled"
    if key in document and _is(document[key], "false"):
        name = "emit.heartbeats.enabled"
        if _is(Levels(document, document, flow).plain(PLAIN[name]).value, "true"):
            findings.warn(key, f"has no effect, as in MirrorMaker 2; write {flow}.{name} = false")


def _is(value: str | None, wanted: str) -> bool:
    return (value or "").strip().lower() == wanted
