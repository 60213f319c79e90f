"""Keys of the file as a whole: clusters, config providers, metrics, REST."""

from __future__ import annotations

from mirrorspark.config.definition import Definition, Kind, Scope

__all__ = ["REMOVED", "TOP_LEVEL"]

_NO_REST = "there are no workers that would talk to each other"

REMOVED = {
    "topics.blacklist": "topics.exclude",
    "topics.whitelist": "topics",
    "groups.blacklist": "groups.exclude",
    "groups.whitelist": "groups",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Keys of older MirrorMakers, and what is said instead. They are refused: without them more would be mirrored."""


def _rest(name: str, kind: Kind, default: str | None, help_: str, scope: Scope = Scope.TOP) -> Definition:
    return Definition(name, kind, help_, default=default, scope=scope, no_meaning=_NO_REST)


TOP_LEVEL: tuple[Definition, ...] = (
    Definition(
        "clusters",
        Kind.LIST,
        "Aliases of the clusters, each once; letters, digits, '.', '_' and '-'.",
        scope=Scope.TOP,
        applied="the clusters and their ordered pairs",
        importance="high",
        required=True,
    ),
    Definition(
        "bootstrap.servers",
        Kind.SERVERS,
        "Where the cluster is found.",
        scope=Scope.CLUSTER | Scope.CLIENT,
        applied="addresses of the cluster",
        importance="high",
        required=True,
    ),
    Definition(
        "config.providers",
        Kind.LIST,
        "Names of config providers for ${name:path:key}.",
        default="",
        scope=Scope.TOP | Scope.CLUSTER,
        applied="values of other keys; env, file and dir are there without it",
    ),
    Definition(
        "config.providers.*",
        Kind.TEXT,
        "NAME.class and NAME.param.…: EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider.",
        scope=Scope.TOP | Scope.CLUSTER,
        applied="values of other keys",
    ),
    Definition(
        "metrics.listener",
        Kind.TEXT,
        "HOST:PORT at which /metrics is served to Prometheus; without HOST only this machine is. The option --metrics wins.",
        scope=Scope.TOP,
        applied="the address of /metrics; none without it",
    ),
    Definition(
        "metrics.partitions.max",
        Kind.WHOLE,
        "Partitions of a flow with series of their own; where there are more, each topic has one sum instead.",
        default="1000",
        low=0,
        high=100_000,
        unit="partitions",
        scope=Scope.TOP,
        applied="how many series /metrics has",
    ),
    Definition(
        "metrics.checkpoints.max",
        Kind.WHOLE,
        "Groups times partitions of a flow with a checkpoint latency of their own; where there are more, there is one.",
        default="1000",
        low=0,
        high=100_000,
        unit="series",
        scope=Scope.TOP,
        applied="how many series /metrics has",
    ),
    _rest("dedicated.mode.enable.internal.rest", Kind.SWITCH, "false", "REST between MirrorMaker 2's nodes."),
    Definition(
        "listeners",
        Kind.LIST,
        "Where REST, /metrics and the page are served: http://HOST:PORT or https://HOST:PORT; without HOST to this machine "
        "alone. The option --listen wins.",
        default="http://:8083",
        ours="",
        why="nothing is served unless the file says so",
        scope=Scope.TOP | Scope.CLUSTER,
        applied="addresses of the REST interface; at a cluster's level it is not used",
    ),
    *(
        Definition(
            f"listeners.https.ssl.{name}",
            kind,
            f"For https: {text}",
            scope=Scope.TOP | Scope.CLUSTER,
            applied="TLS of the REST interface",
        )
        for name, kind, text in (
            (
                "keystore.location",
                Kind.TEXT,
                "a file with the certificate and its key: PKCS12, JKS or PEM, known by its content. The options "
                "--tls-certificate and --tls-key win.",
            ),
            ("keystore.password", Kind.SECRET, "the password of that file."),
            ("keystore.type", Kind.TEXT, "JKS, PKCS12 or PEM; what the file is counts more."),
            ("keystore.key", Kind.SECRET, "the private key as PEM text, instead of a file."),
            ("keystore.certificate.chain", Kind.SECRET, "its certificates as PEM text."),
            ("key.password", Kind.SECRET, "the password of the private key, where it has one of its own."),
            ("truststore.location", Kind.TEXT, "whose certificates clients may show: PKCS12, JKS or PEM."),
            ("truststore.password", Kind.SECRET, "the password of that file."),
            ("truststore.type", Kind.TEXT, "JKS, PKCS12 or PEM; what the file is counts more."),
            ("truststore.certificates", Kind.SECRET, "certificates to trust as PEM text, instead of a file."),
            ("client.auth", Kind.TEXT, "none, requested or required: whether clients show a certificate."),
            ("protocol", Kind.TEXT, "TLSv1.3, TLSv1.2 or TLS."),
            ("enabled.protocols", Kind.LIST, "versions that are spoken."),
            ("cipher.suites", Kind.LIST, "suites that are offered, by Java's or OpenSSL's names."),
        )
    ),
    Definition(
        "rest.users.file",
        Kind.TEXT,
        "Who may do what by REST, as a file of users and tokens with their roles; without it everybody may do everything. "
        "The option --users wins.",
        scope=Scope.TOP,
        applied="users and roles of the REST interface",
    ),
    _rest("listeners.*", Kind.TEXT, None, "Other TLS settings.", Scope.TOP | Scope.CLUSTER),
    _rest("rest.advertised.host.name", Kind.TEXT, None, "Its host name.", Scope.TOP | Scope.CLUSTER),
    _rest("rest.advertised.port", Kind.WHOLE, None, "Its port.", Scope.TOP | Scope.CLUSTER),
    _rest("rest.advertised.listener", Kind.TEXT, None, "Its listener's protocol.", Scope.TOP | Scope.CLUSTER),
    _rest("access.control.allow.origin", Kind.TEXT, "", "CORS origin header.", Scope.TOP | Scope.CLUSTER),
    _rest("access.control.allow.methods", Kind.TEXT, "", "CORS methods.", Scope.TOP | Scope.CLUSTER),
    _rest("response.http.headers.config", Kind.TEXT, "", "Extra HTTP headers.", Scope.TOP | Scope.CLUSTER),
    _rest("ssl.client.auth", Kind.TEXT, "none", "TLS client authentication.", Scope.TOP | Scope.CLUSTER),
)
