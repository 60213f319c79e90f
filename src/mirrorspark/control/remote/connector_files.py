"""A folder of connector files: ``mm2-msc-CLUSTER.json``, ``mm2-cpc-CLUSTER.json`` and ``mm2-hbc-CLUSTER.json``.

Each is a connector as it is PUT (a flat configuration) or as it is POSTed (``name``, ``config``, ``initial_state``).
Read by the commands that deploy; opens files and nothing else. No value of a configuration appears in an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirrorspark.config.connector_secrets import is_secret
from mirrorspark.config.connector_validation import kind_of
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.errors import SettingsError
from mirrorspark.rest.connector_host import TargetState
from mirrorspark.secret import Secret

__all__ = ["SHORT", "ConnectorFile", "clusters_in", "file_path", "names_of", "read_cluster", "read_connector"]

FILE_BYTES_MAX = 4 * 1024 * 1024
SHORT = {ConnectorKind.SOURCE: "msc", ConnectorKind.CHECKPOINT: "cpc", ConnectorKind.HEARTBEAT: "hbc"}
"""In the order of a deployment: a checkpoint connector reads what the source connector creates."""
_FILE = re.compile(r"mm2-(?:msc|cpc|hbc)-(.+)\.json")


@dataclass(frozen=True)
class ConnectorFile:
    path: Path
    name: str
    config: Mapping[str, str] = field(repr=False)
    state: TargetState = TargetState.RUNNING
    """What the file wants of it at first."""

    @property
    def plugin(self) -> str:
        return self.config["connector.class"]

    @property
    def body(self) -> dict[str, str]:
        """The configuration as it is sent, with its secrets."""
        return {key: "".join(value) for key, value in self.config.items()}


def file_path(folder: Path, kind: ConnectorKind, cluster: str) -> Path:
    return folder / f"mm2-{SHORT[kind]}-{cluster}.json"


def clusters_in(folder: Path) -> list[str]:
    """Clusters that have a file there; none for a folder that is not there."""
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted({match[1] for name in names if (match := _FILE.fullmatch(name))})


def read_cluster(folder: Path, cluster: str, *, partial: bool = False) -> list[ConnectorFile]:
    """In the order of a deployment. Raises SettingsError: for a file that is missing too, unless ``partial``."""
    _check_name(cluster)
    paths = {kind: file_path(folder, kind, cluster) for kind in SHORT}
    missing = [str(path) for path in paths.values() if not path.is_file()]
    if missing and (not partial or len(missing) == len(paths)):
        known = ", ".join(clusters_in(folder)) or "none"
        raise SettingsError(
            f"{', '.join(missing)}: not there; clusters with files in {folder}: {known}. "
            "Another folder: --folder; only the files that are there: --partial",
            file=missing[0],
        )
    found = [_of_kind(path, kind) for kind, path in paths.items() if path.is_file()]
    _check_different(found)
    return found


def names_of(folder: Path, cluster: str) -> list[str]:
    """Names of a cluster's connectors, in the order of a deployment; after the file's where there is none to read."""
    _check_name(cluster)
    paths = [file_path(folder, kind, cluster) for kind in SHORT]
    return [read_connector(path).name if path.is_file() else path.stem for path in paths]


def _check_name(cluster: str) -> None:
    if not cluster.strip() or "/" in cluster or cluster in (".", ".."):
        raise SettingsError(f"CLUSTER {cluster!r}: a name is needed, as in mm2-msc-NAME.json; the folder is --folder")


def _check_different(found: list[ConnectorFile]) -> None:
    by_name: dict[str, Path] = {}
    for one in found:
        if one.name in by_name:
            raise SettingsError(
                f"{one.path}: its connector has the name {one.name}, as that of {by_name[one.name]}", file=str(one.path)
            )
        by_name[one.name] = one.path


def _of_kind(path: Path, kind: ConnectorKind) -> ConnectorFile:
    found = read_connector(path)
    named = kind_of(found.plugin)
    if named is not None and named is not kind:
        raise SettingsError(
            f"{path}: connector.class is {named}, but a file of this name holds a {kind}", file=str(path)
        )
    return found


def read_connector(path: Path) -> ConnectorFile:
    """Raises SettingsError with the file, and the key that is wrong."""
    body = _parsed(path)
    if "connector.class" in body:
        config, state = body, None
    else:
        config, state = body.get("config", {}), body.get("initial_state")
    name = body.get("name")
    if not isinstance(config, dict) or "connector.class" not in config:
        raise _wrong(path, "connector.class", "missing; neither a configuration nor {name, config}")
    texts = {key: _text(path, key, value) for key, value in config.items()}
    inner = texts.get("name")
    if isinstance(name, str) and inner is not None and inner != name:
        raise _wrong(path, "name", f"{inner} inside of config, {name} outside; Connect refuses that")
    named = name if isinstance(name, str) and name.strip() else (inner or path.stem)
    return ConnectorFile(path, named, {**texts, "name": named}, _state(path, state))


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise SettingsError(f"{path}: longer than {FILE_BYTES_MAX} bytes; no connector is", file=str(path))
        body = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path}:{error.lineno}: not JSON: {error.msg}", file=str(path)) from None
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no JSON text"
        raise SettingsError(f"{path}: cannot be read: {reason}", file=str(path)) from None
    if not isinstance(body, dict):
        raise SettingsError(f"{path}: must be an object, a connector", file=str(path))
    return body


def _text(path: Path, key: str, value: object) -> str:
    """Numbers and booleans count as their spelling, as in Connect."""
    if isinstance(value, str):
        return Secret(value) if is_secret(key) and "${" not in value else value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise _wrong(path, key, "must be a text")


def _state(path: Path, value: object) -> TargetState:
    try:
        return TargetState.RUNNING if value is None else TargetState(str(value).upper())
    except ValueError:
        raise _wrong(path, "initial_state", f"must be one of {', '.join(TargetState)}") from None


def _wrong(path: Path, key: str, reason: str) -> SettingsError:
    return SettingsError(f"{path}: {key}: {reason}", file=str(path), key=key)
