"""Tokens: got by client credentials, kept until they are nearly over, and refused in words that show no secret."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.cluster import oauth_token
from mirrorspark.cluster.oauth_token import ENDPOINT, Token, TokenKeeper, token_source
from mirrorspark.cluster.tls import tls_context
from mirrorspark.errors import AuthenticationFailed, ClusterError, SettingsError, Unreachable
from mirrorspark.lab.token_server import TokenServer

SECRET = "hunter2:do/not tell"
MODULE = {"clientId": "mirror", "clientSecret": SECRET}


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer({"mirror": SECRET}) as server:
        yield server


def _source(properties: dict[str, str], options: dict[str, str]) -> Callable[[], Token]:
    return token_source(properties, options, tls_context, lambda name: f"east.{name}")


def _claims(token: Token) -> dict[str, object]:
    payload = token.value.split(".")[1]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def test_client_credentials(server: TokenServer) -> None:
    token = _source({ENDPOINT: server.token_url}, {**MODULE, "scope": "two words", "extension_group": "a"})()
    assert _claims(token)["sub"] == "mirror"
    assert _claims(token)["scope"] == "two words"
    assert token.ends_at == _claims(token)["exp"]
    assert token.extensions == {"group": "a"}
    assert token.value not in repr(token)
    keys = {
        f"sasl.oauthbearer.client.credentials.client.{name}": MODULE[f"client{name.title()}"]
        for name in ("id", "secret")
    }
    assert _claims(_source({ENDPOINT: server.token_url, **keys}, {})())["sub"] == "mirror"


@pytest.mark.parametrize(
    ("url", "secret", "error", "says"),
    [
        (
            "{url}",
            "wrong-one",
            AuthenticationFailed,
            "east.sasl.jaas.config: {url}: the token endpoint refused us (401, inv",
        ),
        (
            "http://127.0.0.1:1/",
            SECRET,
            Unreachable,
            f"east.{ENDPOINT}: http://127.0.0.1:1/: the token endpoint cannot be",
        ),
        ("{keys}", SECRET, ClusterError, "east."),
    ],
)
def test_no_token_is_told(server: TokenServer, url: str, secret: str, error: type[ClusterError], says: str) -> None:
    places = {"url": server.token_url, "keys": server.url.replace("http://", "https://")}
    fetch = _source({ENDPOINT: url.format(**places)}, {**MODULE, "clientSecret": secret})
    with pytest.raises(error) as caught:
        fetch()
    assert str(caught.value).startswith(says.format(**places))
    assert secret not in str(caught.value)


def test_a_token_from_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    keeper = TokenKeeper(_source({ENDPOINT: file.as_uri()}, {}), {})
    with pytest.raises(Unreachable, match="cannot be read"):
        keeper.token()
    for text in ("one", "two"):
        file.write_text(f"{text}\n")
        keeper._failed = None  # its second of rest
        assert keeper.token().value == text


def test_an_unsecured_token() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "mirror",
        "unsecuredLoginNumberClaim_level": "3",
        "unsecuredLoginListClaim_scope": ",a,b",
        "unsecuredLoginExtension_group": "g",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    token = _source({}, options)()
    assert token.value.endswith(".")
    claims = _claims(token)
    assert (claims["sub"], claims["level"], claims["scope"]) == ("mirror", 3.0, ["a", "b"])
    assert token.extensions == {"group": "g"}
    assert abs(token.ends_at - time.time() - 60) < 30


@pytest.mark.parametrize(
    ("properties", "options", "key"),
    [
        ({}, {}, ENDPOINT),
        ({}, MODULE, ENDPOINT),
        ({ENDPOINT: "ftp://x/y"}, MODULE, ENDPOINT),
        ({ENDPOINT: "http://x/y"}, {"clientId": "a"}, "sasl.jaas.config"),
        ({}, {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "long"}, "sasl.jaas.config"),
    ],
)
def test_what_is_missing_names_its_key(properties: dict[str, str], options: dict[str, str], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _source(properties, options)
    assert caught.value.facts["key"] == key


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@given(life_s=st.integers(2, 100_000))
def test_a_new_token_comes_before_the_old_one_ends(life_s: int) -> None:
    """And not before half of its life is over, or a minute (Kafka leaves the last five minutes alone)."""
    clock, fetched = _Clock(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oauth_token, "time", clock)

        def fetch() -> Token:
            fetched.append(clock.now)
            return Token(str(len(fetched)), clock.now + life_s)

        keeper = TokenKeeper(fetch, {})
        for _ in range(100):
            token = keeper.token()
            assert token.ends_at > clock.now
            clock.now += life_s / 20
        periods = [after - before for before, after in pairwise(fetched)]
        assert periods
        assert all(min(life_s * 0.5, 60) <= period < life_s for period in periods)


def test_an_endpoint_that_is_away_does_no_harm_while_the_token_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()
    monkeypatch.setattr(oauth_token, "time", clock)
    answers: list[Token | ClusterError] = [
        Token("first", clock.now + 100),
        *([Unreachable("away")] * 2),
        Token("second", clock.now + 300),
    ]

    def fetch() -> Token:
        answer = answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer

    keeper = TokenKeeper(fetch, {})
    assert keeper.token().value == "first"
    clock.now += 90
    assert keeper.token().value == "first"
    clock.now += 0.5  # the failure is not a second old: nobody is asked
    assert keeper.token().value == "first"
    assert len(answers) == 2
    clock.now += 20
    with pytest.raises(Unreachable):
        keeper.token()
    clock.now += 2
    assert keeper.token().value == "second"
