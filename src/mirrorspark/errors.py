"""The error tree, on one page.

MirrorError                    everything we raise; carries its facts as attributes and pickles with them
├── SettingsError              a file, a key or a value is wrong: the user edits it
├── WireError                  bytes that are not what they should be
│   ├── CorruptBatch           a record batch is damaged (CRC, length, codec, records)
│   └── UnsupportedBatch       a batch of a format or codec that we do not know
├── ClusterError               talking to a cluster failed
│   ├── Unreachable            no broker answers there, or it is not a Kafka broker
│   ├── AuthenticationFailed   the broker refused who we are
│   ├── TlsFailed              the two sides do not agree on TLS, or one does not trust the other's certificate
│   ├── BrokerError            a broker answered with an error code (retriable or not: ask the error)
│   └── RequestTimedOut        no answer within the deadline
├── PartitionStopped           one partition cannot go on by itself; the others do
├── Fenced                     another writer owns this lane or flow now
├── NewerFormat                a newer mirrorspark wrote it: this one must not guess what it means
├── SparkLost                  Spark's JVM is gone: the process ends, its supervisor starts it again
└── LabError                   the embedded world (Java, jars, brokers) could not be set up

Callers ask ``error.retriable``, never a list of types. Each class has a stable upper-case ``code`` for logs and machines.
"""

from __future__ import annotations

from typing import Any

from mirrorspark.secret import masked

__all__ = [
    "AuthenticationFailed",
    "BrokerError",
    "ClusterError",
    "CorruptBatch",
    "Fenced",
    "LabError",
    "MirrorError",
    "NewerFormat",
    "PartitionStopped",
    "RequestTimedOut",
    "SettingsError",
    "SparkLost",
    "TlsFailed",
    "Unreachable",
    "UnsupportedBatch",
    "WireError",
]


class MirrorError(Exception):
    """Base of all; ``facts`` name what the message is about and survive pickling between processes."""

    code = "MIRROR_ERROR"
    retriable = False

    def __init__(self, message: str, **facts: Any) -> None:
        message = masked(message)
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)

    def __str__(self) -> str:
        return self.message

    def as_dict(self) -> dict[str, Any]:
        return {**self.facts, "code": self.code, "message": self.message}


def _rebuild(cls: type[MirrorError], message: str, facts: dict[str, Any]) -> MirrorError:
    return cls(message, **facts)


class SettingsError(MirrorError):
    code = "SETTINGS"


class WireError(MirrorError):
    code = "WIRE"


class CorruptBatch(WireError):
    """Facts: topic, partition, offset (where known), reason."""

    code = "CORRUPT_BATCH"


class UnsupportedBatch(WireError):
    code = "UNSUPPORTED_BATCH"


class ClusterError(MirrorError):
    code = "CLUSTER"


class Unreachable(ClusterError):
    code = "UNREACHABLE"
    retriable = True


class AuthenticationFailed(ClusterError):
    code = "AUTHENTICATION_FAILED"


class TlsFailed(ClusterError):
    """Facts: alias, address, key, reason (a word for machines, as ``certificate-expired``)."""

    code = "TLS_FAILED"


class RequestTimedOut(ClusterError):
    code = "REQUEST_TIMED_OUT"
    retriable = True


class BrokerError(ClusterError):
    """A broker's error code. Facts: error_code, error_name, request, and what it was about."""

    code = "BROKER_ERROR"

    @property
    def error_code(self) -> int:
        return int(self.facts["error_code"])

    @property
    def retriable(self) -> bool:  # type: ignore[override]
        return bool(self.facts.get("retriable", False))


class PartitionStopped(MirrorError):
    """One partition waits for a person or a policy. Facts: event, topic, partition, offset_first, offset_last."""

    code = "PARTITION_STOPPED"


class Fenced(MirrorError):
    code = "FENCED"


class NewerFormat(MirrorError):
    code = "NEWER_FORMAT"

    @classmethod
    def of(cls, what: str, found: int, known: int) -> NewerFormat:
        """``what`` is of format ``found``; we read formats up to ``known``."""
        text = f"{what} is of format {found}, written by a newer mirrorspark; this one reads formats up to {known}"
        return cls(f"{text}. Run that version or a later one", found=found, known=known)


class SparkLost(MirrorError):
    code = "SPARK_LOST"


class LabError(MirrorError):
    code = "LAB"
