"""Strimzi's ``tls`` and ``authentication`` of a cluster, as Kafka's client properties. Strimzi's reader calls it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirrorspark.config.forms.jaas_text import quoted
from mirrorspark.config.forms.nodes import Node
from mirrorspark.config.forms.secret_store import Found, SecretStore
from mirrorspark.config.forms.strimzi_fields import check_fields

__all__ = ["OAUTH_HANDLER", "SecurityReader"]

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
MECHANISMS = {
    "plain": ("PLAIN", PLAIN_MODULE),
    "scram-sha-256": ("SCRAM-SHA-256", SCRAM_MODULE),
    "scram-sha-512": ("SCRAM-SHA-512", SCRAM_MODULE),
}
_OAUTH_TEXTS = {
    "clientId": "oauth.client.id",
    "username": "oauth.password.grant.username",
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "grantType": "oauth.client.credentials.grant.type",
    "scope": "oauth.scope",
    "audience": "oauth.audience",
    "accessTokenIsJwt": "oauth.access.token.is.jwt",
    "maxTokenExpirySeconds": "oauth.max.token.expiry.seconds",
    "connectTimeoutSeconds": "oauth.connect.timeout.seconds",
    "readTimeoutSeconds": "oauth.read.timeout.seconds",
    "httpRetries": "oauth.http.retries",
    "httpRetryPauseMs": "oauth.http.retry.pause.millis",
    "enableMetrics": "oauth.enable.metrics",
    "includeAcceptHeader": "oauth.include.accept.header",
    "accessTokenLocation": "oauth.access.token.location",
    "clientAssertionLocation": "oauth.client.assertion.location",
    "clientAssertionType": "oauth.client.assertion.type",
}
_OAUTH_SECRETS = {
    "clientSecret": "oauth.client.secret",
    "accessToken": "oauth.access.token",
    "refreshToken": "oauth.refresh.token",
    "clientAssertion": "oauth.client.assertion",
}


class SecurityReader:
    """``variables`` collects which secret and key each environment variable stands for."""

    def __init__(self, store: SecretStore) -> None:
        self._store = store
        self.variables: dict[str, str] = {}

    def read(self, cluster: Node) -> dict[str, tuple[str, Node]]:
        """Property name -> its value and where that comes from."""
        tls, login = cluster.get("tls"), cluster.get("authentication")
        found: dict[str, tuple[str, Node]] = {}
        uses_sasl = False
        if login is not None:
            kind = login.need("type")
            uses_sasl, properties = self._login(kind.text(), login)
            found |= {name: (value, login) for name, value in properties.items()}
        if tls is not None:
            check_fields(tls, ("trustedCertificates",))
            if (trusted := tls.get("trustedCertificates")) and trusted.items():
                found["ssl.truststore.type"] = ("PEM", trusted)
                found["ssl.truststore.certificates"] = (self._certificates(trusted), trusted)
        if tls is not None or uses_sasl:
            protocol = "SSL" if tls is not None else "PLAINTEXT"
            at = tls if tls is not None else login
            assert at is not None
            found = {"security.protocol": (f"SASL_{protocol}" if uses_sasl else protocol, at), **found}
        return found

    def _login(self, kind: str, login: Node) -> tuple[bool, dict[str, str]]:
        if kind == "tls":
            return False, self._client_certificate(login)
        if kind in MECHANISMS:
            return True, self._password(kind, login)
        if kind == "oauth":
            return True, self._oauth(login)
        if kind == "custom":
            check_fields(login, ("type", "sasl", "config", "secrets"))
            sasl = login.get("sasl")
            config = login.get("config")
            fields: Mapping[str, Node] = config.mapping() if config is not None else {}
            return sasl is not None and sasl.content is True, {name: node.text() for name, node in fields.items()}
        known = ", ".join(("tls", *MECHANISMS, "oauth", "custom"))
        raise login.need("type").error(f"{kind} is no kind of authentication; there is {known}")

    def _client_certificate(self, login: Node) -> dict[str, str]:
        check_fields(login, ("type", "certificateAndKey"))
        pair = login.need("certificateAndKey")
        check_fields(pair, ("secretName", "certificate", "key"))
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": self._find(pair, "certificate").text,
            "ssl.keystore.key": self._find(pair, "key").text,
        }

    def _password(self, kind: str, login: Node) -> dict[str, str]:
        check_fields(login, ("type", "username", "passwordSecret"))
        mechanism, module = MECHANISMS[kind]
        secret = login.need("passwordSecret")
        check_fields(secret, ("secretName", "password"))
        username = quoted(login.need("username").text())
        password = _in_quotes(self._find(secret, "password"))
        return {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{module} required username={username} password={password};",
        }

    def _oauth(self, login: Node) -> dict[str, str]:
        special = ("passwordSecret", "saslExtensions", "disableTlsHostnameVerification", "tlsTrustedCertificates")
        check_fields(login, ("type", *_OAUTH_TEXTS, *_OAUTH_SECRETS, *special))
        options = "".join(f" {name}={value}" for name, value in self._oauth_options(login))
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required{options};",
            "sasl.login.callback.handler.class": OAUTH_HANDLER,
        }

    def _oauth_options(self, login: Node) -> Iterator[tuple[str, str]]:
        for field, option in _OAUTH_TEXTS.items():
            if (node := login.get(field)) is not None:
                yield option, quoted(node.text())
        if (check := login.get("disableTlsHostnameVerification")) is not None and check.content is True:
            yield "oauth.ssl.endpoint.identification.algorithm", quoted("")
        for field, option in _OAUTH_SECRETS.items():
            if (secret := login.get(field)) is not None:
                check_fields(secret, ("secretName", "key"))
                yield option, _in_quotes(self._find(secret, "key"))
        if (secret := login.get("passwordSecret")) is not None:
            yield "oauth.password.grant.password", _in_quotes(self._find(secret, "password"))
        if (more := login.get("saslExtensions")) is not None:
            for name, node in more.mapping().items():
                yield f"oauth.sasl.extension.{name}", quoted(node.text())
        if (trusted := login.get("tlsTrustedCertificates")) is not None and trusted.items():
            yield "oauth.ssl.truststore.type", quoted("PEM")
            yield "oauth.ssl.truststore.certificates", quoted(self._certificates(trusted))

    def _certificates(self, trusted: Node) -> str:
        texts = []
        for item in trusted.items():
            check_fields(item, ("secretName", "certificate", "pattern"))
            secret = item.need("secretName").text()
            pattern = item.get("pattern")
            keys = [item.need("certificate").text()] if pattern is None else self._matching(secret, pattern)
            texts += [self._reference(secret, key, item).text for key in keys]
        return "\n".join(texts)

    def _matching(self, secret: str, pattern: Node) -> list[str]:
        """Where nothing can be searched and nothing has to be there, the pattern itself stands for its keys."""
        return self._store.matching(secret, pattern.text(), pattern) or [pattern.text()]

    def _find(self, node: Node, field: str) -> Found:
        return self._reference(node.need("secretName").text(), node.need(field).text(), node)

    def _reference(self, secret: str, key: str, at: Node) -> Found:
        found = self._store.find(secret, key, at)
        if found.variable:
            self.variables[found.variable] = f"{secret}:{key}"
        return found


def _in_quotes(found: Found) -> str:
    """A reference stands between the quotes as it is; a value that would break them is written out with escapes."""
    value = found.value
    if value is not None and (not found.is_reference or any(char in value for char in '"\\\n\r')):
        return quoted(value.rstrip("\r\n"))  # a line's end comes from the editor, not from the password
    return f'"{found.text}"'
