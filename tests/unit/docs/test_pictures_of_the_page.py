"""The pictures of `kerf ui` in the documentation: each has a text, and their cluster shows what they are for."""

from __future__ import annotations

import re
from datetime import timedelta

from kerf.views.board import board
from tests.pictures import page
from tests.sources import ROOT


def test_every_picture_is_shown_with_a_text_and_is_small() -> None:
    shown = dict(re.findall(r"!\[([^\]]+)\]\(assets/(ui-[^)]+)\)", (ROOT / "docs/ui.md").read_text(encoding="utf-8")))
    assert {*shown.values()} == {name for name, *_ in page.PICTURES}
    for name in shown.values():
        data = (page.FOLDER / name).read_bytes()
        assert data[:4] == b"RIFF"
        assert data[8:12] == b"WEBP"
        assert len(data) < 100_000


def test_the_cluster_has_what_the_pictures_show() -> None:
    """Soon after its nodes have become consolidatable: what comes later takes long to play, and shows nothing new."""
    found = board(page.cluster(timedelta(minutes=35)))
    assert {pool.name for pool in found.pools} >= {"general", "batch"}
    assert found.waiting == 1
    assert {row.name for row in found.costs.by_label} >= {"checkout", "search", "analytics", "platform"}
    assert any("postgres" in row.stays for row in found.nodes)
    assert any("do-not-disrupt" in row.stays for row in found.nodes)
