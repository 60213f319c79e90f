"""What a Strimzi resource says and a mirror has no use for is answered, each with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.forms.strimzi_fields import CONNECTOR_KEPT, SPEC_KEPT, dedicated_worker, why_without_meaning
from mirrorspark.config.load import load_deployment

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("field", SPEC_KEPT)
def test_every_kept_field_has_a_reason(field: str) -> None:
    assert why_without_meaning(f"strimzi/m/spec.{field}") == SPEC_KEPT[field]


@pytest.mark.parametrize("field", CONNECTOR_KEPT)
def test_every_kept_field_of_a_connector_has_a_reason(field: str) -> None:
    assert why_without_meaning(f"strimzi/m/a->b.sourceConnector.{field}") == CONNECTOR_KEPT[field]


def test_names_need_no_word_and_other_keys_are_not_kept() -> None:
    assert why_without_meaning("strimzi/m/metadata") == ""
    assert why_without_meaning("strimzi//secret.X") == ""
    assert why_without_meaning("topics") is None
    assert why_without_meaning("strimzi.bootstrap.servers") is None
    assert "pattern" in (why_without_meaning("strimzi/m/a->b.sourceConnector.config.topics") or "")


def test_the_answer_reaches_the_user() -> None:
    warnings = load_deployment(DATA / "strimzi_list.json").warnings
    assert any("strimzi/up/spec.replicas: has no meaning here, because Connect's workers" in text for text in warnings)


def test_the_worker_of_a_dedicated_mirrormaker() -> None:
    assert dedicated_worker("a") == {
        "group.id": "a-mm2",
        "config.storage.topic": "mm2-configs.a.internal",
        "offset.storage.topic": "mm2-offsets.a.internal",
        "status.storage.topic": "mm2-status.a.internal",
    }
