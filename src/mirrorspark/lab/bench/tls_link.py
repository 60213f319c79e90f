"""TLS between the parties and the brokers of a run: a CA, the brokers' listener, and what a mirror's file says of it.

Used by ``comparison.py`` with ``--tls``. Both clusters and all parties use it; the benchmark's own clients, which preload
and look at the target, stay on the plain listener.
"""

from __future__ import annotations

from pathlib import Path

from mirrorspark.lab.certificates import STORE_PASSWORD, Authority
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.tls_listener import tls_listener

__all__ = ["TlsLink"]

_LISTENER = "SSL"


class TlsLink:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        authority = Authority("the benchmark's CA")
        self._own, self._trust = folder / "broker.p12", folder / "trust.p12"
        self._own.write_bytes(authority.issue("broker", "127.0.0.1", "localhost").pkcs12())
        self._trust.write_bytes(authority.trust_store())

    @property
    def listeners(self) -> dict[str, str]:
        return {_LISTENER: "SSL"}

    def broker_settings(self) -> dict[str, str]:
        return tls_listener(_LISTENER, self._own, self._trust)

    def properties(self, alias: str, cluster: ClusterOfBrokers) -> dict[str, str]:
        """A cluster's part of a mirror's file."""
        return {
            f"{alias}.bootstrap.servers": cluster.bootstrap_of(_LISTENER),
            f"{alias}.security.protocol": "SSL",
            f"{alias}.ssl.truststore.location": str(self._trust),
            f"{alias}.ssl.truststore.type": "PKCS12",
            f"{alias}.ssl.truststore.password": STORE_PASSWORD,
        }
