"""Keys of Kafka's consumers, producers and admin clients, all that Kafka 4.3 has, and what becomes of each.

Behind ``A.consumer.``, ``S->T.consumer.`` and so on. Those in ``COMMON`` are also a Connect worker's: ``A.x``. Security
has a table of its own.
"""

from __future__ import annotations

from mirrorspark.config.definition import Definition, Kind, Scope

__all__ = ["ADMIN", "COMMON", "CONSUMER", "PRODUCER"]

_INT_MAX = 2**31 - 1
_UNOPENED = "batches are carried as they are: they keep their size, codec and records"
_NO_GROUP = "partitions are assigned by the plan; no consumer group is joined"
_OWN_POSITIONS = "positions are kept by the mirror itself"
_BYTES = "keys and values are carried as bytes, unread"
_OWN_METRICS = "the clients are not Java's; metrics come from the mirror's own status"
_SHARED = "it belongs to share groups, which a mirror does not join"
_PARTITIONER = "a record keeps its partition"
_BACKOFF = "leaders are looked for ten times a second, and what can pass is tried again without end"
_ADMIN = "admin requests go over the same connections as all others"


def _applied(
    name: str, kind: Kind, help_: str, default: str, applied: str, *, low: float = 0, unit: str = "", ours: str = "",
    why: str = "", high: float = _INT_MAX, choices: tuple[str, ...] = (), true_when: str = "",
) -> Definition:  # fmt: skip
    is_number = kind is Kind.WHOLE
    return Definition(
        name,
        kind,
        help_,
        default=default,
        ours=ours or None,
        why=why,
        unit=unit,
        low=low if is_number else None,
        high=high if is_number else None,
        choices=choices,
        true_when=true_when,
        scope=Scope.CLIENT,
        applied=applied,
        importance="medium",
    )


def _none(
    name: str,
    kind: Kind,
    default: str | None,
    because: str,
    *,
    harmless: tuple[str, ...] = (),
    low: float | None = None,
    choices: tuple[str, ...] = (),
    scope: Scope = Scope.CLIENT,
) -> Definition:
    unit = "ms" if name.endswith(".ms") else "bytes" if name.endswith(".bytes") else ""
    return Definition(
        name,
        kind,
        "Of Kafka's Java clients.",
        default=default,
        unit=unit,
        low=low,
        choices=choices,
        scope=scope,
        no_meaning=because,
        harmless=harmless,
    )


_SWITCH, _WHOLE, _TEXT, _LIST, _CLASS = Kind.SWITCH, Kind.WHOLE, Kind.TEXT, Kind.LIST, Kind.CLASS

_ALSO_WORKERS = Scope.CLUSTER | Scope.CLIENT
COMMON: tuple[Definition, ...] = (
    *(
        _none(name, kind, default, because, scope=_ALSO_WORKERS)
        for name, kind, default, because in (
            ("client.dns.lookup", _TEXT, "use_all_dns_ips", "every address of a name is tried"),
            ("connections.max.idle.ms", _WHOLE, "540000", "connections that are closed by a broker are opened again"),
            ("metadata.max.age.ms", _WHOLE, "300000", "metadata is asked for when a broker says that it has changed"),
            ("metadata.recovery.strategy", _TEXT, "rebootstrap", "the bootstrap servers are asked again in any case"),
            ("metadata.recovery.rebootstrap.trigger.ms", _WHOLE, "300000", "the bootstrap servers are asked again soon"),
            ("metrics.num.samples", _WHOLE, "2", _OWN_METRICS),
            ("metrics.recording.level", _TEXT, "INFO", _OWN_METRICS),
            ("metrics.sample.window.ms", _WHOLE, "30000", _OWN_METRICS),
            ("receive.buffer.bytes", _WHOLE, "65536", "the system sizes the buffers of sockets"),
            ("send.buffer.bytes", _WHOLE, "131072", "the system sizes the buffers of sockets"),
            ("reconnect.backoff.ms", _WHOLE, "50", _BACKOFF),
            ("reconnect.backoff.max.ms", _WHOLE, "1000", _BACKOFF),
            ("retry.backoff.ms", _WHOLE, "100", _BACKOFF),
            ("retry.backoff.max.ms", _WHOLE, "1000", _BACKOFF),
            ("socket.connection.setup.timeout.ms", _WHOLE, "10000", "a connection has the time of its request"),
            ("socket.connection.setup.timeout.max.ms", _WHOLE, "30000", "a connection has the time of its request"),
        )
    ),
    _none(
        "metric.reporters", _LIST, "org.apache.kafka.common.metrics.JmxReporter", _OWN_METRICS,
        harmless=("JmxReporter", ""), scope=Scope.TOP | Scope.FLOW | _ALSO_WORKERS,
    ),
    _none("metric.names.formats", _LIST, "legacy", _OWN_METRICS, scope=Scope.TOP | Scope.FLOW),
    _none("metrics.context.*", _TEXT, None, _OWN_METRICS, scope=_ALSO_WORKERS),
    _none("auto.include.jmx.reporter", _SWITCH, "true", _OWN_METRICS, scope=_ALSO_WORKERS),
    _none("enable.metrics.push", _SWITCH, "true", _OWN_METRICS, harmless=("false",)),
    _none("interceptor.classes", _LIST, "", "no Java class can be loaded", harmless=("",)),
    _none("default.api.timeout.ms", _WHOLE, "60000", "a call has the time of its requests"),
)  # fmt: skip

CONSUMER: tuple[Definition, ...] = (
    _applied(
        "isolation.level", Kind.CHOICE, "read_committed leaves out aborted transactions and waits for open ones.",
        "read_uncommitted", "read_committed", choices=("read_uncommitted", "read_committed"),
        true_when="read_committed",
    ),
    _applied(
        "auto.offset.reset", Kind.CHOICE, "Where a partition begins that has no position yet.", "earliest",
        "start_at_latest", choices=("earliest", "latest"), true_when="latest",
    ),
    _applied("client.rack", _TEXT, "Fetch from a replica in this rack, where the source allows it.", "", "client_rack"),
    _applied(
        "fetch.max.bytes", _WHOLE, "One fetch answer; at most a quarter of lane.memory.max.bytes is used.", "52428800",
        "limits.fetch_bytes_max", low=1, unit="bytes", ours="4194304", why="a lane's memory is bounded",
    ),
    _applied(
        "max.partition.fetch.bytes", _WHOLE, "One partition in a fetch answer.", "1048576",
        "limits.fetch_partition_bytes_max", low=1, unit="bytes", ours="2097152", why="fewer, larger answers",
    ),
    _applied(
        "fetch.max.wait.ms", _WHOLE, "How long a fetch waits at the source for records.", "500",
        "limits.fetch_wait_ms_max", low=1, unit="ms",
    ),
    _applied(
        "request.timeout.ms", _WHOLE, "Time for one request to the source.", "30000",
        "time for each request to the source", low=1, unit="ms",
    ),
    _applied("client.id", _TEXT, "Client id of the lanes at the source.", "", "client id at the source"),
    _none("fetch.min.bytes", _WHOLE, "1", "an answer comes as soon as there is a batch", low=0, harmless=("1", "0")),
    _none("max.poll.records", _WHOLE, "500", "lanes take whole batches, not records"),
    _none("max.poll.interval.ms", _WHOLE, "300000", _NO_GROUP),
    _none("check.crcs", _SWITCH, "true", "every batch's checksum is checked", harmless=("true",)),
    _none("enable.auto.commit", _SWITCH, "true", _OWN_POSITIONS, harmless=("false",)),
    _none("auto.commit.interval.ms", _WHOLE, "5000", _OWN_POSITIONS),
    _none("allow.auto.create.topics", _SWITCH, "true", "no request of the mirror creates a topic by accident"),
    _none("exclude.internal.topics", _SWITCH, "true", "internal topics are never mirrored"),
    *(
        _none(name, kind, default, _NO_GROUP)
        for name, kind, default in (
            ("group.id", _TEXT, None),
            ("group.instance.id", _TEXT, None),
            ("group.protocol", _TEXT, "classic"),
            ("group.remote.assignor", _TEXT, None),
            ("session.timeout.ms", _WHOLE, "45000"),
            ("heartbeat.interval.ms", _WHOLE, "3000"),
            ("partition.assignment.strategy", _LIST, "RangeAssignor, CooperativeStickyAssignor"),
            ("internal.leave.group.on.close", _SWITCH, "true"),
            ("internal.throw.on.fetch.stable.offset.unsupported", _SWITCH, "false"),
        )
    ),
    _none("key.deserializer", _CLASS, None, _BYTES, harmless=("ByteArrayDeserializer",)),
    _none("value.deserializer", _CLASS, None, _BYTES, harmless=("ByteArrayDeserializer",)),
    _none("share.acknowledgement.mode", _TEXT, "implicit", _SHARED),
    _none("share.acquire.mode", _TEXT, "batch_optimized", _SHARED),
)  # fmt: skip

PRODUCER: tuple[Definition, ...] = (
    _applied(
        "max.request.size", _WHOLE, "Batches share a produce request up to this size; a larger batch goes alone.",
        "1048576", "limits.produce_request_bytes_max", low=1, unit="bytes", ours="4194304",
        why="fewer requests; each batch is still as large as it was on the source",
    ),
    _applied(
        "request.timeout.ms", _WHOLE, "The broker's time to replicate an append; 5 s more and the connection is "
        "given up.", "30000", "limits.produce_timeout_ms", low=1, unit="ms",
    ),
    _applied(
        "max.in.flight.requests.per.connection", _WHOLE, "Produce requests on their way to one broker; above 5 counts "
        "as 5, since a broker remembers five batches.", "1", "limits.produce_requests_in_flight_max", low=1,
        unit="requests", ours="5", why="idempotence keeps the order",
    ),
    _applied(
        "transaction.timeout.ms", _WHOLE, "With transactions: the coordinator aborts one that is open for longer.",
        "60000", "limits.transaction_timeout_ms", low=1000, unit="ms", ours="900000",
        why="a killed lane's successor has this long to commit what was left open",
    ),
    _applied("client.id", _TEXT, "Client id of the lanes at the target.", "", "client id at the target"),
    _none("acks", _TEXT, "all", "every append is acknowledged by all in-sync replicas", harmless=("all", "-1")),
    _none("enable.idempotence", _SWITCH, "true", "appends are always idempotent", harmless=("true",)),
    _none("retries", _WHOLE, str(_INT_MAX), "an append is repeated until it is acknowledged", harmless=(str(_INT_MAX),)),
    _none("delivery.timeout.ms", _WHOLE, "120000", "an append is repeated until it is acknowledged"),
    _none("max.block.ms", _WHOLE, "60000", "a lane waits as long as it takes, with its memory bounded"),
    *(
        _none(name, kind, default, _UNOPENED)
        for name, kind, default in (
            ("batch.size", _WHOLE, "16384"),
            ("linger.ms", _WHOLE, "0"),
            ("compression.gzip.level", _WHOLE, "-1"),
            ("compression.lz4.level", _WHOLE, "9"),
            ("compression.zstd.level", _WHOLE, "3"),
        )
    ),
    _none(
        "compression.type", Kind.CHOICE, "none", _UNOPENED, choices=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    _none("buffer.memory", _WHOLE, "33554432", "a lane's memory is lane.memory.max.bytes"),
    _none("metadata.max.idle.ms", _WHOLE, "300000", "metadata is asked for when a broker says that it has changed"),
    _none("key.serializer", _CLASS, None, _BYTES, harmless=("ByteArraySerializer",)),
    _none("value.serializer", _CLASS, None, _BYTES, harmless=("ByteArraySerializer",)),
    _none("partitioner.class", _CLASS, None, _PARTITIONER),
    _none("partitioner.ignore.keys", _SWITCH, "false", _PARTITIONER),
    _none("partitioner.adaptive.partitioning.enable", _SWITCH, "true", _PARTITIONER),
    _none("partitioner.availability.timeout.ms", _WHOLE, "0", _PARTITIONER),
    _none("transactional.id", _TEXT, None, "a lane's transactional id follows from its flow and number"),
    _none("transaction.two.phase.commit.enable", _SWITCH, "false", "a transaction is committed with its positions"),
)  # fmt: skip

ADMIN: tuple[Definition, ...] = (
    _none("request.timeout.ms", _WHOLE, "30000", "the time of a request is the cluster's", low=0),
    _none("retries", _WHOLE, str(_INT_MAX), _BACKOFF),
    _none("client.id", _TEXT, "", _ADMIN),
    _none("bootstrap.controllers", _LIST, "", "brokers are asked, not controllers"),
)
