"""Tokens for OAUTHBEARER: where they come from, and when the next one is asked for.

From a token endpoint by client credentials, from a file (``file:`` as the endpoint's URL), or unsecured, as Kafka's own
login module makes them for trials. Called by ``sasl_login``, in a thread: it blocks. Tokens and secrets appear in no text.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirrorspark.errors import AuthenticationFailed, ClusterError, SettingsError, Unreachable

__all__ = ["Token", "TokenKeeper", "token_source"]

log = logging.getLogger("mirrorspark.oauth")

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
FETCH_TIMEOUT_S_MAX = 8.0
"""For one answer of the token endpoint, so that a login that cannot work is told of within 10 s."""
TOKEN_BYTES_MAX = 1024 * 1024
LIFETIME_UNKNOWN_S = 300.0
"""Of a token that says nothing of its end."""
FAILURE_KEPT_S = 1.0
"""Connections that open side by side share one failure."""
_UNSECURED = "unsecuredLogin"


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    ends_at: float
    """Unix time."""
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenKeeper:
    """The newest token of one cluster. Thread-safe."""

    def __init__(self, fetch: Callable[[], Token], properties: Mapping[str, str]) -> None:
        self._fetch = fetch
        self._factor = float(properties.get("sasl.login.refresh.window.factor", "0.8"))
        self._jitter = float(properties.get("sasl.login.refresh.window.jitter", "0.05"))
        self._buffer_s = float(properties.get("sasl.login.refresh.buffer.seconds", "300"))
        self._period_s_min = float(properties.get("sasl.login.refresh.min.period.seconds", "60"))
        self._turn = threading.Lock()
        self._token: Token | None = None
        self._renew_at = self._half_at = 0.0
        self._failed: tuple[float, ClusterError] | None = None

    def token(self, *, lasting: bool = False) -> Token:
        """A new one when the old one's time is nearly over. While that is good, an endpoint that is away does no harm.

        ``lasting``: for a session that is renewed; what is left of an old token would renew it for a moment only.
        """
        with self._turn:
            now = time.time()
            if self._token is not None and now < (min(self._renew_at, self._half_at) if lasting else self._renew_at):
                return self._token
            try:
                self._token = self._fetched(now)
                self._renew_at = self._renewal(now, self._token.ends_at)
                self._half_at = (now + self._token.ends_at) / 2
            except ClusterError as error:
                if self._token is None or now >= self._token.ends_at:
                    raise
                log.warning("the token is used for its last %.0f s: %s", self._token.ends_at - now, error)
            return self._token

    def _fetched(self, now: float) -> Token:
        if self._failed is not None and now < self._failed[0] + FAILURE_KEPT_S:
            raise self._failed[1]
        try:
            return self._fetch()
        except ClusterError as error:
            self._failed = (now, error)
            raise

    def _renewal(self, now: float, ends_at: float) -> float:
        """At a part of its life, not in its last minutes, and not all the time: Kafka's rules for a login's refresh."""
        at = now + (ends_at - now) * (self._factor + random.uniform(0.0, self._jitter))
        if ends_at - now < self._buffer_s + self._period_s_min:
            return at  # too short a life for both rules
        return max(min(at, ends_at - self._buffer_s), now + self._period_s_min)


def token_source(
    properties: Mapping[str, str],
    options: Mapping[str, str],
    context: Callable[[Mapping[str, str]], ssl.SSLContext],
    key: Callable[[str], str],
) -> Callable[[], Token]:
    """``options`` of the login module; ``context`` makes TLS of ``ssl.*`` options; ``key`` names a setting for people."""
    url = properties.get(ENDPOINT, "").strip()
    if not url:
        if not any(name.startswith(_UNSECURED) for name in options):
            raise SettingsError(
                f"{ENDPOINT}: missing; OAUTHBEARER needs it for client credentials (with clientId and clientSecret in "
                "sasl.jaas.config)",
                key=ENDPOINT,
                why="missing; OAUTHBEARER needs it for client credentials",
            )
        _check_claims(options)
        return lambda: _unsecured(options)
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return lambda: _from_file(Path(urllib.request.url2pathname(parts.path)), key)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise SettingsError(f"{ENDPOINT}: must be a URL with https, http or file", key=ENDPOINT, why="must be a URL")
    return _Endpoint(url, properties, options, context, key).fetch


class _Endpoint:
    """Client credentials (RFC 6749, 4.4): who we are in the header, grant and scope in the body."""

    def __init__(
        self,
        url: str,
        properties: Mapping[str, str],
        options: Mapping[str, str],
        context: Callable[[Mapping[str, str]], ssl.SSLContext],
        key: Callable[[str], str],
    ) -> None:
        self._url = url
        self._key = key
        name = properties.get("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId")
        secret = properties.get("sasl.oauthbearer.client.credentials.client.secret") or options.get("clientSecret")
        if not name or not secret:
            why = f'no clientId="…" and clientSecret="…" found in it, and {ENDPOINT} is given'
            raise SettingsError(f"sasl.jaas.config: {why}", key="sasl.jaas.config", why=why)
        if properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true":
            name, secret = urllib.parse.quote(name, safe=""), urllib.parse.quote(secret, safe="")
        basic = base64.b64encode(f"{name}:{secret}".encode()).decode()
        scope = properties.get("sasl.oauthbearer.scope") or options.get("scope")
        body = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        self._body = urllib.parse.urlencode(body).encode()
        self._headers = {
            "Authorization": f"Basic {basic}",
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        waits = [properties.get(f"sasl.login.{phase}.timeout.ms") for phase in ("connect", "read")]
        self._timeout_s = min([FETCH_TIMEOUT_S_MAX, *(int(text) / 1000 for text in waits if text and int(text) > 0)])
        tls = {name: value for name, value in options.items() if name.startswith("ssl.")}
        self._context = context(tls) if url.startswith("https") else None
        self._extensions = {
            name.removeprefix("extension_"): text for name, text in options.items() if name.startswith("extension_")
        }

    def fetch(self) -> Token:
        request = urllib.request.Request(self._url, data=self._body, headers=self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s, context=self._context) as answer:
                raw = answer.read(TOKEN_BYTES_MAX)
        except urllib.error.HTTPError as error:
            raise self._refused(error) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise self._away(f"the token endpoint cannot be reached ({why})") from None
        try:
            return _read_token(json.loads(raw), self._extensions)
        except (ValueError, KeyError, TypeError):
            raise self._away("what the token endpoint answers holds no access_token") from None

    def _refused(self, error: urllib.error.HTTPError) -> ClusterError:
        with error:
            word = _error_word(error.read(TOKEN_BYTES_MAX))
        if error.code >= 500 or error.code == 429:
            return self._away(f"the token endpoint answers {error.code}{word}")
        key = self._key("sasl.jaas.config")
        return AuthenticationFailed(
            f"{key}: {self._url}: the token endpoint refused us ({error.code}{word}); check clientId, clientSecret "
            "and scope",
            key=key,
            address=self._url,
            reason="token-refused",
        )

    def _away(self, why: str) -> ClusterError:
        key = self._key(ENDPOINT)
        return Unreachable(f"{key}: {self._url}: {why}; it is tried again", key=key, address=self._url)


def _error_word(raw: bytes) -> str:
    """The endpoint's own word for it, as ``invalid_client``; nothing else of its answer is shown."""
    try:
        word = json.loads(raw)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f", {word}" if isinstance(word, str) and word.isascii() and len(word) <= 64 else ""


def _read_token(answer: Any, extensions: Mapping[str, str]) -> Token:
    value = answer["access_token"]
    if not isinstance(value, str) or not value:
        raise ValueError("no token")
    ends_at = _expiry(value)
    if ends_at is None:
        ends_at = time.time() + float(answer.get("expires_in", LIFETIME_UNKNOWN_S))
    return Token(value, ends_at, extensions)


def _expiry(value: str) -> float | None:
    """What a JWT says of its end; None for a token of another kind."""
    try:
        payload = value.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def _from_file(path: Path, key: Callable[[str], str]) -> Token:
    """Somebody else renews it: it is read for every login."""
    try:
        value = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        text = f"{key(ENDPOINT)}: {path}: the token cannot be read ({error})"
        raise Unreachable(text, key=key(ENDPOINT), address=str(path)) from None
    return Token(value, ends_at=0.0)


def _check_claims(options: Mapping[str, str]) -> None:
    try:
        _unsecured(options)
    except ValueError:
        why = "unsecuredLoginLifetimeSeconds and unsecuredLoginNumberClaim_… must be numbers"
        raise SettingsError(f"sasl.jaas.config: {why}", key="sasl.jaas.config", why=why) from None


def _unsecured(options: Mapping[str, str]) -> Token:
    """A token that nobody signed, with the claims that the options name."""
    now = time.time()
    lasts_s = float(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    claims: dict[str, Any] = {"iat": round(now, 3), "exp": round(now + lasts_s, 3)}
    extensions = {}
    for name, text in options.items():
        kind, _, claim = name.removeprefix(_UNSECURED).partition("_")
        if not name.startswith(_UNSECURED) or not claim:
            continue
        if kind == "StringClaim":
            claims[claim] = text
        elif kind == "NumberClaim":
            claims[claim] = float(text)
        elif kind == "ListClaim":
            claims[claim] = text[1:].split(text[:1])
        elif kind == "Extension":
            extensions[claim] = text
    parts = ({"alg": "none"}, claims)
    value = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return Token(f"{value}.", now + lasts_s, extensions)
