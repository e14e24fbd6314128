"""The site as `make docs` builds it: its links and anchors, its version, links to the sources, and its search."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.sources import ROOT
from tests.unit.docs.browser import CHROMIUM, browser

REPOSITORY = "https://git.example.com/kerf"
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def built(source: Path, site: Path, repository: str = "") -> subprocess.CompletedProcess[str]:
    """Not with `--quiet`: then nothing is strict."""
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(source / "mkdocs.yml"))
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "KERF_REPOSITORY": repository}
    return subprocess.run(
        [*command, "--site-dir", str(site)], capture_output=True, text=True, check=False, env=environment
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = built(ROOT, folder, REPOSITORY)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """The addresses that a page refers to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.addresses.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken(site: Path) -> list[str]:
    """Links between the files of a site that lead to no file or anchor. They work over `http:` and from `file:`, where
    no server adds an index page or knows the root: an address that begins with `/`, or ends with it, is broken."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # Servers return it for any address, so its links begin at the root.
        for address in sorted(page.addresses):
            if re.match(r"(?:https?|mailto|data):", address):
                continue
            file, anchor = urldefrag(address)
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            whole = target.is_file() and not address.startswith("/")
            if not whole or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                found.append(f"{path.relative_to(site)}: {address}")
    return found


def test_every_page_is_built_and_every_link_leads_to_a_file_and_an_anchor(site: Path) -> None:
    built_pages = {str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html")}
    assert built_pages >= {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in PAGES}
    assert {"changelog", "contributing"} <= built_pages
    assert broken(site) == []


@pytest.mark.parametrize("wrong", ["nowhere.html", "index.html#nowhere", "/index.html", "./", "nowhere.png"])
def test_the_check_of_links_finds_one_that_leads_nowhere(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "index.html").write_text(f'<h1 id="top">x</h1><a href="#top">x</a><a href="{wrong}">x</a>')
    assert broken(tmp_path) == [f"index.html: {wrong}"]


@pytest.mark.parametrize("wrong", ["[x](nowhere.md)", "[x](index.md#nowhere)", "[x](../README.md)"])
def test_the_build_refuses_a_link_that_leads_nowhere(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Kerf\n\n{wrong}\n")
    for name in ("docs/site_hooks.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("# A page\n")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(config.partition("nav:\n-")[0])
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert wrong.partition("(")[2].strip(")").partition("#")[0] in done.stderr


def test_every_page_shows_the_version_and_loads_nothing_from_other_hosts(site: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert f"Kerf {version}</title>" in text
        assert re.findall(r'(?:src|rel="stylesheet" href)="https?:', text) == []


def test_a_page_links_its_source_when_the_repository_has_an_address(site: Path) -> None:
    assert f'{REPOSITORY}/edit/main/docs/tasks/spot.md"' in (site / "tasks/spot.html").read_text(encoding="utf-8")
    assert f'{REPOSITORY}/edit/main/CHANGELOG.md"' in (site / "changelog.html").read_text(encoding="utf-8")


def test_without_the_address_of_a_repository_no_page_links_its_source(tmp_path: Path) -> None:
    assert built(ROOT, tmp_path / "site").returncode == 0
    assert "edit/main" not in (tmp_path / "site/tasks/spot.html").read_text(encoding="utf-8")


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The address of the site over HTTP."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_the_search_finds_a_page_and_no_page_is_wider_than_a_telephone(
    site: Path, served: str, tmp_path: Path, scheme: str
) -> None:
    base = site.as_uri() if scheme == "file" else served
    with browser(tmp_path / "profile") as page:
        page.open(f"{base}/tasks/spot.html?q=maintenance%20window")
        page.until("document.querySelector('.md-search-result__link[href*=\"tasks/budgets.html\"]') !== null")
        page.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        for path in sorted(site.rglob("*.html")) if scheme == "file" else ():
            page.open(f"{base}/{path.relative_to(site)}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path.name
