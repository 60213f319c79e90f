"""Which ACL a broker missed when it refused a request, in words for the error's text.

Called by ``broker_errors`` and by whoever tells of a refused partition. A table of facts: what Kafka's brokers ask for, by
request and by the resource that the error code is about.
"""

from __future__ import annotations

__all__ = ["is_denial", "missing_acl"]

_RESOURCES = {29: "the topic", 30: "the group", 31: "the cluster", 53: "the transactional id"}
"""By error code: *_AUTHORIZATION_FAILED."""
_OPERATIONS = {
    "Produce": {29: "Write", 31: "IdempotentWrite", 53: "Write"},
    "Fetch": {29: "Read"},
    "ListOffsets": {29: "Describe"},
    "Metadata": {29: "Describe"},
    "OffsetForLeaderEpoch": {29: "Describe"},
    "CreateTopics": {29: "Create", 31: "Create"},
    "CreatePartitions": {29: "Alter", 31: "Alter"},
    "DeleteTopics": {29: "Delete"},
    "DeleteRecords": {29: "Delete"},
    "DescribeConfigs": {29: "DescribeConfigs", 31: "DescribeConfigs"},
    "AlterConfigs": {29: "AlterConfigs", 31: "AlterConfigs"},
    "IncrementalAlterConfigs": {29: "AlterConfigs", 31: "AlterConfigs"},
    "DescribeAcls": {31: "Describe"},
    "CreateAcls": {31: "Alter"},
    "DeleteAcls": {31: "Alter"},
    "ListGroups": {31: "Describe"},
    "DescribeGroups": {30: "Describe"},
    "ConsumerGroupDescribe": {29: "Describe", 30: "Describe"},
    "DeleteGroups": {30: "Delete"},
    "OffsetFetch": {29: "Describe", 30: "Describe"},
    "OffsetCommit": {29: "Read", 30: "Read"},
    "OffsetDelete": {29: "Read", 30: "Delete"},
    "FindCoordinator": {30: "Describe", 53: "Describe"},
    "InitProducerId": {31: "IdempotentWrite", 53: "Write"},
    "AddPartitionsToTxn": {29: "Write", 53: "Write"},
    "AddOffsetsToTxn": {30: "Read", 53: "Write"},
    "TxnOffsetCommit": {29: "Read", 30: "Read", 53: "Write"},
    "EndTxn": {53: "Write"},
    "DescribeTransactions": {29: "Describe", 53: "Describe"},
    "DescribeProducers": {29: "Read"},
    "WriteTxnMarkers": {31: "ClusterAction"},
}


def is_denial(error_code: int) -> bool:
    """Whether an ACL is missing: a person grants it, and whoever asked need not be started anew."""
    return error_code in _RESOURCES


def missing_acl(error_code: int, request: str) -> str:
    """To be put after an error's text; empty where the code is about something else."""
    resource = _RESOURCES.get(error_code)
    if resource is None:
        return ""
    operation = _OPERATIONS.get(request.removesuffix("Request"), {}).get(error_code)
    needed = f"the ACL {operation} on {resource}" if operation else f"an ACL on {resource}"
    return f"; our user lacks {needed}: grant it, this goes on by itself then ('mirrorspark acls' lists all that is needed)"
