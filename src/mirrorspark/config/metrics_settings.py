"""Where ``/metrics`` is served and how many series it may have: keys of the file as a whole, and ``--metrics``."""

from __future__ import annotations

from collections.abc import Mapping

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.findings import Findings
from mirrorspark.errors import SettingsError
from mirrorspark.settings import MetricsSettings

__all__ = ["listener_of_option", "metrics_settings", "parse_listener"]

HERE = "127.0.0.1"
"""The address of a listener that names none: what is not meant for others is not offered to them."""


def parse_listener(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``[::1]:PORT``, ``:PORT`` or ``PORT``; without a host for this machine alone. Raises ValueError."""
    host, _, port = text.strip().rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError("must be HOST:PORT, e.g. 127.0.0.1:9404")
    return host.strip("[]") or HERE, int(port)


def metrics_settings(document: Mapping[str, str], findings: Findings) -> MetricsSettings:
    """What the file says; a number that is wrong is told by ``check_keys``."""
    defaults = MetricsSettings()
    listener = None
    if text := document.get("metrics.listener", "").strip():
        try:
            listener = parse_listener(text)
        except ValueError as error:
            findings.bad_value("metrics.listener", str(error))
    return MetricsSettings(
        listener,
        _whole(document, "metrics.partitions.max", defaults.partitions_max),
        _whole(document, "metrics.checkpoints.max", defaults.checkpoints_max),
    )


def _whole(document: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(PLAIN[key].read(document[key])) if key in document else default
    except ValueError:
        return default


def listener_of_option(text: str) -> tuple[str, int]:
    """``--metrics``. Raises SettingsError."""
    try:
        return parse_listener(text)
    except ValueError as error:
        raise SettingsError(f"--metrics {text}: {error}", key="--metrics") from None
