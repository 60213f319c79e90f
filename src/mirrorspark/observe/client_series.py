"""Series of Kafka's clients: of the lanes' connections and of the driver's, by broker and together.

Called by ``connect_series``, for one flow. A lane is a consumer and a producer; the driver is the worker's own client.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from mirrorspark import __version__
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.lane_totals import LaneTotals
from mirrorspark.observe.metric_catalogue.clients import WORKER_CLIENT_PREFIX
from mirrorspark.observe.partition_figures import PartitionFigures
from mirrorspark.observe.sheet import Sheet
from mirrorspark.release import commit_id

__all__ = ["LaneClients", "put_fetch_manager", "put_worker_client"]

_NS = 1e9


@dataclass(frozen=True)
class LaneClients:
    """The two clients of a lane; ``task`` None stands for all lanes of a flow together."""

    flow: Flow
    task: int | None

    @property
    def consumer(self) -> str:
        number = "all" if self.task is None else self.task
        return f'"{self.flow}|{self.flow}.MirrorSourceConnector-{number}|replication-consumer"'

    @property
    def producer(self) -> str:
        return f'"connector-producer-{self.flow}.MirrorSourceConnector-{self.task}"'

    def put(self, sheet: Sheet, totals: LaneTotals, room_bytes: int | None) -> None:
        """``room_bytes``: of the lane's memory, what is free."""
        source, target = totals.nodes("source"), totals.nodes("target")
        # Reports of earlier versions tell nothing of connections: what was carried went over them in any case.
        came = sum(one["bytes_in"] for one in source.values()) if source else totals.bytes
        went = sum(one["bytes_out"] for one in target.values()) if target else totals.bytes
        sheet.put("kafka_consumer_incoming_byte_total", came, self.consumer)
        sheet.put("kafka_producer_outgoing_byte_total", went, self.producer)
        sheet.put("kafka_producer_buffer_available_bytes", room_bytes, self.producer)
        sheet.put("kafka_consumer_fetch_manager_fetch_latency_avg", totals.fetch_ms_avg, self.consumer)
        for kind, client, nodes in (("consumer", self.consumer, source), ("producer", self.producer, target)):
            _put_app_info(sheet, kind, client, totals.attempt_began_ms / 1000)
            for node, figures in nodes.items():
                _put_node(sheet, kind, client, node, figures)


def put_fetch_manager(sheet: Sheet, flow: Flow, partitions: list[PartitionFigures]) -> None:
    prefix = "kafka_consumer_fetch_manager_"
    for one in partitions:
        client = LaneClients(flow, one.lane).consumer
        place = client, one.source_topic, one.partition
        sheet.put(f"{prefix}records_lag", one.lag_records, *place)
        sheet.put(f"{prefix}records_lag_avg", one.lag_records_avg, *place)
        sheet.put(f"{prefix}records_lag_max", one.lag_records_max, *place)
        sheet.put(f"{prefix}records_lead", one.lead_records, *place)
        sheet.put(f"{prefix}records_consumed_total", one.records, client, one.source_topic)
        sheet.put(f"{prefix}bytes_consumed_total", one.bytes, client, one.source_topic)


def put_worker_client(sheet: Sheet, flow: Flow, status: FlowStatus) -> None:
    """The driver's connections to the target."""
    nodes = status.worker_traffic()
    client = f'"{flow}"'
    _put_app_info(sheet, "connect", client, status.began_at_s)
    sums: dict[str, float] = {}
    for node, figures in nodes.items():
        told = {**figures, "answer_ms": figures["answer_s"] * 1000}
        _put_node(sheet, "connect", client, str(node), told)
        for name, value in figures.items():
            sums[name] = max(sums.get(name, 0.0), value) if name.endswith("_max") else sums.get(name, 0.0) + value
    if sums:
        age_s = max(time.time() - status.began_at_s, 0.001)
        rates = status.worker_rates.look(time.time(), _counts(sums))
        for name, value in _worker_figures(sums, rates, age_s).items():
            sheet.put_of_client(f"{WORKER_CLIENT_PREFIX}{name}", str(flow), value)


def _put_app_info(sheet: Sheet, kind: str, client: str, began_at_s: float) -> None:
    sheet.put(f"kafka_{kind}_start_time_seconds", began_at_s, client)
    sheet.put(f"kafka_{kind}_version_info", 1, client, __version__)
    sheet.put(f"kafka_{kind}_commit_id_info", 1, client, commit_id())


def _put_node(sheet: Sheet, kind: str, client: str, node: str, figures: Mapping[str, float]) -> None:
    requests, answers = figures["requests"], figures["answers"]
    values = {
        "request_total": requests,
        "response_total": answers,
        "outgoing_byte_total": figures["bytes_out"],
        "incoming_byte_total": figures["bytes_in"],
        "request_latency_avg": figures["answer_ms"] / answers if answers else 0.0,
        "request_size_avg": figures["bytes_out"] / requests if requests else 0.0,
    }
    for name, value in values.items():
        sheet.put(f"kafka_{kind}_node_{name}", value, client, f"node-{node}")


def _counts(sums: Mapping[str, float]) -> dict[str, float]:
    """What is counted, by the names of Kafka's sensors."""
    return {
        "connection_creation": sums["opened"],
        "connection_close": sums["closed"],
        "successful_authentication": sums["logins"],
        "failed_authentication": sums["logins_failed"],
        "successful_reauthentication": sums["logins_again"],
        "failed_reauthentication": sums["logins_again_failed"],
        "request": sums["requests"],
        "response": sums["answers"],
        "network_io": sums["requests"] + sums["answers"],
        "outgoing_byte": sums["bytes_out"],
        "incoming_byte": sums["bytes_in"],
        "select": sums["turns"],
        "iotime": sums["turn_s"],
    }


def _worker_figures(sums: Mapping[str, float], rates: Mapping[str, float], age_s: float) -> dict[str, float]:
    counts = _counts(sums)
    turns, turn_s = max(1.0, sums["turns"]), counts.pop("iotime")
    io_ratio = min(1.0, rates["iotime"])
    again = sums["logins_again"]
    return {
        **{f"{name}_total": value for name, value in counts.items()},
        **{f"{name}_rate": rates[name] for name in counts},
        "connection_count": max(0.0, sums["opened"] - sums["closed"]),
        "request_size_avg": sums["bytes_out"] / sums["requests"] if sums["requests"] else 0.0,
        "request_size_max": sums["request_bytes_max"],
        "io_time_ns_avg": turn_s / turns * _NS,
        "io_wait_time_ns_avg": max(0.0, age_s - turn_s) / turns * _NS,
        "io_ratio": io_ratio,
        "io_wait_ratio": 1.0 - io_ratio,
        "reauthentication_latency_avg": sums["login_again_s"] / again * 1000 if again else 0.0,
        "reauthentication_latency_max": sums["login_again_s_max"] * 1000,
        "iotime_total": turn_s * _NS,
        "io_waittime_total": max(0.0, age_s - turn_s) * _NS,
        "successful_authentication_no_reauth_total": 0.0,
    }
