"""Requests to Kafka Connect's REST interface, case by case: the same ones go to a real worker and to mirrorspark.

``test_connect_conformance`` runs them in this order against both. A path may hold ``{msc}``, ``{cpc}`` and ``{hbc}``: the
names of the three connectors of one flow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "Case", "configs", "shape"]

PACKAGE = "org.apache.kafka.connect.mirror"
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Case:
    name: str
    method: str
    path: str
    body: Callable[[Mapping[str, dict[str, Any]]], object] | None = None
    """From the three connectors' configurations to the request's body."""
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    states: Mapping[str, str] = field(default_factory=dict)
    """Connector -> the state that is waited for before the request."""
    exact: tuple[str, ...] = ()
    """Fields of the answer that must be equal, not only of the same type."""
    is_free_map: bool = False
    """Whether the keys of the answer are a user's, or differ by program."""
    focus: str = ""
    """Of an answer about all connectors, the one that is compared."""


def configs(names: Mapping[str, str], source: tuple[str, str], target: tuple[str, str], topics: str) -> dict[str, Any]:
    """``source`` and ``target``: alias and bootstrap servers."""
    shared = {
        "source.cluster.alias": source[0],
        "target.cluster.alias": target[0],
        "source.cluster.bootstrap.servers": source[1],
        "target.cluster.bootstrap.servers": target[1],
        "tasks.max": "1",
    }
    source_keys = {
        "topics": topics,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
    }
    own = {
        "msc": ("MirrorSourceConnector", source_keys),
        "cpc": ("MirrorCheckpointConnector", {"checkpoints.topic.replication.factor": "1"}),
        "hbc": ("MirrorHeartbeatConnector", {"heartbeats.topic.replication.factor": "1"}),
    }
    return {
        short: {**shared, **keys, "connector.class": f"{PACKAGE}.{one}", "name": names[short]}
        for short, (one, keys) in own.items()
    }


def shape(value: object) -> object:
    """The types of a body: of a list that of its first element, of an object those of its fields."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def _posted(short: str, **more: object) -> Callable[[Mapping[str, dict[str, Any]]], object]:
    return lambda known: {"name": known[short]["name"], "config": known[short], **more}


def _config(short: str, **changes: str) -> Callable[[Mapping[str, dict[str, Any]]], object]:
    return lambda known: {**known[short], **changes}


def _just(value: object) -> Callable[[Mapping[str, dict[str, Any]]], object]:
    return lambda known: value


def _offset(known: Mapping[str, dict[str, Any]], offset: object) -> object:
    partition = {"cluster": known["msc"]["source.cluster.alias"], "partition": 0, "topic": known["msc"]["topics"]}
    return {"offsets": [{"partition": partition, "offset": offset}]}


RUNNING = {"msc": "RUNNING"}
NOBODY = "/connectors/nobody"
EMPTY_CONFIG: dict[str, str] = {}

CASES = (
    Case("root", "GET", "/"),
    Case("health", "GET", "/health", exact=("status",)),
    Case("no connectors", "GET", "/connectors"),
    Case("unknown path", "GET", "/nowhere"),
    Case("method that is not there", "DELETE", "/connectors"),
    Case("plugins", "GET", "/connector-plugins"),
    Case("all plugins", "GET", "/connector-plugins?connectorsOnly=false"),
    Case("plugin config", "GET", "/connector-plugins/MirrorSourceConnector/config"),
    Case("plugin config, whole name", "GET", f"/connector-plugins/{PACKAGE}.MirrorSourceConnector/config"),
    Case("plugin config, unknown", "GET", "/connector-plugins/NoSuchConnector/config"),
    Case("validate", "PUT", "/connector-plugins/MirrorSourceConnector/config/validate", _config("msc"),
         exact=("name", "error_count")),
    Case("validate, short name", "PUT", "/connector-plugins/MirrorSource/config/validate", _config("msc"),
         exact=("error_count",)),
    Case("validate, bad number", "PUT", "/connector-plugins/MirrorSourceConnector/config/validate",
         _config("msc", **{"tasks.max": "many"})),
    Case("validate, other class", "PUT", "/connector-plugins/MirrorHeartbeatConnector/config/validate", _config("msc")),
    Case("validate, empty", "PUT", "/connector-plugins/MirrorSourceConnector/config/validate", _just(EMPTY_CONFIG)),
    Case("validate, unknown", "PUT", "/connector-plugins/NoSuchConnector/config/validate", _just(EMPTY_CONFIG)),
    Case("create", "POST", "/connectors", _posted("msc"), exact=("name", "type", "config")),
    Case("create again", "POST", "/connectors", _posted("msc")),
    Case("create by PUT", "PUT", "/connectors/{cpc}/config", _config("cpc"), exact=("name", "type")),
    Case("create paused", "POST", "/connectors", _posted("hbc", initial_state="PAUSED"), exact=("name", "type")),
    Case("create, no class", "POST", "/connectors", _just({"name": "x", "config": {"tasks.max": "1"}})),
    Case("create, unknown class", "POST", "/connectors", _just({"name": "x", "config": {"connector.class": "NoSuch"}})),
    Case("create, bad number", "POST", "/connectors",
         lambda known: {"name": "x", "config": {**known["msc"], "name": "x", "tasks.max": "0"}}),
    Case("create, other name inside", "POST", "/connectors", lambda known: {"name": "x", "config": known["msc"]}),
    Case("create, no name", "POST", "/connectors", lambda known: {"config": {"connector.class": "MirrorSource"}}),
    Case("create, blank name", "POST", "/connectors",
         lambda known: {"name": "  ", "config": {"connector.class": "MirrorSource"}}),
    Case("create, no config", "POST", "/connectors", _just({"name": "x"})),
    Case("create, bad state", "POST", "/connectors", lambda known: {
        "name": "x", "config": {**known["msc"], "name": "x"}, "initial_state": "SLEEPING"}),
    Case("create, unknown field", "POST", "/connectors", lambda known: {
        "name": "x", "config": {**known["msc"], "name": "x"}, "surprise": 1}),
    Case("create, malformed JSON", "POST", "/connectors", raw=b'{"name": "x", '),
    Case("create, list", "POST", "/connectors", _just([])),
    Case("create, config is a text", "POST", "/connectors", _just({"name": "x", "config": "text"})),
    Case("create, nested config", "POST", "/connectors", _just({"name": "x", "config": {"a": {"b": "c"}}})),
    Case("create, empty body", "POST", "/connectors", raw=b""),
    Case("create, wrong content type", "POST", "/connectors", raw=b"{}", headers={"Content-Type": "text/plain"}),
    Case("list", "GET", "/connectors", states=RUNNING),
    Case("list with status", "GET", "/connectors?expand=status", states={"hbc": "PAUSED"}, focus="msc"),
    Case("list with both", "GET", "/connectors?expand=status&expand=info", focus="msc"),
    Case("list with nonsense", "GET", "/connectors?expand=nonsense"),
    Case("one", "GET", "/connectors/{msc}", exact=("name", "config", "type")),
    Case("one, unknown", "GET", NOBODY, exact=("message",)),
    Case("config", "GET", "/connectors/{msc}/config", is_free_map=True),
    Case("config, unknown", "GET", f"{NOBODY}/config"),
    Case("status", "GET", "/connectors/{msc}/status", exact=("name", "type")),
    Case("status, unknown", "GET", f"{NOBODY}/status", exact=("message",)),
    Case("status of a paused one", "GET", "/connectors/{hbc}/status"),
    Case("tasks", "GET", "/connectors/{msc}/tasks"),
    Case("tasks, unknown", "GET", f"{NOBODY}/tasks"),
    Case("tasks config", "GET", "/connectors/{msc}/tasks-config"),
    Case("task status", "GET", "/connectors/{msc}/tasks/0/status"),
    Case("task status, unknown task", "GET", "/connectors/{msc}/tasks/77/status", exact=("message",)),
    Case("task status, no number", "GET", "/connectors/{msc}/tasks/abc/status"),
    Case("task status, unknown", "GET", f"{NOBODY}/tasks/0/status"),
    Case("put config", "PUT", "/connectors/{msc}/config", _config("msc", **{"refresh.topics.interval.seconds": "4"}),
         exact=("name", "type", "config")),
    Case("put config, other name", "PUT", "/connectors/{msc}/config", _config("hbc")),
    Case("put config, bad", "PUT", "/connectors/{msc}/config", _config("msc", **{"tasks.max": "x"})),
    Case("put config, list", "PUT", "/connectors/{msc}/config", _just([])),
    Case("put config, empty object", "PUT", "/connectors/{msc}/config", _just(EMPTY_CONFIG)),
    Case("put config, null value", "PUT", "/connectors/new-one/config", _just({"connector.class": None})),
    Case("patch config", "PATCH", "/connectors/{msc}/config",
         _just({"offset.lag.max": "90", "refresh.topics.interval.seconds": None})),
    Case("patch config, unknown", "PATCH", f"{NOBODY}/config", _just({"a": "b"})),
    Case("patch config, bad", "PATCH", "/connectors/{msc}/config", _just({"tasks.max": "x"})),
    Case("patch config, list", "PATCH", "/connectors/{msc}/config", _just([])),
    Case("pause", "PUT", "/connectors/{msc}/pause", states=RUNNING),
    Case("status once paused", "GET", "/connectors/{msc}/status", states={"msc": "PAUSED"}),
    Case("pause again", "PUT", "/connectors/{msc}/pause"),
    Case("pause, unknown", "PUT", f"{NOBODY}/pause", exact=("message",)),
    Case("resume", "PUT", "/connectors/{msc}/resume"),
    Case("resume, unknown", "PUT", f"{NOBODY}/resume", exact=("message",)),
    Case("status once resumed", "GET", "/connectors/{msc}/status", states=RUNNING),
    Case("restart", "POST", "/connectors/{msc}/restart"),
    Case("restart, with tasks", "POST", "/connectors/{msc}/restart?includeTasks=true", states=RUNNING),
    Case("restart, only failed", "POST", "/connectors/{msc}/restart?includeTasks=true&onlyFailed=true", states=RUNNING),
    Case("restart, nonsense flag", "POST", "/connectors/{msc}/restart?includeTasks=perhaps", states=RUNNING),
    Case("restart, unknown", "POST", f"{NOBODY}/restart", exact=("message",)),
    Case("restart, unknown, with tasks", "POST", f"{NOBODY}/restart?includeTasks=true", exact=("message",)),
    Case("restart task", "POST", "/connectors/{msc}/tasks/0/restart", states=RUNNING),
    Case("restart task, unknown task", "POST", "/connectors/{msc}/tasks/77/restart"),
    Case("restart task, unknown", "POST", f"{NOBODY}/tasks/0/restart"),
    Case("topics", "GET", "/connectors/{msc}/topics", states=RUNNING),
    Case("topics, unknown", "GET", f"{NOBODY}/topics", exact=("message",)),
    Case("topics reset", "PUT", "/connectors/{msc}/topics/reset"),
    Case("topics reset, unknown", "PUT", f"{NOBODY}/topics/reset"),
    Case("offsets", "GET", "/connectors/{msc}/offsets"),
    Case("offsets of groups", "GET", "/connectors/{cpc}/offsets"),
    Case("offsets, unknown", "GET", f"{NOBODY}/offsets", exact=("message",)),
    Case("set offsets while it runs", "PATCH", "/connectors/{msc}/offsets", lambda known: _offset(known, {"offset": 0}),
         exact=("error_code",)),
    Case("reset offsets while it runs", "DELETE", "/connectors/{msc}/offsets", exact=("error_code",)),
    Case("stop", "PUT", "/connectors/{msc}/stop"),
    Case("stop, unknown", "PUT", f"{NOBODY}/stop", exact=("message",)),
    Case("status once stopped", "GET", "/connectors/{msc}/status", states={"msc": "STOPPED"}),
    Case("tasks once stopped", "GET", "/connectors/{msc}/tasks"),
    Case("stop again", "PUT", "/connectors/{msc}/stop"),
    Case("set offsets", "PATCH", "/connectors/{msc}/offsets", lambda known: _offset(known, {"offset": 0})),
    Case("set offsets, empty", "PATCH", "/connectors/{msc}/offsets", _just({"offsets": []})),
    Case("set offsets, null", "PATCH", "/connectors/{msc}/offsets", _just({"offsets": None})),
    Case("set offsets, bad field", "PATCH", "/connectors/{msc}/offsets",
         _just({"offsets": [{"partition": {"nonsense": 1}, "offset": {"offset": 0}}]})),
    Case("set offsets, text", "PATCH", "/connectors/{msc}/offsets", lambda known: _offset(known, {"offset": "x"})),
    Case("set offsets, negative", "PATCH", "/connectors/{msc}/offsets", lambda known: _offset(known, {"offset": -1})),
    Case("set offsets, unknown", "PATCH", f"{NOBODY}/offsets", lambda known: _offset(known, {"offset": 0})),
    Case("offsets once set", "GET", "/connectors/{msc}/offsets"),
    Case("reset offsets", "DELETE", "/connectors/{msc}/offsets"),
    Case("reset offsets, unknown", "DELETE", f"{NOBODY}/offsets"),
    Case("resume what was stopped", "PUT", "/connectors/{msc}/resume"),
    Case("status once it runs again", "GET", "/connectors/{msc}/status", states=RUNNING),
    Case("loggers", "GET", "/admin/loggers", is_free_map=True),
    Case("logger root", "GET", "/admin/loggers/root"),
    Case("logger, unknown", "GET", "/admin/loggers/no.such.logger", exact=("message",)),
    Case("set logger", "PUT", "/admin/loggers/org.apache.kafka.connect.mirror", _just({"level": "WARN"})),
    Case("set logger for all", "PUT", "/admin/loggers/org.apache.kafka.connect.mirror?scope=cluster",
         _just({"level": "INFO"})),
    Case("set logger, no level", "PUT", "/admin/loggers/root", _just({})),
    Case("set logger, unknown level", "PUT", "/admin/loggers/root", _just({"level": "LOUD"})),
    Case("delete", "DELETE", "/connectors/{hbc}"),
    Case("delete again", "DELETE", "/connectors/{hbc}", exact=("message",)),
    Case("delete the others", "DELETE", "/connectors/{cpc}"),
    Case("delete the last", "DELETE", "/connectors/{msc}"),
)  # fmt: skip


def request_body(case: Case, known: Mapping[str, dict[str, Any]]) -> bytes | None:
    if case.raw is not None:
        return case.raw
    return None if case.body is None else json.dumps(case.body(known)).encode()
