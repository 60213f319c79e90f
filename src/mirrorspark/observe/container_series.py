"""What Strimzi's dashboard and rules ask cAdvisor for, where there is no cAdvisor: CPU of the control group we run in.

In Kubernetes nothing is given: the kubelet tells of every container there, and its figures would be counted twice.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from mirrorspark.observe.sheet import Sheet

__all__ = ["group_cpu_s", "put_container"]

GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def put_container(sheet: Sheet) -> None:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return
    sheet.put("container_cpu_usage_seconds_total", group_cpu_s())
    sheet.put("container_last_seen", time.time())


def group_cpu_s(membership: Path = MEMBERSHIP, groups: Path = GROUPS) -> float:
    """Of a container or a service: its own. Where the system keeps no account, of this process and its ended children."""
    for kind, place in _memberships(membership):
        # A container may see its own group as the root, whatever the name that the machine gives it.
        for folder in (groups / kind / place.lstrip("/"), groups / kind):
            if (used_s := _read_v2(folder / "cpu.stat")) is not None:
                return used_s
            if (used_s := _read_v1(folder / "cpuacct.usage")) is not None:
                return used_s
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _memberships(membership: Path) -> list[tuple[str, str]]:
    """Folder of the accounts and place in it: ``""`` for the one hierarchy of version 2."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return [(controllers, place) for _, controllers, place in found if not controllers or "cpuacct" in controllers]


def _read_v2(file: Path) -> float | None:
    try:
        values = dict(line.split() for line in file.read_text(encoding="utf-8").splitlines())
        return int(values["usage_usec"]) / 1e6
    except (OSError, ValueError, KeyError):
        return None


def _read_v1(file: Path) -> float | None:
    try:
        return int(file.read_text(encoding="utf-8")) / 1e9
    except (OSError, ValueError):
        return None
