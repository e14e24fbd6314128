"""The sandbox's kube-scheduler on worlds with a known end: it refuses the nodes that the kube-scheduler refuses."""

from __future__ import annotations

import pytest

from tests.oracle.known import Known
from tests.oracle.rules import RULES
from tests.oracle.sandbox import SandboxJudge
from tests.oracle.test_oracle import WORLDS

#: The sandbox has no devices, and its nodes declare no features.
_ABSENT = ("DynamicResources", "NodeDeclaredFeatures")
_CASES = {**WORLDS, **RULES}


@pytest.mark.parametrize("name", [name for name in _CASES if not name.startswith(_ABSENT)])
def test_the_sandbox_agrees(name: str) -> None:
    known: Known = _CASES[name]
    verdicts = SandboxJudge(known.world).verdicts("default/web")
    assert {node: bool(reason) for node, reason in verdicts.items()} == {
        node: bool(plugin) for node, plugin in known.refused_by.items()
    }, verdicts
