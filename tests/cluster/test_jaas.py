"""sasl.jaas.config as Java reads it; nothing of it appears in an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.cluster.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "module", "options"),
    [
        (f'{PLAIN} required username="u" password="p";', PLAIN, {"username": "u", "password": "p"}),
        (f"{PLAIN} required username='u' password=p;", PLAIN, {"username": "u", "password": "p"}),
        (f'{PLAIN} Required\n  username = "u"\n  password = "a b;c=\\"d\\"" ;\n', PLAIN,
         {"username": "u", "password": 'a b;c="d"'}),
        ("x.ScramLoginModule required username=u password=\"p\" // why\n tokenauth=true;", "x.ScramLoginModule",
         {"username": "u", "password": "p", "tokenauth": "true"}),
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=\"/etc/k\" principal=\"a@B\";",
         "com.sun.security.auth.module.Krb5LoginModule", {"useKeyTab": "true", "keyTab": "/etc/k", "principal": "a@B"}),
        ("o.OAuthBearerLoginModule required;", "o.OAuthBearerLoginModule", {}),
        ("o.OAuthBearerLoginModule required clientId='c' scope=\"s\";", "o.OAuthBearerLoginModule",
         {"clientId": "c", "scope": "s"}),
    ],
)  # fmt: skip
def test_login_modules(text: str, module: str, options: dict[str, str]) -> None:
    login = parse_jaas(text)
    assert (login.module, login.options) == (module, options)
    assert all(value not in repr(login) for value in options.values() if len(value) > 2)


@pytest.mark.parametrize(
    ("module", "mechanisms"),
    [
        (PLAIN, ("PLAIN",)),
        ("shaded.org.apache.kafka.ScramLoginModule", ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        ("OAuthBearerLoginModule", ("OAUTHBEARER",)),
        ("com.sun.security.auth.module.Krb5LoginModule", ("GSSAPI",)),
        ("com.example.Own", ()),
    ],
)
def test_modules_and_their_mechanisms(module: str, mechanisms: tuple[str, ...]) -> None:
    assert parse_jaas(f"{module} required;").mechanisms == mechanisms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (f"{PLAIN} required ", "does not end with ';'"),
        (f'{PLAIN} required username="u" password="secret"', "does not end with ';'"),
        (f'{PLAIN} username="u" password="secret";', "must begin with"),
        (f'{PLAIN} required username="u" password;', "name=value"),
        (f'{PLAIN} required username="u password=secret;', "not closed"),
        (f"{PLAIN} required a=b; {PLAIN} required a=secret;", "more than one"),
    ],
)
def test_what_java_would_not_take(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_jaas(text)
    assert "secret" not in str(caught.value)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(min_size=0, max_size=20), max_size=4))
def test_any_options_read_back(options: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = f"{PLAIN} required " + " ".join(f"{name}={quoted(value)}" for name, value in options.items()) + ";"
    assert parse_jaas(text).options == options
