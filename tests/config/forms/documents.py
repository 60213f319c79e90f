"""Documents made up by hypothesis, for round trips."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from mirrorspark.config.document import Document

VALUES = st.one_of(
    st.sampled_from(["true", "false", "0", "10", "-1", "007", "1.5", "", "yes", "null", "a, b", ".*", "${env:X}"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
ALIASES = ["a", "b", "east", "east.1", "source", "target", "x-y"]
_OF_FLOWS = [
    *("topics", "topics.exclude", "groups", "tasks.max", "replication.factor", "sync.topic.acls.enabled"),
    *("emit.heartbeats.interval.seconds", "consumer.poll.timeout.ms", "key.converter", "my.own.key", "offset.lag.max"),
    *("source.consumer.fetch.max.bytes", "target.producer.linger.ms", "producer.override.linger.ms"),
]
_OF_ALL = [name for name in _OF_FLOWS if not name.startswith(("source.", "target.", "producer."))]
_OF_CLUSTERS = [
    *("consumer.client.rack", "producer.compression.type", "admin.retries", "client.id", "group.id"),
    *("offset.storage.topic", "offset.storage.replication.factor", "config.storage.topic", "status.storage.topic"),
]
_KINDS = ["MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"]
_SWITCHES = st.sampled_from(["true", "false", "TRUE"])


@st.composite
def mirrors(draw: st.DrawFn) -> Document:
    """A mirror that every form has room for: each cluster has a flow, no key stands where nobody reads it."""
    aliases = draw(st.lists(st.sampled_from(ALIASES), min_size=2, max_size=3, unique=True))
    keys = {"clusters": ", ".join(aliases)}
    pairs = [f"{one}->{other}" for one in aliases for other in aliases if one != other]
    for at, alias in enumerate(aliases):
        keys[f"{alias}.bootstrap.servers"] = f"host{at}:9092"
        keys |= {f"{alias}.{name}": draw(VALUES) for name in draw(st.sets(st.sampled_from(_OF_CLUSTERS), max_size=3))}
    for alias, other in pairwise(aliases):
        keys[f"{alias}->{other}.enabled"] = "true"
    for pair in draw(st.sets(st.sampled_from(pairs))):
        for name in draw(st.sets(st.sampled_from(_OF_FLOWS), max_size=4)):
            keys[f"{pair}.{name}"] = draw(VALUES)
        for kind in draw(st.sets(st.sampled_from(_KINDS))):
            for name in draw(st.sets(st.sampled_from([*_OF_FLOWS, "enabled", "name"]), max_size=3)):
                keys[f"{pair}.{kind}.{name}"] = draw(_SWITCHES if name == "enabled" else VALUES)
        if draw(st.booleans()):
            keys[f"{pair}.emit.heartbeats.enabled"] = draw(_SWITCHES)
    for name in draw(st.sets(st.sampled_from(_OF_ALL), max_size=3)):
        keys[name] = draw(VALUES)
    if draw(st.booleans()):
        keys["emit.heartbeats.enabled"] = draw(_SWITCHES)
    return Document.of(keys)


@st.composite
def logins(draw: st.DrawFn) -> dict[str, str]:
    """A cluster's security, as far as Strimzi can say it."""
    text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="$"), min_size=1, max_size=8)
    keys: dict[str, str] = {}
    has_tls = draw(st.booleans())
    if has_tls and draw(st.booleans()):
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "${dir:/etc/certs/the-ca:ca.crt}"}
    if draw(st.booleans()):
        keys["ssl.endpoint.identification.algorithm"] = draw(st.sampled_from(["", "https"]))
    kind = draw(st.sampled_from(["none", "scram", "plain", "custom", "tls"]))
    if kind in ("scram", "plain"):
        module = "scram.Scram" if kind == "scram" else "plain.Plain"
        user = draw(text).replace("\\", "\\\\").replace('"', '\\"')
        secret = draw(st.sampled_from(["${dir:/etc/secrets/my-user:password}", "${env:PASSWORD}", "geheim"]))
        keys["sasl.mechanism"] = "SCRAM-SHA-512" if kind == "scram" else "PLAIN"
        keys["sasl.jaas.config"] = (
            f'org.apache.kafka.common.security.{module}LoginModule required username="{user}" password="{secret}";'
        )
    elif kind == "custom":
        keys |= {"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": "software.amazon.IAMLoginModule required;"}
    elif kind == "tls" and has_tls:
        reference = "${dir:/etc/secrets/my-user:user.%s}"
        keys |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": reference % "crt",
            "ssl.keystore.key": reference % "key",
        }
    protocol = "SSL" if has_tls else "PLAINTEXT"
    keys["security.protocol"] = f"SASL_{protocol}" if "sasl.mechanism" in keys else protocol
    return keys
