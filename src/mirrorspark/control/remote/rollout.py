"""Connectors brought to a server and taken from it again, in the order in which they need each other.

``deploy``, ``undeploy`` and ``redeploy`` call it. Everything is checked by the server before anything is changed. Doing
it twice does no more than doing it once. What a person paused or stopped stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.config.connector_secrets import is_secret
from mirrorspark.control.remote.api import Api, part
from mirrorspark.control.remote.connector_files import ConnectorFile
from mirrorspark.control.remote.connector_states import GONE, Told, look, wait_until
from mirrorspark.errors import SettingsError
from mirrorspark.rest.connector_host import Refusal, TargetState
from mirrorspark.secret import HIDDEN

__all__ = ["Done", "Rollout"]

CREATED, UPDATED, SAME, SENT_AGAIN, RESTARTED = "created", "updated", "unchanged", "sent again", "restarted"
DELETED, ABSENT = "deleted", "not there"
CHANGING = (CREATED, UPDATED, SENT_AGAIN, RESTARTED, DELETED)


@dataclass(frozen=True)
class Done:
    """What was done with one connector, or would be, and what became of it."""

    name: str
    action: str
    told: Told
    wanted: str

    @property
    def is_as_wanted(self) -> bool:
        if self.wanted == GONE:
            return self.told.state == GONE
        return self.told.runs if self.wanted == TargetState.RUNNING else self.told.state == self.wanted

    def picture(self) -> dict[str, Any]:
        return {**self.told.picture(), "action": self.action, "wanted": self.wanted, "as_wanted": self.is_as_wanted}


class Rollout:
    """``say`` hears of every step, for whoever watches."""

    def __init__(self, api: Api, deadline: Deadline, say: Callable[[str], None], *, dry_run: bool, wait: bool) -> None:
        self._api = api
        self._deadline = deadline
        self._say = say
        self._dry_run = dry_run
        self._wait = wait and not dry_run

    # -- check ------------------------------------------------------------------------------------------------------

    def check(self, files: Sequence[ConnectorFile]) -> None:
        """By the server that will run them. Raises SettingsError with all that it finds; nothing is changed."""
        faults = [text for one in files for text in self._faults(one)]
        if faults:
            raise SettingsError("\n".join([*faults, "nothing was changed"]))

    def _faults(self, file: ConnectorFile) -> list[str]:
        path = f"/connector-plugins/{part(file.plugin.rpartition('.')[2])}/config/validate"
        try:
            body = self._api.ask_patiently(self._deadline, "PUT", path, file.body)
        except Refusal as refusal:
            if refusal.status not in (400, 404):
                raise
            return [f"{file.path}: {refusal.message}"]
        return [
            f"{file.path}: {one['value']['name']}: {text}"
            for one in body.get("configs", [])
            for text in one.get("value", {}).get("errors", [])
        ]

    # -- bring ------------------------------------------------------------------------------------------------------

    def deploy(self, files: Sequence[ConnectorFile]) -> list[Done]:
        """One after the other: each runs before the next one is brought, which may need its topics. At the end all of them
        together: a flow may be started anew by what a later connector says about it."""
        done = [self._bring(file) for file in files]
        if not self._wait or not all(one.is_as_wanted for one in done):
            return done
        wanted = {one.name: one.wanted for one in done}
        told = wait_until(self._api, wanted, self._deadline, lambda one: None)
        return [replace(one, told=now) for one, now in zip(done, told, strict=True)]

    def _bring(self, file: ConnectorFile) -> Done:
        before = look(self._api, file.name)
        action = self._needed(file, before)
        self._say(f"{file.name}: {self._would(action)}")
        if not self._dry_run:
            self._act(file, action)
            self._start_failed(file.name, before)
        wanted = file.state.value
        done = Done(file.name, action, before, wanted)
        if self._dry_run:
            return done
        return self._followed(done)

    def _needed(self, file: ConnectorFile, before: Told) -> str:
        if before.state == GONE:
            return CREATED
        shown = self._api.find(f"/connectors/{part(file.name)}/config") or {}
        unseen = {key for key in file.config if is_secret(key) and shown.get(key) == HIDDEN}
        if {**file.config, **dict.fromkeys(unseen, HIDDEN)} != shown:
            return UPDATED
        if unseen:
            return SENT_AGAIN  # nobody can tell whether a secret that is hidden is still the same
        return RESTARTED if before.has_failed else SAME

    def _act(self, file: ConnectorFile, action: str) -> None:
        path = f"/connectors/{part(file.name)}"
        if action == CREATED and file.state is not TargetState.RUNNING:
            body = {"name": file.name, "config": file.body, "initial_state": file.state.value}
            self._api.ask_patiently(self._deadline, "POST", "/connectors", body)
        elif action in (CREATED, UPDATED, SENT_AGAIN):
            self._api.ask_patiently(self._deadline, "PUT", f"{path}/config", file.body)

    def _start_failed(self, name: str, before: Told) -> None:
        """Connect starts a connector anew that was changed, but not the tasks that had failed."""
        if before.has_failed:
            query = "includeTasks=true&onlyFailed=true"
            self._api.ask_patiently(self._deadline, "POST", f"/connectors/{part(name)}/restart?{query}")

    # -- take -------------------------------------------------------------------------------------------------------

    def undeploy(self, names: Sequence[str]) -> list[Done]:
        """``names`` in the order of a deployment; the last one goes first. What is not there is no error."""
        return [self._take(name) for name in reversed(names)]

    def _take(self, name: str) -> Done:
        before = look(self._api, name)
        action = ABSENT if before.state == GONE else DELETED
        self._say(f"{name}: {self._would(action)}")
        if action == DELETED and not self._dry_run:
            try:
                self._api.ask_patiently(self._deadline, "DELETE", f"/connectors/{part(name)}")
            except Refusal as refusal:
                if refusal.status != 404:  # somebody else was quicker
                    raise
        done = Done(name, action, before, GONE)
        return done if self._dry_run else self._followed(done)

    # -- both -------------------------------------------------------------------------------------------------------

    def _would(self, action: str) -> str:
        return f"would be {action}" if self._dry_run and action in CHANGING else action

    def _followed(self, done: Done) -> Done:
        if not self._wait:
            return replace(done, told=look(self._api, done.name))
        wanted: Mapping[str, str] = {done.name: done.wanted}
        (told,) = wait_until(self._api, wanted, self._deadline, lambda one: self._say(f"{one.name}: {one.word}"))
        return replace(done, told=told)
