"""A Document as Strimzi's KafkaMirrorMaker2 resources. ``writing`` calls it.

One resource for each that the Document was read from. For other flows: one for each target where the worker's group and
topics are given, else one for each flow, as a dedicated MirrorMaker 2 has a worker for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirrorspark.config.forms.connectors import Connector, readers_of, switch_of
from mirrorspark.config.forms.layout import KEPT, ConnectorKind
from mirrorspark.config.forms.plain_yaml import dump
from mirrorspark.config.forms.secret_store import PREFIX
from mirrorspark.config.forms.secret_values import REFERENCE
from mirrorspark.config.forms.spread import CLIENTS, Spread, Uncarried, is_client_security
from mirrorspark.config.forms.strimzi_fields import CONNECTORS, PATTERNS, WORKER_FIELDS, dedicated_worker
from mirrorspark.config.forms.strimzi_login import Login, kubernetes_name
from mirrorspark.names import Flow

__all__ = ["API_VERSIONS", "Resources", "write_resources"]

API_VERSIONS = ("v1beta2", "v1")
_GROUP = "kafka.strimzi.io"
_IGNORED_IN_CONFIG = (
    "listeners",
    "plugin.path",
    "rest.",
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
)
_OLD_PATTERNS = ("topicsBlacklistPattern", "groupsBlacklistPattern")


@dataclass
class Resources:
    """The YAML, what it could not hold, and what a person should know."""

    text: str = ""
    uncarried: list[Uncarried] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def write_resources(result: Spread, api_version: str | None = None, *, with_secrets: bool = False) -> Resources:
    written = Resources()
    variables = {
        key.removeprefix("/secret."): entry.value for key, entry in result.kept.items() if key.startswith("/secret.")
    }
    logins: dict[str, Login] = {}
    for alias in result.aliases:
        logins[alias] = Login(alias, variables)
        keys = {name: entry.value for name, entry in result.clusters[alias].items() if is_client_security(name)}
        logins[alias].write(keys)
        why = "Strimzi's operator sets it itself, from tls and authentication, which have no room for this"
        written.uncarried += [Uncarried(result.clusters[alias][name].key, why) for name in logins[alias].rest]
    trees: list[dict[str, Any]] = []
    for name, flows in _resources(result):
        trees.append(_Resource(name, flows, result, logins, written).tree(api_version))
    used = {alias for tree in trees for alias in _aliases(tree)}
    _add_others([alias for alias in result.aliases if alias not in used], result, logins, trees, written)
    trees += _secrets(logins.values(), written, with_secrets)
    for key in result.kept:
        if "/other." in key:
            written.notes.append(f"{KEPT}{key}: is not written again")
    written.text = "---\n".join(dump(tree) for tree in trees)
    return written


def _resources(result: Spread) -> list[tuple[str, list[Flow]]]:
    left = result.flows
    found: dict[str, list[Flow]] = {}
    for key, entry in result.kept.items():
        if key.endswith("/flows"):
            names = [name.strip() for name in entry.value.split(",")]
            flows = [flow for flow in left if str(flow) in names]
            if flows:
                found[key.removesuffix("/flows")] = flows
                left = [flow for flow in left if flow not in flows]
    for flow in left:
        is_whole = all(key in result.clusters[flow.target] for key in WORKER_FIELDS.values())
        name = f"mm2-into-{flow.target}" if is_whole else f"mm2-{flow.source}-to-{flow.target}"
        found.setdefault(kubernetes_name(name), []).append(flow)
    return list(found.items())


def _aliases(tree: Mapping[str, Any]) -> list[str]:
    spec = tree["spec"]
    nodes = spec["clusters"] if "clusters" in spec else [spec["target"], *(one["source"] for one in spec["mirrors"])]
    return [node["alias"] for node in nodes]


def _add_others(
    aliases: Sequence[str],
    result: Spread,
    logins: Mapping[str, Login],
    trees: Sequence[dict[str, Any]],
    written: Resources,
) -> None:
    """Clusters without a flow; a v1 resource has no room for them."""
    roomy = next((tree for tree in trees if "clusters" in tree["spec"]), None)
    for alias in aliases:
        if roomy is None:
            why = f"cluster {alias} has no flow, and a resource has no room for it"
            keys = [entry.key for entry in result.clusters[alias].values()] or [f"clusters ({alias})"]
            written.uncarried += [Uncarried(key, why) for key in keys]
        else:
            roomy["spec"]["clusters"].append(_cluster(alias, result, logins[alias], written))


def _cluster(alias: str, result: Spread, login: Login, written: Resources) -> dict[str, Any]:
    keys = {name: entry for name, entry in result.clusters[alias].items() if not is_client_security(name)}
    servers = keys.pop("bootstrap.servers", None)
    if servers is None:
        written.uncarried.append(Uncarried(f"{alias}.bootstrap.servers", "is missing, and a resource needs it"))
    config = dict(login.config)
    for name, entry in keys.items():
        if name.startswith(_IGNORED_IN_CONFIG):
            written.uncarried.append(Uncarried(entry.key, "Strimzi's operator ignores it in a cluster's config"))
        config[name] = entry.value
        if name.startswith(CLIENTS):
            note = "Strimzi gives this to its workers, but not to MirrorMaker 2's own clients"
            written.notes.append(f"{entry.key}: {note}; for those write it in a connector as source.{name}")
    tree: dict[str, Any] = {"alias": alias, "bootstrapServers": servers.value if servers else "", **login.fields}
    return {**tree, "config": config} if config else tree


def _secrets(logins: Iterable[Login], written: Resources, with_secrets: bool) -> list[dict[str, Any]]:
    trees = []
    for login in logins:
        for name, keys in login.secrets.items():
            # Certificates of authorities are no secrets; without them nobody could read the resource back.
            data = {
                key: text
                for key, text in keys.items()
                if not REFERENCE.search(text) and (with_secrets or key == "ca.crt")
            }
            if data:
                metadata = {"name": name}
                trees.append({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
            missing = [_in_words(key, text) for key, text in keys.items() if key not in data]
            if missing:
                written.notes.append(
                    f"make the Kubernetes secret {name} with {', '.join(missing)} for cluster {login.alias}"
                )
    return trees


def _in_words(key: str, text: str) -> str:
    """A reference that a person wrote tells where the value is; a secret itself is never shown."""
    is_theirs = REFERENCE.fullmatch(text) and PREFIX not in text
    return f"{key} (so far {text})" if is_theirs else key


class _Resource:
    def __init__(
        self, name: str, flows: Sequence[Flow], result: Spread, logins: Mapping[str, Login], written: Resources
    ) -> None:
        self._name, self._flows, self._result = name, flows, result
        self._logins, self._written = logins, written
        self._target = flows[0].target
        self._connectors = [one for one in result.connectors if one.flow in flows]

    def _kept(self, field_name: str) -> Any:
        entry = self._result.kept.get(f"{self._name}/{field_name}")
        return None if entry is None else json.loads(entry.value)

    def tree(self, api_version: str | None) -> dict[str, Any]:
        version = self._version(api_version)
        spec: dict[str, Any] = {}
        for key in self._result.kept:
            if key.startswith(f"{self._name}/spec."):
                field_name = key.removeprefix(f"{self._name}/spec.")
                spec[field_name] = self._kept(f"spec.{field_name}")
        is_v1 = version.endswith("/v1")
        if is_v1:
            spec.setdefault("replicas", 1)
            spec["target"] = self._with_worker(self._target, as_fields=True)
        else:
            spec["connectCluster"] = self._target
            sources = [flow.source for flow in self._flows]
            spec["clusters"] = [self._plain(alias) for alias in dict.fromkeys(sources)]
            spec["clusters"].append(self._with_worker(self._target, as_fields=False))
        spec["mirrors"] = [self._mirror(flow, is_v1) for flow in self._flows]
        metadata = self._kept("metadata") or {"name": self._name}
        return {"apiVersion": version, "kind": "KafkaMirrorMaker2", "metadata": metadata, "spec": spec}

    def _version(self, api_version: str | None) -> str:
        kept = str(self._kept("apiVersion") or "")
        group = kept.partition("/")[0] or _GROUP
        if api_version is not None:
            return f"{group}/{api_version}"
        has_heartbeats = any(one.kind is ConnectorKind.HEARTBEAT for one in self._connectors)
        return kept or f"{_GROUP}/{'v1beta2' if has_heartbeats else 'v1'}"

    def _plain(self, alias: str) -> dict[str, Any]:
        return _cluster(alias, self._result, self._logins[alias], self._written)

    def _with_worker(self, alias: str, *, as_fields: bool) -> dict[str, Any]:
        """Group and topics are always said: Strimzi's defaults are others than a dedicated MirrorMaker 2's."""
        tree = self._plain(alias)
        config = tree.pop("config", {})
        defaults = dedicated_worker(self._flows[0].source)
        worker = {key: config.pop(key, defaults[key]) for key in WORKER_FIELDS.values()}
        if as_fields:
            tree |= {name: worker[key] for name, key in WORKER_FIELDS.items()}
        else:
            config |= worker
        return {**tree, "config": config} if config else tree

    def _mirror(self, flow: Flow, is_v1: bool) -> dict[str, Any]:
        tree: dict[str, Any] = {"source": self._plain(flow.source)} if is_v1 else {}
        if not is_v1:
            tree = {"sourceCluster": flow.source, "targetCluster": flow.target}
        connectors = [one for one in self._connectors if one.flow == flow]
        patterns = {
            name: value
            for name, key in PATTERNS.items()
            if name not in _OLD_PATTERNS and (value := _common(connectors, key)) is not None
        }
        lifted = {PATTERNS[name] for name in patterns}
        for name, kind in CONNECTORS.items():
            if one := next((one for one in connectors if one.kind is kind), None):
                if is_v1 and kind is ConnectorKind.HEARTBEAT:
                    why = "Strimzi's v1 resources have no heartbeat connector; emit.heartbeats.enabled = false says so"
                    self._written.uncarried.append(Uncarried(f"{flow}.{kind}", why))
                    continue
                tree[name] = self._connector(one, name, lifted)
        return tree | patterns

    def _connector(self, one: Connector, field_name: str, lifted: set[str]) -> dict[str, Any]:
        config = {name: entry.value for name, entry in one.config.items() if name not in lifted}
        tree: dict[str, Any] = {}
        if (tasks := config.pop("tasks.max", None)) is not None:
            if tasks.isascii() and tasks.isdigit() and tasks[0] != "0":
                tree["tasksMax"] = int(tasks)
            else:
                config["tasks.max"] = tasks
        prefix = f"{self._name}/{one.flow}.{field_name}."
        for key in self._result.kept:
            if key.startswith(prefix) and not key.startswith(f"{prefix}config."):
                tree[key.removeprefix(prefix)] = self._kept(key.removeprefix(f"{self._name}/"))
            elif key.startswith(prefix):
                config[key.removeprefix(f"{prefix}config.")] = self._kept(key.removeprefix(f"{self._name}/"))
        self._state(one, tree, config)
        if one.kind is ConnectorKind.SOURCE and one.name != f"{one.flow}.{one.kind}":
            self._written.notes.append(
                f"{one.flow}.{one.kind}.name: Strimzi names the connector {one.flow}.{one.kind}, not {one.name}; "
                "it does not find the progress that was stored under the other name"
            )
        return {**tree, "config": config} if config else tree

    def _state(self, one: Connector, tree: dict[str, Any], config: dict[str, str]) -> None:
        """What was paused is written as it was read; a kept pause of a connector that runs by now is not."""
        is_stopped = str(tree.get("state", "")).lower() in ("paused", "stopped") or tree.get("pause") is True
        switch = switch_of(one.kind)
        if is_stopped and config.get(switch, "").strip().lower() == "false":
            del config[switch]
        elif is_stopped:
            for name in ("state", "pause"):
                tree.pop(name, None)
            self._written.notes.append(f"{one.flow}.{one.kind}: is enabled, so its kept state is not written")


def _common(connectors: Sequence[Connector], key: str) -> str | None:
    """The value that all connectors have that read the key, as a pattern beside them says it."""
    readers = [one for one in connectors if one.kind in readers_of(key)]
    values = {one.config[key].value if key in one.config else None for one in readers}
    others = [one for one in connectors if one not in readers and key in one.config]
    return values.pop() if len(values) == 1 and not others else None
