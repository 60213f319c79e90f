from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.control.remote.address import Address, address_of
from mirrorspark.errors import SettingsError


def test_an_address_by_its_options(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("marked-token\n")
    found = address_of("connect:8083/", token_file=token, environment={"MIRRORSPARK_TOKEN": "another-one"})
    assert (found.url, found.token) == ("http://connect:8083", "marked-token")
    assert "marked" not in repr(found)
    assert found.shows_secrets_on_the_way


def test_secrets_from_the_environment() -> None:
    assert address_of("http://a:1", environment={"MIRRORSPARK_TOKEN": "t"}).token == "t"
    found = address_of("http://a:1", user="bob", environment={"MIRRORSPARK_PASSWORD": "p", "MIRRORSPARK_TOKEN": "t"})
    assert (found.user, found.password, found.token) == ("bob", "p", None)


def test_here_nobody_listens() -> None:
    assert not Address("http://127.0.0.1:8083", token=address_of("a:1", environment={}).token).shows_secrets_on_the_way


@pytest.mark.parametrize(
    ("url", "options", "word"),
    [
        ("http://bob:marked-word@a:1", {}, "process list"),
        ("ftp://a:1", {}, "http://host:port"),
        ("http://a:1/?x=1", {}, "behind the path"),
        ("http://a:port", {}, "not an address"),
        ("http://", {}, "http://host:port"),
        ("http://a:1", {"user": "bob"}, "MIRRORSPARK_PASSWORD"),
        ("http://a:1", {"password_file": Path("x")}, "--user"),
        ("http://a:1", {"user": "bob", "token_file": Path("x")}, "one of them"),
        ("http://a:1", {"token_file": Path("/nowhere/token")}, "/nowhere/token"),
    ],
)
def test_what_cannot_be_meant(url: str, options: dict[str, object], word: str) -> None:
    with pytest.raises(SettingsError) as raised:
        address_of(url, environment={}, **options)  # type: ignore[arg-type]
    assert word in str(raised.value)
    assert "marked" not in str(raised.value)


def test_a_file_that_holds_no_secret(tmp_path: Path) -> None:
    for text, word in (("", "is empty"), ("marked\nlines", "one line")):
        file = tmp_path / "token"
        file.write_text(text)
        with pytest.raises(SettingsError) as raised:
            address_of("http://a:1", token_file=file, environment={})
        assert word in str(raised.value)
        assert "marked" not in str(raised.value)
