"""A connector's configuration against the catalogue, as Connect's ``config/validate`` answers, and as ``POST`` refuses.

``rest`` shows it, ``control.connect`` refuses by it. Keys that nobody knows are let through, as Connect does; what would
keep the connector from being run here (a transform, no bootstrap servers) is an error. Opens nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.connector_secrets import hidden
from mirrorspark.config.document import Document
from mirrorspark.config.forms.connect_json import connector_of, document_of
from mirrorspark.config.forms.connectors import Connector
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.forms.nodes import parse_json
from mirrorspark.config.load import deployment_of
from mirrorspark.config.rest_definitions import connector_definitions
from mirrorspark.errors import SettingsError

__all__ = [
    "ValidatedKey",
    "connector_from",
    "faults_of",
    "kind_of",
    "plugin_definitions",
    "validated",
    "validation_body",
]

NAME, CLASS, ALIAS = "name", "connector.class", "source.cluster.alias"
COMMON_GROUP = "Common"


@dataclass(frozen=True, slots=True)
class ValidatedKey:
    definition: Mapping[str, Any]
    value: str | None
    errors: tuple[str, ...] = ()


def kind_of(plugin: str) -> ConnectorKind | None:
    """By the whole class name, its last part, or that without ``Connector``."""
    for kind in ConnectorKind:
        if plugin in (kind.java_class, kind.value, kind.value.removesuffix("Connector")):
            return kind
    return None


def plugin_definitions(kind: ConnectorKind) -> list[dict[str, Any]]:
    """Every key of the connector, its name and class first."""
    identity = [
        _identity(NAME, "STRING", "Globally unique name of this connector.", 1),
        _identity(CLASS, "STRING", f"Class of this connector: {kind.java_class}, or {kind.value}.", 2),
    ]
    return [*identity, *(_listed(one) for one in connector_definitions(kind.value))]


def _listed(definition: Mapping[str, Any]) -> dict[str, Any]:
    """As Connect lists a key; it keeps the order of all keys to itself."""
    fields = {name: value for name, value in definition.items() if name != "order"}
    return {**fields, "required": True} if definition["name"] == ALIAS else fields


def _identity(name: str, kind: str, text: str, order: int) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": text,
        "group": COMMON_GROUP,
        "order_in_group": order,
        "width": "MEDIUM",
        "display_name": name,
        "dependents": [],
    }


def connector_from(name: str, config: Mapping[str, str], state: str = "RUNNING") -> Connector:
    """Raises SettingsError, whose place is the connector's name."""
    text = json.dumps({"name": name, "config": {**config, NAME: name}, "state": state}, ensure_ascii=True)
    node = parse_json(text, f"connector {name}").mapping()
    return connector_of(node["name"], node["config"], state=node["state"])


def validated(kind: ConnectorKind, config: Mapping[str, str], worker: Document | None = None) -> list[ValidatedKey]:
    """``worker``: what its worker's file says, config providers among it; where it is not known nothing is said of those."""
    keys = [_checked(one, config) for one in plugin_definitions(kind)]
    if not any(key.errors for key in keys):
        for name, text in _faults_as_a_flow(config, worker):
            keys = _with_error(keys, name, text)
    return keys


def _checked(definition: Mapping[str, Any], config: Mapping[str, str]) -> ValidatedKey:
    name = definition["name"]
    given = config.get(name)
    if given is None:
        missing = (f'Missing required configuration "{name}" which has no default value.',)
        return ValidatedKey(definition, definition["default_value"], missing if definition["required"] else ())
    if name == NAME and (not given.strip() or any(ord(char) < 32 or ord(char) == 127 for char in given)):
        return ValidatedKey(
            definition, given, ("name: must be a text that is not empty and holds no control characters",)
        )
    known = PLAIN.get(name)
    if known is None or "${" in given:
        return ValidatedKey(definition, given)
    try:
        known.read(given)
    except ValueError as error:
        shown = hidden({name: given})[name]
        return ValidatedKey(definition, given, (f"Invalid value {shown} for configuration {name}: {error}",))
    return ValidatedKey(definition, given)


def _faults_as_a_flow(config: Mapping[str, str], worker: Document | None) -> Sequence[tuple[str, str]]:
    """What is wrong with the connector taken by itself: key and text."""
    name = config.get(NAME) or "connector"
    try:
        connector = connector_from(name, config)
        document = document_of([connector], worker if worker is not None and worker.entries else None)
        deployment_of(document.entries, file=f"connector {name}", lenient=True, check_jaas=True)
    except SettingsError as error:
        problems = error.facts.get("problems") or [{"message": error.message, **error.facts}]
        found = [(str(one.get("key", "")), str(one["message"])) for one in problems if not _is_of_others(one)]
        if worker is None:
            found = [(key, text) for key, text in found if "there is no config provider" not in text]
        return [_in_own_words(key, text, config) for key, text in found]
    return ()


def _in_own_words(key: str, text: str, config: Mapping[str, str]) -> tuple[str, str]:
    """A cluster's key as the connector has it: ``source.cluster.…`` for what a file would call by the cluster's alias."""
    for side in ("source.cluster", "target.cluster"):
        name = key.removeprefix(f"{config.get(f'{side}.alias', '')}.")
        if name != key and f"{side}.{name}" in config:
            return f"{side}.{name}", text.replace(key, f"{side}.{name}")
    return key, text


def _is_of_others(problem: Mapping[str, Any]) -> bool:
    """A checkpoint connector by itself is no flow that carries: its source connector may come later."""
    return "no flow is enabled" in str(problem["message"])


def _with_error(keys: list[ValidatedKey], name: str, text: str) -> list[ValidatedKey]:
    """At the key that it is about, whose level stands in front; else at the class."""
    at = next(
        (key for key in keys if name.endswith(str(key.definition["name"])) and key.definition["name"] != NAME), None
    )
    at = at or next(key for key in keys if key.definition["name"] == CLASS)
    return [ValidatedKey(key.definition, key.value, (*key.errors, text)) if key is at else key for key in keys]


def faults_of(kind: ConnectorKind, config: Mapping[str, str], worker: Document | None = None) -> list[str]:
    return [text for key in validated(kind, config, worker) for text in key.errors]


def validation_body(kind: ConnectorKind, config: Mapping[str, str]) -> dict[str, Any]:
    keys = validated(kind, config)
    shown = hidden({str(key.definition["name"]): key.value for key in keys if key.value is not None})
    return {
        "name": kind.java_class,
        "error_count": sum(len(key.errors) for key in keys),
        "groups": list(dict.fromkeys(key.definition["group"] for key in keys)),
        "configs": [
            {
                "definition": dict(key.definition),
                "value": {
                    "name": key.definition["name"],
                    "value": shown.get(str(key.definition["name"])),
                    "recommended_values": [],
                    "errors": list(key.errors),
                    "visible": True,
                },
            }
            for key in keys
        ],
    }
