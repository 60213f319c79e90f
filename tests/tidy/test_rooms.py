"""Who may import whom. The table is the house's plan; a line that breaks it fails here, with the rule's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mirrorspark

PACKAGE = "mirrorspark"
SOURCE = Path(mirrorspark.__file__).parent

WORDS = ("names", "secret", "errors", "settings", "events", "log_lines", "java_home", "release")
"""Top-level modules that every room may need; they import no room."""
PURE = ("wire", "plan")

# room or top-level module -> what of the package it may import besides itself
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "__init__": (),
    "names": (),
    "secret": (),
    "errors": ("secret",),
    "settings": ("names", "errors"),
    "events": ("names", "secret"),
    "log_lines": ("names", "errors", "events", "secret"),
    "java_home": ("errors",),
    "release": (),
    "wire": ("names", "errors"),
    "cluster": ("wire", "names", "errors", "settings"),
    "plan": ("names", "errors", "settings"),
    "offsets": ("wire", "names", "errors", "settings"),
    "pipeline": ("wire", "cluster", "plan", "offsets", "observe.metric_catalogue", *WORDS),
    "observe": ("names", "settings", "errors", "events", "release"),
    "config": ("plan", "cluster.security", "cluster.jaas", *WORDS),
    "rest": ("config", *WORDS),
    "control": ("wire", "cluster", "plan", "offsets", "pipeline", "observe", "config", "rest", *WORDS),
    "lab": ("wire", "cluster", "plan", "offsets", "pipeline", "observe", "config", "rest", "control", *WORDS),
    "__main__": ("control", "lab", *WORDS),
}

# what lies outside the package -> the only rooms or files that may import it
ONLY_IN: dict[str, tuple[str, ...]] = {
    "pyspark": (
        "pipeline.mirror_source",
        "pipeline.flow_query",
        "pipeline.session",
        "pipeline.class_archive",
        "pipeline.worker_daemon",
    ),
    "kafka": ("cluster", "lab"),
    "confluent_kafka": ("cluster", "lab"),
    "socket": ("cluster", "lab"),
    "ssl": ("cluster", "lab"),
    "select": ("cluster", "lab"),
    "selectors": ("cluster", "lab"),
    "socketserver": ("cluster", "lab"),
}
HARMLESS = frozenset(
    {"socket.gethostname", "socket.getfqdn", "ssl.create_default_context", "ssl.SSLContext", "ssl.SSLError"}
)
"""Names from those modules that open nothing."""
CONNECTING = frozenset({"open_connection", "open_unix_connection", "create_connection", "start_server", "sock_connect"})
"""asyncio's ways to a socket."""

# the pure rooms: bytes or snapshots in, values out, the same answer every time
WAITING = (
    *("asyncio", "concurrent", "multiprocessing", "queue", "sched", "signal", "subprocess", "threading"),
    *("http", "select", "selectors", "socket", "ssl", "urllib"),
    *("io", "logging", "os", "pathlib", "shutil", "sys", "tempfile"),
    *("datetime", "random", "secrets", "time", "uuid"),
)


def _imports(tree: ast.AST, module: str) -> Iterator[str]:
    """Absolute dotted names of all that is imported anywhere in the tree; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                above = module.split(".")[: -node.level]
                origin = ".".join([*above, origin]).rstrip(".")
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _is_or_is_in(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def _only_harmless(tree: ast.AST, library: str) -> bool:
    """Whether the module takes from the library nothing but names that open nothing."""
    taken = {
        f"{library}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == library
        for alias in node.names
    }
    taken |= {
        f"{library}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == library
    }
    return bool(taken) and taken <= HARMLESS


def violations(module: str, text: str) -> list[str]:
    """What a module (``mirrorspark.room.file``) does that it may not. One sentence for each."""
    tree = ast.parse(text)
    inside = module.removeprefix(f"{PACKAGE}.") if module != PACKAGE else "__init__"
    room = inside.split(".")[0]
    if room not in MAY_IMPORT:
        return [f"{module}: {room} is no room of the house; the table in {Path(__file__).name} does not know it"]
    found = []
    for name in _imports(tree, module):
        library = name.split(".")[0]
        if library == PACKAGE:
            target = name.removeprefix(PACKAGE).removeprefix(".")
            is_public_name = target.split(".")[0] not in MAY_IMPORT  # such as __version__
            if not is_public_name and not _is_or_is_in(target, (room, *MAY_IMPORT[room])):
                found.append(f"{module}: {room} may not import {target}; it may import {MAY_IMPORT[room]}")
        elif library in ONLY_IN and not _is_or_is_in(inside, ONLY_IN[library]) and not _only_harmless(tree, library):
            found.append(f"{module}: {library} may be imported only in {ONLY_IN[library]}")
        if room in PURE and library in WAITING:
            found.append(f"{module}: {room} is pure and may not import {library}")
    if room not in ("cluster", "lab"):
        found += [
            f"{module}: only cluster opens sockets, but here is .{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in CONNECTING
        ]
    return found


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if is_package else parts)] = path
    return found


MODULES = _modules()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    path = MODULES[module]
    # In a package's __init__, relative names count from the package itself.
    name = f"{module}.__init__" if path.name == "__init__.py" and module != PACKAGE else module
    assert violations(name, path.read_text(encoding="utf-8")) == []


def test_all_rooms_are_there() -> None:
    assert {name.split(".")[1] for name in MODULES if "." in name} >= set(MAY_IMPORT) - {"__init__"}


def test_the_table_has_no_circle_among_rooms() -> None:
    rooms = [name for name, path in MODULES.items() if path.name == "__init__.py" and name.count(".") == 1]
    short = [name.split(".")[1] for name in rooms]
    for room in short:
        reached, todo = set(), [room]
        while todo:
            for other in MAY_IMPORT[todo.pop()]:
                other = other.split(".")[0]
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
        assert room not in reached


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("mirrorspark.names", "from mirrorspark.wire import varint"),
        ("mirrorspark.errors", "import mirrorspark.names"),
        ("mirrorspark.java_home", "from mirrorspark.lab import jars"),
        ("mirrorspark", "from mirrorspark.control import runner"),
        ("mirrorspark.wire.varint", "from mirrorspark.settings import Limits"),
        ("mirrorspark.wire.varint", "from mirrorspark.cluster.connection import Connection"),
        ("mirrorspark.wire.varint", "import time"),
        ("mirrorspark.wire.messages.fetch", "from asyncio import sleep"),
        ("mirrorspark.wire.varint", "import logging"),
        ("mirrorspark.plan.lanes", "import os.path"),
        ("mirrorspark.plan.lanes", "from mirrorspark.wire import records"),
        ("mirrorspark.plan.lanes", "from ..cluster import connection"),
        ("mirrorspark.wire.messages.fetch", "from ...cluster import connection"),
        ("mirrorspark.wire.messages.__init__", "from ...cluster import connection"),
        ("mirrorspark.cluster.connection", "from mirrorspark.plan.lanes import Plan"),
        ("mirrorspark.cluster.connection", "import pyspark"),
        ("mirrorspark.offsets.ledger", "from mirrorspark.cluster.keyed_topic import KeyedTopic"),
        ("mirrorspark.pipeline.lane", "from mirrorspark.control.runner import run_deployment"),
        ("mirrorspark.pipeline.lane", "from mirrorspark.observe.flow_status import FlowStatus"),
        ("mirrorspark.pipeline.lane", "def late():\n    from pyspark.sql import SparkSession"),
        ("mirrorspark.pipeline.lane", "import socket\nsocket.create_connection(('a', 1))"),
        ("mirrorspark.pipeline.lane", "import asyncio\nasyncio.open_connection('a', 1)"),
        ("mirrorspark.observe.health", "from mirrorspark.pipeline.lane import LaneRun"),
        ("mirrorspark.control.runner", "from mirrorspark.lab.broker import Broker"),
        ("mirrorspark.control.runner", "if True:\n    import mirrorspark.lab.broker"),
        ("mirrorspark.control.runner", "from mirrorspark import lab"),
        ("mirrorspark.control.runner", "import socket\nsocket.gethostname()\nsocket.socket()"),
        ("mirrorspark.control.runner", "from socket import socket"),
        ("mirrorspark.control.runner", "from socket import socket as gethostname"),
        ("mirrorspark.control.runner", "from kafka.protocol.metadata import MetadataRequest"),
        ("mirrorspark.cellar.wine", ""),
        ("mirrorspark.utils", ""),
    ],
)
def test_a_breach_is_noticed(module: str, text: str) -> None:
    assert violations(module, text)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("mirrorspark.wire.varint", "from mirrorspark.errors import WireError\nimport struct, zlib, cramjam"),
        ("mirrorspark.wire.messages.fetch", "from ..varint import decode_varint"),
        ("mirrorspark.wire.messages.__init__", "from .fetch import decode_fetch"),
        ("mirrorspark.cluster.connection", "import socket, ssl, asyncio\nfrom kafka.protocol.metadata import X"),
        ("mirrorspark.pipeline.session", "from pyspark.sql import SparkSession"),
        ("mirrorspark.pipeline.lane", "from mirrorspark.observe.metric_catalogue import METRICS"),
        ("mirrorspark.control.flow_runtime", "import socket\nsocket.gethostname()"),
        ("mirrorspark.control.api.app", "from mirrorspark import __version__"),
        ("mirrorspark.lab.broker", "import socket\nfrom mirrorspark.control import runner"),
        ("mirrorspark.__main__", "from mirrorspark.lab.command.chaos import chaos"),
    ],
)
def test_what_is_allowed_is_no_breach(module: str, text: str) -> None:
    assert violations(module, text) == []
