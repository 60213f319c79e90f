"""One failover of one flow: look, check, claim the record, run the steps, report. Called by the commands and by tests.

Nothing is written before all checks have passed. Every step is idempotent and written down on the target when it is done,
so that the next run, from any machine, goes on at the first unfinished one.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field, replace

from mirrorspark.control.dry_run import DryRun, dry_run
from mirrorspark.control.failover.checks import Finding, Standing, check
from mirrorspark.control.failover.holding import drain, hold, let_go
from mirrorspark.control.failover.journal import Journal, now_ms
from mirrorspark.control.failover.moving_groups import (
    GroupChecks,
    GroupChoice,
    check_groups,
    move_groups,
    move_groups_by_checkpoints,
    view_groups,
)
from mirrorspark.control.failover.record import Mode, Outcome, Record
from mirrorspark.control.failover.report import Report, has_stop, next_actions
from mirrorspark.control.failover.reverse_flow import ReverseFlow, prepare_reverse
from mirrorspark.control.failover.steps import Hook, Step, StepFailed, StepRunner, Tell, no_hook
from mirrorspark.control.flow_lag import FlowLag, LagLook
from mirrorspark.control.group_view import GroupView
from mirrorspark.errors import ClusterError, SettingsError
from mirrorspark.observe.flow_status import EVERYTHING
from mirrorspark.settings import FlowSettings

__all__ = ["DRAIN_TIMEOUT_S", "Choices", "Failover"]

DRAIN_TIMEOUT_S = 600.0
WATCH_S = 3.0
"""Lanes report every second: none within this time, and no mirror is at work."""


@dataclass(frozen=True, slots=True)
class Choices:
    mode: Mode = Mode.DRAIN
    groups: GroupChoice = field(default_factory=GroupChoice)
    drain_timeout_s: float = DRAIN_TIMEOUT_S


def silent(text: str) -> None:
    return None


class Failover:
    """``async with`` reaches the clusters; then ``plan``, and ``run`` or ``abandon``."""

    def __init__(
        self,
        settings: FlowSettings,
        reverse: ReverseFlow,
        choices: Choices,
        *,
        tell: Tell = silent,
        hook: Hook = no_hook,
        goes_back: bool = False,
    ) -> None:
        self.settings = settings
        self.reverse = reverse
        self.choices = choices
        self._tell = tell
        self._hook = hook
        self._goes_back = goes_back
        self._look = LagLook(settings)
        self._lag: FlowLag | None = None
        self._findings: list[Finding] = []

    async def __aenter__(self) -> Failover:
        await self._look.__aenter__()
        self._journal = Journal(self._look.target, self.settings.flow)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._look.__aexit__()

    # -- before -----------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        flow, mode = self.settings.flow, self.choices.mode
        draining = Step(
            "drain",
            f"wait until everything that {flow.source} has is on {flow.target}",
            self._drain,
            explains="the flow carries on as before",
        )
        holding = Step(
            "hold",
            f"pause {flow}, wait until its lanes are still, count what is left behind on {flow.source}",
            self._hold,
            self._let_go,
            repeats=("drain",),
        )
        groups = Step(
            "groups",
            f"write the groups' last positions to {flow.target}",
            self._groups,
            explains="the flow stays paused; offsets that were written stay, they are right",
        )
        reverse = Step(
            "reverse",
            f"set {self.reverse.flow} up: it leaves out what came from {flow.source}, and is not paused",
            self._prepare_reverse,
            explains="the flow stays paused and the groups are on the target; start positions that were written stay",
        )
        return [*([draining] if mode is Mode.DRAIN else []), holding, groups, reverse]

    async def plan(self) -> Report:
        """Look at everything, change nothing. Raises UnknownGroup, SettingsError for what contradicts the record."""
        record = self._current(await self._journal.read())
        self._check_mode(record)
        await self._look.there.watch(WATCH_S)
        self._lag = await self._look.look()
        standing = Standing(
            self.settings,
            self.choices.mode,
            self._lag,
            self._look.there.status,
            self._look.there.is_carried,
            self._look.there.paused,
            record,
            await self._check_groups(record),
            None if self._lag.source_error else await self._drift(),
            self.reverse,
        )
        is_over = record is not None and record.is_in_force
        self._findings = [] if is_over else check(standing)
        state = "done" if is_over else "not ready" if has_stop(self._findings) else "ready"
        return self._report(state, record)

    def _current(self, record: Record | None) -> Record | None:
        """What there is to go on with: not one that was returned, nor one whose pause somebody lifted by hand."""
        if record is None or record.returned_ms is not None:
            return None
        was_lifted = record.is_finished and EVERYTHING not in self._look.there.paused
        return None if was_lifted else record

    def _check_mode(self, record: Record | None) -> None:
        if record is None or record.is_finished or record.mode is self.choices.mode:
            return
        if record.mode is Mode.CUT and record.is_done("hold"):
            raise SettingsError(
                f"an unfinished failover of {record.flow} has paused the flow by --cut ({record.by}): go on with --cut, or "
                "take it back with --abandon",
                key="--drain",
            )

    async def _check_groups(self, record: Record | None) -> GroupChecks | None:
        """None where the source cannot be asked. What is done already is not asked again."""
        if self._look.source is None:
            return None
        if record is not None and record.is_done("groups"):
            return GroupChecks()
        async with GroupView(self.settings) as view:
            found = await view_groups(view, self.choices.groups)
            is_last = record is not None and record.is_done("hold")
            return check_groups(
                found,
                self.choices.mode,
                self.choices.groups,
                is_last=is_last,
                refused=view.refused,
                more=view.remarks,
            )

    async def _drift(self) -> DryRun | None:
        try:
            return await dry_run(self.settings)
        except ClusterError as error:
            self._tell(f"settings and ACLs cannot be compared: {error}")
            return None

    # -- the act ----------------------------------------------------------------------------------------------------

    async def run(self) -> Report:
        """After ``plan`` said ready, or done with something postponed."""
        before = self._current(self._journal.record)
        await self._journal.claim(self._claimed(before))
        try:
            record = await StepRunner(self._journal, self._tell, self._hook).run(self.steps)
        except StepFailed as error:
            report = self._report("failed", self._journal.record)
            report.error = str(error)
            return report
        return self._report("done", record)

    def _claimed(self, before: Record | None) -> Record:
        run, by = uuid.uuid4().hex, f"pid {os.getpid()} on {socket.gethostname()}"
        if before is None:
            return Record(run, str(self.settings.flow), self.choices.mode, by, now_ms())
        mode = before.mode if before.is_finished else self.choices.mode
        return replace(before, run=run, by=by, mode=mode)

    async def abandon(self) -> Report:
        """Take back what can be: the pause. The record goes, so that the next failover begins anew."""
        report = Report(str(self.settings.flow), self.choices.mode.value, "abandoned")
        try:
            record = self._current(await self._journal.read())
        except SettingsError as error:
            record = None
            report.notices.append(f"{error}. Whether the flow was paused by it is not known: see mirrorspark status")
        else:
            if record is None:
                raise SettingsError(f"there is no failover of {self.settings.flow} to take back", key="--abandon")
            if record.is_finished:
                raise SettingsError(
                    f"the failover of {self.settings.flow} is finished: mirrorspark failback moves the work back",
                    key="--abandon",
                )
        if record is not None and record.is_holding:
            await self._look.there.watch(WATCH_S)
            await self._look.there.pause(frozenset(), WATCH_S if self._look.there.is_carried else 0.0)
            report.notices.append("the flow is no longer paused")
        await self._journal.forget()
        if record is not None and record.is_done("groups"):
            report.notices.append("groups' positions that were written to the target stay; they are right, and move on")
        return report

    async def _drain(self, record: Record) -> Outcome:
        if record.is_holding:  # an earlier run could not take its pause back
            await self._let_go()
        return await drain(self._look, self.choices.drain_timeout_s, self._tell)

    async def _hold(self, record: Record) -> Outcome:
        return await hold(self._look, self.choices.mode, self._note_holding)

    async def _let_go(self) -> str:
        return await let_go(self._look, self._note_holding)

    async def _note_holding(self, is_holding: bool) -> None:
        assert self._journal.record is not None
        await self._journal.write(replace(self._journal.record, is_holding=is_holding))

    async def _groups(self, record: Record) -> Outcome:
        if self._look.source is None:
            return await move_groups_by_checkpoints(self.settings, self._look.target, self.choices.groups)
        return await move_groups(self.settings, self.choices.mode, self.choices.groups)

    async def _prepare_reverse(self, record: Record) -> Outcome:
        return await prepare_reverse(self._look, self.reverse, record)

    # -- after ------------------------------------------------------------------------------------------------------

    def _report(self, state: str, record: Record | None) -> Report:
        mode = record.mode if record is not None and record.is_finished else self.choices.mode
        report = Report(str(self.settings.flow), mode.value, state, self._findings, self.steps, record)
        if state == "done" and record is not None:
            topics = sorted({one.topic for one in self._lag.counted} if self._lag is not None else ())
            report.next = next_actions(self.settings, self.reverse, topics, record, goes_back=self._goes_back)
        return report
