"""The Java key store that is made from the system's certificates, read back by a real Java."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mirrorspark.java_home import java_home
from mirrorspark.lab.trust_store import PASSWORD, encode_store, trust_store


def test_java_reads_every_certificate_of_the_systems_bundle(tmp_path: Path) -> None:
    store = trust_store(tmp_path)
    keytool = java_home() / "bin" / "keytool"
    if store is None or not keytool.exists():
        pytest.skip("no certificate bundle on this machine, or a Java without keytool")
    listed = subprocess.run(
        [keytool, "-list", "-storetype", "JKS", "-keystore", store, "-storepass", PASSWORD],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert "trustedCertEntry" in listed.stdout


def test_a_machine_without_a_bundle_has_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrorspark.lab.trust_store._bundle", lambda: None)
    assert trust_store(tmp_path) is None


def test_the_digest_covers_the_entries() -> None:
    one, other = encode_store([b"certificate"]), encode_store([b"cErtificate"])
    assert one[-20:] != other[-20:]
    assert one[:4] == bytes.fromhex("FEEDFEED")
