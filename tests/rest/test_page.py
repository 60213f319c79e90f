"""The page's files, without a browser: how they are served, and what may not stand in them."""

from __future__ import annotations

import gzip
import re
from importlib.resources import files

import pytest
from tests.page.moving_flows import MovingFlows
from tests.rest.client import TestClient
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.access import Access, Role
from mirrorspark.rest.app import make_app
from mirrorspark.rest.page import CONTENT_TYPES, page_assets

ASSETS = {name: asset.body.decode() for name, asset in page_assets().items()}
OURS = {name: text for name, text in ASSETS.items() if not name.startswith("vendor/")}
MODULES = {name: text for name, text in OURS.items() if name.endswith(".js")}
STYLES = {name: text for name, text in OURS.items() if name.endswith(".css")}
INDEX = ASSETS["index.html"]
LINES_MAX = 250


@pytest.fixture(scope="module")
def reader() -> TestClient:
    """Somebody whom the server does not know."""
    access = Access(tokens={b"nobody has it": Role.OPERATOR})
    return TestClient(make_app(MemoryHost(), access, flows=MovingFlows(20)), follow_redirects=False)


# -- serving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ASSETS)
def test_a_file_comes_with_its_type_and_under_the_policy(reader: TestClient, name: str) -> None:
    answer = reader.get(f"/ui/{name}")
    assert (answer.status_code, answer.text) == (200, ASSETS[name])
    assert answer.headers["content-type"] == CONTENT_TYPES[f".{name.rpartition('.')[2]}"]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_front_and_the_way_to_it(reader: TestClient) -> None:
    assert reader.get("/ui/").text == INDEX
    answer = reader.get("/ui")
    assert (answer.status_code, answer.headers["location"]) == (308, "/ui/")


def test_the_files_need_no_name_and_the_figures_do(reader: TestClient) -> None:
    assert reader.get("/ui/").status_code == 200
    assert reader.get("/mirrorspark/v1/flows").status_code == 401
    assert reader.post("/ui/").status_code == 405


def test_what_has_not_changed_is_not_sent_again(reader: TestClient) -> None:
    first = reader.get("/ui/js/main.js")
    assert first.headers["cache-control"] == "no-cache"
    again = reader.get("/ui/js/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert reader.get("/ui/js/main.js", headers={"If-None-Match": '"older"'}).status_code == 200


def test_compressed_where_it_pays_and_is_wanted(reader: TestClient) -> None:
    plain = reader.get("/ui/js/main.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = reader.get("/ui/js/main.js", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert packed.headers["etag"] != plain.headers["etag"]
    assert gzip.decompress(page_assets()["js/main.js"].compressed).decode() == plain.text


def test_a_head_has_no_body(reader: TestClient) -> None:
    answer = reader.head("/ui/")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["no.js", "js/", "js", "../rest/page.py", "%2e%2e/rest/page.py", "..%2frest%2fpage.py", "vendor/uplot/LICENSE"],
)
def test_what_is_no_file_of_the_page(reader: TestClient, path: str) -> None:
    assert reader.get(f"/ui/{path}").status_code in (401, 404)


def test_the_page_is_no_part_of_the_described_api() -> None:
    app = make_app(MemoryHost(), flows=MovingFlows(20))
    assert not [path for path in app.openapi()["paths"] if path.startswith("/ui")]


# -- what stands in them -----------------------------------------------------------------------------------------------


def test_every_module_is_named_at_the_front() -> None:
    """A module that is found only when another was read comes one round later."""
    named = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', INDEX))
    classic = {"js/theme.js", "js/main.js"}
    assert named == set(MODULES) - classic | {"vendor/uplot/uPlot.esm.js"}


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_imports_is_there(name: str) -> None:
    folder = name.rpartition("/")[0]
    for target in re.findall(r'from "([^"]+)"', MODULES[name]):
        parts = f"{folder}/{target}".split("/")
        while ".." in parts:
            at = parts.index("..")
            del parts[at - 1 : at + 1]
        assert "/".join(part for part in parts if part != ".") in ASSETS, target


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_for_and_stays_short(name: str) -> None:
    assert MODULES[name].startswith("/**\n * ")
    assert len(MODULES[name].splitlines()) <= LINES_MAX


@pytest.mark.parametrize("name", MODULES)
def test_texts_never_become_markup(name: str) -> None:
    found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", MODULES[name])
    assert found == []


@pytest.mark.parametrize("name", OURS)
def test_nothing_comes_from_elsewhere(name: str) -> None:
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", OURS[name]))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in OURS[name]


def test_the_document_runs_nothing_of_its_own() -> None:
    assert re.findall(r"<script(?![^>]* src=)", INDEX) == []
    assert re.findall(r"\sstyle=|<style|\son\w+=", INDEX) == []


def test_every_colour_that_is_used_is_defined_and_only_there() -> None:
    defined = set(re.findall(r"(--[\w-]+):", STYLES["style/colours.css"]))
    for name, text in STYLES.items():
        assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= defined, name
        if name != "style/colours.css":
            assert re.findall(r"#[0-9a-f]{3,8}\b", text) == [], name


def test_what_is_not_ours_has_its_licence_beside_it() -> None:
    folder = files("mirrorspark") / "page" / "vendor"
    for library in folder.iterdir():
        assert "MIT License" in (library / "LICENSE").read_text()
