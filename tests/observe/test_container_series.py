"""CPU of the control group, in either version; and nothing where Kubernetes gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.observe.container_series import group_cpu_s, put_container
from mirrorspark.observe.sheet import Sheet


def membership(folder: Path, text: str) -> Path:
    file = folder / "cgroup"
    file.write_text(text)
    return file


def test_version_two_tells_of_its_own_group(tmp_path: Path) -> None:
    group = tmp_path / "system.slice" / "mirror.service"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group_cpu_s(membership(tmp_path, "0::/system.slice/mirror.service\n"), tmp_path) == 2.5


def test_version_one_may_show_a_container_its_group_as_the_root(tmp_path: Path) -> None:
    (tmp_path / "cpu,cpuacct").mkdir()
    (tmp_path / "cpu,cpuacct" / "cpuacct.usage").write_text("1500000000\n")
    file = membership(tmp_path, "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n")
    assert group_cpu_s(file, tmp_path) == 1.5


def test_without_an_account_it_is_the_process(tmp_path: Path) -> None:
    assert group_cpu_s(tmp_path / "missing", tmp_path) > 0


def test_in_kubernetes_it_is_cadvisors(monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> set[str]:
        sheet = Sheet()
        put_container(sheet)
        return {sample.name for family in sheet.families() for sample in family.samples}

    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert names() == {"container_cpu_usage_seconds_total", "container_last_seen"}
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert names() == set()
