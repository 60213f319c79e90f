"""ACLs on topics: list, create, delete. Raises the broker's error where a cluster shows or takes none at all.

Which ACLs there shall be is decided in ``plan.acl_rules``; ``control.acl_sync`` calls both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

from mirrorspark.cluster.cluster_admin import in_portions, refusal
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.errors import BrokerError
from mirrorspark.names import TopicAcl

__all__ = ["AclsChanged", "create_acls", "delete_acls", "describe_acls"]

ACLS_PER_REQUEST_MAX = 1_000


@dataclass
class AclsChanged:
    requests: int = 0
    refused: dict[TopicAcl, BrokerError] = field(default_factory=dict)


async def describe_acls(client: ClusterClient) -> set[TopicAcl]:
    """All ACLs on topics. Raises BrokerError, e.g. SECURITY_DISABLED where there is no authorizer.

    What a newer broker calls by a number that we do not know is left out: nobody can say what it grants.
    """
    request = DescribeAclsRequest(
        resource_type_filter=ACLResourceType.TOPIC,
        resource_name_filter=None,
        pattern_type_filter=ACLResourcePatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
    )
    answer = await client.request(request)
    if answer.error_code:
        raise refusal(answer.error_code, "DescribeAcls", f"cluster {client.alias}", answer.error_message)
    known = {operation.value for operation in ACLOperation}
    return {
        TopicAcl(
            ACLResourcePatternType(resource.pattern_type).name,
            resource.resource_name,
            acl.principal,
            acl.host,
            ACLOperation(acl.operation).name,
            ACLPermissionType(acl.permission_type).name,
        )
        for resource in answer.resources
        for acl in resource.acls
        if acl.operation in known
    }


async def create_acls(client: ClusterClient, acls: Iterable[TopicAcl]) -> AclsChanged:
    done = AclsChanged()
    for some in _portions(acls):
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=ACLResourceType.TOPIC,
                    resource_name=acl.name,
                    resource_pattern_type=ACLResourcePatternType[acl.pattern],
                    principal=acl.principal,
                    host=acl.host,
                    operation=ACLOperation[acl.operation],
                    permission_type=ACLPermissionType[acl.permission],
                )
                for acl in some
            ]
        )
        done.requests += 1
        answer = await client.request_controller(request)
        _note(done, some, answer.results, "CreateAcls")
    return done


async def delete_acls(client: ClusterClient, acls: Iterable[TopicAcl]) -> AclsChanged:
    """Exactly these; one that is gone already is no refusal."""
    done = AclsChanged()
    for some in _portions(acls):
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=ACLResourceType.TOPIC,
                    resource_name_filter=acl.name,
                    pattern_type_filter=ACLResourcePatternType[acl.pattern],
                    principal_filter=acl.principal,
                    host_filter=acl.host,
                    operation=ACLOperation[acl.operation],
                    permission_type=ACLPermissionType[acl.permission],
                )
                for acl in some
            ]
        )
        done.requests += 1
        answer = await client.request_controller(request)
        _note(done, some, answer.filter_results, "DeleteAcls")
    return done


def _portions(acls: Iterable[TopicAcl]) -> Iterable[list[TopicAcl]]:
    return in_portions(sorted(acls), lambda _: 1, items_max=ACLS_PER_REQUEST_MAX, weight_max=ACLS_PER_REQUEST_MAX)


def _note(done: AclsChanged, asked: Sequence[TopicAcl], results: Sequence[object], request: str) -> None:
    """Answers come in the order of the questions."""
    for acl, result in zip(asked, results, strict=True):
        code = getattr(result, "error_code", 0)
        if code:
            done.refused[acl] = refusal(code, request, str(acl), getattr(result, "error_message", None))
