"""Pods, types and nodes of which nobody can make sense are refused where they are read: one solve serves all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from kerf.model.aws.instance_type import Catalogue
from kerf.model.kubernetes.objects import Pod
from tests.unit.scheduling import worlds as w

#: Nothing that a field may hold.
NONSENSE: Any = None
BEYOND = 10**20


def with_spec(pod: Pod, **spec: Any) -> Pod:
    return changed(pod, spec=changed(pod.spec, **spec))


ODD = {
    "a volume": with_spec(w.pod("odd"), volumes=(NONSENSE,)),
    "a container": with_spec(w.pod("odd"), containers=(NONSENSE,)),
    "a port": w.pod("odd", ports=[{"containerPort": BEYOND}]),
    "a skew": w.pod("odd", topologySpreadConstraints=[w.spread(maxSkew=BEYOND)]),
    "a constraint": with_spec(w.pod("odd"), topology_spread_constraints=(NONSENSE,)),
}


@pytest.mark.parametrize("what", sorted(ODD))
def test_a_pod_that_makes_no_sense_is_refused_alone(what: str) -> None:
    solution = w.solved(w.pool(), w.replicas(3, "p"), ODD[what])
    assert {key: why.code for key, why in solution.unplaced.items()} == {"default/odd": "InternalError"}
    assert sum(len(node.pods) for node in solution.new_nodes) == 3


def test_types_that_make_no_sense_cost_the_pools_of_their_class_only() -> None:
    unpriced: Catalogue = (replace(w.CATALOGUE[0], offerings=(replace(w.CATALOGUE[0].offerings[0], price=NONSENSE),)),)
    ref = changed(w.pool().spec.template.spec.node_class_ref, name="odd")
    odd = w.pool("odd", weight=100)
    template = changed(odd.spec.template, spec=changed(odd.spec.template.spec, node_class_ref=ref))
    odd = changed(odd, spec=changed(odd.spec, template=template))
    solution = w.solved(odd, w.pool(), w.pod("p"), catalogues={"default": w.CATALOGUE, "odd": unpriced})
    assert [node.pool for node in solution.new_nodes] == ["default"]
    assert {name: why.code for name, why in solution.pool_problems.items()} == {"odd": "InternalError"}


def test_a_node_with_a_pod_that_makes_no_sense_takes_no_others() -> None:
    """Nobody knows how much room there is beside it."""
    guest = with_spec(w.pod("guest", node="odd"), containers=(NONSENSE,))
    solution = w.solved(w.node("odd", cpu="8"), guest, w.node("sound"), w.pod("p"))
    assert dict(solution.placed) == {"default/p": "node/sound"}
