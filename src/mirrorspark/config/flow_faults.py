"""Errors that concern one flow alone, so that a process can run the others: those under a key of that flow's own level.

``load`` asks for it where a mirror starts; every other command refuses the whole file. What stands at the top level or a
cluster's concerns more than one flow, and refuses the file in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from mirrorspark.config.findings import Findings, Remark
from mirrorspark.config.flow_settings import BuiltFlow
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow

__all__ = ["take_flow_faults"]


def take_flow_faults(
    built: Sequence[BuiltFlow], here: Sequence[BuiltFlow], findings: Findings
) -> dict[Flow, SettingsError]:
    """What is wrong with some of the flows that run ``here``, taken out of the findings; nothing where no flow would be
    left to run. A fault of a flow that another process runs becomes a warning."""
    faults: dict[Flow, list[SettingsError]] = {}
    for error in findings.errors:
        key = str(error.facts.get("key", ""))
        for one in built:
            if one.settings.enabled and key.startswith(f"{one.settings.flow}."):
                faults.setdefault(one.settings.flow, []).append(error)
    ours = {one.settings.flow for one in here if one.settings.enabled}
    if not ours - faults.keys():
        return {}
    for flow, errors in faults.items():
        findings.errors = [error for error in findings.errors if error not in errors]
        if flow not in ours:
            findings.remarks += [Remark("warning", "", str(flow), f"wrong, and not run here: {e}") for e in errors]
    return {flow: _joined(errors) for flow, errors in faults.items() if flow in ours}


def _joined(errors: Sequence[SettingsError]) -> SettingsError:
    return errors[0] if len(errors) == 1 else SettingsError("\n".join(map(str, errors)), **errors[0].facts)
