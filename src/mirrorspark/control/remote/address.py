"""Where the server is and who we are there, from options, files and the environment.

Commands build it from their options. A secret comes from a file or from the environment, never from an argument:
everybody on the machine can read those.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mirrorspark.errors import SettingsError
from mirrorspark.secret import Secret

__all__ = ["PASSWORD_VARIABLE", "TOKEN_VARIABLE", "URL_DEFAULT", "Address", "address_of"]

URL_DEFAULT = "http://127.0.0.1:8083"
TOKEN_VARIABLE = "MIRRORSPARK_TOKEN"
PASSWORD_VARIABLE = "MIRRORSPARK_PASSWORD"
SECRET_FILE_BYTES_MAX = 64 * 1024
_LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Address:
    url: str
    user: str = ""
    password: Secret | None = field(default=None, repr=False)
    token: Secret | None = field(default=None, repr=False)
    ca_file: Path | None = None

    @property
    def shows_secrets_on_the_way(self) -> bool:
        """Whether a login goes unencrypted to another machine."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in _LOCAL and bool(self.token or self.password)


def address_of(
    url: str,
    *,
    token_file: Path | None = None,
    user: str = "",
    password_file: Path | None = None,
    ca_file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Address:
    """Options count more than the environment. Raises SettingsError."""
    checked = _url(url)
    if token_file is not None and user:
        raise SettingsError("--token-file and --user: give one of them", key="--user")
    if user:
        password = _of_file(password_file) if password_file else _of(environment, PASSWORD_VARIABLE)
        if password is None:
            raise SettingsError(
                f"--user {user}: has no password; give --password-file, or set {PASSWORD_VARIABLE}", key="--user"
            )
        return Address(checked, user, password, ca_file=ca_file)
    if password_file is not None:
        raise SettingsError("--password-file: whose? give --user too", key="--password-file")
    token = _of_file(token_file) if token_file else _of(environment, TOKEN_VARIABLE)
    return Address(checked, token=token, ca_file=ca_file)


def _url(text: str) -> str:
    """The text may hold a password, so none of it is shown before that is known."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        _ = parts.port
    except ValueError:
        raise SettingsError("--url: not an address such as http://host:8083", key="--url") from None
    if parts.username is not None or parts.password is not None:
        raise SettingsError(
            "--url: a login in an address can be read in the process list; give --user and --password-file", key="--url"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"--url {text}: not http://host:port or https://host:port", key="--url")
    if parts.query or parts.fragment:
        raise SettingsError(f"--url {text}: nothing may stand behind the path", key="--url")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _of(environment: Mapping[str, str], name: str) -> Secret | None:
    text = environment.get(name, "").strip()
    return _one_line(text, name) if text else None


def _of_file(path: Path) -> Secret:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(SECRET_FILE_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise SettingsError(f"{path}: cannot be read: {reason}", file=str(path)) from None
    if not text:
        raise SettingsError(f"{path}: is empty; a secret must stand in it", file=str(path))
    return _one_line(text, str(path))


def _one_line(text: str, place: str) -> Secret:
    secret = Secret(text)
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise SettingsError(f"{place}: a password or token is one line, without control characters", place=place)
    return secret
