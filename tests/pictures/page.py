"""Views of `kerf ui` as pictures: `python -m tests.pictures.page` writes them, from a cluster of the sandbox."""

from __future__ import annotations

import base64
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from kerf.cli.answering.boards import Boards
from kerf.cli.answering.captures import Origin
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.sandbox.world import World
from tests.sources import ROOT
from tests.unit.docs.browser import Page, browser
from tests.unit.views.serving import serving

FOLDER: Final = ROOT / "docs/assets"
CLUSTER: Final = Path(__file__).with_suffix(".yaml")
#: The pictures: name of the file, address, colour scheme.
PICTURES: Final = (
    ("ui-cluster.webp", "/", "light"),
    ("ui-pending.webp", "/pending", "light"),
    ("ui-calendar.webp", "/next#budgets", "dark"),
    ("ui-cost.webp", "/cost", "light"),
)
WIDTH, HEIGHT = 1280, 760
_QUALITY: Final = 80
_LIFE: Final = timedelta(hours=2)


def cluster(life: timedelta = _LIFE) -> Snapshot:
    """The cluster after a while."""
    world = World(seed=1)
    loop = Controller(world.ports, settings=Settings(cluster_name="sandbox"), inline=True)
    for manifest in YAML(typ="safe").load_all(CLUSTER.read_text(encoding="utf-8")):
        world.apply(manifest)
    world.run(loop, life)
    return captured(loop.state, world.clock.now()).snapshot


def boards() -> Boards:
    """Its views."""
    found = cluster()
    return Boards(Origin("cluster production", lambda: found))


def taken(tab: Page, address: str, scheme: str) -> bytes:
    """The first screen of an address, or of the section that it names, as WebP."""
    tab.emulate(WIDTH, scheme, HEIGHT)
    tab.open(address)
    tab.evaluate("location.hash && document.querySelector(location.hash).scrollIntoView({behavior: 'instant'})")
    return base64.b64decode(tab.call("Page.captureScreenshot", format="webp", quality=_QUALITY)["data"])


def write(folder: Path = FOLDER) -> None:
    """Draw all pictures. Chromium must be installed."""
    with tempfile.TemporaryDirectory() as made, serving(boards()) as address, browser(Path(made) / "profile") as tab:
        tab.call("Page.enable")
        for name, path, scheme in PICTURES:
            (folder / name).write_bytes(taken(tab, address + path, scheme))


if __name__ == "__main__":
    write()
    print(f"{len(PICTURES)} pictures are written to {FOLDER.relative_to(ROOT)}", file=sys.stderr)
