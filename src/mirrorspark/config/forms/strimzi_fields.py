"""The fields of Strimzi's KafkaMirrorMaker2 in tables: which have a meaning for a mirror, and why the others have none.

The reader and the writer of Strimzi's YAML use them; whoever checks keys asks ``why_without_meaning``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

from mirrorspark.config.forms.layout import KEPT, ConnectorKind
from mirrorspark.config.forms.nodes import Node

__all__ = [
    "CLUSTER_FIELDS",
    "CONNECTORS",
    "CONNECTOR_KEPT",
    "MIRROR_FIELDS",
    "PATTERNS",
    "SPEC_KEPT",
    "STRIMZI_WORKER",
    "TARGET_FIELDS",
    "WORKER_FIELDS",
    "check_fields",
    "dedicated_worker",
    "kept_value",
    "why_without_meaning",
]

CONNECTORS = {
    "sourceConnector": ConnectorKind.SOURCE,
    "checkpointConnector": ConnectorKind.CHECKPOINT,
    "heartbeatConnector": ConnectorKind.HEARTBEAT,
}
PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
"""The old names of the two excludes come last of their kind: where both are given, the new one counts."""
WORKER_FIELDS = {
    "groupId": "group.id",
    "configStorageTopic": "config.storage.topic",
    "offsetStorageTopic": "offset.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
STRIMZI_WORKER = {
    "group.id": "mirrormaker2-cluster",
    "config.storage.topic": "mirrormaker2-cluster-configs",
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
    "status.storage.topic": "mirrormaker2-cluster-status",
}
"""What Strimzi before v1 takes where a resource says nothing."""

CLUSTER_FIELDS = ("alias", "bootstrapServers", "config", "tls", "authentication")
TARGET_FIELDS = (*CLUSTER_FIELDS, *WORKER_FIELDS)
MIRROR_FIELDS = ("sourceCluster", "targetCluster", "source", *CONNECTORS, *PATTERNS)
_CONNECTOR_FIELDS = ("tasksMax", "config", "state", "pause")

_KUBERNETES = "it is for the pods that Strimzi starts; here the process is yours to place"
_JVM = "there is no Connect worker's JVM here"
SPEC_KEPT = {
    "version": "it is the version of Kafka Connect's image; a mirror brings its own code",
    "image": "it is the image of Kafka Connect; a mirror brings its own code",
    "replicas": "Connect's workers are counted here by lanes: set tasks.max",
    "resources": _KUBERNETES,
    "template": _KUBERNETES,
    "livenessProbe": _KUBERNETES,
    "readinessProbe": _KUBERNETES,
    "affinity": _KUBERNETES,
    "tolerations": _KUBERNETES,
    "clientRackInitImage": _KUBERNETES,
    "rack": "the rack of a Kubernetes node is not known here; set <source alias>.consumer.client.rack",
    "jvmOptions": _JVM,
    "jmxOptions": f"{_JVM}, so no JMX either; metrics are served for Prometheus",
    "logging": "it sets Log4j levels of Kafka Connect; logging here is set on the command line",
    "metricsConfig": "it tells a JMX exporter what to serve; metrics are always served here",
    "metrics": "it tells a JMX exporter what to serve; metrics are always served here",
    "tracing": "batches travel unopened, so no trace headers are read or written",
    "externalConfiguration": "it mounts secrets into Connect's pods; give secrets by --secrets or in the environment",
}
CONNECTOR_KEPT = {
    "autoRestart": "a lane that fails is started again by itself, without a limit",
    "listOffsets": "it makes the operator write offsets into a ConfigMap; positions are shown by mirrorspark status",
    "alterOffsets": "it makes the operator change offsets from a ConfigMap; offsets are not changed by a file here",
    "version": "it chooses a plugin's version in Connect; a mirror brings its own code",
    "state": "paused and stopped are both taken as not enabled",
    "pause": "a paused connector is taken as not enabled",
}
_OTHER = {
    **dict.fromkeys(("apiVersion", "metadata", "flows", "secret"), ""),
    "config": "the pattern beside the connectors wins over it, as in Strimzi",
    "other": "it is another resource in the same file, not a mirror",
}


def dedicated_worker(source: str) -> dict[str, str]:
    """What a dedicated MirrorMaker 2 takes for the worker of a flow from this source."""
    topics = {f"{name}.storage.topic": f"mm2-{name}s.{source}.internal" for name in ("config", "offset")}
    return {"group.id": f"{source}-mm2", **topics, "status.storage.topic": f"mm2-status.{source}.internal"}


def why_without_meaning(key: str) -> str | None:
    """For a key of a Document: why it has no meaning here. None if it is none of the kept ones, empty if it says only
    what a resource is called, which needs no word."""
    if not key.startswith(KEPT):
        return None
    _, _, field = key.removeprefix(KEPT).partition("/")
    if field.startswith("spec."):
        return SPEC_KEPT.get(field.removeprefix("spec."), "Strimzi's own field")
    last = field.rpartition(".")[2] if "Connector" in field else field.partition(".")[0]
    if "Connector.config." in field:
        last = "config"
    return CONNECTOR_KEPT.get(last) or _OTHER.get(last, "Strimzi's own field")


def check_fields(node: Node, known: Iterable[str]) -> None:
    """Kubernetes would drop an unknown field without a word; here it is an error with the nearest name."""
    known = list(known)
    for name, inner in node.mapping().items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there is {', '.join(sorted(known))}"
            raise inner.error(f"no such field{hint}")


def check_connector(node: Node) -> None:
    check_fields(node, (*_CONNECTOR_FIELDS, *CONNECTOR_KEPT))


def kept_value(tree: Any) -> str:
    """As JSON. ``${`` is written so that no config provider takes it for a reference."""
    return json.dumps(tree, ensure_ascii=False).replace("${", "$\\u007b")
