"""The front door: any files in which a mirror is written down -> one Document.

Called by whoever loads a deployment, and by ``mirrorspark convert``. The form is told by a file's ending, and by its
content where the ending says nothing. Opens files, and no connection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.connect_json import connectors_in, document_of, is_connectors
from mirrorspark.config.forms.nodes import Node, parse_json, parse_yaml
from mirrorspark.config.forms.plain_yaml import is_plain, plain_document
from mirrorspark.config.forms.secret_store import SecretStore
from mirrorspark.config.forms.strimzi_reader import is_resource, read_resources
from mirrorspark.config.properties_syntax import parse_entries
from mirrorspark.errors import SettingsError

__all__ = ["files_of", "read_form_entries", "read_forms"]

FILE_BYTES_MAX = 16 * 1024 * 1024
"""Of one file; a configuration is smaller."""
_ENDINGS = {".properties": "properties", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
_IN_FOLDERS = tuple(ending for ending, form in _ENDINGS.items() if form != "properties")
_YAML_SIGNS = re.compile(r"^(---|apiVersion:|kind:)", re.MULTILINE)
_WORKER_SIGNS = ("group.id", "offset.storage.topic", "config.storage.topic", "offset.storage.file.filename")


@dataclass(frozen=True)
class _Read:
    path: Path
    properties: tuple[Entry, ...] | None = None
    nodes: tuple[Node, ...] = ()


def read_forms(
    paths: Sequence[Path],
    secrets: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    needs_secrets: bool = True,
) -> Document:
    """Raises SettingsError with file, line and key. Of a key that a properties file gives twice, the last one counts.

    ``secrets``: a folder with <secret>/<key> files. Without ``needs_secrets`` one that is nowhere is no error: the
    Document refers to the environment variable that would hold it.
    """
    return Document(read_form_entries(paths, secrets, environment=environment, needs_secrets=needs_secrets))


def read_form_entries(
    paths: Sequence[Path],
    secrets: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    needs_secrets: bool = True,
) -> tuple[Entry, ...]:
    """The same, with every line of a properties file: for those who warn of what is given twice."""
    if not paths:
        raise SettingsError("no file is given")
    found = [_read(path) for given in paths for path in files_of(given)]
    properties = [one for one in found if one.properties is not None]
    nodes = [node for one in found for node in one.nodes]
    for one in found:
        if one.properties is None and not one.nodes:
            raise SettingsError(f"{one.path}: is empty", file=str(one.path))
    if not nodes:
        return _only(properties)
    return _of_nodes(nodes, properties, lambda: _store(secrets, environment, needs_secrets)).entries


def _store(secrets: Path | None, environment: Mapping[str, str] | None, needs_secrets: bool) -> SecretStore:
    return SecretStore(secrets, os.environ if environment is None else environment, is_needed=needs_secrets)


def _of_nodes(nodes: Sequence[Node], properties: Sequence[_Read], store: Callable[[], SecretStore]) -> Document:
    if any(is_plain(node) for node in nodes):
        if len(nodes) > 1 or properties:
            raise nodes[0].error("a file with its own clusters stands alone; give one such file at a time")
        return plain_document(nodes[0])
    if any(is_resource(node) for node in nodes):
        for node in nodes:
            if not is_resource(node):
                raise node.error("no kind: not a Kubernetes resource, unlike the others")
        _refuse_beside(properties, "Kubernetes resources")
        return read_resources(nodes, store())
    for node in nodes:
        if not is_connectors(node):
            raise node.error("neither connectors, nor KafkaMirrorMaker2 resources, nor a mapping with clusters")
    return document_of([one for node in nodes for one in connectors_in(node)], _worker(properties))


def files_of(path: Path) -> list[Path]:
    """A folder stands for the JSON and YAML files in it, in order."""
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.suffix in _IN_FOLDERS and not one.name.startswith("."))
    if not found:
        raise SettingsError(f"{path}: no file in it ends with {', '.join(_IN_FOLDERS)}", file=str(path))
    return found


def _read(path: Path) -> _Read:
    name = str(path)
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: no such file", file=name) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}", file=name) from error
    if len(raw) > FILE_BYTES_MAX:
        raise SettingsError(f"{path}: longer than {FILE_BYTES_MAX} bytes; that is no configuration", file=name)
    form = _ENDINGS.get(path.suffix.lower()) or _form_by_content(text)
    if form == "json":
        return _Read(path, nodes=(parse_json(text, name),))
    if form == "yaml":
        return _Read(path, nodes=tuple(parse_yaml(text, name)))
    return _Read(path, properties=tuple(parse_entries(text, name)))


def _form_by_content(text: str) -> str:
    """``clusters: A, B`` is a line of YAML and of properties; without a sign of YAML it is MirrorMaker 2's own form."""
    if text.lstrip()[:1] in ("{", "["):
        return "json"
    return "yaml" if _YAML_SIGNS.search(text) else "properties"


def _only(properties: Sequence[_Read]) -> tuple[Entry, ...]:
    if len(properties) > 1:
        names = ", ".join(str(one.path) for one in properties)
        raise SettingsError(f"{names}: MirrorMaker 2 takes one properties file at a time", file=names)
    entries = properties[0].properties
    assert entries is not None
    keys = {entry.key for entry in entries}
    if "clusters" not in keys and keys.intersection(_WORKER_SIGNS):
        path = properties[0].path
        raise SettingsError(
            f"{path}: a Kafka Connect worker's file, which names no flow; give it together with the connectors' JSON files",
            file=str(path),
        )
    return entries


def _worker(properties: Sequence[_Read]) -> Document | None:
    """A Connect worker's own file may stand beside its connectors."""
    if not properties:
        return None
    worker = _only_worker(properties)
    if "clusters" in worker:
        _refuse_beside(properties, "connectors")
    return worker


def _only_worker(properties: Sequence[_Read]) -> Document:
    if len(properties) > 1:
        _refuse_beside(properties[1:], "connectors and one worker's file")
    return Document(properties[0].properties or ())


def _refuse_beside(properties: Sequence[_Read], what: str) -> None:
    if properties:
        path = properties[0].path
        raise SettingsError(f"{path}: a properties file beside {what}; give one form at a time", file=str(path))
