"""Who may do what: nobody asked (the default, on localhost), or users and tokens with one of two roles.

``read-only`` may look and validate, ``operator`` may do everything. Held before routes are reached; ``/health`` is open to
all, for probes, and so are the page's files. Passwords and tokens are compared in constant time, kept as SHA-256, and
appear in no text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mirrorspark.errors import SettingsError
from mirrorspark.secret import Secret

__all__ = ["Access", "AccessGate", "Role", "read_access"]

OPEN_PATHS = ("/health",)
OPEN_PREFIXES = ("/ui",)
"""The page's own files, which hold nothing: whoever has no name yet must be able to read the question."""
HASHED = "sha256:"
_READING = ("GET", "HEAD", "OPTIONS")
_REALM = {"WWW-Authenticate": 'Basic realm="mirrorspark", Bearer realm="mirrorspark"'}


class Role(StrEnum):
    READ_ONLY = "read-only"
    OPERATOR = "operator"


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True)
class Access:
    """Empty: everybody may do everything. ``users``: name -> role and digest of the password; ``tokens``: digest -> role."""

    users: dict[str, tuple[Role, bytes]] = field(default_factory=dict, repr=False)
    tokens: dict[bytes, Role] = field(default_factory=dict, repr=False)

    @property
    def is_open(self) -> bool:
        return not self.users and not self.tokens

    def role(self, authorization: str) -> Role | None:
        """Of an Authorization header; None if it names nobody."""
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self._role_of_token(value.strip())
        if scheme.lower() == "basic":
            return self._role_of_user(value.strip())
        return None

    def _role_of_token(self, token: str) -> Role | None:
        given = _digest(token)
        found = [role for digest, role in self.tokens.items() if hmac.compare_digest(digest, given)]
        return found[0] if found else None

    def _role_of_user(self, encoded: str) -> Role | None:
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        role, digest = self.users.get(name, (None, _digest("")))
        is_right = hmac.compare_digest(digest, _digest(password)) and bool(colon)
        return role if is_right else None


def read_access(path: Path) -> Access:
    """A file with a line for each: ``ROLE user NAME PASSWORD`` or ``ROLE token TOKEN``; a secret may be ``sha256:HEX``.

    Raises SettingsError with file and line, never with what stands there.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}", file=str(path)) from None
    users: dict[str, tuple[Role, bytes]] = {}
    tokens: dict[bytes, Role] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place = f"{path}:{number}"
        if words[0] not in list(Role):
            raise SettingsError(f"{place}: begins with no role; use {' or '.join(Role)}", place=place)
        role, kind = Role(words[0]), words[1:2]
        if kind == ["user"] and len(words) == 4:
            users[words[2]] = (role, _secret(words[3], place))
        elif kind == ["token"] and len(words) == 3:
            tokens[_secret(words[2], place)] = role
        else:
            raise SettingsError(f"{place}: neither ROLE user NAME PASSWORD nor ROLE token TOKEN", place=place)
    if not users and not tokens:
        raise SettingsError(f"{path}: names nobody; without the file everybody may do everything", file=str(path))
    return Access(users, tokens)


def _secret(text: str, place: str) -> bytes:
    if not text.startswith(HASHED):
        return _digest(Secret(text))
    try:
        digest = bytes.fromhex(text.removeprefix(HASHED))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise SettingsError(f"{place}: behind {HASHED} there must be 64 hex digits", place=place)
    return digest


class AccessGate:
    """Plain ASGI: 401 for whom nobody knows, 403 for who may not."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        if method not in _READING and _is_foreign(headers):
            return _answer(403, "a page of another origin may not change anything here")
        if self._access.is_open or path in OPEN_PATHS or _is_of_page(path):
            return None
        role = self._access.role(headers.get("authorization", ""))
        if role is None:
            return _answer(401, "User cannot access the resource.", _REALM)
        if role is Role.READ_ONLY and method not in _READING and not path.endswith("/config/validate"):
            return _answer(403, f"the role {role} may not {method} {path}")
        scope.setdefault("state", {})["role"] = role
        return None


def _is_of_page(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in OPEN_PREFIXES)


def _is_foreign(headers: Headers) -> bool:
    """A browser says from where a page asks; whoever has no browser says nothing."""
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _answer(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error_code": status, "message": message}, status, headers=headers)
