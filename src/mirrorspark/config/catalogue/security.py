"""Client security: the ssl. and sasl. keys that Kafka's clients accept everywhere, and which of them are applied."""

from __future__ import annotations

from mirrorspark.config.definition import Definition, Kind, Scope

__all__ = ["SECURITY"]

_SCOPE = Scope.TOP | Scope.CLUSTER | Scope.CLIENT
_JAVA = "it selects a Java implementation, and TLS is Python's (OpenSSL)"
_KERBEROS = "it belongs to sasl.mechanism=GSSAPI, which is not there yet"
_OAUTH = "it belongs to sasl.mechanism=OAUTHBEARER, which is not there yet"
_KEY_AS_TEXT = "keys as text are not read so far; put key and chain into a PEM file and set ssl.keystore.location"
_VERSIONS = "both sides agree on the newest version that they have, TLS 1.2 or later"
_NO_JAVA = "no Java class can be loaded"
_STORE = "it opens a JKS or PKCS12 store, and only PEM is read so far; a PEM key's password is ssl.key.password"


def _applied(name: str, kind: Kind, help_: str, default: str | None = None, importance: str = "medium") -> Definition:
    return Definition(
        name, kind, help_, default=default, scope=_SCOPE, applied="the cluster's connections", importance=importance
    )


def _none(
    name: str, because: str, kind: Kind = Kind.TEXT, default: str | None = None, harmless: tuple[str, ...] = ()
) -> Definition:
    return Definition(
        name,
        kind,
        _HELP.get(name, "Client security."),
        default=default,
        scope=_SCOPE,
        no_meaning=because,
        harmless=harmless,
    )


def _refused(name: str, because: str, kind: Kind = Kind.CLASS) -> Definition:
    return Definition(name, kind, _HELP.get(name, "Client security."), scope=_SCOPE, refused=because)


_HELP = {
    "ssl.protocol": "TLS version of the context.",
    "ssl.enabled.protocols": "TLS versions that may be used.",
    "ssl.cipher.suites": "Cipher suites that may be used.",
    "ssl.keystore.key": "Private key as PEM text.",
    "ssl.keystore.certificate.chain": "Certificate chain as PEM text.",
    "ssl.keystore.password": "Password of a key store.",
    "ssl.truststore.password": "Password of a trust store.",
    "ssl.engine.factory.class": "Java class that makes TLS engines.",
    "sasl.client.callback.handler.class": "Java class that answers a mechanism's questions.",
    "sasl.login.callback.handler.class": "Java class that logs in.",
    "sasl.login.class": "Java class that keeps a login fresh.",
    "sasl.kerberos.service.name": "Kerberos principal of the brokers.",
    "sasl.oauthbearer.token.endpoint.url": "Where tokens come from.",
}

_SSL: tuple[Definition, ...] = (
    _applied("security.protocol", Kind.TEXT, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.", "PLAINTEXT", "high"),
    _applied(
        "ssl.truststore.location",
        Kind.TEXT,
        "File with the certificates to trust; without it the system's.",
        importance="high",
    ),
    _applied("ssl.truststore.certificates", Kind.SECRET, "Certificates to trust, as PEM text.", importance="high"),
    _applied(
        "ssl.truststore.type", Kind.TEXT, "Must be PEM where a location is given; JKS and PKCS12 are refused.", "JKS"
    ),
    _applied("ssl.keystore.location", Kind.TEXT, "File with our own key and certificate chain.", importance="high"),
    _applied(
        "ssl.keystore.type", Kind.TEXT, "Must be PEM where a location is given; JKS and PKCS12 are refused.", "JKS"
    ),
    _applied("ssl.key.password", Kind.SECRET, "Password of our own key.", importance="high"),
    _applied(
        "ssl.endpoint.identification.algorithm",
        Kind.TEXT,
        "https checks the broker's host name; empty does not.",
        "https",
    ),
    _refused("ssl.keystore.key", _KEY_AS_TEXT, Kind.SECRET),
    _refused("ssl.keystore.certificate.chain", _KEY_AS_TEXT, Kind.SECRET),
    _refused("ssl.engine.factory.class", _NO_JAVA),
    _none("ssl.truststore.password", _STORE, Kind.SECRET),
    _none("ssl.keystore.password", _STORE, Kind.SECRET),
    _none("ssl.protocol", _VERSIONS, default="TLSv1.3", harmless=("TLS", "TLSv1.2", "TLSv1.3")),
    _none(
        "ssl.enabled.protocols",
        _VERSIONS,
        Kind.LIST,
        "TLSv1.2,TLSv1.3",
        ("TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2", "TLSv1.2, TLSv1.3", "TLSv1.3, TLSv1.2"),
    ),
    _none("ssl.cipher.suites", "OpenSSL's own default list is used", Kind.LIST, "", ("",)),
    _none("ssl.provider", _JAVA, harmless=("",)),
    _none("ssl.keymanager.algorithm", _JAVA, default="SunX509", harmless=("SunX509", "PKIX")),
    _none("ssl.trustmanager.algorithm", _JAVA, default="PKIX", harmless=("PKIX", "SunX509")),
    _none("ssl.secure.random.implementation", _JAVA),
    _none("security.providers", _JAVA, Kind.LIST),
)

_SASL: tuple[Definition, ...] = (
    _applied(
        "sasl.mechanism",
        Kind.TEXT,
        "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; others are refused by name.",
        "GSSAPI",
        "high",
    ),
    _applied(
        "sasl.jaas.config", Kind.SECRET, "Login module and its options, as Kafka's clients take it.", importance="high"
    ),
    _refused("sasl.client.callback.handler.class", _NO_JAVA),
    _refused("sasl.login.callback.handler.class", _NO_JAVA),
    _refused("sasl.login.class", _NO_JAVA),
    _none("sasl.kerberos.service.name", _KERBEROS),
    _none("sasl.kerberos.kinit.cmd", _KERBEROS, default="/usr/bin/kinit"),
    _none("sasl.kerberos.ticket.renew.window.factor", _KERBEROS, Kind.FRACTION, "0.8"),
    _none("sasl.kerberos.ticket.renew.jitter", _KERBEROS, Kind.FRACTION, "0.05"),
    _none("sasl.kerberos.min.time.before.relogin", _KERBEROS, Kind.WHOLE, "60000"),
    _none("sasl.login.refresh.window.factor", _OAUTH, Kind.FRACTION, "0.8"),
    _none("sasl.login.refresh.window.jitter", _OAUTH, Kind.FRACTION, "0.05"),
    _none("sasl.login.refresh.min.period.seconds", _OAUTH, Kind.WHOLE, "60"),
    _none("sasl.login.refresh.buffer.seconds", _OAUTH, Kind.WHOLE, "300"),
    _none("sasl.login.connect.timeout.ms", _OAUTH, Kind.WHOLE),
    _none("sasl.login.read.timeout.ms", _OAUTH, Kind.WHOLE),
    _none("sasl.login.retry.backoff.ms", _OAUTH, Kind.WHOLE, "100"),
    _none("sasl.login.retry.backoff.max.ms", _OAUTH, Kind.WHOLE, "10000"),
    *(
        _none(f"sasl.oauthbearer.{name}", _OAUTH, kind, default)
        for name, kind, default in (
            ("token.endpoint.url", Kind.TEXT, None),
            ("jwks.endpoint.url", Kind.TEXT, None),
            ("jwks.endpoint.refresh.ms", Kind.WHOLE, "3600000"),
            ("jwks.endpoint.retry.backoff.ms", Kind.WHOLE, "100"),
            ("jwks.endpoint.retry.backoff.max.ms", Kind.WHOLE, "10000"),
            ("scope", Kind.TEXT, None),
            ("scope.claim.name", Kind.TEXT, "scope"),
            ("sub.claim.name", Kind.TEXT, "sub"),
            ("clock.skew.seconds", Kind.WHOLE, "30"),
            ("expected.audience", Kind.LIST, ""),
            ("expected.issuer", Kind.TEXT, None),
            ("header.urlencode", Kind.SWITCH, "false"),
            ("client.credentials.client.id", Kind.TEXT, None),
            ("client.credentials.client.secret", Kind.SECRET, None),
            ("jwt.retriever.class", Kind.CLASS, "DefaultJwtRetriever"),
            ("jwt.validator.class", Kind.CLASS, "DefaultJwtValidator"),
            ("assertion.algorithm", Kind.TEXT, "RS256"),
            ("assertion.file", Kind.TEXT, None),
            ("assertion.template.file", Kind.TEXT, None),
            ("assertion.private.key.file", Kind.TEXT, None),
            ("assertion.private.key.passphrase", Kind.SECRET, None),
            ("assertion.claim.aud", Kind.TEXT, None),
            ("assertion.claim.exp.seconds", Kind.WHOLE, "300"),
            ("assertion.claim.iss", Kind.TEXT, None),
            ("assertion.claim.jti.include", Kind.SWITCH, "false"),
            ("assertion.claim.nbf.seconds", Kind.WHOLE, "60"),
            ("assertion.claim.sub", Kind.TEXT, None),
        )
    ),
)

SECURITY: tuple[Definition, ...] = (*_SSL, *_SASL)
