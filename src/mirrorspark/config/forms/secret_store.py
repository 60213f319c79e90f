"""Kubernetes secrets where no Kubernetes is at hand: a folder as it is mounted, Secret documents, environment variables.

Strimzi's reader asks it. A Document gets a reference (``${dir:…}``, ``${env:…}``), not the value, wherever there is one
to refer to. No value appears in an error.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirrorspark.config.forms.nodes import Node
from mirrorspark.errors import SettingsError

__all__ = ["Found", "SecretStore", "environment_name"]

PREFIX = "MIRRORSPARK_SECRET_"
_UNREADABLE_BY_PROVIDERS = re.compile(r"[:}]")


def environment_name(secret: str, key: str) -> str:
    """``es-api-secret``, ``password`` -> ``MIRRORSPARK_SECRET_ES_API_SECRET_PASSWORD``."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", f"{secret}_{key}".upper())


@dataclass(frozen=True, slots=True)
class Found:
    """``text`` goes into the Document. ``value`` is None where nothing was found and nothing had to be."""

    text: str = field(repr=False)
    value: str | None = field(repr=False)
    variable: str = ""

    @property
    def is_reference(self) -> bool:
        return self.value is None or self.text != self.value


class SecretStore:
    """``is_needed``: a secret that is nowhere is an error. Else a reference to its environment variable stands for it."""

    def __init__(
        self, folder: Path | None = None, environment: Mapping[str, str] | None = None, *, is_needed: bool = True
    ) -> None:
        self._folder = folder
        self._environment = environment or {}
        self._is_needed = is_needed
        self._documents: dict[str, dict[str, str]] = {}
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"{folder}: no such folder; it must hold <secret>/<key> files", file=str(folder))

    def add(self, node: Node) -> None:
        """A Secret document of the same text."""
        name = node.need("metadata").need("name").text()
        found = self._documents.setdefault(name, {})
        for key, value in _fields(node, "data").items():
            try:
                found[key] = base64.b64decode(value.text(), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise value.error("not base64 of a text") from None
        found |= {key: value.text() for key, value in _fields(node, "stringData").items()}

    def find(self, secret: str, key: str, at: Node) -> Found:
        """The folder wins over the documents, these win over the environment."""
        variable = environment_name(secret, key)
        if self._folder is not None and (path := self._folder / secret / key).is_file():
            return Found(_directory_reference(path), _read(path))
        if secret in self._documents and key in self._documents[secret]:
            return Found(_inline(self._documents[secret][key], secret, key, at), self._documents[secret][key])
        if variable in self._environment or not self._is_needed:
            return Found(f"${{env:{variable}}}", self._environment.get(variable), variable)
        raise self._missing(secret, key, at, f"or set the environment variable {variable}")

    def matching(self, secret: str, pattern: str, at: Node) -> list[str]:
        """Keys that fit a pattern such as ``*.crt``, in order. A variable cannot be searched for."""
        keys = set(self._documents.get(secret, {}))
        if self._folder is not None and (self._folder / secret).is_dir():
            keys |= {path.name for path in (self._folder / secret).iterdir() if path.is_file()}
        found = sorted(key for key in keys if fnmatch.fnmatchcase(key, pattern) and not key.startswith("."))
        if found or not self._is_needed:
            return found
        raise self._missing(secret, pattern, at, "or name the certificate instead of a pattern and set its variable")

    def _missing(self, secret: str, key: str, at: Node, other_way: str) -> SettingsError:
        folder = self._folder or "DIR"
        return at.error(
            f"secret {secret} has no key {key} here; put it into the file {folder}/{secret}/{key} "
            f"(--secrets {folder}, as Kubernetes mounts it), {other_way}"
        )


def _fields(node: Node, name: str) -> Mapping[str, Node]:
    inner = node.get(name)
    return inner.mapping() if inner is not None else {}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {type(error).__name__}", file=str(path)) from None


def _directory_reference(path: Path) -> str:
    folder = str(path.parent.absolute())
    if _UNREADABLE_BY_PROVIDERS.search(folder) or _UNREADABLE_BY_PROVIDERS.search(path.name):
        raise SettingsError(f"{path}: a path with ':' or '}}' cannot be referred to; move the folder", file=str(path))
    return f"${{dir:{folder}:{path.name}}}"


def _inline(value: str, secret: str, key: str, at: Node) -> str:
    if "${" in value:
        raise at.error(
            f"secret {secret}, key {key}: its value has ${{ in it, which would be taken for a reference; "
            "give it by --secrets or by its environment variable"
        )
    return value
