"""Whether a cluster can be logged in to with what the file says: protocol, stores, key, JAAS. No cluster is asked.

Called for each cluster of a flow. All is decided by ``cluster.security``, which would refuse it later; here its refusal is
told with the key's place in the file. No secret is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirrorspark.cluster.security import Security
from mirrorspark.config.findings import Findings
from mirrorspark.config.levels import Effective
from mirrorspark.errors import SettingsError
from mirrorspark.settings import ClusterSettings

__all__ = ["check_security"]


def check_security(
    cluster: ClusterSettings, origins: Mapping[str, Effective], findings: Findings, *, opens_stores: bool = True
) -> None:
    """``origins`` says where each client key of the cluster came from. Without ``opens_stores`` no file is looked at:
    protocol and login alone."""
    try:
        Security(cluster.login if opens_stores else _without_tls(cluster.login))
    except SettingsError as error:
        name = str(error.facts.get("key", "security.protocol"))
        reason = str(error.facts.get("why", error.message))
        found = origins.get(name)
        if found is not None and found.entry is not None:
            findings.bad_value(found.entry.key, reason)
        else:
            findings.error(f"{cluster.alias}.{name}", reason)


def _without_tls(login: Mapping[str, str]) -> dict[str, str]:
    protocol = login.get("security.protocol", "PLAINTEXT").strip().upper()
    plain = {"SSL": "PLAINTEXT", "SASL_SSL": "SASL_PLAINTEXT"}.get(protocol, protocol)
    return {**{key: value for key, value in login.items() if not key.startswith("ssl.")}, "security.protocol": plain}
