"""What a failover has to tell, for people and as JSON: findings, steps, what was left behind, groups, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mirrorspark.control.failover.checks import Finding, Level
from mirrorspark.control.failover.record import Record
from mirrorspark.control.failover.reverse_flow import ReverseFlow
from mirrorspark.control.failover.steps import Step
from mirrorspark.control.failover.stranded import StrandedPartition
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.settings import FlowSettings

__all__ = ["Report", "next_actions", "reverse_lines"]

RANGES_SHOWN_MAX = 20
TOPICS_SHOWN_MAX = 5


@dataclass
class Report:
    """``state``: ready, not ready, done, abandoned or failed."""

    flow: str
    mode: str
    state: str
    findings: Sequence[Finding] = ()
    steps: Sequence[Step] = ()
    record: Record | None = None
    next: Sequence[str] = ()
    error: str = ""
    notices: list[str] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        return self.state in ("ready", "done", "abandoned")

    def to_json(self) -> dict[str, Any]:
        hold = self.record.facts("hold") if self.record else {}
        return {
            "flow": self.flow,
            "mode": self.mode,
            "state": self.state,
            "error": self.error,
            "checks": [asdict(one) for one in self.findings],
            "steps": [self._step(one) for one in self.steps],
            "stranded": hold.get("stranded"),
            "groups": dict(self.record.facts("groups")) if self.record else {},
            "reverse": dict(self.record.facts("reverse")) if self.record else {},
            "next": list(self.next),
            "notices": self._notices(),
        }

    def _step(self, step: Step) -> dict[str, Any]:
        known = self.record.steps.get(step.name) if self.record else None
        found: dict[str, Any] = {"name": step.name, "title": step.title, "state": "to do", "text": "", "at_ms": None}
        if known is not None:
            found |= {"state": known.state.value, "text": known.text, "at_ms": known.at_ms}
        return found

    def _notices(self) -> list[str]:
        steps = self.record.steps.values() if self.record else ()
        return [*self.notices, *(str(text) for step in steps for text in step.facts.get("notices", ()))]

    def lines(self) -> list[str]:
        lines = [f"{self.flow} {self.mode}: {self.state}"]
        lines += [f"  {one}" for one in self.findings]
        if self.steps:
            lines.append("  steps:")
        for number, step in enumerate(map(self._step, self.steps), 1):
            text = step["text"] if step["text"] else step["title"]
            lines.append(f"    {number}. {step['name']} [{step['state']}] {text}")
        hold = self.record.facts("hold") if self.record else {}
        lines += [f"  left behind: {text}" for text in _ranges(hold.get("stranded", {}).get("ranges", ()))]
        lines += [f"  ! {text}" for text in self._notices()]
        if self.error:
            lines += [f"  failed: {text}" for text in self.error.splitlines()]
        if self.next:
            lines.append("  next:")
            lines += [f"    {text}" for text in self.next]
        return lines


def _ranges(ranges: Iterable[Sequence[Any]]) -> list[str]:
    listed = [str(StrandedPartition(*one)) for one in ranges]
    more = len(listed) - RANGES_SHOWN_MAX
    return listed[:RANGES_SHOWN_MAX] + ([f"… and {more} more partitions; --json lists them"] if more > 0 else [])


def has_stop(findings: Iterable[Finding]) -> bool:
    return any(one.level is Level.IN_THE_WAY for one in findings)


# -- what a person does next -------------------------------------------------------------------------------------------


def next_actions(
    settings: FlowSettings, reverse: ReverseFlow, topics: Sequence[str], record: Record, *, goes_back: bool = False
) -> list[str]:
    """After the last step: clients, then the flow in the other direction."""
    policy, target = policy_for(settings), settings.flow.target
    servers = ",".join(f"{host}:{port}" for host, port in settings.target.bootstrap)
    renamed = [topic for topic in topics if policy.remote(topic) != topic][:TOPICS_SHOWN_MAX]
    actions = [f"start consumers against {target} ({servers}); their groups go on at the next record"]
    if renamed:
        names = "; ".join(f"{topic} and {policy.remote(topic)}" for topic in renamed)
        actions.append(f"consumers there read both names of a topic: {names}")
        actions.append(
            f"before producers start: create {', '.join(renamed)} on {target} with as many partitions as here"
        )
    actions.append(f"start producers against {target} ({servers})")
    if not reverse.is_in_file:
        actions.append(f"let {reverse.flow} carry what is written there: add to the file, and run a mirror with it:")
        actions += [f"  {line}" for line in reverse_lines(settings, reverse)]
    elif not record.facts("reverse").get("running"):
        actions.append(f"run a mirror for {reverse.flow}: mirrorspark run FILE --clusters {reverse.flow.target}")
    if record.postponed:
        actions.append(f"when {settings.flow.source} is back: run the same command again, it does what was postponed")
    if goes_back:
        return [*actions, f"the next time: mirrorspark failover FILE --flow '{reverse.flow}'"]
    return [*actions, f"to go back: mirrorspark failback FILE --flow '{settings.flow}'"]


def reverse_lines(settings: FlowSettings, reverse: ReverseFlow) -> list[str]:
    """The keys that enable the flow back, as a properties file has them."""
    flow = reverse.flow
    pair = f"{flow.source}->{flow.target}"
    lines = [f"{pair}.enabled = true", f"{pair}.topics = {settings.topics}"]
    if settings.group_sync.offsets_enabled:
        lines.append(f"{pair}.sync.group.offsets.enabled = true")
    if settings.naming.policy == "identity":
        lines.append(f"{settings.flow.source}->{settings.flow.target}.enabled = false")
    return lines
