"""When the certificates end that a cluster's connections stand on: those of the stores, and the one that brokers show.

Called by ``control.certificate_watch``. Reads nothing but the one field: a certificate is checked by the TLS handshake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from mirrorspark.cluster.stores import own_key, trusted_certificates

__all__ = ["certificate_ends", "earliest", "store_expiries"]

_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18


def certificate_ends(der: bytes) -> float:
    """Unix time of a certificate's notAfter. Raises ValueError for what is no X.509 certificate."""
    try:
        certificate = next(_items(der))[1]
        fields = list(_items(next(_items(certificate))[1]))
        if fields[0][0] == _VERSION:
            fields = fields[1:]
        validity = fields[3]  # after serial number, algorithm and issuer
        if validity[0] != _SEQUENCE:
            raise ValueError("no validity where it should be")
        return _time(*list(_items(validity[1]))[1])
    except (IndexError, StopIteration) as error:
        raise ValueError("cut off") from error


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each item, by the rules of DER."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size]), at + size
        if at + length > len(data):
            raise ValueError("cut off")
        yield tag, data[at : at + length]
        at += length


def _time(tag: int, raw: bytes) -> float:
    text = raw.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no time where it should be")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def store_expiries(properties: Mapping[str, str]) -> dict[str, float]:
    """The earliest end in each store that client properties name. Raises SettingsError with the key. Blocks."""
    own = own_key(properties)
    stores = {"truststore": trusted_certificates(properties) or (), "keystore": own.chain if own is not None else ()}
    return {name: ends for name, found in stores.items() if (ends := earliest(found)) is not None}


def earliest(certificates: Iterable[bytes]) -> float | None:
    return min((certificate_ends(one) for one in certificates), default=None)
