"""The page of a server that runs a live flow, in a real browser. For ``test_flow_resources``, which has both."""

from __future__ import annotations

import os
import shutil
from urllib.parse import quote

from playwright.sync_api import Page, expect
from tests.page.browser import WAIT_S, Complaints, chromium

__all__ = ["see_page"]


def see_page(base: str, flow: str, topic: str) -> None:
    """Sees the flow and its topic, pauses and resumes it. Leaves it as it was."""
    if shutil.which("chromium") is None and not os.environ.get("CI"):
        print("chromium is not installed: the page of the live flow was not looked at")
        return
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(WAIT_S * 1_000)
        complaints = Complaints(page)
        page.goto(f"{base}/ui/#/flows/{quote(flow, safe='')}")
        _see_figures(page, flow, topic)
        _pause_and_resume(page)
        assert complaints.found == []


def _see_figures(page: Page, flow: str, topic: str) -> None:
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator(".heading .tag")).to_have_text("running")
    expect(page.locator(".chart canvas")).to_have_count(3)
    page.get_by_role("link", name="Partitions").click()
    expect(page.get_by_role("rowheader", name=f"{topic}-0")).to_be_visible()
    page.get_by_role("link", name="Groups").click()
    expect(page.locator(".count")).to_contain_text("group")
    page.get_by_role("link", name="Config").click()
    page.get_by_role("searchbox").fill(topic)
    expect(page.locator("main tbody tr").first).to_contain_text("topics")
    page.get_by_role("link", name="Flows").click()
    expect(page.get_by_role("rowheader", name=flow)).to_be_visible()
    page.get_by_role("link", name=flow, exact=True).click()


def _pause_and_resume(page: Page) -> None:
    for verb, state in (("Pause", "paused"), ("Resume", "running")):
        page.get_by_role("button", name=f"{verb}…").click()
        page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()
        expect(page.locator(".heading .tag")).to_have_text(state)
