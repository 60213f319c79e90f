"""Series of Kafka's clients: a lane's connections are a consumer of the source and a producer for the target, those of a
flow's driver to the target are the worker's own client (``connect``).

By Strimzi's rules, with the client in a label that has quotes; and once more by the seeds' rule for the worker's client,
which has the client's id in the name (``{client}`` here).
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["CLIENTS", "CLIENT_KINDS", "NODE_FIGURES", "WORKER_CLIENT", "WORKER_CLIENT_PREFIX"]

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER
_CLIENT = ("clientid",)
_TOPIC = ("clientid", "topic")
_PARTITION = ("clientid", "topic", "partition")
CLIENT_KINDS = {
    "consumer": "A lane's connections to the source.",
    "producer": "A lane's connections to the target.",
    "connect": "The driver's connections to the target.",
}
_LOOKS = "The driver's looks at the source while somebody scrapes."
_SINCE = "Lane reports; since the process began."

NODE_FIGURES = {
    "request_total": ("requests", "Requests sent to a broker."),
    "response_total": ("answers", "Answers that came from a broker."),
    "outgoing_byte_total": ("bytes", "Bytes sent to a broker."),
    "incoming_byte_total": ("bytes", "Bytes that came from a broker."),
    "request_latency_avg": ("ms", "Mean time to an answer; a fetch may wait for records."),
    "request_size_avg": ("bytes", "Mean size of a request."),
}
_NODES = tuple(
    Metric(
        f"kafka_{kind}_node_{name}",
        _C if name.endswith("_total") else _G,
        ("clientid", "nodeid"),
        unit,
        text,
        f"{origin} More than 50 brokers are told as one, node-all.",
    )
    for kind, origin in CLIENT_KINDS.items()
    for name, (unit, text) in NODE_FIGURES.items()
)
_APP_INFO = tuple(
    metric
    for kind, origin in CLIENT_KINDS.items()
    for metric in (
        Metric(f"kafka_{kind}_start_time_seconds", _G, _CLIENT, "s", "When it began, Unix time.", origin),
        Metric(f"kafka_{kind}_version_info", _G, ("clientid", "version"), "1", "1; mirrorspark's version.", origin),
        Metric(f"kafka_{kind}_commit_id_info", _G, ("clientid", "commit_id"), "1", "1; what it was built of.", origin),
    )
)
CLIENTS: tuple[Metric, ...] = (
    Metric(
        "kafka_consumer_fetch_manager_records_lag",
        _G,
        _PARTITION,
        "records",
        "Records on the source that are not on the target yet; topic is the source's.",
        "As mirrorspark_partition_lag_records.",
    ),
    Metric("kafka_consumer_fetch_manager_records_lag_avg", _G, _PARTITION, "records", "Mean of a minute.", _LOOKS),
    Metric("kafka_consumer_fetch_manager_records_lag_max", _G, _PARTITION, "records", "Largest of a minute.", _LOOKS),
    Metric(
        "kafka_consumer_fetch_manager_records_lead",
        _G,
        _PARTITION,
        "records",
        "From the first record that the source still has to the next one to be carried: below nought it is lost.",
        _LOOKS,
    ),
    Metric(
        "kafka_consumer_fetch_manager_records_consumed_total",
        _C,
        _TOPIC,
        "records",
        "Records carried; topic is the source's.",
        "Receipts.",
    ),
    Metric(
        "kafka_consumer_fetch_manager_bytes_consumed_total",
        _C,
        _TOPIC,
        "bytes",
        "Bytes carried, as compressed; topic is the source's.",
        "Receipts.",
    ),
    Metric(
        "kafka_consumer_fetch_manager_fetch_latency_avg",
        _G,
        _CLIENT,
        "ms",
        "Mean time of a fetch, the source's wait for records included (at most 500 ms).",
        _SINCE,
    ),
    Metric("kafka_consumer_incoming_byte_total", _C, _CLIENT, "bytes", "Bytes that came from the source.", _SINCE),
    Metric("kafka_producer_outgoing_byte_total", _C, _CLIENT, "bytes", "Bytes sent to the target.", _SINCE),
    Metric(
        "kafka_producer_buffer_available_bytes",
        _G,
        _CLIENT,
        "bytes",
        "What is left of lane.memory.max.bytes.",
        "Lane reports.",
    ),
    *_NODES,
    *_APP_INFO,
)

WORKER_CLIENT_PREFIX = "kafka_connect_connect_metrics_{client}_"
_IN_A_SECOND = "a second, over the last minute"
_COUNTED = {
    "connection_creation": ("connections", "Connections opened"),
    "connection_close": ("connections", "Connections closed"),
    "successful_authentication": ("connections", "Connections that logged in, or spoke TLS"),
    "failed_authentication": ("connections", "Connections that were refused"),
    "successful_reauthentication": ("logins", "Logins again on open connections"),
    "failed_reauthentication": ("logins", "Logins again that were refused"),
    "request": ("requests", "Requests sent"),
    "response": ("answers", "Answers that came"),
    "network_io": ("messages", "Requests and answers"),
    "outgoing_byte": ("bytes", "Bytes sent"),
    "incoming_byte": ("bytes", "Bytes that came"),
    "select": ("turns", "Times that something came"),
}
_SINGLE = {
    "connection_count": ("connections", "Connections that are open."),
    "request_size_avg": ("bytes", "Mean size of a request."),
    "request_size_max": ("bytes", "Largest request."),
    "io_time_ns_avg": ("ns", "Mean time to take in what came."),
    "io_wait_time_ns_avg": ("ns", "Mean time between two such turns."),
    "io_ratio": ("1", "Share of the last minute in which something was taken in."),
    "io_wait_ratio": ("1", "Share of the last minute in which nothing was."),
    "reauthentication_latency_avg": ("ms", "Mean time of a login on an open connection; 0 where there was none."),
    "reauthentication_latency_max": ("ms", "Longest of them."),
}
_SUMMED = {
    "iotime_total": ("ns", "Time in which something was taken in."),
    "io_waittime_total": ("ns", "Time in which nothing was."),
    "successful_authentication_no_reauth_total": (
        "connections",
        "0: what brokers count of clients that cannot log in again.",
    ),
}
_DRIVER = "The driver's connections to the target; client is the flow's name in small letters, as a series may have it."
WORKER_CLIENT: tuple[Metric, ...] = (
    *(
        Metric(f"{WORKER_CLIENT_PREFIX}{name}_{ending}", kind, (), unit, f"{text}{more}.", _DRIVER)
        for name, (unit, text) in _COUNTED.items()
        for ending, kind, more in (("total", _C, ""), ("rate", _G, f", {_IN_A_SECOND}"))
    ),
    *(Metric(f"{WORKER_CLIENT_PREFIX}{name}", _G, (), unit, text, _DRIVER) for name, (unit, text) in _SINGLE.items()),
    *(Metric(f"{WORKER_CLIENT_PREFIX}{name}", _C, (), unit, text, _DRIVER) for name, (unit, text) in _SUMMED.items()),
)
