"""``mirrorspark acls --with-takeover``: enough to go on after a real MirrorMaker 2, and each line that it adds is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.journeys.acl_proof import all_removals, everything_works, listening, shorten_pauses
from tests.journeys.locked_flows import DEADLINE_S, LockedFlow, beyond

from mirrorspark.control.acl_list import AclChoices
from mirrorspark.events import EventKind
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.locked_pair import LockedPair
from mirrorspark.lab.mirror_maker import Endpoint, MirrorMaker, flow_properties
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.plan.required_acls import RequiredAcl

USERS = 3
HEAP_MB = 512
CARRIES = "MirrorMaker 2 is carrying"


class TakenOverFlow(LockedFlow):
    """MirrorMaker 2, whom nothing is forbidden, carries it first. It is stopped before the flow begins, or only when the
    flow has seen who else is there."""

    def __init__(self, pair: LockedPair, number: int, folder: Path) -> None:
        super().__init__(pair, number, folder)
        self.choices = AclChoices({}, {}, with_takeover=True)
        self._runs_on = False
        properties = flow_properties(
            Endpoint(self.alias, pair.source.bootstrap),
            Endpoint(self.target_alias, pair.target.bootstrap),
            topics=self.settings.topics,
        )
        folder = folder / f"mirror-maker-{number}"
        self.mirror_maker = MirrorMaker(properties, folder, heap_mb=HEAP_MB, is_measured=False)

    def lacks(self, acl: RequiredAcl) -> None:
        self._runs_on = acl.name.startswith("mm2-status")

    def prepare(self) -> None:
        super().prepare()
        self.mirror_maker.start()
        for topic in (self.plain, f"{self.more}-1"):
            wait_until_caught_up(
                *map(self.bootstrap, (self.alias, self.target_alias)), topic, self.policy.remote(topic)
            )
        if not self._runs_on:
            self.mirror_maker.stop()

    def checks(self, whole: bool) -> dict[str, Callable[[], bool]]:
        found = super().checks(whole)
        if not whole:
            del found["a group"]  # it stands before the takeover, where no position is exact
        return found

    def grant(self, acl: RequiredAcl) -> None:
        super().grant(acl)
        if self._runs_on:
            wait_for(lambda: any(CARRIES in text for text in self.texts()), "the flow to see it", DEADLINE_S)
            self.mirror_maker.stop()


@pytest.fixture(scope="module")
def pair() -> Iterator[LockedPair]:
    with LockedPair(USERS) as pair:
        create_topic(pair.source.bootstrap, HEARTBEATS_TOPIC, 1)
        yield pair


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_list_is_enough_and_has_nothing_to_spare(
    pair: LockedPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_pauses(monkeypatch)
    flows = [TakenOverFlow(pair, number, tmp_path) for number in range(USERS)]
    added = beyond(flows[0].lines(), LockedFlow(pair, 0, tmp_path).lines())  # what one without a past does not have
    assert len(added) == USERS - 1
    try:
        for number, flow in zip(added, flows[1:], strict=True):
            with listening([flow]):
                asyncio.run(all_removals({number: flow}))
        with listening(flows[:1]):
            asyncio.run(everything_works(flows[0]))
    finally:
        for flow in flows:
            flow.mirror_maker.stop()
    # Each check of the copy has shown that nothing was carried a second time; here the logs were compared as well.
    assert not any(EventKind.TAKEOVER_UNPROVED in text for text in flows[0].texts())
