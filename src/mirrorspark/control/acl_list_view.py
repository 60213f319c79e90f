"""The list of required ACLs as people and machines take it: lines for ``kafka-acls.sh``, JSON, Strimzi's KafkaUsers.

Values in, text out. Called by the command ``acls``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from mirrorspark.control.acl_list import ClusterAcls
from mirrorspark.plan.name_patterns import LITERAL, PREFIXED
from mirrorspark.plan.required_acls import RequiredAcl, Resource

__all__ = ["as_json", "as_kafka_users", "as_shell", "kafka_acls_line"]

KAFKA_USERS_API = "kafka.strimzi.io/v1beta2"
_RESOURCE_OF_STRIMZI = {Resource.TRANSACTIONAL_ID: "transactionalId"}
_AUTHENTICATION_OF_STRIMZI = {"SCRAM-SHA-512": "scram-sha-512"}
_KUBERNETES_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
WIDE = "wider than the filter, which an ACL cannot say"


# -- kafka-acls.sh -----------------------------------------------------------------------------------------------------


def as_shell(found: Sequence[ClusterAcls]) -> str:
    """Ready to run; comments say why each line is there."""
    return "\n".join(line for one in found for line in _shell_lines(one)) + "\n"


def _shell_lines(one: ClusterAcls) -> Iterator[str]:
    alias = one.cluster.alias
    flows = ", ".join(map(str, one.flows))
    yield f"# cluster {alias}: {len(one.acls)} ACLs for {one.principal} ({one.principal_from}), of {flows}"
    yield f"# {_admin_file(alias)} holds the login of an administrator of {alias}"
    yield from (f"{kafka_acls_line(acl, one)}  # {_comment(acl)}" for acl in one.acls)
    yield ""


def kafka_acls_line(acl: RequiredAcl, of: ClusterAcls) -> str:
    servers = ",".join(f"{host}:{port}" for host, port in of.cluster.bootstrap)
    words = ["kafka-acls.sh", "--bootstrap-server", servers, "--command-config", _admin_file(acl.cluster)]
    words += ["--add", "--allow-principal", of.principal, "--operation", acl.operation]
    words += ["--cluster"] if acl.resource is Resource.CLUSTER else [f"--{acl.resource}", acl.name]
    if acl.pattern == PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return shlex.join(words)


def _admin_file(alias: str) -> str:
    return f"admin-{alias}.properties"


def _comment(acl: RequiredAcl) -> str:
    parts = [acl.why]
    if acl.is_wide:
        parts.append(WIDE)
    if acl.without:
        parts.append(f"without it: {acl.without}")
    return "; ".join(parts)


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(found: Sequence[ClusterAcls]) -> str:
    return json.dumps({"clusters": [_picture(one) for one in found]}, indent=2) + "\n"


def _picture(one: ClusterAcls) -> dict[str, Any]:
    return {
        "alias": one.cluster.alias,
        "bootstrap_servers": [f"{host}:{port}" for host, port in one.cluster.bootstrap],
        "principal": one.principal,
        "principal_from": one.principal_from,
        "flows": [str(flow) for flow in one.flows],
        "acls": [
            {
                "resource_type": acl.resource.name,
                "resource_name": acl.name,
                "pattern_type": acl.pattern,
                "operation": acl.operation,
                "permission": "ALLOW",
                "host": "*",
                "why": acl.why,
                "without": acl.without,
                "covers_more_than_wanted": acl.is_wide,
                "command": kafka_acls_line(acl, one),
            }
            for acl in one.acls
        ],
    }


# -- Strimzi -----------------------------------------------------------------------------------------------------------


def as_kafka_users(found: Sequence[ClusterAcls]) -> str:
    """A KafkaUser for each cluster; its label names the Kafka resource, which is to be the cluster's alias."""
    return yaml.safe_dump_all([_kafka_user(one) for one in found], sort_keys=False, allow_unicode=True, width=200)


def _kafka_user(one: ClusterAcls) -> dict[str, Any]:
    spec: dict[str, Any] = {"authorization": {"type": "simple", "acls": _kafka_user_acls(one.acls)}}
    if how := _authentication(one):
        spec = {"authentication": {"type": how}, **spec}
    return {
        "apiVersion": KAFKA_USERS_API,
        "kind": "KafkaUser",
        "metadata": {"name": _user_name(one), "labels": {"strimzi.io/cluster": one.cluster.alias}},
        "spec": spec,
    }


def _user_name(one: ClusterAcls) -> str:
    """A KafkaUser's name is its principal's; one that Kubernetes does not take is left to who edits the file."""
    name = one.principal.removeprefix("User:").removeprefix("CN=")
    return name if _KUBERNETES_NAME.fullmatch(name) else f"mirrorspark-{one.cluster.alias}"


def _authentication(one: ClusterAcls) -> str:
    if one.principal.startswith("User:CN="):
        return "tls"
    return _AUTHENTICATION_OF_STRIMZI.get(one.cluster.client.get("sasl.mechanism", ""), "")


def _kafka_user_acls(acls: Iterable[RequiredAcl]) -> list[dict[str, Any]]:
    """One entry for each resource, with all its operations."""
    entries: dict[tuple[Resource, str, str], list[str]] = {}
    for acl in acls:
        entries.setdefault((acl.resource, acl.pattern, acl.name), []).append(acl.operation)
    found = []
    for (resource, pattern, name), operations in entries.items():
        place: dict[str, str] = {"type": _RESOURCE_OF_STRIMZI.get(resource, resource.value)}
        if resource is not Resource.CLUSTER:
            place |= {"name": name, "patternType": "literal" if pattern == LITERAL else "prefix"}
        found.append({"resource": place, "operations": operations, "host": "*"})
    return found
