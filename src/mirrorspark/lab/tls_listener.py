"""A broker's settings for a listener that speaks TLS."""

from __future__ import annotations

from pathlib import Path

from mirrorspark.lab.certificates import STORE_PASSWORD

__all__ = ["tls_listener"]


def tls_listener(name: str, own: Path, trusted: Path, *, asks_clients: bool = False) -> dict[str, str]:
    """``own`` and ``trusted`` are PKCS12 stores; ``asks_clients``: for a certificate of theirs."""
    prefix = f"listener.name.{name.lower()}.ssl"
    return {
        f"{prefix}.keystore.location": str(own),
        f"{prefix}.keystore.type": "PKCS12",
        f"{prefix}.keystore.password": STORE_PASSWORD,
        f"{prefix}.key.password": STORE_PASSWORD,
        f"{prefix}.truststore.location": str(trusted),
        f"{prefix}.truststore.type": "PKCS12",
        f"{prefix}.truststore.password": STORE_PASSWORD,
        f"{prefix}.client.auth": "required" if asks_clients else "none",
    }
