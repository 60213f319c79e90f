"""Kafka's error codes as our ``BrokerError``: name, whether to retry, whether leaders must be looked up anew.

The table itself is kafka-python's; this file only asks it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kafka import errors as kafka_errors

from mirrorspark.cluster.missing_acl import missing_acl
from mirrorspark.errors import BrokerError

__all__ = ["ErrorCode", "broker_error", "error_name", "is_retriable", "is_stale_metadata"]


class ErrorCode:
    """The codes that our own logic tells apart."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    UNKNOWN_PRODUCER_ID = 59
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    INVALID_RECORD = 87
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    TRANSACTION_ABORTABLE = 120


# Codes that kafka-python does not mark as retriable but that pass by themselves for an idempotent client.
_RETRIABLE_EXTRA = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        56,  # KAFKA_STORAGE_ERROR
    }
)
_STALE_EXTRA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        56,
    }
)


@cache
def _library_class(code: int) -> Any:
    return kafka_errors.for_code(code)


def error_name(code: int) -> str:
    return str(getattr(_library_class(code), "message", f"ERROR_{code}"))


@cache
def is_retriable(code: int) -> bool:
    return code in _RETRIABLE_EXTRA or bool(getattr(_library_class(code), "retriable", False))


@cache
def is_stale_metadata(code: int) -> bool:
    return code in _STALE_EXTRA or bool(getattr(_library_class(code), "invalid_metadata", False))


def broker_error(code: int, request: str, about: str = "", *, before: str = "", **facts: Any) -> BrokerError:
    """``before``: the request for whose sake this one was made; a missing ACL is the one that both need."""
    name = error_name(code)
    where = f" for {about}" if about else ""
    sake = f", asked before {before}," if before else ""
    return BrokerError(
        f"the broker answered {name} ({code}) to {request}{sake}{where}{missing_acl(code, before or request)}",
        error_code=code,
        error_name=name,
        request=request,
        retriable=is_retriable(code),
        **facts,
    )
