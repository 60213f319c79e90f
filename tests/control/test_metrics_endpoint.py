"""``/metrics`` over HTTP: offered where it was asked for, and an address that cannot be had is told at the start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from mirrorspark.config.load import parse_deployment
from mirrorspark.config.metrics_settings import listener_of_option
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.runner import EXIT_SETTINGS, run_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import MetricsSettings

FILE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "localhost:1",
    "b.bootstrap.servers": "localhost:2",
    "a->b.enabled": "true",
}
ANY = ("127.0.0.1", 0)


def test_flows_are_read_inside_the_loop(in_loop: Callable[..., Any]) -> None:
    async def scrape() -> str:
        def statuses() -> list[FlowStatus]:
            asyncio.get_running_loop()  # raises in a thread
            return [FlowStatus("a->b")]

        endpoint = MetricsEndpoint(MetricsSettings(ANY), statuses)
        endpoint.open()
        try:
            async with httpx.AsyncClient() as client:
                answer = await client.get(f"http://127.0.0.1:{endpoint.port}/metrics")
        finally:
            await endpoint.close()
        assert answer.status_code == 200
        return answer.text

    text = in_loop(scrape())
    assert 'mirrorspark_flow_state{flow="a->b",state="starting"} 1.0' in text
    assert "process_cpu_seconds_total" in text


def test_nothing_is_served_unless_asked_for(in_loop: Callable[..., Any]) -> None:
    async def open_and_close() -> int | None:
        endpoint = MetricsEndpoint(MetricsSettings(), list)
        endpoint.open()
        await endpoint.close()
        return endpoint.port

    assert in_loop(open_and_close()) is None


def test_an_address_that_is_taken_is_refused(in_loop: Callable[..., Any]) -> None:
    async def open_second() -> None:
        first = MetricsEndpoint(MetricsSettings(ANY), list)
        first.open()
        try:
            with pytest.raises(SettingsError, match=r"metrics\.listener = 127\.0\.0\.1:\d+: .*in use"):
                MetricsEndpoint(MetricsSettings(("127.0.0.1", first.port or 0)), list).open()
        finally:
            await first.close()

    in_loop(open_second())


def test_a_run_whose_address_cannot_be_had_begins_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = parse_deployment(FILE)
    deployment.metrics = MetricsSettings(("192.0.2.1", 9404))  # nobody's, by RFC 5737
    assert run_deployment(deployment) == EXIT_SETTINGS
    assert "metrics.listener = 192.0.2.1:9404" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("9404", ("127.0.0.1", 9404)),
        (":9404", ("127.0.0.1", 9404)),
        ("0.0.0.0:9404", ("0.0.0.0", 9404)),
        ("[::1]:9404", ("::1", 9404)),
        (" mirror.example:80 ", ("mirror.example", 80)),
    ],
)
def test_an_address_is_read(text: str, listener: tuple[str, int]) -> None:
    assert parse_deployment(FILE | {"metrics.listener": text}).metrics.listener == listener
    assert listener_of_option(text) == listener


@pytest.mark.parametrize("text", ["here", "host:", "host:http", "host:70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"metrics\.listener.*HOST:PORT"):
        parse_deployment(FILE | {"metrics.listener": text})
    with pytest.raises(SettingsError, match="--metrics"):
        listener_of_option(text)


def test_limits_are_read() -> None:
    metrics = parse_deployment(FILE | {"metrics.partitions.max": "7", "metrics.checkpoints.max": "9"}).metrics
    assert (metrics.listener, metrics.partitions_max, metrics.checkpoints_max) == (None, 7, 9)
    assert parse_deployment(FILE).metrics == MetricsSettings()
    with pytest.raises(SettingsError, match=r"metrics\.partitions\.max"):
        parse_deployment(FILE | {"metrics.partitions.max": "many"})
