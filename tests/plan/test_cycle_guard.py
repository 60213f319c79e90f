"""Topics that have been on a cluster already, and flows that form an endless loop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import Flow
from mirrorspark.plan.cycle_guard import endless_circle, hops_since
from mirrorspark.plan.topic_naming import DefaultNaming, IdentityNaming, NamingFacts
from mirrorspark.settings import ClusterSettings, FlowSettings, Naming

DEFAULT = DefaultNaming(NamingFacts("source", "target"))


@pytest.mark.parametrize(
    ("topic", "hops"),
    [
        ("target.t", 1),
        ("target.source.t", 1),
        ("source.target.t", 2),
        ("a.b.target.t", 3),
        ("t", None),
        ("source.t", None),
    ],
)
def test_hops_since(topic: str, hops: int | None) -> None:
    assert hops_since(DEFAULT, topic, "target") == hops


def test_2_3_identity_sees_a_cycle_only_if_the_configured_alias_is_the_targets() -> None:
    policy = IdentityNaming(NamingFacts("target", "target"))
    assert hops_since(policy, "t", "target") == 1


def test_the_search_ends_with_a_policy_that_does_not() -> None:
    class Endless(DefaultNaming):
        def upstream(self, topic: str) -> str:
            return f"x{topic}"

        def source_of(self, topic: str) -> str:
            return "somewhere"

    assert hops_since(Endless(NamingFacts("a", "b")), "t", "b") is None


@given(st.text("abc.-_", max_size=12), st.text("abc.-_", max_size=4))
def test_the_search_for_a_cycle_ends(topic: str, target: str) -> None:
    hops = hops_since(DEFAULT, topic, target)
    assert hops is None or 1 <= hops <= len(topic)


# -- flows -------------------------------------------------------------------------------------------------------------


def _flow(arrow: str, policy: str = "identity", topics: str = ".*") -> FlowSettings:
    source, target = arrow.split("->")
    clusters = [ClusterSettings(alias, (("h", 1),)) for alias in (source, target)]
    return FlowSettings(Flow(source, target), *clusters, topics=topics, naming=Naming(policy))


@pytest.mark.parametrize(
    "flows",
    [
        [_flow("a->b"), _flow("b->a")],
        [_flow("a->b"), _flow("b->a", "default")],
        [_flow("a->b"), _flow("b->a", "same-name")],  # not endless, but b would have its own records twice
        [_flow("a->b", topics="x.*"), _flow("b->a", topics="y.*")],
        [_flow("a->b", topics="x, y"), _flow("b->a", topics="z, y")],
        [_flow("a->b", topics="x.y"), _flow("b->a", topics="x-y")],
        [_flow("a->b"), _flow("b->c"), _flow("c->a")],
        [_flow("a->b"), _flow("b->c", "default"), _flow("c->a")],
    ],
)
def test_endless_loops_are_found(flows: list[FlowSettings]) -> None:
    circle = endless_circle(flows)
    assert circle is not None
    assert {flow.flow for flow in circle} == {flow.flow for flow in flows}


@pytest.mark.parametrize(
    "flows",
    [
        [],
        [_flow("a->b")],
        [_flow("a->b", "default"), _flow("b->a", "default")],
        [_flow("a->b", "same-name"), _flow("b->a", "same-name")],
        [_flow("a->b", "same-name"), _flow("b->a", "default")],
        [_flow("a->b", "same-name"), _flow("b->c", "same-name"), _flow("c->a", "same-name")],
        [_flow("a->b", topics="x, y"), _flow("b->a", topics="z")],
        [_flow("a->b"), _flow("b->c", "default"), _flow("c->a", "default")],
        [_flow("a->b"), _flow("b->c")],
    ],
)
def test_what_ends_is_no_loop(flows: list[FlowSettings]) -> None:
    assert endless_circle(flows) is None
