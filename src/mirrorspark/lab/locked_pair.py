"""Two clusters where nothing is allowed that no ACL allows, and users to grant some to.

Used by the journey that proves the list of required ACLs: ``with LockedPair(users=8) as pair``. The lab itself comes in by
the plain listener, as a super user; mirrors log in (SASL PLAIN) as ``source-<n>`` and ``target-<n>``, so that what one flow
is granted is of no use to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from mirrorspark.lab.clients import REQUEST_TIMEOUT_S, admin, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.plan.required_acls import RequiredAcl, Resource
from mirrorspark.settings import ClusterSettings, parse_bootstrap

__all__ = ["LockedPair", "grant", "revoke"]

LISTENER = "LOCKED"
PASSWORD = "of a locked user"
SEEN_DEADLINE_S = 60.0
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_RESOURCES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.CLUSTER: ResourceType.BROKER,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Alter": AclOperation.ALTER,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}


class LockedPair:
    """``source`` and ``target``. Users are numbered from 0 on."""

    def __init__(self, users: int) -> None:
        self.source, self.target = (
            ClusterOfBrokers(f"locked-{side}", settings=_settings(side, users), listeners={LISTENER: "SASL_PLAINTEXT"})
            for side in ("source", "target")
        )
        self._running = ExitStack()

    def __enter__(self) -> LockedPair:
        with ExitStack() as stack:
            stack.enter_context(started_together(self.source, self.target))
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def settings(self, side: str, alias: str, user: int) -> ClusterSettings:
        """Of a mirror that logs in there."""
        cluster = self.source if side == "source" else self.target
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} username="{side}-{user}" password="{PASSWORD}";',
        }
        return ClusterSettings(alias, parse_bootstrap(cluster.bootstrap_of(LISTENER), alias), client)


def _settings(side: str, users: int) -> dict[str, str]:
    known = " ".join(f'user_{side}-{number}="{PASSWORD}"' for number in range(users))
    prefix = f"listener.name.{LISTENER.lower()}"
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}.plain.sasl.jaas.config": f"{_PLAIN} {known};",
    }


def grant(bootstrap: str, principal: str, acls: Iterable[RequiredAcl]) -> None:
    """Returns when the broker shows them."""
    client = admin(bootstrap)
    wanted = [_binding(acl, principal) for acl in acls]
    for answer in client.create_acls(wanted, request_timeout=REQUEST_TIMEOUT_S).values():
        answer.result(REQUEST_TIMEOUT_S)
    wait_for(lambda: set(wanted) <= set(_of(client, principal)), f"ACLs of {principal}", SEEN_DEADLINE_S)


def revoke(bootstrap: str, principal: str, acl: RequiredAcl) -> None:
    client = admin(bootstrap)
    gone = _binding(acl, principal)
    place = (gone.restype, gone.name, gone.resource_pattern_type, principal, "*", gone.operation, gone.permission_type)
    for answer in client.delete_acls([AclBindingFilter(*place)], request_timeout=REQUEST_TIMEOUT_S).values():
        answer.result(REQUEST_TIMEOUT_S)
    wait_for(lambda: gone not in _of(client, principal), f"an ACL of {principal} to go", SEEN_DEADLINE_S)


def _of(client: object, principal: str) -> list[AclBinding]:
    everything = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, principal, None, AclOperation.ANY, AclPermissionType.ANY)
    )
    found: list[AclBinding] = client.describe_acls(everything).result(REQUEST_TIMEOUT_S)  # type: ignore[attr-defined]
    return found


def _binding(acl: RequiredAcl, principal: str) -> AclBinding:
    return AclBinding(
        _RESOURCES[acl.resource],
        acl.name,
        ResourcePatternType[acl.pattern],
        principal,
        "*",
        _OPERATIONS[acl.operation],
        AclPermissionType.ALLOW,
    )
