"""Where a process that runs a file serves REST, and to whom: keys of the file as a whole.

Read by ``load``; ``control.rest_endpoint`` opens what they name. In MirrorMaker 2 ``listeners`` is for its nodes alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirrorspark.config.connector_secrets import sealed
from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.settings import RestSettings

__all__ = ["LISTENERS", "TLS_PREFIX", "USERS", "rest_settings", "tls_of"]

LISTENERS = "listeners"
TLS_PREFIX = "listeners.https."
USERS = "rest.users.file"


def rest_settings(document: Document, findings: Findings) -> RestSettings:
    for alias in document.get("clusters", "").split(","):
        if (key := f"{alias.strip()}.{LISTENERS}") in document:
            findings.warn(key, f"not used: there is one REST interface for all flows; write {LISTENERS}")
    texts = tuple(text for one in document.get(LISTENERS, "").split(",") if (text := one.strip()))
    return RestSettings(texts, users=document.get(USERS, "").strip(), tls=tls_of(document))


def tls_of(given: Mapping[str, str]) -> dict[str, str]:
    """``ssl.*`` of the listeners without what they begin with; secrets are a type of their own from here on."""
    found = {key.removeprefix(TLS_PREFIX): given[key].strip() for key in given if key.startswith(f"{TLS_PREFIX}ssl.")}
    return sealed({key: value for key, value in found.items() if value})
