"""Where a process that runs a file serves REST, and to whom: keys of the file as a whole.

Read by ``load``; ``control.rest_endpoint`` opens what they name. In MirrorMaker 2 ``listeners`` is for its nodes alone.
"""

from __future__ import annotations

from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.settings import RestSettings

__all__ = ["CERTIFICATE", "LISTENERS", "USERS", "rest_settings"]

LISTENERS = "listeners"
CERTIFICATE = "listeners.https.ssl.keystore.location"
USERS = "rest.users.file"


def rest_settings(document: Document, findings: Findings) -> RestSettings:
    for alias in document.get("clusters", "").split(","):
        if (key := f"{alias.strip()}.{LISTENERS}") in document:
            findings.warn(key, f"not used: there is one REST interface for all flows; write {LISTENERS}")
    texts = tuple(text for one in document.get(LISTENERS, "").split(",") if (text := one.strip()))
    certificate = document.get(CERTIFICATE, "").strip()
    return RestSettings(texts, certificate, certificate, document.get(USERS, "").strip())
