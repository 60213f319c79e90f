"""A dry run as people read it and as JSON. The command ``plan`` prints what comes from here."""

from __future__ import annotations

from typing import Any

from mirrorspark.control.dry_run import DryRun, TopicVerdict
from mirrorspark.observe.flow_status import words_of_skipped

__all__ = ["picture", "text_lines"]

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


# -- as JSON -----------------------------------------------------------------------------------------------------------


def picture(found: DryRun, origins: list[dict[str, str]]) -> dict[str, Any]:
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
        "skipped_by_origin": found.skipped_by_origin,
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


def text_lines(found: DryRun, origins: list[dict[str, str]]) -> list[str]:
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
    lines += [f"  {text}" for text in words_of_skipped(found.skipped_by_origin)]
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
