"""``mirrorspark plan FILE``: what would be created, changed, carried and skipped, and why. Changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.config.levels import Effective
from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.control.command.flow_choice import (
    EXIT_FAILED,
    Clusters,
    File,
    FlowName,
    end_with,
    flows_of,
    targets_of,
)
from mirrorspark.control.dry_run import DryRun, TopicVerdict, dry_run
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.settings import FlowSettings

__all__ = ["EXIT_PENDING", "plan"]

EXIT_PENDING = 10
WORDS = {
    "create": "to create",
    "grow": "to grow",
    "change": "to change",
    "delete": "to delete",
    "wait": "to wait for",
    "carry": "carried as they are",
    "keep": "kept without a source",
    "skip": "skipped",
}
"""In this order; topics with nothing to do come last."""


def plan(
    file: File,
    flow: FlowName = None,
    clusters: Clusters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="Also list every setting that counts, and where it comes from.")
    ] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Only warn of keys that are unknown or stand at the wrong level.")
    ] = False,
    secrets: Annotated[
        Path | None, typer.Option("--secrets", metavar="DIR", help="Kubernetes secrets as files: DIR/<secret>/<key>.")
    ] = None,
) -> None:
    """Show what the mirror would do to the target clusters, for every topic, with the reason. Changes nothing.

    Examples:

      mirrorspark plan mm2.properties

      mirrorspark plan mm2.properties --flow 'east->west' --settings

      mirrorspark plan mm2.properties --json | jq '.flows[].topics[] | select(.action == "create").topic'

    Exit codes: 0 nothing to do, 10 changes are pending, 1 a cluster cannot be reached or refuses, 2 FILE or an option is
    wrong.
    """

    def load() -> Deployment:
        return load_deployment(file, targets_of(clusters), secrets=secrets, lenient=lenient)

    end_with(_load_and_plan(load, file, flow, as_json=as_json, origins=settings))


async def _load_and_plan(
    load: Callable[[], Deployment], file: Path, flow: str | None, *, as_json: bool, origins: bool
) -> int:
    deployment = load()
    for remark in deployment.remarks:
        sys.stderr.write(f"mirrorspark: {remark.kind}: {remark}\n")
    return await _plan(deployment, flows_of(deployment, file, flow), as_json, origins)


async def _plan(deployment: Deployment, flows: Sequence[FlowSettings], as_json: bool, with_settings: bool) -> int:
    pictures: list[dict[str, Any]] = []
    is_pending, has_failed = False, False
    for one in flows:
        origins = _origins(deployment.effective[one.flow]) if with_settings else []
        try:
            found = await dry_run(one)
        except SettingsError:
            raise
        except MirrorError as error:
            has_failed = True
            sys.stderr.write(f"mirrorspark: {one.flow}: {error.code}: {error}\n")
            pictures.append({"flow": str(one.flow), "error": error.as_dict()})
            continue
        is_pending = is_pending or found.is_pending
        pictures.append(_picture(found, origins))
        if not as_json:
            sys.stdout.write("".join(f"{line}\n" for line in _lines(found, origins)))
    if as_json:
        text = json.dumps({"pending": is_pending, "flows": pictures}, indent=2, default=str)
        sys.stdout.write(f"{text}\n")
    return EXIT_FAILED if has_failed else EXIT_PENDING if is_pending else 0


def _origins(effective: Sequence[Effective]) -> list[dict[str, str]]:
    """Every setting that counts: name, value (secrets hidden), level, and the place in the file."""
    return [{"name": one.name, "value": one.text, "level": one.level, "origin": one.origin} for one in effective]


# -- as JSON -----------------------------------------------------------------------------------------------------------


def _picture(found: DryRun, origins: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "flow": found.flow,
        "pending": found.is_pending,
        "summary": found.counts,
        "topics": [_topic(one) for one in found.verdicts],
        "acls": {
            "grant": [acl._asdict() for acl in sorted(found.acls.changes.grant)],
            "revoke": [acl._asdict() for acl in sorted(found.acls.changes.revoke)],
            "notes": [
                {"acl": acl._asdict(), "note": note.value, "text": note.words}
                for acl, note in sorted(found.acls.notes.items())
            ],
        },
        "notices": found.notices,
        **({"settings": origins} if origins else {}),
    }


def _topic(one: TopicVerdict) -> dict[str, Any]:
    action = one.action
    return {
        "topic": action.topic,
        "remote_topic": action.remote or None,
        "action": one.word,
        "reason": str(action.reason),
        "text": action.text,
        "partitions": action.partitions,
        "partitions_now": action.partitions_now,
        "created_with": dict(one.created_with),
        "changes": [
            {
                "setting": change.name,
                "source": change.source_value,
                "target": change.target_value,
                "wanted": change.wanted,
                "sent": change.is_sent,
                "reason": change.reason.value,
            }
            for change in one.changes
        ],
    }


# -- for people --------------------------------------------------------------------------------------------------------


def _lines(found: DryRun, origins: list[dict[str, str]]) -> list[str]:
    counts = found.counts
    parts = [f"{counts[word]} {text}" for word, text in WORDS.items() if word in counts]
    changes = found.acls.changes
    parts += [f"{len(changes.grant)} ACLs to grant"] if changes.grant else []
    parts += [f"{len(changes.revoke)} ACLs to revoke"] if changes.revoke else []
    lines = [f"{found.flow}: {', '.join(parts) or 'the source has no topics'}"]
    order = list(WORDS)
    for one in sorted(found.verdicts, key=lambda one: order.index(one.word)):
        lines += _topic_lines(one)
    lines += [f"  grant   {acl}" for acl in sorted(changes.grant)]
    lines += [f"  revoke  {acl}" for acl in sorted(changes.revoke)]
    lines += [f"  acl     {acl} on the source: {note.words}" for acl, note in sorted(found.acls.notes.items())]
    lines += [f"  ! {text}" for text in found.notices]
    if origins:
        lines.append(f"{found.flow}: settings")
        lines += [f"  {one['name']} = {one['value']} ({_whence(one)})" for one in origins]
    return lines


def _whence(one: dict[str, str]) -> str:
    return one["level"] if one["level"] == one["origin"] else f"{one['level']}, {one['origin']}"


def _topic_lines(one: TopicVerdict) -> list[str]:
    action = one.action
    name = f"{action.topic} -> {action.remote}" if action.remote else action.topic
    details = []
    if one.word == "create":
        details.append(f"{action.partitions} partitions")
    elif one.word == "grow":
        details.append(f"{action.partitions_now} -> {action.partitions} partitions")
    details += [f"{setting}={value}" for setting, value in one.created_with]
    details += [action.text] if action.text else []
    text = f": {', '.join(details)}" if details else ""
    lines = [f"  {one.word:7} {name} [{action.reason}]{text}"]
    return [*lines, *(f"            {change}" for change in one.changes)]
