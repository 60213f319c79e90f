"""Whom brokers take us for, out of what a file says about a login."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.cluster.principal import ANONYMOUS, principal_of
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority

MODULES = "org.apache.kafka.common.security"


def _sasl(mechanism: str, module: str, options: str) -> dict[str, str]:
    jaas = f"{MODULES}.{module} required {options};"
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, ANONYMOUS),
        ({"security.protocol": "SSL"}, ANONYMOUS),
        (_sasl("PLAIN", "plain.PlainLoginModule", 'username="mirror" password="p"'), "User:mirror"),
        (_sasl("SCRAM-SHA-512", "scram.ScramLoginModule", 'username="a b" password="p"'), "User:a b"),
        (_sasl("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", 'clientId="c" clientSecret="s"'), "User:c"),
        (
            _sasl("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", 'unsecuredLoginStringClaim_sub="u"'),
            "User:u",
        ),
        (_sasl("GSSAPI", "x.Krb5LoginModule", 'principal="mirror/host@REALM"'), "User:mirror"),
        ({"security.protocol": "SASL_PLAINTEXT"}, ""),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, ""),
    ],
    ids=["plaintext", "TLS alone", "PLAIN", "SCRAM", "client id", "unsecured", "Kerberos", "ticket", "token"],
)
def test_the_file_tells_or_not(properties: dict[str, str], name: str) -> None:
    found = principal_of(properties)
    assert found.name == name
    assert found.how


def test_a_certificates_subject_is_written_as_brokers_write_it(tmp_path: Path) -> None:
    store = tmp_path / "own.p12"
    store.write_bytes(Authority("a CA").issue("mirror").pkcs12())
    found = principal_of(
        {"security.protocol": "SSL", "ssl.keystore.location": str(store), "ssl.keystore.password": STORE_PASSWORD}
    )
    assert found.name == "User:CN=mirror"
