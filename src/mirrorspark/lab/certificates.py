"""A private CA and what it issues, for brokers and clients of the lab: PEM, PKCS12, and JKS by the JDK's own keytool.

Used by ``secured_cluster`` and by tests that need a certificate which is expired, for another host or from another CA. Keys
are of a lab's worth: they lie in its folder.
"""

from __future__ import annotations

import ipaddress
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mirrorspark.errors import LabError
from mirrorspark.java_home import java_home

__all__ = ["STORE_PASSWORD", "Authority", "Identity", "java_key_store"]

STORE_PASSWORD = "of-the-lab"
LIFE = timedelta(days=30)
KEYTOOL_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Identity:
    """A key, its certificate, and the CA's."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    def chain_pem(self) -> str:
        return "".join(one.public_bytes(Encoding.PEM).decode() for one in (self.certificate, self.issuer))

    def key_pem(self, password: str | None = None) -> str:
        locked: KeySerializationEncryption = NoEncryption()
        if password is not None:
            locked = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked).decode()

    def pkcs12(self, password: str = STORE_PASSWORD) -> bytes:
        locked = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, [self.issuer], locked)


class Authority:
    """Its certificates are good for ``LIFE`` unless told otherwise."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = (
            _begun(name, name, self._key.public_key(), LIFE * 2)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def trust_store(self, password: str = STORE_PASSWORD) -> bytes:
        """PKCS12, as Java's keytool would write it: an entry that says that it is trusted."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def issue(self, name: str, *hosts: str, life: timedelta = LIFE) -> Identity:
        """For a broker with its hosts (names or addresses), or for a client without. A negative life has ended already."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begun(name, _common_name(self.certificate), key.public_key(), life).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
        return Identity(key, builder.sign(self._key, hashes.SHA256()), self.certificate)


def _begun(name: str, issuer: str, key: ec.EllipticCurvePublicKey, life: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    ends = now + life
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, ends) - timedelta(days=1))
        .not_valid_after(ends)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _common_name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def java_key_store(folder: Path, store: bytes, *, kind: str = "JKS", key_password: str = STORE_PASSWORD) -> Path:
    """A PKCS12 store with one key (alias ``own``) in another format, made by keytool. LabError where there is no keytool."""
    keytool = java_home() / "bin" / "keytool"
    if not keytool.exists():
        raise LabError(f"{keytool} is not there: this Java has no tools")
    before, after = folder / "before.p12", folder / f"own.{kind.lower()}"
    before.write_bytes(store)
    command = [
        *(keytool, "-importkeystore", "-noprompt", "-srckeystore", before, "-destkeystore", after),
        *("-deststoretype", kind, "-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD),
        *("-srcalias", "own", "-destkeypass", key_password),
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=KEYTOOL_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"keytool failed: {done.stdout}{done.stderr}")
    return after
