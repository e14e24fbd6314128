"""docs/migration.md: the way back stops Kerf before Karpenter starts, and selects the controller's pods."""

from __future__ import annotations

import re
from typing import Final

from tests.sources import ROOT

_, _, REST = (ROOT / "docs/migration.md").read_text(encoding="utf-8").partition("## Going back: the safe order\n")
COMMANDS: Final = re.findall(r"^(?:\$ )?(kubectl .*)$", REST.partition("\n## ")[0], re.MULTILINE)


def test_kerf_is_stopped_and_gone_before_karpenter_starts() -> None:
    steps = [re.search(r"(get nodeclaims|deployment/\w+|wait --for=delete)", one) for one in COMMANDS]
    assert [step[0] for step in steps if step] == [
        "get nodeclaims",
        "deployment/kerf",
        "wait --for=delete",
        "deployment/karpenter",
    ]


def test_the_controllers_pods_are_selected_by_labels_of_the_chart() -> None:
    template = (ROOT / "charts/kerf/templates/_helpers.tpl").read_text(encoding="utf-8")
    (selector,) = [found[1] for one in COMMANDS if (found := re.search(r"--selector (\S+)", one))]
    labels = dict(pair.split("=") for pair in selector.split(","))
    assert labels == {"app.kubernetes.io/instance": "kerf", "app.kubernetes.io/component": "controller"}
    assert all(f"{label}: {{{{" in template for label in labels)
