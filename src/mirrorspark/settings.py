"""What a run is told to do, as values: clusters, flows and limits.

``ClusterSettings`` and ``FlowSettings`` travel to the executors inside a pickled lane; their reprs hide secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow

__all__ = [
    "Bandwidth",
    "ClusterSettings",
    "ConnectNames",
    "FlowSettings",
    "GroupSync",
    "Heartbeats",
    "Limits",
    "MetricsSettings",
    "Naming",
    "Policies",
    "RestSettings",
    "TopicSync",
]

TRANSACTION_TIMEOUT_MS_ANYWHERE = 60_000
"""A transaction's longest time that every cluster may be asked for; it is Kafka's own default for producers."""
CONFIG_PROPERTIES_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
    r"min\.insync\.replicas"
)
"""MirrorMaker 2's config.properties.exclude."""


def parse_bootstrap(text: str, key: str) -> tuple[tuple[str, int], ...]:
    """``host:port,[::1]:port`` -> pairs. Raises SettingsError that names the key."""
    servers = []
    for item in (part.strip() for part in text.split(",")):
        if not item:
            continue
        host, colon, port = item.rpartition(":")
        if not colon or not port.isdigit() or not 0 < int(port) < 65536 or not host:
            raise SettingsError(f"{key}: '{item}' is not host:port", key=key)
        servers.append((host.strip("[]"), int(port)))
    if not servers:
        raise SettingsError(f"{key}: no server given", key=key)
    return tuple(servers)


@dataclass(frozen=True)
class ClusterSettings:
    """How to reach one cluster. ``client`` holds Kafka client properties (security.*, ssl.*, sasl.*, client.rack …)."""

    alias: str
    bootstrap: tuple[tuple[str, int], ...]
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Its secrets are ``Secret``: hidden wherever somebody shows one."""
    request_timeout_s: float = 30.0

    @property
    def login(self) -> dict[str, str]:
        """``client`` with its secrets as they are, for whoever opens a connection or a store. Never shown."""
        return {key: "".join(value) for key, value in self.client.items()}


@dataclass(frozen=True)
class Limits:
    """Every bound of a lane, with its unit."""

    lane_memory_bytes_max: int = 16 * 1024 * 1024
    """Fetched and not yet acknowledged bytes that one lane holds."""
    partition_memory_bytes_max: int = 4 * 1024 * 1024
    """The same for one partition: a stuck one leaves room to the others, and what is carried stays in the CPU's cache
    (docs/decisions/0012). A link of much bandwidth and a long round trip wants their product."""
    fetch_bytes_max: int = 4 * 1024 * 1024
    fetch_partition_bytes_max: int = 2 * 1024 * 1024
    fetch_wait_ms_max: int = 500
    produce_request_bytes_max: int = 4 * 1024 * 1024
    """Batches of several partitions share a request up to this size; a single larger batch goes alone."""
    produce_requests_in_flight_max: int = 5
    """For each target broker; a broker remembers just five batches of a producer, so never above 5."""
    produce_timeout_ms: int = 30_000
    position_commit_interval_ms: int = 1_000
    position_commit_bytes_max: int = 64 * 1024 * 1024
    """A position is committed after this many bytes too, which bounds the tail that a recovery reads."""
    progress_interval_ms: int = 5_000
    """Ledger and MirrorMaker 2 progress are written this often, and at each clean end."""
    report_interval_ms: int = 1_000
    receipts_interval_ms: int = 60_000
    """While Spark takes them the lane stands still, some 20 ms."""
    release_wait_ms_max: int = 10_000
    """How long a lane waits for a partition that another lane should let go, before it fences that lane there."""
    transaction_interval_ms: int = 100
    """With exactly.once.source.support=enabled: how often a lane commits its transaction."""
    transaction_timeout_ms: int = 900_000
    """A killed lane's transaction is committed by its successor, if one comes in this time. After it the coordinator aborts
    it, and who reads uncommitted data sees its records a second time. Brokers allow no more than this unless told."""
    topic_deletions_max: int = 10
    """With on.source.topic.deleted=delete: a pass that would delete more deletes nothing and says so."""
    walks_at_once_max: int = 4
    """Partitions of a lane whose target tail is read at the same time during a recovery."""


@dataclass(frozen=True)
class Policies:
    """What to do in the cases that are never silent."""

    on_data_gap: str = "continue"
    on_topic_recreated: str = "restart"
    on_record_too_large: str = "stop"
    on_source_topic_deleted: str = "keep"
    """``keep`` the copy, or ``delete`` it (never more than ``Limits.topic_deletions_max`` in one pass)."""
    on_target_topic_deleted: str = "recreate"
    """``recreate`` and go on where the flow stands, or ``remirror`` all that the source has."""
    on_mirror_maker_running: str = "fail"
    """``fail``: a flow that MirrorMaker 2 is carrying is not started; ``continue``: beside it, all records twice."""


@dataclass(frozen=True)
class ConnectNames:
    """What MirrorMaker 2 calls its own things on the target: a flow is taken over from there, and handed back there."""

    offsets_topic: str = ""
    """Where Connect keeps the source offsets; "" for a dedicated MirrorMaker 2's, after the source's alias."""
    status_topic: str = ""
    group: str = ""
    connector: str = "MirrorSourceConnector"
    """The source connector's name: dedicated MirrorMaker 2 uses the class name, Connect whatever it was given."""


@dataclass(frozen=True)
class TopicSync:
    """What of a topic besides its records is kept equal, how often, and by which rules."""

    refresh_enabled: bool = True
    refresh_interval_s: float = 5.0
    configs_enabled: bool = True
    configs_interval_s: float = 60.0
    config_properties_exclude: str = CONFIG_PROPERTIES_EXCLUDE
    use_defaults_from: str = "target"
    acls_enabled: bool = True
    acls_interval_s: float = 60.0
    acls_revoke: bool = False
    """Also take away on the target what was taken away on the source; only what the mirror itself had granted."""
    acls_prefixed: bool = False
    """Also carry ACLs with a prefix instead of a topic's whole name."""


@dataclass(frozen=True)
class GroupSync:
    """Consumer groups: whose offsets are translated, and the topics in which MirrorMaker 2 keeps what that needs."""

    groups: str = ".*"
    groups_exclude: str = "console-consumer-.*, connect-.*, __.*"
    refresh_enabled: bool = True
    refresh_interval_s: float = 600.0
    checkpoints_enabled: bool = True
    checkpoints_interval_s: float = 60.0
    checkpoints_replication_factor: int = 3
    offsets_enabled: bool = False
    """Write translated offsets to the groups on the target (sync.group.offsets.enabled)."""
    offsets_interval_s: float = 60.0
    offset_syncs_enabled: bool = True
    offset_syncs_on_target: bool = False
    offset_syncs_replication_factor: int = 3
    offset_lag_max: int = 100


@dataclass(frozen=True)
class Heartbeats:
    emitted: bool = True
    interval_s: float = 1.0
    replicated: bool = True
    """Heartbeats topics are mirrored whatever ``topics`` says."""
    replication_factor: int = 3


@dataclass(frozen=True)
class MetricsSettings:
    """Of a process, not of a flow: where ``/metrics`` is served, and how many series it may have."""

    listener: tuple[str, int] | None = None
    """Host and port; None: not served."""
    partitions_max: int = 1_000
    """Partitions of a flow with series of their own; where there are more, each topic has one sum instead."""
    checkpoints_max: int = 1_000
    """Groups times partitions of a flow with a checkpoint latency of their own; where there are more, there is one."""


@dataclass(frozen=True)
class RestSettings:
    """Of a process: where REST and the page are served, and to whom."""

    listeners: tuple[str, ...] = ()
    """``http://host:port`` or https; none: not served."""
    certificate: str = ""
    """For https, of the command line: a PEM file, or a key store of any kind."""
    key: str = ""
    """The certificate's, in a PEM file of its own; "": it is in the other one."""
    users: str = ""
    """A file of users and tokens with their roles; "": everybody may do everything."""
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    """``ssl.*`` of the listeners, as the file has them; the command line's certificate counts more."""


@dataclass(frozen=True)
class Naming:
    """The replication policy: ``default``, ``identity``, ``same-name`` (identity with protection against loops) or the
    name of an entry point in the group ``mirrorspark.replication_policy``."""

    policy: str = "default"
    separator: str = "."
    internal_separator_enabled: bool = True


@dataclass(frozen=True)
class Bandwidth:
    """How fast a flow may read its source: bytes of record batches a second, as the source has them. 0: no limit. Only the
    driver goes by it; lanes are told their shares (``plan.bandwidth``)."""

    bytes_per_s_max: int = 0
    total_bytes_per_s_max: int = 0
    """What all flows of the process may read together; divided by ``priority`` among those that want more."""
    priority: int = 5


@dataclass(frozen=True)
class FlowSettings:
    """One flow with everything that its driver and lanes need."""

    flow: Flow
    source: ClusterSettings
    target: ClusterSettings
    topics: str = ".*"
    topics_exclude: str = r".*[\-\.]internal, .*\.replica, __.*"
    tasks_max: int = 1
    replication_factor: int = 2
    internal_replication_factor: int = 3
    epoch_s: float = 300.0
    transactions: bool = False
    read_committed: bool = False
    start_at_latest: bool = False
    """As the consumer's auto.offset.reset has it; what ``start_at`` says goes before it (``plan.start_positions``)."""
    start_at: str = ""
    start_at_topics: tuple[tuple[str, str], ...] = ()
    """Topic and where its partitions begin."""
    start_before_spark: bool = True
    """Whether lanes outside of Spark carry while it starts (``pipeline.bridge``)."""
    offsets: str = "translated"
    """``translated`` by the ledger, or ``identical``: each record at its own offset on the target too."""
    client_rack: str = ""
    aliases: tuple[str, ...] = ()
    """Other clusters of the deployment whose names contain the separator, so that topics from there are recognised."""
    naming: Naming = field(default_factory=Naming)
    topic_sync: TopicSync = field(default_factory=TopicSync)
    group_sync: GroupSync = field(default_factory=GroupSync)
    heartbeats: Heartbeats = field(default_factory=Heartbeats)
    limits: Limits = field(default_factory=Limits)
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    policies: Policies = field(default_factory=Policies)
    connect: ConnectNames = field(default_factory=ConnectNames)
    enabled: bool = True
    """False: heartbeats only, as MirrorMaker 2 has it for every pair of clusters unless told otherwise."""

    @property
    def writer_timeout_ms(self) -> int:
        """How long a lane's transaction may be open; without transactions there are only those that fence."""
        return self.limits.transaction_timeout_ms if self.transactions else TRANSACTION_TIMEOUT_MS_ANYWHERE

    @property
    def starts_before_spark(self) -> bool:
        """Not with transactions: Spark's lane would abort what a living lane has just begun, and send it a second time.
        Nor with identical offsets: the marker by which Spark's lane shuts out a living one would take an offset."""
        return self.start_before_spark and not self.transactions and not self.identical_offsets

    @property
    def identical_offsets(self) -> bool:
        return self.offsets == "identical"

    @property
    def keeps_names(self) -> bool:
        """Whether a remote topic is named as its source topic."""
        return self.naming.policy in ("identity", "same-name")
