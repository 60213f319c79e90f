"""What a login needs, checked before a broker is asked; no secret appears in a refusal."""

from __future__ import annotations

import asyncio

import pytest

from mirrorspark.cluster.sasl_login import SaslLogin
from mirrorspark.errors import SettingsError

SECRET = "hunter2-do-not-tell"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def _login(mechanism: str, jaas: str, protocol: str = "SASL_SSL", alias: str = "east") -> SaslLogin:
    properties = {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return SaslLogin(properties, protocol, lambda name: f"{alias}.{name}")


@pytest.mark.parametrize(
    ("mechanism", "jaas", "key", "says"),
    [
        ("AWS_MSK_IAM", "x required;", "sasl.mechanism", "must be one of"),
        ("PLAIN", f'{SCRAM} username="a" password="{SECRET}";', "sasl.jaas.config", "is for SCRAM-SHA-256 or"),
        ("SCRAM-SHA-512", f'{SCRAM} password="{SECRET}";', "sasl.jaas.config", "no username"),
        ("SCRAM-SHA-512", f'{SCRAM} username="a" password="{SECRET}"', "sasl.jaas.config", "does not end with"),
        ("GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required;", "sasl.mechanism", "Python library gssapi"),
    ],
)
def test_what_is_missing_is_told(mechanism: str, jaas: str, key: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        _login(mechanism, jaas)
    assert caught.value.facts["key"] == key
    assert SECRET not in f"{caught.value}{caught.value.facts}"


def test_a_user_with_a_comma_logs_in_by_scram() -> None:
    """RFC 5802: the two characters that stand between a message's parts are written otherwise."""
    login = _login("SCRAM-SHA-512", f'{SCRAM} username="a,b=c" password="{SECRET}";')
    mechanism = asyncio.run(login.begin("host"))
    assert mechanism.auth_bytes().startswith(b"n,,n=a=2Cb=3Dc,r=")
    assert login.username == "a,b=c"


def test_a_token_that_is_refused_says_why() -> None:
    login = _login("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="a" unsecuredLoginExtension_group="g";')
    mechanism = asyncio.run(login.begin("host"))
    first = mechanism.auth_bytes()
    assert first.startswith(b"n,,\x01auth=Bearer ey")
    assert first.endswith(b"\x01group=g\x01\x01")
    mechanism.receive(b'{"status":"invalid_token"}')
    assert not mechanism.is_done()
    assert mechanism.auth_bytes() == b"\x01"
    assert getattr(mechanism, "refusal", "") == "invalid_token"
    accepted = asyncio.run(login.begin("host"))
    accepted.receive(b"")
    assert accepted.is_done()


def test_a_password_that_goes_unencrypted_is_told_once_for_each_cluster(caplog: pytest.LogCaptureFixture) -> None:
    jaas = f'{PLAIN} username="a" password="{SECRET}";'
    _login("PLAIN", jaas, "SASL_SSL", "safe")
    for alias in ("clear", "clear", "other"):
        mechanism = asyncio.run(_login("PLAIN", jaas, "SASL_PLAINTEXT", alias).begin("host"))
        assert mechanism.auth_bytes()
    told = [record.getMessage() for record in caplog.records]
    assert [text.split("=")[0] for text in told] == ["clear.sasl.mechanism", "other.sasl.mechanism"]
    assert SECRET not in "".join(told)
