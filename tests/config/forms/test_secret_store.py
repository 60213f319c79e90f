"""Kubernetes secrets without Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.forms.nodes import parse_yaml
from mirrorspark.config.forms.secret_store import SecretStore, environment_name
from mirrorspark.errors import SettingsError

[AT] = parse_yaml("x: 1", "f.yaml")
[SECRET] = parse_yaml("metadata: {name: s}\ndata: {a: aGFsbG8=}\nstringData: {b: two}", "f.yaml")


def test_names_of_variables() -> None:
    assert environment_name("es-api-secret", "password") == "MIRRORSPARK_SECRET_ES_API_SECRET_PASSWORD"
    assert environment_name("my.ca", "ca.crt") == "MIRRORSPARK_SECRET_MY_CA_CA_CRT"


def test_the_folder_wins_over_documents_and_these_over_variables(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a").write_text("from a file")
    store = SecretStore(tmp_path, {environment_name("s", key): "from a variable" for key in "abc"})
    store.add(SECRET)
    assert store.find("s", "a", AT).text == f"${{dir:{tmp_path}/s:a}}"
    assert (store.find("s", "b", AT).text, store.find("s", "b", AT).is_reference) == ("two", False)
    assert store.find("s", "c", AT).text == "${env:MIRRORSPARK_SECRET_S_C}"
    assert store.find("s", "a", AT).value == "from a file"


def test_base64_is_decoded() -> None:
    store = SecretStore()
    store.add(SECRET)
    assert store.find("s", "a", AT).text == "hallo"
    with pytest.raises(SettingsError, match=r"f:1: data\.a: not base64"):
        store.add(parse_yaml("{metadata: {name: t}, data: {a: '!'}}", "f")[0])


def test_a_pattern_finds_keys_in_order(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for name in ("b.crt", "a.crt", "a.key", "..data"):
        (tmp_path / "s" / name).write_text("x")
    assert SecretStore(tmp_path).matching("s", "*.crt", AT) == ["a.crt", "b.crt"]
    with pytest.raises(SettingsError, match=r"has no key \*\.pem"):
        SecretStore(tmp_path).matching("s", "*.pem", AT)


def test_what_nobody_needs_is_referred_to() -> None:
    found = SecretStore(is_needed=False).find("s", "a", AT)
    assert (found.text, found.value) == ("${env:MIRRORSPARK_SECRET_S_A}", None)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such folder"):
        SecretStore(tmp_path / "none")


def test_a_value_that_looks_like_a_reference_is_refused() -> None:
    store = SecretStore()
    store.add(parse_yaml("metadata: {name: s}\nstringData: {a: 'ge${heim}'}", "f")[0])
    with pytest.raises(SettingsError, match="taken for a reference") as caught:
        store.find("s", "a", AT)
    assert "heim" not in str(caught.value)


def test_values_do_not_show() -> None:
    store = SecretStore(None, {"MIRRORSPARK_SECRET_S_A": "geheim"})
    assert "geheim" not in repr(store.find("s", "a", AT))
