"""The page in a real Chromium, over 5,000 partitions: everything can be seen, searched and done, and it never lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.page.browser import Complaints, PageServer
from tests.page.moving_flows import HOSTILE_TOPIC, MovingFlows

from mirrorspark.rest.access import read_access

LOADS = 11
EAST_WEST = "#/flows/east-%3Ewest"
VIEWS = [
    "#/",
    "#/events",
    EAST_WEST,
    *(f"{EAST_WEST}/{part}" for part in ("topics", "partitions", "groups", "groups/billing", "events", "config")),
]


def _open(page: Page, server: PageServer, view: str = "") -> None:
    page.goto(f"{server.address}{view}")
    expect(page.locator("html")).to_have_attribute("data-live", "true")


def _go(page: Page, view: str) -> None:
    """By the address, without loading anew; returns when the view has its figures."""
    page.evaluate("view => { location.hash = view; }", view)
    expect(page.locator("main tbody tr").first).to_be_visible()


def _cell(page: Page, row: str, title: str) -> str:
    line = page.get_by_role("row").filter(has_text=row).first
    return line.locator(f"[data-title='{title}']").inner_text()


# -- looking -----------------------------------------------------------------------------------------------------------


def test_the_front_shows_every_flow_as_it_moves(page: Page, server: PageServer, flows: MovingFlows) -> None:
    _open(page, server)
    expect(page).to_have_title("Flows · mirrorspark")
    expect(page.locator("main tbody tr")).to_have_count(len(flows.ids))
    assert _cell(page, "east->west", "Partitions") == "5,000"
    expect(page.locator("a.flow").first).to_have_attribute(
        "aria-label", re.compile("^east->west, degraded, .*MB/s, lag")
    )
    expect(page.locator(".cluster .bootstrap").first).to_have_text("east-1.example:9092")
    expect(page.locator("#events-count")).to_have_text("2")
    assert page.evaluate("performance.getEntriesByName('mirrorspark-complete').length") == 1
    before = _cell(page, "east->west", "Records/s")
    page.wait_for_function(
        "before => document.querySelector('main tbody tr [data-title=\"Records/s\"]').textContent !== before",
        arg=before,
    )


def test_charts_move(page: Page, server: PageServer) -> None:
    _open(page, server, EAST_WEST)
    expect(page.locator(".chart canvas")).to_have_count(3)
    expect(page.get_by_role("heading", name="To look at")).to_be_visible()
    picture = "() => document.querySelector('.chart canvas').toDataURL()"
    before = page.evaluate(picture)
    page.wait_for_function(f"before => ({picture})() !== before", arg=before)
    expect(page.locator(".chart .value").first).not_to_have_text("–")


def test_search_sort_and_pages_of_5000_partitions(page: Page, server: PageServer) -> None:
    _open(page, server, f"{EAST_WEST}/partitions")
    rows, count = page.locator("main tbody tr"), page.locator(".count")
    expect(count).to_have_text("1–50 of 5,000 partitions")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("orders.0007-0")
    page.get_by_role("button", name="Next").click()
    expect(count).to_have_text("51–100 of 5,000 partitions")
    page.get_by_role("button", name="Partition").click()
    expect(rows.first).to_contain_text("-0")
    expect(page.get_by_role("columnheader", name="Partition")).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_role("columnheader", name="Lag")).to_have_attribute("aria-sort", "none")
    page.get_by_role("searchbox").fill("ORDERS.0042-1")
    expect(count).to_have_text("11 partitions found, of 5,000")
    expect(rows).to_have_count(11)
    page.get_by_role("searchbox").fill("nothing like that")
    expect(count).to_have_text("0 partitions found, of 5,000")


def test_names_are_texts(page: Page, server: PageServer) -> None:
    """A name that is markup stays a name, in lists, addresses and questions."""
    _open(page, server, f"{EAST_WEST}/topics")
    page.get_by_role("searchbox").fill("<IMG")
    expect(page.locator("main tbody tr")).to_have_count(1)
    page.get_by_role("button", name=f"Pause… {HOSTILE_TOPIC}").click()
    expect(page.locator("#confirm-title")).to_have_text(f"Pause {HOSTILE_TOPIC}?")
    page.keyboard.press("Escape")
    page.get_by_role("link", name=HOSTILE_TOPIC).click()
    expect(page.locator(".count")).to_have_text("20 partitions found, of 5,000")
    assert page.locator("img").count() == 0


def test_groups_on_both_sides_and_readiness(page: Page, server: PageServer) -> None:
    _open(page, server, f"{EAST_WEST}/groups")
    expect(page.locator("main tbody tr")).to_have_count(3)
    assert _cell(page, "billing", "Ready to fail over") == "ready"
    assert _cell(page, "shipping", "Ready to fail over") == "not ready"
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".readiness [role=status]")).to_contain_text("not ready, at ")
    expect(page.locator(".checks li")).to_have_text(
        [re.compile("^ok source: "), re.compile("^stop groups: group ship")]
    )
    page.get_by_role("link", name="billing").click()
    expect(page.locator("main")).to_contain_text("Ready to fail over: in step.")
    expect(page.locator(".count")).to_have_text("1–50 of 60 partitions")
    row = page.locator("main tbody tr").first
    expect(row.locator("td")).to_have_text(["997", "1,000", "3", "1,000", "1,000", "exact", "in.step"])


def test_config_says_where_each_value_comes_from(page: Page, server: PageServer) -> None:
    _open(page, server, f"{EAST_WEST}/config")
    expect(page.locator(".count")).to_have_text("1–50 of 63 keys")
    page.get_by_label("without defaults").check()
    expect(page.locator("main tbody tr")).to_have_count(3)
    assert _cell(page, "topics", "Comes from") == "mm2.properties:12"
    assert _cell(page, "jaas", "Value") == "[hidden]"
    page.get_by_role("searchbox").fill("tasks")
    expect(page.locator("main tbody tr")).to_have_count(1)


# -- doing -------------------------------------------------------------------------------------------------------------


def test_pause_and_resume_ask_first(page: Page, server: PageServer, flows: MovingFlows) -> None:
    _open(page, server, EAST_WEST)
    pause, dialog = page.get_by_role("button", name="Pause…"), page.get_by_role("dialog")
    pause.click()
    expect(dialog).to_contain_text("Pause east->west?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert flows.paused == {}
    pause.click()
    dialog.get_by_role("button", name="Pause").click()
    expect(page.locator(".heading .tag")).to_have_text("paused")
    expect(page.locator("#said")).to_have_text("east->west: paused")
    expect(pause).to_be_hidden()
    page.get_by_role("button", name="Resume…").click()
    dialog.get_by_role("button", name="Resume").click()
    expect(page.locator(".heading .tag")).not_to_have_text("paused")
    assert flows.paused == {"east->west": []}


def test_one_topic_is_held_and_let_go(page: Page, server: PageServer, flows: MovingFlows) -> None:
    _open(page, server, f"{EAST_WEST}/topics")
    page.get_by_role("button", name="Pause… orders.0007").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    resume = page.get_by_role("button", name="Resume… orders.0007")
    expect(resume).to_be_visible()
    assert flows.paused == {"east->west": ["east.orders.0007"]}
    resume.click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(resume).to_have_count(0)


def test_events_are_acknowledged(page: Page, server: PageServer, flows: MovingFlows) -> None:
    _open(page, server, "#/events")
    expect(page.locator("main tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Acknowledge data.gap east.orders.0003-7, offsets 1,200 to 1,299").click()
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.locator("main tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Acknowledge all…").click()
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".count")).to_have_text("no events")
    expect(page.locator("#events-count")).to_be_hidden()
    assert flows.event_views == []


# -- the server goes away ----------------------------------------------------------------------------------------------


def test_a_restart_of_the_server_is_survived_and_told(page: Page, server: PageServer, complaints: Complaints) -> None:
    _open(page, server, EAST_WEST)
    page.evaluate("window.isSameDocument = true")
    state = page.locator(".heading .tag")
    expect(state).to_have_text("degraded")
    complaints.away_is_expected = True
    server.stop()
    expect(page.locator("#connection")).to_have_text("not live")
    expect(page.locator("#away")).to_contain_text("What you see is of ")
    expect(state).to_have_text("was degraded")
    expect(page.get_by_role("button", name="Pause…")).to_be_hidden()
    _go(page, f"{EAST_WEST}")
    server.start()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#away")).to_be_hidden()
    expect(state).to_have_text("degraded")
    expect(page.get_by_role("button", name="Pause…")).to_be_visible()
    assert page.evaluate("window.isSameDocument") is True


# -- who asks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path, flows: MovingFlows) -> Iterator[PageServer]:
    users = tmp_path / "users"
    users.write_text("operator user alice pässword\nread-only token looker\n")
    one = PageServer(flows, read_access(users))
    one.start()
    yield one
    one.end()


def test_a_name_is_asked_for_once_and_kept_in_the_tab(page: Page, guarded: PageServer, complaints: Complaints) -> None:
    complaints.refusals_are_expected = True
    dialog = page.get_by_role("dialog")
    page.goto(f"{guarded.address}{EAST_WEST}")
    dialog.get_by_label("Token").fill("wrong")
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_contain_text("does not know")
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Token").fill("looker")
    page.keyboard.press("Enter")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#role")).to_have_text("read-only")
    expect(page.get_by_role("button", name="Pause…")).to_be_hidden()
    page.reload()
    expect(page.locator("#connection")).to_have_text("live")
    expect(dialog).to_be_hidden()
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie") == "{}"
    page.get_by_role("button", name="Sign out").click()
    dialog.get_by_label("User").fill("alice")
    dialog.get_by_label("Password").fill("pässword")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause…")).to_be_visible()


# -- for everybody -----------------------------------------------------------------------------------------------------


def _tab_to(page: Page, name: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        words = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
        if page.evaluate(words) == name:
            return
    pytest.fail(f"the Tab key does not reach {name}")


def test_a_walk_by_the_keyboard_alone(page: Page, server: PageServer, flows: MovingFlows) -> None:
    _open(page, server)
    _tab_to(page, "Skip to the content")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    _tab_to(page, "east->west")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    _tab_to(page, "Pause…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pause…")).to_be_focused()
    page.keyboard.press("Enter")
    _tab_to(page, "Pause")
    page.keyboard.press("Enter")
    expect(page.locator(".heading .tag")).to_have_text("paused")
    assert flows.paused == {"east->west": ["*"]}
    _tab_to(page, "Partitions")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text("1–50 of 5,000 partitions")
    _tab_to(page, "Lag")
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="Lag")).to_have_attribute("aria-sort", "descending")


WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


def _check_view(page: Page, view: str, colours: str, size: dict[str, int]) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=colours, reduced_motion="reduce")  # type: ignore[arg-type]
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], (view, colours, size)


def _show_few(page: Page) -> None:
    """Rows are all alike, and each costs axe its time."""
    if page.get_by_role("searchbox").count():
        page.get_by_role("searchbox").fill("-1")
        expect(page.locator(".count")).to_contain_text("found")


def test_nothing_is_wider_than_a_phone(page: Page, server: PageServer) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    _open(page, server)
    for view in VIEWS:
        _go(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], view


def test_axe_finds_nothing(page: Page, server: PageServer) -> None:
    """A view of each kind, wide and light or narrow and dark by turns; the slow test has them all."""
    _open(page, server)
    for index, view in enumerate(("#/", EAST_WEST, f"{EAST_WEST}/groups", f"{EAST_WEST}/partitions", "#/events")):
        _go(page, view)
        _show_few(page)
        _check_view(page, view, "dark" if index % 2 else "light", PHONE if index % 2 else WIDE)


@pytest.mark.slow
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_anywhere(page: Page, server: PageServer, colours: str, size: dict[str, int]) -> None:
    _open(page, server)
    for view in VIEWS:
        _go(page, view)
        _check_view(page, view, colours, size)
    page.locator("main").evaluate("() => document.getElementById('who').showModal()")
    _check_view(page, "the question for a name", colours, size)


def test_dark_and_light(page: Page, server: PageServer) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    _open(page, server)
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.get_by_label("Colours").select_option("light")
    assert page.evaluate(ground) == light
    page.reload()
    assert page.evaluate(ground) == light


ROWS_SHOWN = """() => new Promise((resolve) => {
  const look = () => document.querySelector("main tbody tr") ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
})"""


@pytest.mark.slow
@pytest.mark.parametrize("view", ["", f"{EAST_WEST}/partitions"], ids=["front", "partitions"])
def test_figures_of_loading(browser: Browser, server: PageServer, view: str) -> None:
    """With 5,000 partitions, nothing cached, by the browser's own clock: from the request to rows with figures. Printed."""
    found = []
    for _ in range(LOADS):
        context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{server.address}{view}", wait_until="commit")
        found.append(round(page.evaluate(ROWS_SHOWN)))
        context.close()
    found.sort()
    print(f"\n{view or '#/'}: complete after {found[LOADS // 2]} ms (median of {LOADS}; {found[0]} to {found[-1]})")
    assert found[LOADS // 2] <= 1_000
