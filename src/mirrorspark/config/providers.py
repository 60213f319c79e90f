"""Config providers: ``${env:NAME}``, ``${file:path:key}``, ``${dir:path:key}`` and plain ``${NAME}``, replaced by values.

Kafka's rules, with two differences: env, file and dir need no declaration, and what cannot be found is an error that names
file, line and key, where Kafka would leave the text as it is. Values are replaced once, never again inside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.findings import Findings
from mirrorspark.config.properties_syntax import parse_entries
from mirrorspark.errors import SettingsError

__all__ = ["resolve"]

_REFERENCE = re.compile(r"\$\{(?:([^}:]*):(?:([^}:]*):)?([^}]*)|([A-Za-z_][A-Za-z0-9_]*))\}")
"""``${provider:path:key}``, ``${provider:key}`` as Kafka reads them, or ``${NAME}``."""
_DECLARED = re.compile(r"(?:.*\.)?config\.providers\.([^.]+)\.(class|param\..+)")
_LEFT_ALONE = re.compile(r"(?:.*\.)?(?:config\.providers|transforms|predicates)(?:\..*)?")
"""Of transforms: ``${topic}`` means something else there, and they are refused anyway."""
KINDS = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
}


class _Missing(Exception):
    """Its text says what is missing."""


@dataclass(slots=True)
class _Provider:
    name: str
    kind: str
    parameters: dict[str, str] = field(default_factory=dict)


def resolve(raw: Document, findings: Findings, environment: Mapping[str, str] | None = None) -> Document:
    """The document with every reference replaced; what cannot be is in the findings, and its text stays."""
    providers = _providers(raw, findings)
    variables = os.environ if environment is None else environment
    return Document(_resolved(entry, providers, variables, findings) for entry in raw.entries)


def _providers(raw: Document, findings: Findings) -> dict[str, _Provider]:
    found = {kind: _Provider(kind, kind) for kind in KINDS.values()}
    classes = {match[1]: key for key in raw if (match := _DECLARED.fullmatch(key)) and match[2] == "class"}
    for name, key in classes.items():
        kind = KINDS.get(raw[key].strip().rsplit(".", 1)[-1])
        if kind is None:
            findings.bad_value(key, f"not a config provider that is there; known are {', '.join(KINDS)}")
            found.pop(name, None)
        else:
            found[name] = _Provider(name, kind)
    for key in raw:
        match = _DECLARED.fullmatch(key)
        if match and match[2] != "class" and match[1] in found:
            found[match[1]].parameters[match[2].removeprefix("param.")] = raw[key].strip()
    for key in (key for key in raw if key == "config.providers" or key.endswith(".config.providers")):
        for name in (part.strip() for part in raw[key].split(",")):
            if name and name not in found and name not in classes:
                findings.error(f"{key}.{name}.class", f"missing; {key} names the provider {name}")
    return found


def _resolved(
    entry: Entry, providers: Mapping[str, _Provider], variables: Mapping[str, str], findings: Findings
) -> Entry:
    if "${" not in entry.value or _LEFT_ALONE.fullmatch(entry.key):
        return entry

    def value_of(match: re.Match[str]) -> str:
        name, path, key, variable = match.groups()
        try:
            if variable is not None:
                return _variable(variable, variables)
            return _asked(providers, name, path or "", key, variables)
        except _Missing as error:
            findings.error(entry.key, f"{match[0]}: {error}")
            return match[0]

    return Entry(entry.key, _REFERENCE.sub(value_of, entry.value), entry.place)


def _asked(providers: Mapping[str, _Provider], name: str, path: str, key: str, variables: Mapping[str, str]) -> str:
    provider = providers.get(name)
    if provider is None:
        raise _Missing(
            f"there is no config provider {name}; there are {', '.join(sorted(providers))}. "
            f"Declare it with config.providers.{name}.class"
        )
    ask: Callable[[], str] = {
        "env": lambda: _variable(key, variables, provider.parameters.get("allowlist.pattern")),
        "file": lambda: _from_file(_allowed(path, provider), key),
        "dir": lambda: _from_folder(_allowed(path, provider), key),
    }[provider.kind]
    return ask()


def _variable(name: str, variables: Mapping[str, str], allowed: str | None = None) -> str:
    if allowed is not None:
        try:
            if not re.fullmatch(allowed, name):
                raise _Missing(f"the provider's allowlist.pattern does not allow {name}")
        except re.error as error:
            raise _Missing(f"the provider's allowlist.pattern is no regular expression: {error}") from error
    if name not in variables:
        raise _Missing(f"the environment has no variable {name}; set it before the start")
    return variables[name]


def _allowed(path: str, provider: _Provider) -> Path:
    if not path:
        raise _Missing(f"no path is given; write ${{{provider.name}:path:key}}")
    allowed = [part.strip() for part in provider.parameters.get("allowed.paths", "").split(",") if part.strip()]
    wanted = Path(path).resolve()
    if allowed and not any(wanted.is_relative_to(Path(one).resolve()) for one in allowed):
        raise _Missing(f"the provider's allowed.paths do not allow {path}")
    return wanted


def _from_file(path: Path, key: str) -> str:
    try:
        entries = parse_entries(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise _Missing(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except SettingsError as error:
        raise _Missing(str(error)) from error
    values = {entry.key: entry.value for entry in entries}
    if key not in values:
        raise _Missing(f"{path} has no key {key}")
    return values[key]


def _from_folder(path: Path, key: str) -> str:
    if "/" in key or key in ("", ".", ".."):
        raise _Missing(f"{key or 'nothing'} is no file name")
    try:
        return (path / key).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _Missing(f"{path / key} cannot be read: {getattr(error, 'strerror', None) or error}") from error
