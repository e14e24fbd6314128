"""The page of `kerf ui` judged by axe-core in a real Chromium: names, roles, contrast, order, in light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

import pytest

from tests.unit.docs.browser import CHROMIUM, Page, browser
from tests.unit.views import worlds
from tests.unit.views.test_browser import recorded_and_planned, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
PAGES: Final = (
    "/",
    "/?q=nothing-has-this-name",
    "/pending",
    "/next",
    "/cost",
    "/history",
    "/plan",
    "/nodes/node-a",
    "/pods/shop/huge-0",
    "/none",
)
#: The script of axe-core, from the package that has a current one.
AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text()
_RUN: Final = "axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations))"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    huge = [worlds.waiting(f"huge-{number}", "900", of="huge") for number in range(3)]
    yield from served(worlds.cluster(*huge))


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    yield from served(worlds.hostile())


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from recorded_and_planned(tmp_path_factory.mktemp("record"))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        page.call("Page.enable")
        yield page


def violations(tab: Page, address: str, *, scheme: str = "light", width: int = 1440) -> list[dict[str, Any]]:
    """What axe-core finds wrong, of any impact."""
    tab.emulate(width, scheme)
    tab.open("about:blank")
    tab.open(address)
    tab.evaluate(AXE)
    return list(json.loads(tab.evaluate(_RUN)))


def _said(found: list[dict[str, Any]]) -> list[str]:
    return [
        f"{one['impact']} {one['id']}: {one['help']}: {node['html'][:160]}"
        for one in found
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 768, 1440])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(tab: Page, address: str, path: str, width: int, scheme: str) -> None:
    assert _said(violations(tab, address + path, scheme=scheme, width=width)) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 768, 1440])
@pytest.mark.parametrize("path", ["/?moment=0", "/cost", "/history", "/plan", "/plan?moment=0"])
def test_axe_finds_nothing_in_a_record_and_a_plan(tab: Page, past: str, path: str, width: int, scheme: str) -> None:
    assert _said(violations(tab, past + path, scheme=scheme, width=width)) == []


@pytest.mark.parametrize("path", ["/", "/pending", "/next", "/cost"])
def test_axe_finds_nothing_with_hostile_names(tab: Page, hostile: str, path: str) -> None:
    assert _said(violations(tab, hostile + path)) == []


def test_axe_finds_what_is_wrong(tab: Page, address: str) -> None:
    """The judge itself: a picture without a name, and grey on grey."""
    tab.open(f"{address}/cost")
    tab.evaluate("document.querySelector('h1').style.color = 'rgb(200, 200, 200)'")
    tab.evaluate("document.querySelector('h1').style.backgroundColor = 'rgb(210, 210, 210)'")
    tab.evaluate("document.querySelector('main').append(document.createElement('img'))")
    tab.evaluate(AXE)
    assert {"color-contrast", "image-alt"} <= {one["id"] for one in json.loads(tab.evaluate(_RUN))}
