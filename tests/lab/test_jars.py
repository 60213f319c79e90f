"""The jar cache: filled once, checked each time, mended where it can be, a clear word where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mirrorspark.errors import LabError
from mirrorspark.lab import jars
from mirrorspark.lab.jar_resolver import resolve
from mirrorspark.lab.jars import kafka_class_path, kafka_jars
from mirrorspark.lab.kafka_version import KAFKA_2_8, LATEST

NAMES = ("org.apache.kafka_kafka_2.13-4.3.1.jar", "scala-library-2.13.18.jar")


class FakeRegistry:
    """Stands in for the resolver: makes two small jars, or refuses."""

    def __init__(self) -> None:
        self.asked = 0
        self.coordinates: tuple[str, ...] = ()
        self.is_reachable = True

    def resolve(self, coordinates: Sequence[str], ivy_home: Path, *, answer_timeout_s: float) -> list[Path]:
        self.asked += 1
        self.coordinates = tuple(coordinates)
        if not self.is_reachable:
            raise LabError("no registry answered")
        made = [ivy_home / name for name in NAMES]
        for jar in made:
            jar.write_bytes(b"jar " + jar.name.encode())
        return made


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRegistry:
    fake = FakeRegistry()
    monkeypatch.setattr(jars, "resolve", fake.resolve)
    monkeypatch.setenv("MIRRORSPARK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.delenv("MIRRORSPARK_KAFKA_JARS", raising=False)
    return fake


def _folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / f"kafka-{LATEST.number}"


def _in_a_new_process() -> list[Path]:
    jars._cached_jars.cache_clear()
    return kafka_jars()


def test_cache_is_filled_once(registry: FakeRegistry, tmp_path: Path) -> None:
    first = _in_a_new_process()
    assert [jar.name for jar in first] == list(NAMES)
    assert _in_a_new_process() == first
    assert registry.asked == 1
    listed = json.loads((_folder(tmp_path) / "manifest.json").read_text())
    assert [line["name"] for line in listed["jars"]] == list(NAMES)
    assert sorted(entry.name for entry in (tmp_path / "cache").iterdir()) == ["kafka-4.3.1", "kafka-4.3.1.lock"]


def _remove(jar: Path) -> None:
    jar.unlink()


def _cut(jar: Path) -> None:
    jar.write_bytes(jar.read_bytes()[:-1])


def _flip(jar: Path) -> None:
    jar.write_bytes(jar.read_bytes()[:-1] + b"?")


DAMAGES = pytest.mark.parametrize("damage", [_remove, _cut, _flip])


@DAMAGES
def test_damaged_jar_is_mended(registry: FakeRegistry, damage: Callable[[Path], None]) -> None:
    jar = _in_a_new_process()[0]
    whole = jar.read_bytes()
    damage(jar)
    assert _in_a_new_process()[0].read_bytes() == whole
    assert registry.asked == 2


@DAMAGES
def test_damaged_jar_that_cannot_be_mended_is_named(
    registry: FakeRegistry, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    jar = _in_a_new_process()[1]
    damage(jar)
    registry.is_reachable = False
    with pytest.raises(LabError) as caught:
        _in_a_new_process()
    message = str(caught.value)
    assert jar.name in message
    assert f"Delete {_folder(tmp_path)}" in message
    assert "KAFKA_HOME" in message


@pytest.mark.parametrize("content", [None, "", "{}", '{"jars": []}', '{"jars": [{"name": 1}]}', "[]"])
def test_unreadable_manifest_is_written_anew(registry: FakeRegistry, tmp_path: Path, content: str | None) -> None:
    _in_a_new_process()
    manifest = _folder(tmp_path) / "manifest.json"
    if content is None:
        manifest.unlink()
    else:
        manifest.write_text(content)
    assert len(_in_a_new_process()) == len(NAMES)
    assert registry.asked == 2


def test_no_registry_at_first_is_told_with_the_alternatives(registry: FakeRegistry) -> None:
    registry.is_reachable = False
    with pytest.raises(LabError, match="could not be fetched") as caught:
        _in_a_new_process()
    assert "MIRRORSPARK_KAFKA_JARS" in str(caught.value)


def test_unwritable_cache_is_told(registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("MIRRORSPARK_CACHE", str(tmp_path / "file"))
    with pytest.raises(LabError, match="set MIRRORSPARK_CACHE"):
        _in_a_new_process()


@pytest.mark.parametrize("variable", ["KAFKA_HOME", "MIRRORSPARK_KAFKA_JARS"])
def test_jars_of_a_kafka_that_is_there_need_no_registry(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    libs = tmp_path / "kafka" / "libs"
    libs.mkdir(parents=True)
    monkeypatch.setenv(variable, str(libs.parent if variable == "KAFKA_HOME" else libs))
    with pytest.raises(LabError, match=f"{variable} leads to"):
        kafka_jars()
    for name in ("kafka_2.13-4.3.1", "kafka-clients-4.3.1", "scala-library-2.13.18", "connect-mirror-4.3.1"):
        (libs / f"{name}.jar").touch()
    assert len(kafka_jars()) == 4
    assert str(libs / "kafka-clients-4.3.1.jar") in kafka_class_path()
    assert registry.asked == 0


def test_each_version_has_a_folder_and_a_variable_of_its_own(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))  # of the latest version only
    kafka_jars(KAFKA_2_8)
    assert registry.coordinates == KAFKA_2_8.coordinates
    assert (tmp_path / "cache" / "kafka-2.8.2" / "manifest.json").exists()
    libs = tmp_path / "old"
    libs.mkdir()
    monkeypatch.setenv("MIRRORSPARK_KAFKA_JARS_2_8", str(libs))
    for name in ("kafka_2.13-2.8.1", "kafka-clients-2.8.1", "scala-library-2.13.5"):
        (libs / f"{name}.jar").touch()
    with pytest.raises(LabError, match=r"no zookeeper-\*.jar: point it to Kafka 2.8.x"):
        kafka_jars(KAFKA_2_8)
    (libs / "zookeeper-3.5.9.jar").touch()
    assert len(kafka_jars(KAFKA_2_8)) == 4


def test_an_old_version_that_cannot_be_fetched_is_named(registry: FakeRegistry) -> None:
    registry.is_reachable = False
    with pytest.raises(LabError, match=r"Kafka 2\.8\.2 could not be fetched") as caught:
        kafka_jars(KAFKA_2_8)
    assert "MIRRORSPARK_KAFKA_JARS_2_8" in str(caught.value)


def test_real_resolver_without_a_registry_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9"
    # An empty home: jars that a local Maven repository holds would be found without a registry.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{nowhere} -Duser.home={tmp_path}")
    with pytest.raises(LabError, match=r"the resolver failed: .*refused"):
        resolve(LATEST.coordinates[:1], tmp_path / "ivy")
