"""Our own series: what nobody could see before. ``flow`` is ``source->target``, ``topic`` the remote topic."""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["FLOW_STATES", "LANE_STATES", "OWN"]

FLOW_STATES = (
    *("starting", "running", "idle", "degraded", "paused", "silent", "restarting", "failed"),
    *("superseded", "stopping", "stopped", "heartbeats only"),
)
LANE_STATES = ("starting", "carrying", "ended", "superseded", "silent", "missing")

_FLOW = ("flow",)
_PARTITION = ("flow", "topic", "partition")
_LANE = ("flow", "lane")
_REPORTS = "Lane reports."
_ENDS = "The source's log ends, asked every 2 s while somebody scrapes; else as of the lane's last fetch."
_SINCE = "since the process began"


def _gauge(name: str, labels: tuple[str, ...], unit: str, text: str, origin: str = _REPORTS) -> Metric:
    return Metric(f"mirrorspark_{name}", MetricKind.GAUGE, labels, unit, text, origin)


def _counter(name: str, labels: tuple[str, ...], unit: str, text: str, origin: str = _REPORTS) -> Metric:
    return Metric(f"mirrorspark_{name}_total", MetricKind.COUNTER, labels, unit, f"{text}, {_SINCE}.", origin)


_FLOWS = (
    _gauge("build_info", ("version",), "1", "1; the version that runs.", "The package."),
    _gauge(
        "flow_state",
        ("flow", "state"),
        "1",
        "1 for the state that the flow is in, 0 for the others.",
        "As `status` shows it.",
    ),
    _gauge("flow_generation", _FLOW, "generations", "The generation that this process leads.", "The plan topic."),
    _gauge("flow_failures", _FLOW, "jobs", "Jobs of the driver that do not work now.", "As `status` names them."),
    _gauge("flow_topics", _FLOW, "topics", "Topics on the source that the flow wants.", "The last look at the source."),
    _gauge("flow_partitions", _FLOW, "partitions", "Partitions of the newest plan.", "The plan."),
    _counter("flow_records", _FLOW, "records", "Records carried"),
    _counter("flow_bytes", _FLOW, "bytes", "Bytes carried, as compressed"),
    _gauge("flow_lag_records", _FLOW, "records", "Sum over partitions, heartbeats left out.", _ENDS),
    _gauge("flow_lag_bytes", _FLOW, "bytes", "Sum over partitions, heartbeats left out.", _ENDS),
    _gauge("flow_lag_seconds", _FLOW, "s", "Largest of the partitions.", _ENDS),
    _gauge("flow_latency_seconds", _FLOW, "s", "Largest of partitions that moved in 10 s; not there if none did."),
    _gauge("flow_source_look_age_seconds", _FLOW, "s", "Since the source's log ends were last known.", "The driver."),
    _gauge("flow_paused", _FLOW, "1", "1 while a person has paused all of it.", "The plan."),
    _gauge("flow_paused_topics", _FLOW, "topics", "Topics that a person has paused.", "The plan."),
    _gauge(
        "flow_bandwidth_limit_bytes_per_second",
        _FLOW,
        "bytes/s",
        "What its lanes may read together; 0 without a limit.",
    ),
    _gauge(
        "flow_held_by_bandwidth_limit",
        _FLOW,
        "1",
        "1 while a lane waits for its share of the limit for a fifth of the time or more.",
    ),
    _gauge(
        "partitions_with_own_series",
        _FLOW,
        "1",
        "0 while there are more than metrics.partitions.max.",
        "The collector.",
    ),
)
_PARTITIONS = (
    _gauge(
        "partition_lag_records", _PARTITION, "records", "Offsets on the source that are not on the target yet.", _ENDS
    ),
    _gauge(
        "partition_lag_bytes",
        _PARTITION,
        "bytes",
        "The same in bytes.",
        "Estimated by the mean size of records carried.",
    ),
    _gauge("partition_lag_seconds", _PARTITION, "s", "Since when the oldest of them waits, as far as was seen.", _ENDS),
    _gauge("partition_latency_seconds", _PARTITION, "s", "Age of the last batch when it was on the target."),
    _gauge("partition_source_end_offset", _PARTITION, "offset", "Where the source's log ends.", _ENDS),
    _gauge("partition_source_next_offset", _PARTITION, "offset", "The next offset of the source to be carried."),
    _gauge("partition_target_end_offset", _PARTITION, "offset", "The target's offset after the last record carried."),
    _counter("partition_records", _PARTITION, "records", "Records carried"),
    _counter("partition_bytes", _PARTITION, "bytes", "Bytes carried, as compressed"),
    _counter("partition_reencoded_batches", _PARTITION, "batches", "Batches that could not go as they are"),
)
_EVENTS = (
    _gauge("events", ("flow", "kind"), "events", "Events that nobody acknowledged.", "The status topic."),
    _gauge(
        "gap_records", _FLOW, "records", "Offsets that the source lost before they were carried.", "Events data.gap."
    ),
    _gauge("skipped_by_origin_records", ("flow", "origin"), "records", "Left out since that mirror had written them."),
    _gauge("skipped_by_origin_batches", ("flow", "origin"), "batches", "Left out since that mirror had written them."),
    _gauge(
        "identical_partitions",
        ("flow", "holds"),
        "partitions",
        "With offsets=identical: that have them (true), lost them.",
    ),
)
_LANES = (
    _gauge("lane_state", (*_LANE, "state"), "1", "1 for the state that the lane is in, 0 for the others."),
    _gauge("lane_report_age_seconds", _LANE, "s", "Since the lane's last report arrived here."),
    _gauge("lane_partitions", _LANE, "partitions", "Partitions that the lane carries."),
    _gauge("lane_waiting_partitions", _LANE, "partitions", "Partitions of the lane that do not flow."),
    _gauge("lane_held_bytes", _LANE, "bytes", "Fetched and not yet acknowledged."),
    _gauge(
        "lane_epoch_pause_seconds",
        _LANE,
        "s",
        "From the end of the last attempt to its successor's first report as carrying.",
    ),
    _counter("lane_attempts", _LANE, "attempts", "Attempts that reported; a new epoch is one"),
    _counter(
        "lane_cpu_seconds",
        _LANE,
        "s",
        "CPU of the lane's process. Lanes that carry before Spark share a process: each tells all of it",
    ),
    _counter("lane_batches", _LANE, "batches", "Batches carried"),
    _counter("lane_fences", _LANE, "partitions", "Partitions on which an earlier writer was shut out"),
    _counter(
        "lane_duplicates_avoided",
        _LANE,
        "records",
        "Offsets found on the target beyond the last committed position, not sent again",
        "Tails that recoveries compared.",
    ),
    _counter("lane_position_commits", _LANE, "commits", "Commits of positions"),
    _counter("lane_position_commits_failed", _LANE, "commits", "Commits of positions that failed"),
    _counter(
        "lane_bandwidth_held_seconds", _LANE, "s", "Time for which fetches waited for the lane's share of a limit"
    ),
    _counter("lane_bandwidth_holds", _LANE, "waits", "How often they did"),
)
_GROUPS = (
    _gauge("groups", _FLOW, "groups", "Groups that the flow looks after.", "The group job."),
    _gauge("group_offsets", _FLOW, "offsets", "Offsets that they have on the source.", "The group job."),
    _gauge(
        "group_offsets_not_exact",
        _FLOW,
        "offsets",
        "Of these, not translated to exactly the next record.",
        "The group job.",
    ),
    _gauge(
        "group_offsets_waiting",
        _FLOW,
        "offsets",
        "Of these, ahead of the mirror: their records are on the way.",
        "The group job.",
    ),
    _gauge(
        "group_translation_exact_ratio", _FLOW, "1", "Share that is exact; 1 where there are none.", "The group job."
    ),
    _gauge(
        "groups_blocked_on_target",
        _FLOW,
        "groups",
        "Not written since they have members on the target.",
        "The group job.",
    ),
    _gauge(
        "groups_refused", _FLOW, "groups", "That a cluster does not show, or does not let be written.", "The group job."
    ),
    _gauge("groups_polled", _FLOW, "1", "1 where commits are asked for instead of followed.", "The group job."),
    _gauge(
        "group_latency_p95_seconds",
        _FLOW,
        "s",
        "From a commit on the source to the offset written; of the last 1,000.",
        "The group job.",
    ),
    _counter("group_checkpoints_written", _FLOW, "checkpoints", "Checkpoints written", "The group job."),
    _counter("group_offsets_written", _FLOW, "offsets", "Offsets written on the target", "The group job."),
)
_SYNCS = (
    _gauge(
        "sync_age_seconds",
        ("flow", "sync"),
        "s",
        "Since the job last did its work: topics, settings, acls, groups.",
        "The driver.",
    ),
    _gauge(
        "drift_topics", _FLOW, "topics", "Topics whose settings differ although they are kept equal.", "The last pass."
    ),
    _counter("settings_changed", _FLOW, "settings", "Settings changed on the target", "The driver."),
    _counter("acls_granted", _FLOW, "ACLs", "ACLs granted on the target", "The driver."),
    _counter("acls_revoked", _FLOW, "ACLs", "ACLs taken away on the target", "The driver."),
    _gauge(
        "heartbeat_age_seconds", _FLOW, "s", "Since the target took the pair's newest heartbeat.", "The heartbeat job."
    ),
    _gauge("heartbeat_mirrored_age_seconds", _FLOW, "s", "Since a heartbeat of the source came over.", _REPORTS),
    _gauge(
        "certificate_expiry_timestamp_seconds",
        ("flow", "cluster", "certificate"),
        "s",
        "When it ends: `broker` as the cluster showed it, `truststore`, `keystore`.",
        "The driver's connections and files, looked at once an hour.",
    ),
)
OWN: tuple[Metric, ...] = (*_FLOWS, *_PARTITIONS, *_EVENTS, *_LANES, *_GROUPS, *_SYNCS)
