"""Secrets that stand in a Document as they are, replaced by references. ``writing`` calls it unless told otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.jaas_text import JaasText
from mirrorspark.config.forms.layout import KEPT, aliases_of
from mirrorspark.config.forms.secret_store import PREFIX

__all__ = ["REFERENCE", "LeftOut", "holds_secret", "leave_out"]

REFERENCE = re.compile(r"\$\{[^}]*\}")
_SECRET_KEY = re.compile(
    r"(?:^|\.)(?:sasl\.jaas\.config|(?:[\w-]+\.)*password|(?:[\w-]+\.)*secret|(?:[\w-]+\.)*(?:secret|private)\.key"
    r"|ssl\.keystore\.key|basic\.auth\.user\.info|aws\.secret\.access\.key)$"
)


@dataclass(frozen=True)
class LeftOut:
    """The Document with references; key -> environment variable for each secret that is no longer in it."""

    document: Document
    variables: dict[str, str]


def holds_secret(key: str) -> bool:
    """Whether the key's value is a secret, at whatever level."""
    return not key.startswith(KEPT) and bool(_SECRET_KEY.search(key))


def leave_out(document: Document) -> LeftOut:
    """Only what is no reference already. Of a JAAS text that can be read, only the secret options."""
    variables: dict[str, str] = {}
    entries = []
    for entry in document.entries:
        if holds_secret(entry.key) and (text := _without(entry, document, variables)) != entry.value:
            entry = Entry(entry.key, text, entry.place)
        entries.append(entry)
    return LeftOut(Document(entries), variables)


def _without(entry: Entry, document: Document, variables: dict[str, str]) -> str:
    if not REFERENCE.sub("", entry.value).strip():
        return entry.value
    jaas = JaasText.read(entry.value) if entry.key.endswith("sasl.jaas.config") else None
    if jaas is None:
        name = _variable(entry.key, document)
        variables[entry.key] = name
        return f"${{env:{name}}}"
    options = dict(jaas.options)
    for option in jaas.secret_options:
        if REFERENCE.sub("", options[option]).strip():
            name = _variable(f"{entry.key.removesuffix('jaas.config')}{option}", document)
            variables[f"{entry.key} ({option})"] = name
            options[option] = f"${{env:{name}}}"
    return entry.value if options == jaas.options else JaasText(jaas.module, jaas.flag, options).text()


def _variable(key: str, document: Document) -> str:
    """Two aliases that differ in punctuation alone would share a name: then the alias's number goes in between."""
    aliases = aliases_of(document)
    plain = re.sub(r"[^A-Z0-9]", "_", key.upper())
    alias = next((alias for alias in aliases if key.startswith(f"{alias}.")), "")
    twins = [
        one for one in aliases if re.sub(r"[^A-Z0-9]", "_", one.upper()) == re.sub(r"[^A-Z0-9]", "_", alias.upper())
    ]
    number = f"{aliases.index(alias) + 1}_" if alias and len(twins) > 1 else ""
    return f"{PREFIX}{number}{plain}"
