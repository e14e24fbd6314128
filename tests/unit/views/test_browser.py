"""The page of `kerf ui` in a real Chromium: widths, light and dark, console, requests, and the first paint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.plans import snapshot
from kerf.cli.answering.boards import Boards
from kerf.cli.answering.changed import Changed
from kerf.cli.web.history import History
from kerf.cli.web.planned import Planned
from kerf.model.snapshot import Snapshot
from kerf.planning.changes import Change
from tests.unit.docs.browser import CHROMIUM, Page, browser
from tests.unit.records.lives import Life
from tests.unit.views import worlds
from tests.unit.views.serving import serving
from tests.worlds import node_pool

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
WIDTHS: Final = (400, 768, 1440)
PAGES: Final = ("/", "/pending", "/next", "/cost", "/history", "/plan", "/nodes/node-a", "/pods/shop/huge-0")
#: The contrast that WCAG asks of text.
_CONTRAST: Final = 4.5
_COLOURS: Final = "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"


def served(found: Snapshot, history: History | None = None, plan: Planned | None = None) -> Iterator[str]:
    """The address of a page of this snapshot, on a free port."""
    with serving(Boards(worlds.origin(found)), history, plan) as address:
        yield address


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    huge = [worlds.waiting(f"huge-{n}", "900", of="huge") for n in range(3)]
    yield from served(worlds.cluster(*huge))


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    yield from served(snapshot(1000).snapshot)


def recorded_and_planned(folder: Path) -> Iterator[str]:
    """The page of a record, with the plan of a changed NodePool."""
    life = Life(folder)
    life.busy()
    life.recorder.close()
    history = History(str(life.folder), pytest.fail)
    assert history.savings is not None
    assert history.savings.pools
    plan = Planned(Changed(Change((node_pool("general", {"disruption": {"consolidateAfter": "1m"}}),))), history.latest)
    plan.compute()
    assert plan.found is not None
    yield from served(history.latest().snapshot, history, plan)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from recorded_and_planned(tmp_path_factory.mktemp("record"))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        yield page


def _seen(tab: Page, width: int, scheme: str, address: str) -> None:
    """Open an address at a width and in a colour scheme; its events alone are kept."""
    tab.emulate(width, scheme)
    tab.open("about:blank")
    tab.events.clear()
    tab.open(address)
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _events(tab: Page, method: str) -> list[dict[str, Any]]:
    return [event["params"] for event in tab.events if event.get("method") == method]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_pages_fit_and_ask_for_nothing_elsewhere(tab: Page, small: str, path: str, width: int, scheme: str) -> None:
    _seen(tab, width, scheme, small + path)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.documentElement.clientWidth") == width
    assert _events(tab, "Log.entryAdded") == _events(tab, "Runtime.exceptionThrown") == []
    asked = [event["request"]["url"] for event in _events(tab, "Network.requestWillBeSent")]
    assert asked
    assert all(url.startswith(f"{small}/") for url in asked)
    assert tab.evaluate("document.querySelectorAll('h1').length") == 1
    assert tab.evaluate("[...document.querySelectorAll('a,button')].every(one => one.textContent.trim())") is True


def test_types_and_blockers_are_readable_at_768_pixels(tab: Page, large: str) -> None:
    _seen(tab, 768, "light", f"{large}/")
    narrowest = "Math.min(...[...document.querySelectorAll('.nodes tbody {}')].map(one => one.offsetWidth))"
    assert tab.evaluate(narrowest.replace("{}", "td:nth-child(3)")) >= 100
    assert tab.evaluate(narrowest.replace("{}", ".why")) >= 100
    assert tab.evaluate("document.documentElement.scrollWidth") <= 768


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ["/?moment=1", "/cost", "/history", "/plan"])
def test_pages_of_a_record_fit_and_show_their_images(tab: Page, recorded: str, path: str, width: int) -> None:
    _seen(tab, width, "dark", recorded + path)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert _events(tab, "Log.entryAdded") == _events(tab, "Runtime.exceptionThrown") == []
    assert tab.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)") is True
    assert tab.evaluate("document.images.length") == (path == "/cost")
    assert tab.evaluate("document.querySelectorAll('input[type=range]').length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_schemes(tab: Page, small: str, scheme: str) -> None:
    _seen(tab, 1440, scheme, f"{small}/")
    ink, ground = (_luminance(colour) for colour in tab.evaluate(_COLOURS))
    assert (ink < ground) == (scheme == "light")
    assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= _CONTRAST


def _luminance(colour: str) -> float:
    """The relative luminance of `rgb(r, g, b)`. Source: WCAG 2.2."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_keyboard_reaches_the_content_first(tab: Page, small: str) -> None:
    _seen(tab, 1440, "light", f"{small}/")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"


@pytest.mark.parametrize("path", ["/", "/pending", "/next", "/cost", "/history", "/plan"])
def test_a_thousand_nodes_are_small_and_painted_soon(tab: Page, large: str, path: str) -> None:
    _seen(tab, 1440, "light", large + path)
    size = sum(event["encodedDataLength"] for event in _events(tab, "Network.loadingFinished"))
    assert 0 < size <= 500_000
    paint = tab.until("(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime")
    print(f"{path}: first paint {paint:.0f} ms, {size} bytes")
    assert paint <= 1000
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1440
