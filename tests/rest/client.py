"""Starlette's test client. Its word about another HTTP library is no error of ours."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

__all__ = ["TestClient"]

TestClient.__test__ = False  # type: ignore[attr-defined]
