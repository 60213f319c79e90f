"""When certificates end: as OpenSSL made them, in stores of one or several, and what is none is told."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from mirrorspark.cluster.certificate_expiry import certificate_ends, earliest, store_expiries
from mirrorspark.errors import SettingsError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def made(folder: Path, name: str, days: int) -> Path:
    path = folder / f"{name}.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-days", str(days), "-keyout", folder / f"{name}.key", "-out", path),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return path


def said_by_openssl(path: Path) -> float:
    done = subprocess.run(
        ["openssl", "x509", "-in", path, "-noout", "-enddate"], check=True, capture_output=True, text=True, timeout=60
    )
    return float(ssl.cert_time_to_seconds(done.stdout.strip().removeprefix("notAfter=")))


@pytest.mark.parametrize("days", [3, 20_000])
def test_the_end_is_the_one_that_openssl_says(tmp_path: Path, days: int) -> None:
    """20,000 days are beyond 2050: another way to write a year."""
    path = made(tmp_path, "one", days)
    der = ssl.PEM_cert_to_DER_cert(path.read_text())
    assert certificate_ends(der) == said_by_openssl(path)


def test_of_a_store_the_earliest_counts(tmp_path: Path) -> None:
    soon, late = made(tmp_path, "soon", 5), made(tmp_path, "late", 50)
    store = tmp_path / "store.pem"
    store.write_text(f"# a comment\n{late.read_text()}\n{soon.read_text()}")
    own = tmp_path / "own.pem"
    own.write_text(late.read_text() + late.with_suffix(".key").read_text())
    found = store_expiries({"ssl.truststore.location": str(store), "ssl.keystore.location": str(own)})
    assert found == {"truststore": said_by_openssl(soon), "keystore": said_by_openssl(late)}
    assert store_expiries({"ssl.truststore.certificates": late.read_text()}) == {"truststore": said_by_openssl(late)}


def test_without_stores_there_is_nothing_to_tell() -> None:
    assert store_expiries({}) == {}
    assert earliest([]) is None


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x82\xff\xff", b"\x30\x03\x30\x01\x00", b"no certificate"])
def test_what_is_no_certificate_is_told(data: bytes) -> None:
    with pytest.raises(ValueError):
        certificate_ends(data)


def test_a_store_that_cannot_be_read_names_its_key(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for file in (store, tmp_path / "missing.pem"):
        with pytest.raises(SettingsError, match=r"ssl\.truststore\.location"):
            store_expiries({"ssl.truststore.location": str(file)})
