"""Bad input ends ``mirrorspark run`` with one clear line and a code, without waiting for Spark and without a traceback.

Each case is a process of its own, as a user has it. None but the last needs brokers, none needs Spark.
"""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from mirrorspark.lab.clients import admin
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

TIMEOUT_S = 300.0
"""Only a bound for a busy machine; each case takes seconds."""
TLS_ALERT = bytes.fromhex("15030300020246")
"""What a TLS listener says to bytes that are no handshake."""


def _run(file: Path, *words: str, environment: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """Exit code and the lines on stderr; stdout must be empty, and no JVM may be left."""
    command = [str(Path(sys.executable).with_name("mirrorspark")), "run", str(file), *words]
    marked = {**os.environ, "MIRRORSPARK_TEST_MARK": str(file), **(environment or {})}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=marked)
    assert "Traceback" not in ended.stderr
    _await_no_process(str(file))
    return ended.returncode, ended.stderr.splitlines()


def _await_no_process(mark: str) -> None:
    """What the process started (its JVM) carries its environment; a killed one needs a moment to be gone."""
    left = [process for process in psutil.process_iter() if _mark_of(process) == mark]
    _, alive = psutil.wait_procs(left, timeout=TIMEOUT_S)
    assert alive == []


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return str(process.environ().get("MIRRORSPARK_TEST_MARK"))
    except psutil.Error:
        return None


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(alias: str = "east", **changes: str) -> Path:
        properties = {
            "clusters": f"{alias}, west",
            f"{alias}.bootstrap.servers": "127.0.0.1:1",
            "west.bootstrap.servers": "127.0.0.1:1",
            f"{alias}->west.enabled": "true",
            **{key.replace("__", ".").replace("TO", "->"): value for key, value in changes.items()},
        }
        path = tmp_path / "mm2.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        return path

    return write


@pytest.fixture
def listener() -> Iterator[Callable[[bytes | None], str]]:
    """Starts something that listens and is no broker: it answers with these bytes and hangs up, or not at all (None)."""
    sockets: list[socket.socket] = []

    def serve(server: socket.socket, answer: bytes | None) -> None:
        held = []
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return
            if answer is None:
                held.append(link)
                continue
            with link:
                link.recv(65536)
                link.sendall(answer)

    def start(answer: bytes | None) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)
        threading.Thread(target=serve, args=(server, answer), daemon=True).start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in sockets:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def web_server() -> Iterator[str]:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.properties"
    assert _run(path) == (2, [f"mirrorspark: SETTINGS: {path}: no such file"])


def test_a_folder_and_a_file_that_is_no_text(tmp_path: Path) -> None:
    code, [line] = _run(tmp_path)
    assert (code, line.startswith(f"mirrorspark: SETTINGS: {tmp_path}: no file in it ends with ")) == (2, True)
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00clusters")
    code, [line] = _run(path)
    assert (code, line.startswith(f"mirrorspark: SETTINGS: {path}: cannot be read: ")) == (2, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "many"),
        ("east.security.protocol", "FOO"),
        ("east->west.topics", "orders("),
        ("west.ssl.truststore.location", "none.pem"),
        ("east.bootstrap.servers", "somewhere"),
    ],
)
def test_a_bad_value_names_its_key(file: Callable[..., Path], key: str, value: str) -> None:
    security = {"west.security.protocol": "SSL", "west.ssl.truststore.type": "PEM"} if "ssl" in key else {}
    path = file(**security, **{key: value})
    code, [line] = _run(path)
    number = next(at for at, text in enumerate(path.read_text().splitlines(), 1) if text.startswith(f"{key} "))
    assert code == 2
    assert line.startswith(f"mirrorspark: SETTINGS: {path}:{number}: {key}")


def test_all_that_is_wrong_is_told_at_once(file: Callable[..., Path]) -> None:
    path = file(tasks__max="many", topic__exclude="x", consumer__client__rack="r")
    code, lines = _run(path)
    assert code == 2
    assert [line.split(": ")[3].partition("=")[0] for line in lines] == [
        "tasks.max",
        "topic.exclude",
        "consumer.client.rack",
    ]
    assert all(line.startswith(f"mirrorspark: SETTINGS: {path}:") for line in lines)


def test_bad_words(file: Callable[..., Path]) -> None:
    code, [line] = _run(file(), "--clusters", "north")
    assert (code, "--clusters north" in line) == (2, True)
    code, [line] = _run(file(), "--master", "nothing")
    assert (code, "--master nothing" in line) == (2, True)


# -- the addresses -----------------------------------------------------------------------------------------------------


def _unreachable(file: Path, key: str, address: str, error: str = "UNREACHABLE") -> str:
    code, lines = _run(file)
    told = [line for line in lines if line.startswith("mirrorspark: ")]
    assert code == 1
    [line] = told
    assert line.startswith(f"mirrorspark: {error}: flow east->west: ")
    assert f"{key}: {address}: " in line
    return line


def test_a_closed_port(file: Callable[..., Path]) -> None:
    code, lines = _run(file())
    [line] = [line for line in lines if line.startswith("mirrorspark: ")]
    assert code == 1
    assert ".bootstrap.servers: 127.0.0.1:1: cannot connect (Connection refused)" in line


def test_a_host_that_nobody_knows(file: Callable[..., Path], listener: Callable[[bytes | None], str]) -> None:
    path = file(west__bootstrap__servers="no-such-host.invalid:9092", east__bootstrap__servers=listener(None))
    assert "cannot connect" in _unreachable(path, "west.bootstrap.servers", "no-such-host.invalid:9092")


def test_a_web_server(file: Callable[..., Path], web_server: str, listener: Callable[[bytes | None], str]) -> None:
    _unreachable(file(east__bootstrap__servers=web_server, west__bootstrap__servers=web_server), "", web_server)
    address = listener(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    path = file(east__bootstrap__servers=address, west__bootstrap__servers=address)
    assert "not a Kafka broker" in _unreachable(path, "", address)


def test_something_that_listens_and_says_nothing(
    file: Callable[..., Path], listener: Callable[[bytes | None], str]
) -> None:
    address = listener(None)
    path = file(east__bootstrap__servers=address, west__bootstrap__servers=address)
    assert "does not speak Kafka" in _unreachable(path, "", address)


def test_a_tls_port_without_tls(file: Callable[..., Path], listener: Callable[[bytes | None], str]) -> None:
    address = listener(TLS_ALERT)
    path = file(east__bootstrap__servers=address, west__bootstrap__servers=address)
    assert "that listener speaks TLS" in _unreachable(path, ".security.protocol", address, "TLS_FAILED")


def test_tls_to_something_that_is_none(file: Callable[..., Path], listener: Callable[[bytes | None], str]) -> None:
    address = listener(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    path = file(security__protocol="SSL", east__bootstrap__servers=address, west__bootstrap__servers=address)
    assert "that listener speaks no TLS" in _unreachable(path, ".security.protocol", address, "TLS_FAILED")


# -- Spark -------------------------------------------------------------------------------------------------------------


def test_a_jvm_that_dies_is_one_line_and_no_flow_was_led(
    file: Callable[..., Path], source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, tmp_path: Path
) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('MODULES="java.base jdk.incubator.vector"\n')
    java = home / "bin" / "java"
    java.write_text(
        f"""#!/bin/sh
[ "$1" = "-XshowSettings:properties" ] || exit 1
echo "    java.home = {home}"
echo "    java.specification.version = 21"
"""
    )
    java.chmod(0o755)
    alias = f"dead-jvm-{os.getpid()}"
    path = file(
        alias,
        **{f"{alias}.bootstrap.servers": source_cluster.bootstrap, "start.before.spark": "false"},
        west__bootstrap__servers=target_cluster.bootstrap,
    )
    environment = {"JAVA_HOME": str(home), "MIRRORSPARK_CACHE": str(tmp_path / "cache")}
    command = [str(Path(sys.executable).with_name("mirrorspark")), "run", str(path)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env={**os.environ, **environment}
    )
    assert ended.returncode == 5, ended.stderr
    assert "Traceback" not in ended.stderr
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("mirrorspark: SPARK_LOST")]
    assert "Spark could not be started" in line
    topics = admin(target_cluster.bootstrap).list_topics(timeout=30).topics
    assert [name for name in topics if alias in name] == []
