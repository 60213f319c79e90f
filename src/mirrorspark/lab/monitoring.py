"""Real Prometheus and Alertmanager for a journey, and a small web server that stands for Slack.

Debian's programs, on free ports with folders of their own; they end with us (``lab/child``). The files of ``ops/`` are used
as they are but for times: ``in_haste`` shortens every duration of them, since nobody waits half an hour in a test.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import yaml

from mirrorspark.errors import LabError
from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import wait_for

__all__ = ["Monitoring", "Webhook", "free_ports", "in_haste"]

READY_DEADLINE_S = 60.0
ANSWER_TIMEOUT_S = 20.0

_WINDOW = re.compile(r"\[\d+[smhd]\]")
_THRESHOLD = re.compile(r"(mirrorspark_\w+_seconds > )\d+")
"""Of ages and lag, in seconds; not of a certificate, whose days are real."""


def in_haste(rules: Any, *, for_s: int, window_s: int, threshold_s: int) -> Any:
    """The same rules with shorter times: ``for``, windows of rates, thresholds of ages."""
    made = json.loads(json.dumps(rules))
    for group in made["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = f"{for_s}s"
            rule["expr"] = _THRESHOLD.sub(rf"\g<1>{threshold_s}", _WINDOW.sub(f"[{window_s}s]", rule["expr"]))
    return made


class Webhook:
    """Takes every POST and remembers its JSON, by path."""

    def __init__(self) -> None:
        self.taken: dict[str, list[Any]] = {}
        taken = self.taken

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                taken.setdefault(self.path, []).append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: what came is in ``taken``."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Monitoring:
    """``with Monitoring(folder, ops, targets) as monitoring``: rules, scrape and routes of ``ops``, in haste."""

    def __init__(self, folder: Path, ops: Path, targets: Sequence[str], *, times: Mapping[str, int]) -> None:
        """``targets``: HOST:PORT of each ``/metrics``. ``times``: see ``in_haste``."""
        self.folder = folder
        self.webhook = Webhook()
        self._ops = ops
        self._targets = list(targets)
        self._times = times
        self._port, self._alertmanager_port = free_ports(2)
        self._children: list[Child] = []

    # -- what they know ---------------------------------------------------------------------------------------------

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Of Prometheus, now: labels and value of each series."""
        found = self._get(f"/api/v1/query?query={quote(expression)}")["data"]["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def active(self) -> list[tuple[str, Mapping[str, str]]]:
        """Alerts that fire or are about to, as Prometheus has them: state and labels."""
        return [(one["state"], one["labels"]) for one in self._get("/api/v1/alerts")["data"]["alerts"]]

    def delivered(self) -> list[dict[str, Any]]:
        """Alerts that Alertmanager sent as firing, in the order in which they came."""
        return [alert for message in self._sent("/each") for alert in message["alerts"] if alert["status"] == "firing"]

    def slack_texts(self) -> list[str]:
        """Title and text of each message for Slack."""
        return [f"{one['title']}\n{one['text']}" for message in self._sent("/slack") for one in message["attachments"]]

    def _sent(self, path: str) -> list[Any]:
        return list(self.webhook.taken.get(path, []))

    def _get(self, path: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=ANSWER_TIMEOUT_S) as answer:
            return json.loads(answer.read())

    # -- life -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Monitoring:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._start_alertmanager()
            self._start_prometheus()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.kill()
        self.webhook.close()

    def _start_prometheus(self) -> None:
        config = _read(self._ops / "prometheus" / "prometheus.yml")
        rules = _read(self._ops / "prometheus" / "mirrorspark.rules.yml")
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [
            f"127.0.0.1:{self._alertmanager_port}"
        ]
        config["scrape_configs"][0]["static_configs"][0]["targets"] = self._targets
        (self.folder / "mirrorspark.rules.yml").write_text(yaml.safe_dump(in_haste(rules, **self._times)))
        file = self.folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self._start(
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        )
        self._wait_ready(self._port, "Prometheus")

    def _start_alertmanager(self) -> None:
        config = _read(self._ops / "alertmanager" / "alertmanager.yml")
        secret = self.folder / "slack_webhook"
        secret.write_text(self.webhook.url("/slack"))
        (slack,) = config["receivers"]
        slack["slack_configs"][0]["api_url_file"] = str(secret)
        each = {"url": self.webhook.url("/each"), "send_resolved": True, "max_alerts": 0}
        config["receivers"].append({"name": "each", "webhook_configs": [each]})
        # Besides the file's own route every alert comes alone, with its labels, once.
        config["route"]["routes"] = [
            {"receiver": "each", "group_by": ["..."], "continue": True},
            {"receiver": slack["name"]},
        ]
        config["route"] |= {"group_wait": "1s", "group_interval": "1s"}
        file = self.folder / "alertmanager.yml"
        file.write_text(yaml.safe_dump(config))
        self._start(
            "prometheus-alertmanager",
            f"--config.file={file}",
            f"--storage.path={self.folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{self._alertmanager_port}",
            "--cluster.listen-address=",
        )
        self._wait_ready(self._alertmanager_port, "Alertmanager")

    def _start(self, program: str, *arguments: str) -> None:
        path = shutil.which(program)
        if path is None:
            raise LabError(f"{program} is not installed (Debian: {program})")
        self._children.append(Child([path, *arguments, "--log.level=warn"], self.folder / f"{program}.log", {}))

    def _wait_ready(self, port: int, name: str) -> None:
        child = self._children[-1]

        def is_ready() -> bool:
            if not child.is_alive:
                raise LabError(f"{name} ended with code {child.exit_code}:\n{child.log_tail()}")
            try:
                with urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=ANSWER_TIMEOUT_S):
                    return True
            except (URLError, OSError):
                return False

        wait_for(is_ready, f"{name} to be ready", READY_DEADLINE_S)


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def free_ports(count: int) -> list[int]:
    """Held all at once, so that no two are the same; then let go."""
    with _held(count) as sockets:
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def _held(count: int) -> Iterator[list[socket.socket]]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        yield sockets
    finally:
        for one in sockets:
            one.close()
