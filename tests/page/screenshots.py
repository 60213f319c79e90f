"""The pictures of docs/operating/page.md, taken from the page itself: ``python -m tests.page.screenshots docs/images``.

Over flows in memory, so that they look the same each time.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser
from tests.page.browser import PageServer, chromium
from tests.page.moving_flows import MovingFlows

WIDE, LOW, PHONE = (1200, 720), (1200, 480), (360, 700)
HISTORY_MS = 75_000
"""So that charts have something to show."""
PICTURES = [
    ("page-flows", "", LOW, "light"),
    ("page-flow", "#/flows/east-%3Ewest", WIDE, "light"),
    ("page-partitions", "#/flows/east-%3Ewest/partitions", LOW, "dark"),
    ("page-phone", "#/flows/east-%3Ewest/groups", PHONE, "light"),
]


def take(browser: Browser, server: PageServer, folder: Path) -> None:
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce")
    page.goto(server.address)
    page.wait_for_timeout(HISTORY_MS)
    for name, view, (width, height), colours in PICTURES:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
        page.evaluate("view => { location.hash = view; }", view)
        page.locator("main tbody tr").first.wait_for()
        page.wait_for_timeout(2_000)
        page.screenshot(path=folder / f"{name}.png")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    server = PageServer(MovingFlows())
    server.start()
    with chromium() as browser:
        take(browser, server, folder)
    server.end()


if __name__ == "__main__":
    main()
