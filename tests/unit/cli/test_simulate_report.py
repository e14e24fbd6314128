"""The files of `kerf simulate`: the report as HTML, in a real Chromium, and the chart as SVG."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from kerf.cli.verbs.simulation import report
from kerf.cli.verbs.simulation.simulate import main
from kerf.simulating.autoscalers.models import MODELS
from tests.sources import ROOT
from tests.unit.cli.simulations import FEW, TOO_SMALL, furnished, pools, written
from tests.unit.docs.browser import CHROMIUM, Page, browser

HOSTILE: Final = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'{{7*7}}\x1b[31m\u202e"
WIDTHS: Final = (400, 768, 1440)


class Tags(HTMLParser):
    """The tags of a document with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("simulations"))


@pytest.fixture(scope="module")
def compared(folder: Path) -> Path:
    """The report of two sets of NodePools with three seeds, with Kerf and the models."""
    path = folder / "compared.html"
    sets = ["--nodepools", str(folder / "pools"), str(folder / "small")]
    arguments = ["--against", "karpenter-double,threshold", "--repeat", "2", "-o", "json", "--report", str(path)]
    assert main([written(folder, FEW), *sets, *arguments]) == 1
    return path


@pytest.fixture(scope="module")
def hostile(folder: Path) -> Path:
    """The report of a scenario with hostile names."""
    path, own = folder / "hostile.html", pools(folder, "<img src=x onerror=alert(3)>", TOO_SMALL)
    scenario = {**FEW, "name": HOSTILE, "description": HOSTILE}
    assert main([written(folder, scenario), "--nodepools", own, "-o", "json", "--report", str(path)]) == 1
    return path


def read(path: Path) -> Tags:
    return Tags(path.read_text(encoding="utf-8"))


# --- content --------------------------------------------------------------------------------------------------------
def test_the_report_has_question_figures_verdicts_method_and_limits(compared: Path) -> None:
    found = read(compared).text
    text = " ".join(found.split())
    assert "Which of 2 sets of NodePools costs least, and do all assertions pass?" in text
    assert "12m simulated, seeds 0 to 1" in text
    assert "every pod runs within 5m: 2 of 4 pods did not, first at 5m (seed 0, the first of 2 runs that fail)" in text
    assert "limit" in text
    assert "cheaper than" in text
    assert "replicasFile: web.csv" in text
    assert "--against karpenter-double,threshold --repeat 2" in text
    assert all(limit in text for limit in report.LIMITS)
    for name, model in MODELS.items():
        assert f"{name} is {model.label}." in text
        assert f"Shared with Kerf: {model.shared}." in text
        assert f"{name}: {model.label}" in text
        assert all(" ".join(one.split()) in text for one in (*model.omitted, *model.distance))


def test_the_report_needs_nothing_from_elsewhere(compared: Path) -> None:
    found = read(compared)
    assert not {"script", "link", "iframe", "object", "form", "a", "base"} & {tag for tag, _ in found.tags}
    assert all(str(one["src"]).startswith("data:image/svg+xml;base64,") for one in found.all("img"))
    (policy,) = (str(one["content"]) for one in found.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert [
        name for _, attributes in found.tags for name in attributes if name.startswith("on") or name == "style"
    ] == []


def test_charts_have_a_text(compared: Path) -> None:
    nodes, cost = read(compared).all("img")
    assert re.match(r"Nodes over time, seed 0\. .*pools, Kerf: at most [1-9], at the end [1-9]; ", str(nodes["alt"]))
    assert re.match(r"Cost in \$ an hour over time, seed 0\. .*small, Kerf: at most \$0\.00", str(cost["alt"]))
    chart = base64.b64decode(str(nodes["src"]).partition(",")[2])
    assert ElementTree.fromstring(chart).tag.endswith("svg")


def test_hostile_names_are_text(hostile: Path) -> None:
    found = read(hostile)
    assert len(found.all("img")) == 2
    assert found.all("script") == []
    assert "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'{{7*7}}\\x1b[31m\\u202e" in found.text
    assert "<img src=x onerror=alert(3)>" in found.text
    assert not {"\x1b", "\u202e"} & {*hostile.read_text(encoding="utf-8")}


def test_the_same_runs_give_the_same_bytes(folder: Path) -> None:
    path = folder / "again.html"
    arguments = [written(folder, FEW), "-o", "json", "--report", str(path)]
    found = set()
    for _ in range(2):
        assert main(arguments) == 0
        found.add(path.read_bytes())
    assert len(found) == 1
    assert "Do all assertions pass with these NodePools?" in read(path).text


def test_two_scenarios_are_two_parts_of_one_report(folder: Path) -> None:
    path, second = folder / "two.html", folder / "second.yaml"
    second.write_text((ROOT / "manifests/simulate/gpu-scarcity.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "nodeclass.yaml").write_bytes((ROOT / "manifests/simulate/nodeclass.yaml").read_bytes())
    main([written(folder, FEW), str(second), "-o", "json", "--report", str(path)])
    found = read(path)
    assert len(found.all("section")) == 2
    assert len(found.all("img")) == 4


def test_the_documentation_has_the_limits_of_the_report() -> None:
    text = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
    section = " ".join(text.partition("## Limits of a simulation")[2].split())
    assert section == " ".join(report.LIMITS)


# --- files ----------------------------------------------------------------------------------------------------------
def test_a_chart_is_written_and_the_scenario_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(folder, FEW)
    before = Path(path).read_bytes()
    assert main(["--chart", path]) == 0
    assert "$ an hour" in capsys.readouterr().out
    assert Path(path).read_bytes() == before
    chart = folder / "chart.svg"
    assert main([path, "--chart", str(chart)]) == 0
    assert "$ an hour" not in capsys.readouterr().out
    texts = [one.text for one in ElementTree.parse(chart).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Interruptions: Nodes over time, seed 0", "Interruptions: Cost in $ an hour over time, seed 0"} <= {*texts}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--report", "no/r.html"], "--report no/r.html: No such file or directory; create the folder "),
        (["--report", "pools"], "--report pools: it is a folder; give a file"),
        (["--chart", "no/c.svg"], "--chart no/c.svg: No such file or directory"),
        (["--junit", "x", "--report", "./x"], "--report ./x: --junit writes the same file; give each its own"),
        (["--report", "scenario.yaml"], "--report scenario.yaml: SCENARIO reads the same file; give another"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_files_are_checked_before_the_runs(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("kerf.cli.verbs.simulation.repeating.run", lambda *_: pytest.fail("it ran"))
    written(folder, FEW)
    assert main(["scenario.yaml", *arguments]) == 2
    assert words in capsys.readouterr().err


# --- a browser ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        yield page


def shown(tab: Page, path: Path, width: int, scheme: str) -> list[dict[str, Any]]:
    """Open a file at a width and in a colour scheme; its events."""
    tab.emulate(width, scheme)
    tab.open("about:blank")
    tab.events.clear()
    tab.open(path.as_uri())
    tab.until("[...document.images].every(one => one.complete && one.naturalWidth)")
    return list(tab.events)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_browser_shows_the_report_without_a_request(
    tab: Page, compared: Path, hostile: Path, width: int, scheme: str
) -> None:
    for path in (compared, hostile):
        events = shown(tab, path, width, scheme)
        named = {event["method"] for event in events}
        assert not named & {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        assert "Page.javascriptDialogOpening" not in named
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        assert [url for url in asked if not url.startswith("data:image/svg+xml;base64,")] == [path.as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")  # the policy allows the style
        assert tab.evaluate("document.images.length") == 2


def test_the_report_can_be_printed(tab: Page, compared: Path) -> None:
    shown(tab, compared, 1440, "dark")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert base64.b64decode(tab.call("Page.printToPDF")["data"]).startswith(b"%PDF")
