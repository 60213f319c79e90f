"""Mistakes at a flow's own level leave out that flow alone where a mirror starts; and which mirror of it a file means."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.load import Deployment, load_deployment, parse_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow

BASE = {
    "clusters": "a, b, c",
    **{f"{alias}.bootstrap.servers": f"{alias}:9092" for alias in "abc"},
    "a->b.enabled": "true",
    "a->c.enabled": "true",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mm2.properties"


def _load(file: Path, extra: dict[str, str], clusters: tuple[str, ...] = (), *, apart: bool = True) -> Deployment:
    file.write_text("".join(f"{key} = {value}\n" for key, value in {**BASE, **extra}.items()))
    return load_deployment(file, clusters, apart=apart)


@pytest.mark.parametrize(
    ("key", "value"), [("a->c.topics", "[x"), ("a->c.tasks.max", "many"), ("a->c.topcis", "x")]
)  # fmt: skip
def test_a_mistake_of_one_flow_leaves_out_that_flow(file: Path, key: str, value: str) -> None:
    deployment = _load(file, {key: value})
    assert [one.flow for one in deployment.flows] == [Flow("a", "b")]
    ((flow, error),) = deployment.refused.items()
    assert flow == Flow("a", "c")
    assert str(error).startswith(f"{file}:{len(BASE) + 1}: {key}")
    with pytest.raises(SettingsError, match=r"a->c\."):
        _load(file, {key: value}, apart=False)


def test_several_mistakes_of_one_flow_are_told_together(file: Path) -> None:
    deployment = _load(file, {"a->c.topics": "[x", "a->c.tasks.max": "many"})
    assert len(str(deployment.refused[Flow("a", "c")]).splitlines()) == 2


@pytest.mark.parametrize("extra", [{"topics": "[x"}, {"a->b.topics": "[x", "a->c.topics": "[x"}, {"no.such.key": "1"}])
def test_what_concerns_all_flows_refuses_the_file(file: Path, extra: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        _load(file, extra)


def test_a_mistake_in_a_flow_of_another_process_is_a_warning(file: Path) -> None:
    deployment = _load(file, {"a->c.topics": "[x"}, ("b",))
    assert deployment.refused == {}
    assert any("a->c: wrong, and not run here: " in warning for warning in deployment.warnings)
    with pytest.raises(SettingsError):
        _load(file, {"a->c.topics": "[x"}, ("c",))


@pytest.mark.parametrize(
    ("extra", "flows"),
    [
        ({}, [Flow("a", "b"), Flow("a", "c")]),
        ({"b.group.id": "a-mm2"}, [Flow("a", "b"), Flow("a", "c")]),
        ({"b.group.id": "orders"}, [Flow("a", "b", "orders"), Flow("a", "c")]),
        ({"b.group.id": "orders", "c.group.id": "orders"}, [Flow("a", "b", "orders"), Flow("a", "c", "orders")]),
    ],
)
def test_a_group_id_names_one_of_several_mirrors_of_a_flow(extra: dict[str, str], flows: list[Flow]) -> None:
    deployment = parse_deployment({**BASE, **extra})
    assert [one.flow for one in deployment.flows] == flows


def test_a_group_id_must_fit_into_a_topics_name() -> None:
    with pytest.raises(SettingsError, match=r"b\.group\.id=my orders: becomes part of topics' names"):
        parse_deployment({**BASE, "b.group.id": "my orders"})


def test_names_of_an_instance() -> None:
    assert str(Flow("a", "b", "orders")) == "a->b/orders"
    assert Flow("a", "b", "orders").books == "a.group.orders"
    assert Flow("a", "b").books == "a"


def test_one_target_under_two_names_needs_two_group_ids() -> None:
    twice = {**BASE, "b.bootstrap.servers": "w1:9092, w2:9092", "c.bootstrap.servers": "w2:9092"}
    with pytest.raises(
        SettingsError, match=r"c\.bootstrap\.servers: b and c are one cluster: a->b and a->c would take"
    ):
        parse_deployment(twice)
    assert len(parse_deployment({**twice, "c.group.id": "other"}).flows) == 2
    assert len(parse_deployment({**twice, "a->c.enabled": "false", "b->c.enabled": "true"}).flows) == 2
