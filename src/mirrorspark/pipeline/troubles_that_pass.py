"""Which failures of a lane's attempt are followed by another attempt: asked by whoever runs lanes (worker, bridge)."""

from __future__ import annotations

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.errors import BrokerError, ClusterError, Fenced

__all__ = ["FENCED", "passes"]

FENCED = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    }
)
"""What a broker says to a writer that has a successor, or whose transaction is gone: own everything anew."""


def passes(error: Exception) -> bool:
    """Whether another attempt in the same task may well succeed: a cluster was away, or somebody fenced us."""
    if isinstance(error, BrokerError) and error.error_code in FENCED:
        return True
    if isinstance(error, ClusterError):
        return error.retriable
    return isinstance(error, Fenced | TimeoutError)
