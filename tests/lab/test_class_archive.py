"""The archive of Kafka's classes: made by the first cluster of a machine, used by those that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.java_home import cache_folder
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.jars import kafka_class_path


def test_the_first_cluster_of_a_machine_makes_the_archive_and_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_class_path()  # there, whoever else needs it
    used = cache_folder()
    fresh = tmp_path / "cache"
    fresh.mkdir()
    for jars in used.glob("kafka-*"):
        (fresh / jars.name).symlink_to(jars)
    monkeypatch.setenv("MIRRORSPARK_CACHE", str(fresh))

    with ClusterOfBrokers("fresh", folder=tmp_path / "fresh") as cluster:
        (archive,) = fresh.glob("classes-*.jsa")
        assert archive.stat().st_size > 0
        assert f"-XX:SharedArchiveFile={archive}" in cluster.broker(1).spec.jvm_flags


def test_a_cluster_with_flags_of_its_own_asks_for_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> list[str]:
        raise AssertionError("the archive is for quick starts")

    monkeypatch.setattr("mirrorspark.lab.cluster_of_brokers.class_archive_flags", fails)
    assert "-Xlog:disable" in ClusterOfBrokers("own", jvm_flags=["-Xlog:disable"]).broker(1).spec.jvm_flags
