"""Which consumer groups are checkpointed: ``groups`` and ``groups.exclude``, by MirrorMaker 2's rules.

Checkpoints (issue 5) and ``mirrorspark plan`` ask ``refusal``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mirrorspark.plan.name_list import NameList
from mirrorspark.plan.name_patterns import names_in
from mirrorspark.settings import FlowSettings

__all__ = ["GroupFilter", "GroupRefusal", "GroupRefused"]


class GroupRefusal(StrEnum):
    NOT_INCLUDED = "not-included"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class GroupRefused:
    reason: GroupRefusal
    text: str

    def __str__(self) -> str:
        return self.text


class GroupFilter:
    def __init__(self, groups: str, exclude: str, *, key: str = "groups") -> None:
        """Raises SettingsError for a bad list."""
        self._include = NameList.read(groups, key)
        self._exclude = NameList.read(exclude, f"{key}.exclude")
        self._key = key
        self.named = sorted(name for name in names_in(groups, key) if self.refusal(name) is None)
        """Groups that are wanted by their names."""

    @classmethod
    def of(cls, settings: FlowSettings) -> GroupFilter:
        return cls(settings.group_sync.groups, settings.group_sync.groups_exclude)

    def refusal(self, group: str) -> GroupRefused | None:
        """Why the group's offsets are not carried; None if they are."""
        if not self._include.matches(group):
            return GroupRefused(GroupRefusal.NOT_INCLUDED, f"not in {self._key}")
        if self._exclude.matches(group):
            return GroupRefused(GroupRefusal.EXCLUDED, f"in {self._key}.exclude")
        return None
