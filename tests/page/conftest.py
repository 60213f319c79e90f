"""A browser and a server for each file of tests; flows as new and a page that may not complain for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.page.browser import WAIT_S, Complaints, PageServer, chromium
from tests.page.moving_flows import MovingFlows


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def host() -> MovingFlows:
    return MovingFlows()


@pytest.fixture
def flows(host: MovingFlows) -> MovingFlows:
    """The server's own, with nothing held and nothing acknowledged."""
    host.begin()
    return host


@pytest.fixture(scope="module")
def running(host: MovingFlows) -> Iterator[PageServer]:
    one = PageServer(host)
    one.start()
    yield one
    one.end()


@pytest.fixture
def server(running: PageServer, flows: MovingFlows) -> PageServer:
    return running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(WAIT_S * 1_000)
    one = context.new_page()
    yield one
    context.close()


@pytest.fixture(autouse=True)
def complaints(page: Page) -> Iterator[Complaints]:
    """Nothing on the console, nothing thrown, nothing refused by the policy; in every test."""
    one = Complaints(page)
    yield one
    assert one.found == []
