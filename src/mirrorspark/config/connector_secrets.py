"""Secrets in a connector's configuration: hidden on the way out, kept when what was hidden comes back.

``rest`` hides, ``control.connect`` keeps. By the catalogue's types and, for keys that nobody knows, by their names.
``sealed`` makes those of a client's properties a type of their own, before they go anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirrorspark.config.findings import shown
from mirrorspark.config.forms.jaas_text import JaasText
from mirrorspark.config.forms.secret_values import REFERENCE, holds_secret
from mirrorspark.secret import HIDDEN, Secret

__all__ = ["HIDDEN", "hidden", "is_secret", "kept", "sealed"]

_SECRET_WORD = re.compile(
    r"(?:^|[._-])(?:passw(?:or)?d|passphrase|secret|credentials?|token|api[._-]?key)$", re.IGNORECASE
)


def is_secret(key: str) -> bool:
    return holds_secret(key) or bool(_SECRET_WORD.search(key)) or shown(key, "x") != "x"


def hidden(config: Mapping[str, str]) -> dict[str, str]:
    """References to a secret that lies elsewhere (``${env:X}``) stay."""
    return {key: HIDDEN if is_secret(key) and _is_plain(value) else value for key, value in config.items()}


def sealed(client: Mapping[str, str]) -> dict[str, str]:
    """A client's properties with its secrets as ``Secret``; those inside of a JAAS text become known as such, too."""
    texts = (value for key, value in client.items() if key.endswith("sasl.jaas.config"))
    for jaas in filter(None, map(JaasText.read, texts)):
        for option in jaas.secret_options:
            Secret(jaas.options[option])
    return {key: Secret(value) if is_secret(key) else value for key, value in client.items()}


def _is_plain(value: str) -> bool:
    return bool(REFERENCE.sub("", value).strip())


def kept(given: Mapping[str, str], stored: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What is meant by a configuration that was read with its secrets hidden: they stay as they are.

    Also the keys whose secret is hidden and not known.
    """
    meant = {key: stored.get(key, value) if _came_back(key, value) else value for key, value in given.items()}
    return meant, [key for key, value in given.items() if _came_back(key, value) and key not in stored]


def _came_back(key: str, value: str) -> bool:
    return value == HIDDEN and is_secret(key)
