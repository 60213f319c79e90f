"""A client's properties file, as Java clients take it, turned into what confluent-kafka takes."""

from __future__ import annotations

import re
from pathlib import Path

LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def read_client_file(path: str) -> dict[str, str]:
    """Same names but for three: the login that Java has in sasl.jaas.config, and the truststore, which must be PEM."""
    settings = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            settings[name.strip()] = value.strip()
    for what, value in LOGIN.findall(settings.pop("sasl.jaas.config", "")):
        settings[f"sasl.{what}"] = re.sub(r"\\(.)", r"\1", value)
    kind = settings.pop("ssl.truststore.type", "PEM")
    if "ssl.truststore.location" in settings:
        if kind != "PEM":
            raise SystemExit(f"{path}: ssl.truststore.type={kind}: confluent-kafka reads PEM files only")
        settings["ssl.ca.location"] = settings.pop("ssl.truststore.location")
    if "bootstrap.servers" not in settings:
        raise SystemExit(f"{path}: bootstrap.servers is missing")
    return settings
