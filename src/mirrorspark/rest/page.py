"""The page at ``/ui/``: files of the package, as they are. It asks ``/mirrorspark/v1`` for its figures, like any client.

The files hold nothing secret, so they are open to all: whoever has no name yet must be able to read the question. Nothing is
read from disk after the start, and only what was found then is served.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

__all__ = ["PAGE_PATH", "Asset", "page_assets", "page_routes"]

PAGE_PATH = "/ui/"
COMPRESSED_BYTES_MIN = 1_024
"""Below a network packet there is nothing to gain."""

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""What is served, and as what. Other files of the folder stay where they are."""

# Everything comes from here, nothing is run that stands in a document, nobody frames us, no form is sent anywhere.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Asked for anew each time, answered by 304 where it is the same: after an upgrade no old module meets a new one.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content_type: str
    body: bytes
    compressed: bytes
    """Empty where it does not pay."""
    tag: str

    def answer(self, request: Request) -> Response:
        takes_gzip = bool(self.compressed) and "gzip" in request.headers.get("accept-encoding", "")
        tag = f'"{self.tag}-gzip"' if takes_gzip else f'"{self.tag}"'
        headers = {**HEADERS, "ETag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if takes_gzip:
            headers["Content-Encoding"] = "gzip"
        return Response(self.compressed if takes_gzip else self.body, media_type=self.content_type, headers=headers)


@cache
def page_assets() -> Mapping[str, Asset]:
    """By their path below ``/ui/``. Read once in a process."""
    return dict(_found(files("mirrorspark") / "page", ""))


def _found(folder: Traversable, above: str) -> list[tuple[str, Asset]]:
    assets: list[tuple[str, Asset]] = []
    for one in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if one.is_dir():
            assets += _found(one, f"{above}{one.name}/")
        elif content_type := CONTENT_TYPES.get(f".{one.name.rpartition('.')[2]}"):
            assets.append((f"{above}{one.name}", _asset(one.read_bytes(), content_type)))
    return assets


def _asset(body: bytes, content_type: str) -> Asset:
    compressed = gzip.compress(body, mtime=0) if len(body) >= COMPRESSED_BYTES_MIN else b""
    return Asset(content_type, body, compressed, hashlib.sha256(body).hexdigest()[:16])


def page_routes() -> APIRouter:
    """Outside of the API's description: it is for people."""
    routes = APIRouter()
    assets = page_assets()

    async def front(request: Request) -> Response:
        return RedirectResponse(PAGE_PATH, 308)

    async def file(request: Request) -> Response:
        asset = assets.get(request.path_params["path"] or "index.html")
        if asset is None:
            raise HTTPException(404, "Not Found")
        return asset.answer(request)

    # Starlette's plain routes: a page is some thirty files, and nothing of them is parsed or described.
    for path, endpoint in ((PAGE_PATH.rstrip("/"), front), (f"{PAGE_PATH}{{path:path}}", file)):
        routes.add_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)
    return routes
