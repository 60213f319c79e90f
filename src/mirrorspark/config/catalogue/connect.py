"""Keys of the Connect framework: what its workers and connectors read, and a mirror without Connect has no use for."""

from __future__ import annotations

from mirrorspark.config.definition import CONNECTORS, SOURCE, Definition, Kind, Scope

__all__ = ["CONNECT"]

_WORKER = Scope.CLUSTER
_WORKER_AND_TOP = Scope.TOP | Scope.CLUSTER
"""Keys that MirrorMaker 2 hands from the top level on to its workers."""
_EVERYWHERE = Scope.TOP | Scope.CLUSTER | Scope.FLOW
_NO_WORKERS = "there are no Connect workers; Spark runs the lanes and starts them again"
_NO_REST = "there are no Connect workers that would talk to each other"
_AS_THEY_ARE = "records are carried as they are, which is what ByteArrayConverter does"
_POSITIONS = "positions are committed every second and proved from the target's own log"
_NO_CONVERSION = "batches are not opened, so no record can fail to be converted; see on.record.too.large"


def _none(
    name: str,
    because: str,
    kind: Kind = Kind.TEXT,
    *,
    help_: str = "Of a Connect worker.",
    scope: Scope = _WORKER,
    default: str | None = None,
    low: float | None = None,
    unit: str = "",
    choices: tuple[str, ...] = (),
    harmless: tuple[str, ...] = (),
    connectors: tuple[str, ...] = (),
) -> Definition:
    return Definition(
        name,
        kind,
        help_,
        default=default,
        low=low,
        unit=unit,
        choices=choices,
        scope=scope,
        connectors=connectors,
        no_meaning=because,
        harmless=harmless,
    )


def _ms(name: str, because: str, default: str) -> Definition:
    return _none(name, because, Kind.WHOLE, default=default, low=0, unit="ms")


def _store(name: str, what: str, default: str, partitions: bool) -> tuple[Definition, ...]:
    """The three keys of a topic that Connect keeps for itself."""
    because = f"there is no {what} topic"
    shape = []
    if name != "status.storage":
        shape.append(_none(f"{name}.topic", because, scope=_WORKER_AND_TOP, default=default))
    if partitions:
        shape.append(_none(f"{name}.partitions", because, Kind.WHOLE, scope=_WORKER_AND_TOP, low=-1))
    shape.append(_none(f"{name}.replication.factor", because, Kind.WHOLE, scope=_WORKER_AND_TOP, default="3", low=-1))
    return (*shape, _none(f"{name}.*", because, scope=_WORKER_AND_TOP))


def _converter(name: str) -> tuple[Definition, ...]:
    return (
        _none(
            name,
            _AS_THEY_ARE,
            Kind.CLASS,
            help_="Connect's converter.",
            scope=_EVERYWHERE,
            default="org.apache.kafka.connect.converters.ByteArrayConverter",
            harmless=("ByteArrayConverter",),
            connectors=CONNECTORS,
        ),
        _none(f"{name}.*", _AS_THEY_ARE, help_="Settings of that converter.", scope=_EVERYWHERE),
    )


def _refused(name: str, kind: Kind, help_: str, because: str, harmless: tuple[str, ...] = ("",)) -> Definition:
    return Definition(name, kind, help_, refused=because, harmless=harmless, connectors=CONNECTORS)


_TRANSFORMS = "batches are carried unopened, so records cannot be changed or filtered on their way"

CONNECT: tuple[Definition, ...] = (
    # -- applied ---------------------------------------------------------------------------------------------------
    Definition(
        "exactly.once.source.support",
        Kind.CHOICE,
        "enabled: records and progress in transactions; preparing is the same as disabled.",
        default="disabled",
        choices=("disabled", "preparing", "enabled"),
        scope=_WORKER,
        applied="transactions",
        true_when="enabled",
        importance="high",
    ),
    Definition(
        "offset.storage.replication.factor",
        Kind.WHOLE,
        "Of the flow's internal topics when they are created.",
        default="3",
        low=-1,
        high=32767,
        unit="replicas",
        scope=_WORKER_AND_TOP,
        applied="internal_replication_factor",
    ),
    Definition(
        "client.id",
        Kind.TEXT,
        "Client id of the lanes at this cluster; consumer.client.id and producer.client.id win.",
        default="S->T",
        ours="mirrorspark|source, mirrorspark|target",
        why="the broker's log shows which side of a mirror it is",
        scope=_WORKER,
        applied="client id",
    ),
    Definition(
        "request.timeout.ms",
        Kind.WHOLE,
        "Time for one request to the target.",
        default="40000",
        ours="30000",
        why="as consumers and producers have it",
        low=1,
        high=2**31 - 1,
        unit="ms",
        scope=_WORKER,
        applied="time for each request to that cluster as a target",
    ),
    # -- connectors ------------------------------------------------------------------------------------------------
    Definition(
        "name",
        Kind.TEXT,
        "The source connector's name, under which Connect keeps its offsets.",
        default="MirrorSourceConnector",
        scope=Scope.FLOW,
        applied="source offsets are taken over from there, and handed back there",
    ),
    _none(
        "connector.class",
        "one flow does what the three connectors do",
        Kind.CLASS,
        help_="The connector's class.",
        scope=Scope.FLOW,
        harmless=CONNECTORS,
    ),
    _none(
        "tasks.max.enforce",
        "there are never more lanes than tasks.max",
        Kind.SWITCH,
        scope=Scope.TOP | Scope.FLOW,
        default="true",
        connectors=CONNECTORS,
        help_="Fail if there are more tasks.",
    ),
    *_converter("key.converter"),
    *_converter("value.converter"),
    *_converter("header.converter"),
    _refused("transforms", Kind.LIST, "Single message transforms.", _TRANSFORMS),
    _refused("transforms.*", Kind.TEXT, "Settings of a transform.", _TRANSFORMS, ()),
    _refused("predicates", Kind.LIST, "Conditions of transforms.", _TRANSFORMS),
    _refused("predicates.*", Kind.TEXT, "Settings of a predicate.", _TRANSFORMS, ()),
    _none(
        "errors.tolerance",
        _NO_CONVERSION,
        Kind.CHOICE,
        help_="all: drop records that fail.",
        scope=Scope.TOP | Scope.FLOW,
        default="none",
        choices=("none", "all"),
        harmless=("none",),
        connectors=CONNECTORS,
    ),
    *(
        _none(name, because, kind, help_=help_, scope=Scope.TOP | Scope.FLOW, default=default, connectors=CONNECTORS)
        for name, kind, default, help_, because in (
            ("errors.retry.timeout", Kind.WHOLE, "0", "Time for retries.", "what can pass is tried again without end"),
            ("errors.retry.delay.max.ms", Kind.WHOLE, "60000", "Between retries.", "waits have their own bounds"),
            ("errors.log.enable", Kind.SWITCH, "false", "Log errors.", "every trouble is an event and is logged"),
            ("errors.log.include.messages", Kind.SWITCH, "false", "Log records.", "records are never logged"),
            ("connector.plugin.version", Kind.TEXT, None, "Connector's version.", "there are no Connect plugins"),
        )
    ),
    _none(
        "config.action.reload",
        "a secret that changed is read at the next start, or when the file is loaded again",
        Kind.CHOICE,
        help_="When a config provider's value changes.",
        scope=Scope.TOP | Scope.FLOW,
        default="restart",
        choices=("none", "restart"),
        connectors=CONNECTORS,
    ),
    *(
        _none(name, because, kind, help_="Of Connect's source tasks.", scope=Scope.FLOW, connectors=(SOURCE,))
        for name, kind, because in (
            ("transaction.boundary", Kind.TEXT, "a transaction ends after transaction.interval.ms"),
            ("transaction.boundary.interval.ms", Kind.WHOLE, "a transaction ends after transaction.interval.ms"),
            ("topic.creation.groups", Kind.LIST, "a remote topic is created as its source topic is"),
            ("topic.creation.*", Kind.TEXT, "a remote topic is created as its source topic is"),
        )
    ),
    # -- workers ---------------------------------------------------------------------------------------------------
    Definition(
        "offsets.storage.topic",
        Kind.TEXT,
        "The source connector's own topic for its offsets, in place of its worker's.",
        scope=Scope.FLOW,
        connectors=(SOURCE,),
        applied="wins over offset.storage.topic",
    ),
    Definition(
        "offset.storage.topic",
        Kind.TEXT,
        "The topic in which Connect keeps source offsets.",
        default="mm2-offsets.S.internal",
        scope=_WORKER_AND_TOP,
        applied="source offsets are taken over from there, and kept there for MirrorMaker 2",
    ),
    _none("offset.storage.partitions", "Connect's 25 are used", Kind.WHOLE, scope=_WORKER_AND_TOP, low=-1),
    _none("offset.storage.*", "the progress topic is made as Connect makes it", scope=_WORKER_AND_TOP),
    *_store("config.storage", "config", "mm2-configs.S.internal", False),
    *_store("status.storage", "Connect status", "mm2-status.S.internal", True),
    Definition(
        "status.storage.topic",
        Kind.TEXT,
        "The topic in which Connect keeps the state of connectors and tasks.",
        default="mm2-status.S.internal",
        scope=_WORKER_AND_TOP,
        applied="tells whether MirrorMaker 2 is carrying the flow; never written",
    ),
    _ms("offset.flush.interval.ms", _POSITIONS, "60000"),
    _ms("offset.flush.timeout.ms", _POSITIONS, "5000"),
    Definition(
        "group.id",
        Kind.TEXT,
        "Of several mirrors of one flow, each with topics of its own: which one this is.",
        default="S-mm2",
        scope=_WORKER,
        applied="names the flow's own topics, positions and lanes, unless it is the default",
    ),
    *(
        _ms(name, _NO_WORKERS, default)
        for name, default in (
            ("session.timeout.ms", "10000"),
            ("heartbeat.interval.ms", "3000"),
            ("rebalance.timeout.ms", "60000"),
            ("scheduled.rebalance.max.delay.ms", "300000"),
        )
    ),
    _none("worker.sync.timeout.ms", _NO_WORKERS, Kind.WHOLE, scope=_WORKER_AND_TOP, default="3000", low=0, unit="ms"),
    _none(
        "worker.unsync.backoff.ms", _NO_WORKERS, Kind.WHOLE, scope=_WORKER_AND_TOP, default="300000", low=0, unit="ms"
    ),
    _none("worker.*", _NO_WORKERS, scope=_WORKER_AND_TOP),
    _none(
        "task.shutdown.graceful.timeout.ms",
        "a stop waits up to 30 s for lanes to drain",
        Kind.WHOLE,
        scope=_WORKER_AND_TOP,
        default="5000",
        low=0,
        unit="ms",
    ),
    *(
        _none(name, _NO_WORKERS)
        for name in (
            "connect.protocol",
            "connector.client.config.override.policy",
            "plugin.path",
            "plugin.discovery",
            "rest.extension.classes",
            "admin.listeners",
            "topic.tracking.allow.reset",
            "topic.tracking.enable",
            "internal.key.converter",
            "internal.value.converter",
            "rest.port",
            "rest.host.name",
        )
    ),
    _none("internal.key.converter.*", _NO_WORKERS),
    _none("internal.value.converter.*", _NO_WORKERS),
    _none("inter.worker.*", _NO_REST),
    _none(
        "topic.creation.enable",
        "missing topics are created always",
        Kind.SWITCH,
        default="true",
        help_="Let Connect create topics.",
    ),
)
"""Their names at the level where MirrorMaker 2 reads them. A name behind ``consumer.`` and the like is a client's."""
