"""Client security: the ssl. and sasl. keys that Kafka's clients accept everywhere, and which of them are applied."""

from __future__ import annotations

from mirrorspark.config.definition import Definition, Kind, Scope

__all__ = ["SECURITY"]

_SCOPE = Scope.TOP | Scope.CLUSTER | Scope.CLIENT
_JAVA = "it selects a Java implementation, and TLS is Python's (OpenSSL)"
_KERBEROS = "tickets are got and renewed by Kerberos' own library"
_BROKERS = "brokers check tokens, a client does not"
_RETRIES = "a login that fails is tried again with the connection, by the flow's own pauses"
_ASSERTION = "it belongs to a token by assertion; by client credentials, from a file or unsecured is what there is"
_NO_JAVA = "no Java class can be loaded"


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


def _refused(name: str, because: str, kind: Kind = Kind.CLASS, harmless: tuple[str, ...] = ()) -> Definition:
    help_ = _HELP.get(name, "Client security.")
    return Definition(name, kind, help_, scope=_SCOPE, refused=because, harmless=harmless)


_HELP = {
    "ssl.engine.factory.class": "Java class that makes TLS engines.",
    "sasl.client.callback.handler.class": "Java class that answers a mechanism's questions.",
    "sasl.login.callback.handler.class": "Java class that logs in.",
    "sasl.login.class": "Java class that keeps a login fresh.",
}

_STORE_TYPE = "JKS, PKCS12 or PEM. A file is known by its content, whatever is said here."
_SSL: tuple[Definition, ...] = (
    _applied("security.protocol", Kind.TEXT, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.", "PLAINTEXT", "high"),
    _applied(
        "ssl.truststore.location",
        Kind.TEXT,
        "File with the certificates to trust (PKCS12, JKS, PEM); without it the system's.",
        importance="high",
    ),
    _applied("ssl.truststore.certificates", Kind.SECRET, "Certificates to trust, as PEM text.", importance="high"),
    _applied("ssl.truststore.type", Kind.TEXT, _STORE_TYPE, "JKS"),
    _applied("ssl.truststore.password", Kind.SECRET, "Password of the trust store.", importance="high"),
    _applied(
        "ssl.keystore.location",
        Kind.TEXT,
        "File with our own key and certificate chain (PKCS12, JKS, PEM).",
        importance="high",
    ),
    _applied("ssl.keystore.type", Kind.TEXT, _STORE_TYPE, "JKS"),
    _applied("ssl.keystore.password", Kind.SECRET, "Password of the key store.", importance="high"),
    _applied("ssl.keystore.key", Kind.SECRET, "Our own private key as PEM text.", importance="high"),
    _applied(
        "ssl.keystore.certificate.chain", Kind.SECRET, "Our own certificate chain as PEM text.", importance="high"
    ),
    _applied(
        "ssl.key.password", Kind.SECRET, "Password of our own key, where it is not the store's.", importance="high"
    ),
    _applied(
        "ssl.endpoint.identification.algorithm",
        Kind.TEXT,
        "https checks the broker's host name; empty does not.",
        "https",
    ),
    _applied("ssl.protocol", Kind.TEXT, "Newest TLS version: TLSv1.3, TLSv1.2, or TLS.", "TLSv1.3"),
    _applied("ssl.enabled.protocols", Kind.LIST, "TLS versions that may be used.", "TLSv1.2,TLSv1.3"),
    _applied("ssl.cipher.suites", Kind.LIST, "Cipher suites that may be used; without it OpenSSL's default list.", ""),
    _refused("ssl.engine.factory.class", _NO_JAVA, harmless=("DefaultSslEngineFactory",)),
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
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, or GSSAPI where the library gssapi is installed.",
        "GSSAPI",
        "high",
    ),
    _applied(
        "sasl.jaas.config", Kind.SECRET, "Login module and its options, as Kafka's clients take it.", importance="high"
    ),
    _refused("sasl.client.callback.handler.class", _NO_JAVA, harmless=("OAuthBearerSaslClientCallbackHandler",)),
    _refused(
        "sasl.login.callback.handler.class",
        f"{_NO_JAVA}; what Kafka's own do is done here",
        harmless=("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler"),
    ),
    _refused("sasl.login.class", _NO_JAVA, harmless=("OAuthBearerRefreshingLogin", "DefaultLogin")),
    _applied("sasl.kerberos.service.name", Kind.TEXT, "The brokers' name in Kerberos; for GSSAPI."),
    _none("sasl.kerberos.kinit.cmd", _KERBEROS, default="/usr/bin/kinit"),
    _none("sasl.kerberos.ticket.renew.window.factor", _KERBEROS, Kind.FRACTION, "0.8"),
    _none("sasl.kerberos.ticket.renew.jitter", _KERBEROS, Kind.FRACTION, "0.05"),
    _none("sasl.kerberos.min.time.before.relogin", _KERBEROS, Kind.WHOLE, "60000"),
    _applied(
        "sasl.login.refresh.window.factor", Kind.FRACTION, "Part of a token's life after which a new one is got.", "0.8"
    ),
    _applied("sasl.login.refresh.window.jitter", Kind.FRACTION, "By how much of its life that varies.", "0.05"),
    _applied(
        "sasl.login.refresh.min.period.seconds", Kind.WHOLE, "Time between two tokens, at least; in seconds.", "60"
    ),
    _applied(
        "sasl.login.refresh.buffer.seconds",
        Kind.WHOLE,
        "Time before a token's end in which none is got, in seconds; a token of a short life knows no such time.",
        "300",
    ),
    _applied("sasl.login.connect.timeout.ms", Kind.WHOLE, "Time for the token endpoint to answer; 8,000 at most."),
    _applied("sasl.login.read.timeout.ms", Kind.WHOLE, "Time for the token endpoint to answer; 8,000 at most."),
    _none("sasl.login.retry.backoff.ms", _RETRIES, Kind.WHOLE, "100"),
    _none("sasl.login.retry.backoff.max.ms", _RETRIES, Kind.WHOLE, "10000"),
    _applied(
        "sasl.oauthbearer.token.endpoint.url",
        Kind.TEXT,
        "Where tokens come from by client credentials; file:/… for a token that somebody else renews.",
        importance="high",
    ),
    _applied("sasl.oauthbearer.scope", Kind.TEXT, "What is asked for with the token; else scope in sasl.jaas.config."),
    _applied(
        "sasl.oauthbearer.client.credentials.client.id", Kind.TEXT, "Our name; else clientId in sasl.jaas.config."
    ),
    _applied(
        "sasl.oauthbearer.client.credentials.client.secret",
        Kind.SECRET,
        "Our secret; else clientSecret in sasl.jaas.config.",
    ),
    _applied("sasl.oauthbearer.header.urlencode", Kind.SWITCH, "Name and secret are sent URL-encoded.", "false"),
    _refused(
        "sasl.oauthbearer.jwt.retriever.class",
        _NO_JAVA,
        harmless=("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever"),
    ),
    _none("sasl.oauthbearer.jwt.validator.class", _BROKERS, Kind.CLASS, "DefaultJwtValidator"),
    *(
        _none(f"sasl.oauthbearer.{name}", _BROKERS, kind, default)
        for name, kind, default in (
            ("jwks.endpoint.url", Kind.TEXT, None),
            ("jwks.endpoint.refresh.ms", Kind.WHOLE, "3600000"),
            ("jwks.endpoint.retry.backoff.ms", Kind.WHOLE, "100"),
            ("jwks.endpoint.retry.backoff.max.ms", Kind.WHOLE, "10000"),
            ("scope.claim.name", Kind.TEXT, "scope"),
            ("sub.claim.name", Kind.TEXT, "sub"),
            ("clock.skew.seconds", Kind.WHOLE, "30"),
            ("expected.audience", Kind.LIST, ""),
            ("expected.issuer", Kind.TEXT, None),
        )
    ),
    *(
        _none(f"sasl.oauthbearer.assertion.{name}", _ASSERTION, kind, default)
        for name, kind, default in (
            ("algorithm", Kind.TEXT, "RS256"),
            ("file", Kind.TEXT, None),
            ("template.file", Kind.TEXT, None),
            ("private.key.file", Kind.TEXT, None),
            ("private.key.passphrase", Kind.SECRET, None),
            ("claim.aud", Kind.TEXT, None),
            ("claim.exp.seconds", Kind.WHOLE, "300"),
            ("claim.iss", Kind.TEXT, None),
            ("claim.jti.include", Kind.SWITCH, "false"),
            ("claim.nbf.seconds", Kind.WHOLE, "60"),
            ("claim.sub", Kind.TEXT, None),
        )
    ),
)

SECURITY: tuple[Definition, ...] = (*_SSL, *_SASL)
