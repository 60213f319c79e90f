"""A small OAuth server for the lab: tokens by client credentials, and the keys with which brokers check them.

Used by ``secured_cluster``. Tokens are JWTs signed with RS256, of a life that a test chooses.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

__all__ = ["TokenServer"]

_KEY_ID = "lab"


class TokenServer:
    """``with TokenServer({"mirror": "its secret"}) as server: ... server.token_url``."""

    def __init__(self, clients: dict[str, str], *, life_s: float = 600.0) -> None:
        self.clients = dict(clients)
        self.life_s = life_s
        self.given = 0
        self._key = rsa.generate_private_key(65537, 2048)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, server.key_set())

            def do_POST(self) -> None:
                body = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())
                name = server.name_of(self.headers.get("Authorization", ""))
                if name is None:
                    self._answer(401, {"error": "invalid_client"})
                elif body.get("grant_type") != ["client_credentials"]:
                    self._answer(400, {"error": "unsupported_grant_type"})
                else:
                    self._answer(200, server.answer(name, body.get("scope", ["kafka"])[0]))

            def _answer(self, code: int, content: Any) -> None:
                raw = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, name="token-server", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def key_set_url(self) -> str:
        return f"{self.url}/keys"

    def __enter__(self) -> TokenServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def name_of(self, authorization: str) -> str | None:
        """Whose credentials these are; None for nobody's."""
        kind, _, encoded = authorization.partition(" ")
        name, _, secret = base64.b64decode(encoded).decode(errors="replace").partition(":")
        return name if kind == "Basic" and self.clients.get(name) == secret else None

    def answer(self, name: str, scope: str) -> dict[str, Any]:
        self.given += 1
        return {"access_token": self.token(name, scope), "token_type": "Bearer", "expires_in": self.life_s}

    def token(self, name: str, scope: str = "kafka") -> str:
        now = time.time()
        claims = {"sub": name, "scope": scope, "iat": int(now), "exp": int(now + self.life_s), "iss": "lab"}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": _KEY_ID}, claims))
        return f"{signed}.{_encoded(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def key_set(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID}
        return {"keys": [{**key, "n": _encoded(_number(numbers.n)), "e": _encoded(_number(numbers.e))}]}


def _number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
