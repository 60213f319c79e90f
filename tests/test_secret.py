from __future__ import annotations

import copy
import json
import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark import secret as module
from mirrorspark.config.connector_secrets import sealed
from mirrorspark.errors import ClusterError, MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.secret import HIDDEN, Secret, masked
from mirrorspark.settings import ClusterSettings

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" password="marked-inside";'


@given(st.text(min_size=1))
def test_it_works_as_its_text_and_shows_none_of_it(text: str) -> None:
    one = Secret(text)
    for shown in (str(one), repr(one), f"{one}", "%s" % one, f"{[one]}", f"{one!s}", "{}".format(one)):  # noqa: UP031, UP032
        assert shown.strip("[]") == "hidden"
    assert one == text
    assert one.letters == text
    assert type(one.letters) is str
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert (again, type(again)) == (one, Secret)
    assert json.loads(json.dumps(one)) == text


def test_a_librarys_error_that_quotes_it(caplog: pytest.LogCaptureFixture) -> None:
    Secret("marked-password")
    assert masked("cannot open 'marked-password'") == f"cannot open '{HIDDEN}'"
    error = MirrorError("refused: marked-password")
    assert "marked" not in f"{error} {error!r} {error.message} {pickle.loads(pickle.dumps(error))}"
    assert b"marked" not in Event(EventKind.LANE_FAILED, "marked-password is wrong").to_json()
    with caplog.at_level(logging.ERROR):
        logging.getLogger("mirrorspark").error("login %s", Secret("marked-other"))
    assert "marked" not in caplog.text


def test_short_ones_and_plain_words_are_not_looked_for() -> None:
    for one in ("a", "ban-ana", "password"):
        Secret(one)
    assert masked("a ban-ana is no password") == "a ban-ana is no password"


def test_they_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", {})
    monkeypatch.setattr(module, "KNOWN_MAX", 2)
    for number in range(4):
        Secret(f"secret-no-{number}")
    assert masked("secret-no-1 secret-no-2 secret-no-3") == f"secret-no-1 {HIDDEN} {HIDDEN}"


def test_a_clients_properties_are_sealed() -> None:
    client = {"sasl.jaas.config": JAAS, "ssl.key.password": "marked-key", "security.protocol": "SASL_SSL"}
    settings = ClusterSettings("east", (), sealed(client))
    assert "marked" not in f"{settings} {settings.client}"
    assert settings.login == client
    assert {type(value) for value in settings.login.values()} == {str}, "who logs in may format it"
    assert settings.client["security.protocol"].upper() == "SASL_SSL"
    assert masked("SASL says: marked-inside") == f"SASL says: {HIDDEN}"
    again = pickle.loads(pickle.dumps(settings))
    assert (again, type(again.client["ssl.key.password"])) == (settings, Secret)
    assert "marked" not in str(ClusterError(f"bad: {again.client}"))
