"""The seeds' three connector files for a run's clusters, and the command line that deploys them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

__all__ = ["CLUSTER", "command", "seed_files"]

SEED = Path(__file__).parents[1] / "config" / "forms" / "data" / "seed_connect"
CLUSTER = "source-0"
"""As the files are called: ``mm2-msc-source-0.json``."""


def seed_files(
    folder: Path,
    source: tuple[str, ClusterOfBrokers],
    target: ClusterOfBrokers,
    topic: str,
    secrets: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """``secrets`` go into the source connector's; name -> configuration. The folder is made."""
    folder.mkdir()
    alias, cluster = source
    changes = {
        "source.cluster.bootstrap.servers": cluster.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "source.cluster.alias": alias,
    }
    found = {}
    for short in ("msc", "cpc", "hbc"):
        name = f"mm2-{short}-{CLUSTER}.json"
        config = {**json.loads((SEED / name).read_text()), **changes}
        if short == "msc":
            config |= {"topics": topic, **(secrets or {})}
        (folder / name).write_text(json.dumps(config))
        found[config["name"]] = config
    return found


def command(base: str, folder: Path, *words: str, token: str = "") -> tuple[int, Any, str]:
    """``mirrorspark WORDS --json`` against a server: its code, its JSON, all that it said."""
    environment = {"MIRRORSPARK_URL": base, "MIRRORSPARK_FOLDER": str(folder)}
    if token:
        environment["MIRRORSPARK_TOKEN"] = token
    done = CliRunner().invoke(app, [*words, "--json"], env=environment)
    assert done.stdout, done.output
    return done.exit_code, json.loads(done.stdout), done.output
