"""The same worlds by the oldest version, and the memory of an oracle after many worlds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.known import FITS, IN_A, IN_B, Known
from tests.oracle.objects import (
    affinity,
    claim,
    csi_node,
    device_claim,
    device_class,
    device_slice,
    mounts,
    node,
    pod,
    storage_class,
    term,
)
from tests.oracle.rules import RULES
from tests.oracle.test_oracle import WORLDS

#: The rules that changed since, and the end of each in the oldest version.
#: There the resources of a pod, unlike those of its containers, cannot be resized in place; nodes declare no features;
#: a device class stands for no extended resource.
CHANGED: Final = {
    "NodeDeclaredFeatures": {"n1": FITS, "n2": FITS},
    "DynamicResources: an extended resource that a device class stands for": {
        "n1": "NodeResourcesFit",
        "n2": "NodeResourcesFit",
        "n3": FITS,
    },
    "resize: the resources of a pod, smaller, not yet done": {"n1": FITS},
    "resize: the resources of a pod, smaller, still allocated": {"n1": FITS},
}

WORLDS_ASKED: Final = 20_000
SOON: Final = 2_000
#: In KiB. A goroutine that outlives its world would keep at least 2 KiB each time.
GROWTH: Final = 20_000


def _ends(cases: dict[str, Known], oracle: Oracle) -> dict[str, dict[str, str]]:
    return {
        name: {one.node: one.plugin for one in oracle.ask(case.world, verdicts=[("default/web", ALL_NODES)]).verdicts}
        for name, case in cases.items()
    }


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_oldest_version_has_the_same_rules_but_for_those_that_changed(oldest_oracle: Oracle) -> None:
    cases = {**WORLDS, **RULES}
    assert oldest_oracle.ask({}).version.startswith("v1.34.")
    found = _ends(cases, oldest_oracle)
    assert {name: end for name, end in found.items() if end != cases[name].refused_by} == CHANGED


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_world_leaves_nothing_behind(oracle: Oracle) -> None:
    world = {
        "nodes": [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        "pods": [
            pod("a", labels={"app": "a"}, volumes=mounts("data")),
            pod("b", affinity=affinity(term("topology.kubernetes.io/zone", "a"))),
            pod("c", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        ],
        "persistentVolumeClaims": [claim("data")],
        "storageClasses": [storage_class()],
        "csiNodes": [csi_node("n1", 1)],
        "resourceClaims": [device_claim("gpu")],
        "resourceSlices": [device_slice("n1", "d0")],
        "deviceClasses": [device_class()],
    }
    queue = ["default/a", "default/b", "default/c"]
    early = 0
    for number in range(WORLDS_ASKED):
        assert [one.node for one in oracle.ask(world, queue=queue).queue] == ["n1", "n1", "n1"]
        if number == SOON:
            early = _resident(oracle)
    assert _resident(oracle) - early < GROWTH


def _resident(oracle: Oracle) -> int:
    lines = Path(f"/proc/{oracle.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
