"""The one HTTP client of the command line: asks, decodes, and says in a line what went wrong.

A refusal is a ``Refusal`` with the server's own words, a server that is not there is ``Unreachable``. No redirect is
followed: a login is for the server that was named.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.remote.address import Address
from mirrorspark.errors import SettingsError, Unreachable
from mirrorspark.rest.connector_host import Refusal

__all__ = ["Api", "part"]

CONNECT_S_MAX = 10.0
ANSWER_S_MAX = 95.0
"""A Connect worker gives up a request after 90 s and says so."""
BUSY = (409, 503)
"""A Connect cluster that is rebalancing, a server that is still starting: it passes."""
BUSY_PAUSE_S = 0.5
TEXT_LETTERS_MAX = 500
_SAID = {401: "log in with --token-file or --user", 403: "this login may only read"}


def part(name: str) -> str:
    """A name as one part of a path, whatever it holds."""
    return quote(name, safe="")


class Api:
    """``with Api(address) as api: api.ask("GET", "/connectors")``. Tests give a ``transport`` of their own."""

    def __init__(self, address: Address, transport: httpx.BaseTransport | None = None) -> None:
        self.url = address.url
        headers = {"Accept": "application/json"}
        if address.token is not None:
            headers["Authorization"] = f"Bearer {address.token.letters}"
        login = (address.user, address.password.letters) if address.password is not None else None
        self._client = httpx.Client(
            base_url=address.url,
            headers=headers,
            auth=login,
            transport=transport,
            verify=_trust(address),
            timeout=httpx.Timeout(ANSWER_S_MAX, connect=CONNECT_S_MAX),
            trust_env=False,
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: object = None, **params: str | list[str]) -> Any:
        """The answer's JSON, None for an empty one. Raises Refusal or Unreachable."""
        try:
            answer = self._client.request(method, path, json=body, params=params or None)
        except httpx.HTTPError as error:
            raise self._lost(error) from None
        return self._decoded(answer, f"{method} {path}")

    def ask_patiently(self, deadline: Deadline, method: str, path: str, body: object = None) -> Any:
        """The same, again while the server says that it is busy, as long as there is time."""
        while True:
            try:
                return self.ask(method, path, body)
            except Refusal as refusal:
                if refusal.status not in BUSY or deadline.passed:
                    raise
                time.sleep(deadline.at_most(BUSY_PAUSE_S))

    def find(self, path: str, **params: str | list[str]) -> Any:
        """A GET; None for what is not there."""
        try:
            return self.ask("GET", path, **params)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise

    def lines(self, path: str, headers: Mapping[str, str], **params: str) -> Iterator[str]:
        """Lines of an answer that goes on and on, until it ends."""
        try:
            with self._client.stream("GET", path, params=params, headers=dict(headers)) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    self._decoded(answer, f"GET {path}")
                yield from answer.iter_lines()
        except httpx.HTTPError as error:
            raise self._lost(error) from None

    def _lost(self, error: httpx.HTTPError) -> Unreachable:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            reason = "no answer in time"
        return Unreachable(f"{self.url}: {reason}; is it there? give --url or MIRRORSPARK_URL", address=self.url)

    def _decoded(self, answer: httpx.Response, asked: str) -> Any:
        if 200 <= answer.status_code < 300:
            if not answer.content:
                return None
            try:
                return answer.json()
            except ValueError:
                raise Refusal(f"{self.url}: {asked}: the answer is not JSON; is this a Kafka Connect?", 502) from None
        hint = _SAID.get(answer.status_code, "")
        text = f"{self.url}: {asked}: {answer.status_code}: {_words(answer)}"
        raise Refusal(f"{text}; {hint}" if hint else text, answer.status_code)


def _words(answer: httpx.Response) -> str:
    """Connect's error body, or what stands there instead (a proxy's page)."""
    try:
        body = answer.json()
        text = str(body["message"]) if isinstance(body, dict) and "message" in body else answer.text
    except ValueError:
        text = answer.text
    return (text.strip() or answer.reason_phrase)[:TEXT_LETTERS_MAX]


def _trust(address: Address) -> ssl.SSLContext | bool:
    if address.url.startswith("http://"):
        return False  # nothing to verify; loading the certificates of the world takes a tenth of a second
    if address.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(address.ca_file))
    except (OSError, ssl.SSLError):
        raise SettingsError(
            f"--ca-file {address.ca_file}: no PEM file of certificates can be read there", key="--ca-file"
        ) from None
