"""Brokers with a listener for each way to be secured, and what clients need to use them.

Used by the security journeys: ``with SecuredPair(folder) as pair`` starts a source and a target that share a CA, a token
server and users. Clients' settings are Kafka's own property names, as a user would write them; ``librdkafka_settings`` says
the same to confluent-kafka.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mirrorspark.cluster.jaas import parse_jaas
from mirrorspark.cluster.stores import own_key, trusted_certificates
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority, Identity
from mirrorspark.lab.clients import REQUEST_TIMEOUT_S, admin
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.tls_listener import tls_listener
from mirrorspark.lab.token_server import TokenServer

__all__ = ["MATRIX", "PASSWORD", "USER", "SecuredPair", "librdkafka_settings", "set_password"]

USER, PASSWORD = "mirror", "of the mirror"
SESSION_MS = 5_000
"""How long brokers take a login for good, so that logins are repeated within a short test."""
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""Java's property without which brokers fetch no keys."""

MATRIX = ("PLAINTEXT", "SSL", "MTLS", "SCRAM", "OAUTH")
"""Listeners that work, one for each way; ``PLAINTEXT`` is the cluster's own."""
_LISTENERS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SCRAM": "SASL_SSL",
    "OAUTH": "SASL_SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}
_MODULES = "org.apache.kafka.common.security"
_RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


class SecuredPair:
    """``source`` and ``target``, with files of a client's below ``folder``."""

    def __init__(self, folder: Path, *, name: str = "secured") -> None:
        self.folder = folder
        self.authority = Authority("the lab's CA")
        self.other_authority = Authority("another CA")
        self.broker = self.authority.issue("broker", "127.0.0.1", "localhost")
        self.client = self.authority.issue(USER)
        self.tokens = TokenServer({USER: PASSWORD})
        self._files()
        allowed = {ALLOWED_URLS: self.tokens.key_set_url}
        self.source, self.target = (
            ClusterOfBrokers(f"{name}-{side}", settings=self._settings(), listeners=_LISTENERS, java_properties=allowed)
            for side in ("source", "target")
        )
        self._running = ExitStack()

    def __enter__(self) -> SecuredPair:
        with ExitStack() as stack:
            stack.enter_context(self.tokens)
            stack.enter_context(started_together(self.source, self.target))
            for cluster in (self.source, self.target):
                set_password(cluster.bootstrap, USER, PASSWORD)
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    # -- clients ----------------------------------------------------------------------------------------------------

    def bootstrap(self, cluster: ClusterOfBrokers, listener: str) -> str:
        return cluster.bootstrap if listener == "PLAINTEXT" else cluster.bootstrap_of(listener)

    def settings(self, listener: str) -> dict[str, str]:
        """Kafka client properties for a listener; the stores come in different formats."""
        trust = {"ssl.truststore.location": str(self.folder / "trust.p12"), "ssl.truststore.password": STORE_PASSWORD}
        if listener == "PLAINTEXT":
            return {}
        if listener == "MTLS":
            own = {"ssl.keystore.location": str(self.folder / "client.p12"), "ssl.keystore.password": STORE_PASSWORD}
            return {"security.protocol": "SSL", **trust, **own}
        if listener == "SCRAM":
            return {
                **trust,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": self.scram(PASSWORD),
            }
        if listener == "OAUTH":
            return {
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": self.authority.pem(),
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": self.tokens.token_url,
                "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
                f'clientId="{USER}" clientSecret="{PASSWORD}";',
            }
        pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}
        return {"security.protocol": "SSL", **pem}

    def mirror_settings(self, listener: str, **clusters: ClusterOfBrokers) -> dict[str, str]:
        """The same for a mirror's file, for clusters by their aliases. PEM texts lose their line breaks there."""
        found = {}
        for alias, cluster in clusters.items():
            found[f"{alias}.bootstrap.servers"] = self.bootstrap(cluster, listener)
            found |= {f"{alias}.{key}": " ".join(text.split()) for key, text in self.settings(listener).items()}
        return found

    def scram(self, password: str) -> str:
        return f'{_MODULES}.scram.ScramLoginModule required username="{USER}" password="{password}";'

    # -- brokers ----------------------------------------------------------------------------------------------------

    def _files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        expired = self.authority.issue("broker", "127.0.0.1", life=timedelta(hours=-1))
        elsewhere = self.authority.issue("broker", "elsewhere.example")
        files = {"broker": self.broker, "client": self.client, "expired": expired, "elsewhere": elsewhere}
        for name, identity in files.items():
            self.store(name, identity)
        (self.folder / "trust.p12").write_bytes(self.authority.trust_store())
        (self.folder / "ca.pem").write_text(self.authority.pem())

    def store(self, name: str, identity: Identity) -> Path:
        path = self.folder / f"{name}.p12"
        path.write_bytes(identity.pkcs12())
        return path

    def _settings(self) -> dict[str, str]:
        found = {**_RULES, "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER"}
        for listener in _LISTENERS:
            own = listener.lower() if listener in ("EXPIRED", "ELSEWHERE") else "broker"
            stores = (self.folder / f"{own}.p12", self.folder / "trust.p12")
            found |= tls_listener(listener, *stores, asks_clients=listener == "MTLS")
        scram, oauth = "listener.name.scram.scram-sha-512", "listener.name.oauth.oauthbearer"
        return found | {
            "ssl.allow.dn.changes": "true",
            "ssl.allow.san.changes": "true",
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{scram}.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{scram}.connections.max.reauth.ms": str(SESSION_MS),
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oauth}.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            f"{oauth}.sasl.server.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            f"{oauth}.sasl.oauthbearer.jwks.endpoint.url": self.tokens.key_set_url,
            f"{oauth}.connections.max.reauth.ms": str(SESSION_MS),
        }


def set_password(bootstrap: str, user: str, password: str) -> None:
    """A user's SCRAM-SHA-512 credentials, by way of a listener that asks for none."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(user, info, password.encode())
    client = admin(bootstrap)
    for answer in client.alter_user_scram_credentials([wanted], request_timeout=REQUEST_TIMEOUT_S).values():
        answer.result(REQUEST_TIMEOUT_S)


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The same for confluent-kafka, with the stores read by our own reader and given as PEM."""
    found = {name: properties[name] for name in ("security.protocol", "sasl.mechanism") if name in properties}
    if trusted := trusted_certificates(properties):
        found["ssl.ca.pem"] = "".join(map(ssl.DER_cert_to_PEM_cert, trusted))
    if own := own_key(properties):
        found["ssl.certificate.pem"] = "".join(map(ssl.DER_cert_to_PEM_cert, own.chain))
        found["ssl.key.pem"] = own.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    options = parse_jaas(properties["sasl.jaas.config"]).options if "sasl.jaas.config" in properties else {}
    if "clientId" in options:
        found |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": properties["sasl.oauthbearer.token.endpoint.url"],
            "sasl.oauthbearer.client.id": options["clientId"],
            "sasl.oauthbearer.client.secret": options["clientSecret"],
        }
    elif options:
        found |= {"sasl.username": options["username"], "sasl.password": options["password"]}
    return found
