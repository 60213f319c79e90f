"""Secrets that stand in a Document, left out."""

from __future__ import annotations

import pytest

from mirrorspark.config.document import Document
from mirrorspark.config.forms.secret_values import holds_secret, leave_out


@pytest.mark.parametrize(
    "key",
    [
        *("sasl.jaas.config", "a.sasl.jaas.config", "a->b.source.consumer.sasl.jaas.config", "ssl.key.password"),
        *("a.ssl.keystore.password", "a.consumer.ssl.keystore.key", "value.converter.basic.auth.user.info"),
        *("a.sasl.oauthbearer.client.credentials.client.secret", "a.password"),
    ],
)
def test_secret_keys(key: str) -> None:
    assert holds_secret(key)


@pytest.mark.parametrize(
    "key",
    ["topics", "a.ssl.truststore.certificates", "a.sasl.mechanism", "strimzi//secret.X", "a.ssl.keystore.location"],
)
def test_other_keys(key: str) -> None:
    assert not holds_secret(key)


def test_only_the_secret_options_of_a_login_are_left_out() -> None:
    text = 'org.PlainLoginModule required username="u" password="geheim" oauth.client.secret=geheim;'
    left = leave_out(Document.of({"clusters": "a", "a.sasl.jaas.config": text}))
    assert left.document["a.sasl.jaas.config"] == (
        'org.PlainLoginModule required username="u" password="${env:MIRRORSPARK_SECRET_A_SASL_PASSWORD}" '
        'oauth.client.secret="${env:MIRRORSPARK_SECRET_A_SASL_OAUTH_CLIENT_SECRET}";'
    )
    assert list(left.variables) == ["a.sasl.jaas.config (password)", "a.sasl.jaas.config (oauth.client.secret)"]


def test_a_login_that_cannot_be_read_is_left_out_as_a_whole() -> None:
    left = leave_out(Document.of({"sasl.jaas.config": "required geheim"}))
    assert left.document["sasl.jaas.config"] == "${env:MIRRORSPARK_SECRET_SASL_JAAS_CONFIG}"


@pytest.mark.parametrize(
    "value", ["${env:X}", "${file:/a:b}", "", "org.PlainLoginModule required username=u password=${X};"]
)
def test_references_stay(value: str) -> None:
    left = leave_out(Document.of({"a.sasl.jaas.config": value}))
    assert left.document["a.sasl.jaas.config"] == value
    assert not left.variables


def test_aliases_that_differ_in_punctuation_get_variables_of_their_own() -> None:
    keys = {"clusters": "x-y, x.y", "x-y.ssl.key.password": "1", "x.y.ssl.key.password": "2"}
    left = leave_out(Document.of(keys))
    assert len(set(left.variables.values())) == 2
