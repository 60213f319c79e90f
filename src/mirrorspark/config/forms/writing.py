"""A Document in the form that is asked for, with the promise that nothing is lost. ``mirrorspark convert`` calls it.

What was written is read back and compared before it is handed out. What a form has no room for is an error that names each
key, or, if that is wanted, a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms import connect_json
from mirrorspark.config.forms.jaas_text import JaasText
from mirrorspark.config.forms.layout import KEPT, take_apart
from mirrorspark.config.forms.nodes import parse_json, parse_yaml
from mirrorspark.config.forms.plain_yaml import plain_document, plain_yaml
from mirrorspark.config.forms.properties_text import properties_text
from mirrorspark.config.forms.secret_store import SecretStore
from mirrorspark.config.forms.secret_values import REFERENCE, leave_out
from mirrorspark.config.forms.spread import Spread, Uncarried, meaning, spread
from mirrorspark.config.forms.strimzi_fields import WORKER_FIELDS, dedicated_worker
from mirrorspark.config.forms.strimzi_reader import read_resources
from mirrorspark.config.forms.strimzi_writer import write_resources
from mirrorspark.config.properties_syntax import parse_entries
from mirrorspark.errors import SettingsError

__all__ = ["FORMS", "Written", "write_form"]

FORMS = ("properties", "json", "yaml", "strimzi")
SHOWN_MAX = 20
"""Keys that one error lists."""


@dataclass(frozen=True)
class Written:
    """``text`` is the whole; ``files`` (name -> text) the same in several files, for the form that has them."""

    text: str = field(repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()


def write_form(
    document: Document,
    form: str,
    *,
    with_secrets: bool = False,
    is_partial: bool = False,
    api_version: str | None = None,
) -> Written:
    """Raises SettingsError for keys that the form cannot hold, unless ``is_partial``: then they are notes."""
    notes: list[tuple[str, str]] = []
    if not with_secrets:
        left_out = leave_out(document)
        document = left_out.document
        hint = "the secret is left out; set the environment variable"
        notes = [(f"{key}: {hint} {name}, or use --with-secrets", name) for key, name in left_out.variables.items()]
    said = [note for note, _ in notes]
    if form == "properties":
        text = properties_text(document)
        _same(dict(document), {entry.key: entry.value for entry in parse_entries(text)})
        return Written(text, notes=(*said, *_connector_notes(document)))
    if form == "yaml":
        text = plain_yaml(document)
        if "clusters" in document:
            _same(dict(document), dict(plain_document(parse_yaml(text, "written")[0])))
        return Written(text, notes=tuple(said))
    if not take_apart(document).aliases:
        raise SettingsError("clusters: missing; without it nothing can be told apart", key="clusters")
    writer = _json if form == "json" else _strimzi
    written = writer(document, is_partial, with_secrets, api_version)
    left_out_there = [note for note, name in notes if f"${{env:{name}}}" in written.text]
    return Written(written.text, written.files, tuple(dict.fromkeys([*left_out_there, *written.notes])))


def _connector_notes(document: Document) -> list[str]:
    keys = [entry.key for keys in take_apart(document).connectors.values() for entry in keys.values()]
    return connect_json.together(keys, "for mirrorspark only; MirrorMaker 2 itself has no level for one connector")


def _json(document: Document, is_partial: bool, with_secrets: bool, api_version: str | None) -> Written:
    result = spread(document)
    if not result.connectors:
        raise SettingsError("no flow is enabled, so there is no connector to write")
    uncarried = [*result.uncarried, *_without_flow(result)]
    notes = _settle(uncarried, is_partial, "Connect's JSON")
    kept = connect_json.together([entry.key for entry in result.kept.values()], "Connect's JSON has no place for it")
    text = connect_json.connector_list(result)
    if not uncarried:
        _same(
            meaning(document),
            meaning(connect_json.document_of(connect_json.connectors_in(parse_json(text, "written")))),
        )
    return Written(text, connect_json.connector_files(result), (*notes, *kept, *connect_json.notes(result)))


def _without_flow(result: Spread) -> list[Uncarried]:
    used = {alias for flow in result.flows for alias in (flow.source, flow.target)}
    return [
        Uncarried(entry.key, f"cluster {alias} has no flow, so no connector holds it")
        for alias in result.aliases
        if alias not in used
        for entry in result.clusters[alias].values()
    ]


def _strimzi(document: Document, is_partial: bool, with_secrets: bool, api_version: str | None) -> Written:
    result = spread(document)
    if not result.connectors:
        raise SettingsError("no flow is enabled, so there is no mirror to write")
    resources = write_resources(result, api_version, with_secrets=with_secrets)
    uncarried = [*result.uncarried, *resources.uncarried]
    notes = _settle(uncarried, is_partial, "a KafkaMirrorMaker2 resource")
    if not uncarried:
        store = SecretStore(is_needed=False)
        again = read_resources(parse_yaml(resources.text, "written"), store)
        _same(_in_strimzi(document), _in_strimzi(again))
    return Written(resources.text, notes=(*notes, *resources.notes))


def _settle(uncarried: Sequence[Uncarried], is_partial: bool, form: str) -> list[str]:
    lines = list(dict.fromkeys(str(one) for one in uncarried))
    if lines and not is_partial:
        more = f"\n… and {len(lines) - SHOWN_MAX} more" if len(lines) > SHOWN_MAX else ""
        raise SettingsError(
            f"{form} has no room for {len(lines)} keys; change them, or leave them out with --partial:\n"
            + "\n".join(lines[:SHOWN_MAX])
            + more,
            keys=[one.key for one in uncarried],
        )
    return [f"left out: {line}" for line in lines]


def _in_strimzi(document: Document) -> dict[str, str]:
    """The meaning as Strimzi can say it: its own names of connectors, secrets by name, the default protocol unsaid."""
    found: dict[str, str] = {}
    for key, value in meaning(_with_worker(document)).items():
        if key.endswith(".cluster.security.protocol"):
            value = value.strip().upper()
        if not key.endswith("Connector.name") and not (key.endswith("security.protocol") and value == "PLAINTEXT"):
            found[key] = _without_references(key, value)
    return found


def _with_worker(document: Document) -> Document:
    """Where a flow's worker takes MirrorMaker 2's defaults, say them: a resource always does."""
    result = spread(document)
    entries = list(document.entries)
    for flow in result.flows:
        defaults = dedicated_worker(flow.source)
        for name in WORKER_FIELDS.values():
            if name not in result.clusters[flow.target]:
                entries.append(Entry(f"{flow}.target.cluster.{name}", defaults[name], "default"))
    return Document(entry for entry in entries if not entry.key.startswith(KEPT))


def _without_references(key: str, value: str) -> str:
    if key.endswith("sasl.jaas.config") and (jaas := JaasText.read(value)) is not None:
        value = jaas.text()
    return re.sub(r"\s+", " ", REFERENCE.sub("${}", value)) if "${" in value else value


def _same(wanted: Mapping[str, str], again: Mapping[str, str]) -> None:
    """Our own promise; a breach names the keys and never the values."""
    different = sorted(key for key in {*wanted, *again} if wanted.get(key) != again.get(key))
    if different:
        raise SettingsError(
            "what was written does not read back as it was, so it is not handed out: "
            + ", ".join(different[:SHOWN_MAX]),
            keys=different,
        )
