"""Devices that pods hold by claims, when their nodes go (95 of the disruption catalogue)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.model.settings import Settings
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import dra_world as d

ON = Settings("test", ignore_dra_requests=False)
PLAIN = m.machine("t.plain", 2, 10_000)
RICH, GIANT = (
    d.gpus(m.machine(name, cpu, price), 1) for name, cpu, price in (("c.rich", 2, 100_000), ("m.giant", 8, 400_000))
)


def user(name: str, on: str, claim: str) -> Pod:
    """A pod that runs and has what this claim has been given."""
    container = {"name": "c", "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": claim}]}}
    rows = [{"name": claim, "resourceClaimName": claim}]
    return w.pod(name, on, containers=[container], resourceClaims=rows)


def given(claim: str, pool: str, *users: str, **allocation: Any) -> Any:
    """A claim that has the only device of a pool."""
    results = [{"request": "r", "driver": d.DRIVER, "pool": pool, "device": "gpu-0"}]
    reserved = [{"resource": "pods", "name": one, "uid": f"pod-{one}"} for one in users]
    status = {"allocation": {"devices": {"results": results}, **allocation}, "reservedFor": reserved}
    return c.made("ResourceClaim", claim, "shop", spec={"devices": {"requests": [d.request()]}}, status=status)


def equipped(name: str, type_: Any, **more: Any) -> list[Any]:
    """A node with one device."""
    return [*m.host(name, type_, **more), d.published(f"slice-{name}", d.device("gpu-0"), node=f"node-{name}")]


def local(name: str) -> dict[str, Any]:
    """The reach of what is on one node only."""
    field = {"key": "metadata.name", "operator": "In", "values": [f"node-{name}"]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


#: Node a has a device that its pod uses.
A = [*equipped("a", GIANT), user("1", "a", "one"), given("one", "slice-a", "1", **local("a")), *d.classes()]


def test_095_a_claim_moves_to_a_replacement_that_has_the_device() -> None:
    (found,) = m.proposed(w.pool(), *A, types=(PLAIN, RICH, GIANT), settings=ON)
    assert (found.kind, m.bought(found)) == ("replace", [("c.rich",)])


@pytest.mark.parametrize("types", [(PLAIN, GIANT), (PLAIN,)])
def test_095_a_claim_that_nothing_else_could_serve_keeps_its_node(types: Any) -> None:
    """The device of the node that goes is none that pods could move to."""
    assert m.moves(w.pool(), *A, types=types, settings=ON) == []


@pytest.mark.parametrize("taken", [True, False])
def test_095_what_pods_of_other_nodes_hold_stays_theirs(taken: bool) -> None:
    other = equipped("b", GIANT, consolidatable=False)
    held = [user("2", "b", "two"), given("two", "slice-b", "2", **local("b"))] if taken else []
    found = m.moves(w.pool(), *A, *other, *held, types=(GIANT,), settings=ON)
    assert found == ([] if taken else [("a", "delete")])


@pytest.mark.parametrize("shared", [True, False])
def test_095_what_pods_share_is_not_free_when_one_of_them_moves(shared: bool) -> None:
    """A device that all nodes reach: another claim waits for it in vain while one of its pods stays."""
    net = d.published("net", d.device("gpu-0"))
    users = ["1", "2"] if shared else ["1"]
    stays = m.host("b", GIANT, consolidatable=False)
    sharing = [user("2", "b", "one")] if shared else [m.pod("2", "b")]
    world = [w.pool(), *m.host("a", GIANT), user("1", "a", "one"), *stays, *sharing]
    world += [given("one", "net", *users), net, *d.classes()]
    assert m.moves(*world, types=(GIANT,), settings=ON) == [("a", "delete")]
    rival = [c.made("ResourceClaim", "new", "shop", spec={"devices": {"requests": [d.request()]}})]
    rival += [user("3", "a", "new")]
    assert m.moves(*world, *rival, types=(GIANT,), settings=ON) == []
