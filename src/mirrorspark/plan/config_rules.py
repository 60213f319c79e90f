"""Which settings of a source topic its remote topic shall have, and what must change for that: MirrorMaker 2's rules.

Settings of both sides in, changes out; a change has the reason for which it is made. Called by ``control.config_sync``
(which sends only differences), by topic creation and by the dry run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from mirrorspark.names import SettingOrigin, TopicSetting
from mirrorspark.plan.name_list import NameList
from mirrorspark.settings import TopicSync

__all__ = ["ChangeReason", "ConfigRules", "SettingChange"]

EXCLUDE_KEY = "config.properties.exclude"


class ChangeReason(StrEnum):
    SOURCE_VALUE = "source.value"  # the source topic has this value
    SOURCE_DEFAULT = "source.default"  # use.defaults.from=source: its default counts, too
    NOT_SET_ON_SOURCE = "not.set.on.source"  # the target's own default shall apply, as the source topic sets nothing
    UNKNOWN_ON_TARGET = "unknown.on.target"  # the target's version has no such setting; left out

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    ChangeReason.SOURCE_VALUE: "the source topic has it",
    ChangeReason.SOURCE_DEFAULT: "the source's default, use.defaults.from=source",
    ChangeReason.NOT_SET_ON_SOURCE: "not set on the source topic, so the target's default applies",
    ChangeReason.UNKNOWN_ON_TARGET: "the target knows no such setting, left out",
}


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting that differs. ``wanted`` is None where the target's own value shall be deleted."""

    name: str
    source_value: str | None
    target_value: str | None
    wanted: str | None
    reason: ChangeReason

    @property
    def is_sent(self) -> bool:
        return self.reason is not ChangeReason.UNKNOWN_ON_TARGET

    def __str__(self) -> str:
        then = "(deleted)" if self.wanted is None else self.wanted
        return f"{self.name}: {self.target_value} -> {then} ({self.reason.words})"


class ConfigRules:
    """Raises SettingsError where the excludes are no regular expressions."""

    def __init__(self, sync: TopicSync) -> None:
        self._exclude = NameList.read(sync.config_properties_exclude, EXCLUDE_KEY)
        self._defaults_from_source = sync.use_defaults_from == "source"

    def considers(self, setting: TopicSetting) -> bool:
        """Rule 2: what a person may set on a topic and did not exclude; what a broker's own file says stays there."""
        is_locked = setting.read_only or setting.sensitive
        is_the_brokers = setting.origin == SettingOrigin.STATIC_BROKER
        return not is_locked and not is_the_brokers and not self.excludes(setting.name)

    def excludes(self, name: str) -> bool:
        return self._exclude.matches(name)

    def at_creation(self, source: Iterable[TopicSetting]) -> dict[str, str]:
        """The settings that a new remote topic is made with."""
        return {
            one.name: one.value
            for one in source
            if one.value is not None
            and self.considers(one)
            and (one.origin != SettingOrigin.DEFAULT or self._defaults_from_source)
        }

    def changes(self, source: Iterable[TopicSetting], target: Iterable[TopicSetting]) -> list[SettingChange]:
        """What differs on an existing remote topic. Empty if nothing does.

        Only what is set on the remote topic itself counts as there: a value that it inherits may change without it.
        """
        there = {one.name: one for one in target}
        found = []
        for one in source:
            if not self.considers(one):
                continue
            known = there.get(one.name)
            is_default = one.origin == SettingOrigin.DEFAULT
            is_set = known is not None and known.origin == SettingOrigin.TOPIC
            now = known.value if known is not None else None
            if is_default and not self._defaults_from_source:
                if is_set:
                    found.append(SettingChange(one.name, one.value, now, None, ChangeReason.NOT_SET_ON_SOURCE))
            elif one.value is not None and not (is_set and now == one.value):
                reason = ChangeReason.SOURCE_DEFAULT if is_default else ChangeReason.SOURCE_VALUE
                if known is None:
                    reason = ChangeReason.UNKNOWN_ON_TARGET
                found.append(SettingChange(one.name, one.value, now, one.value, reason))
        return found
