"""Anti-affinity that selects thousands of pods: counts by hostname as arrays; claims on their way that are alike."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.selectors import Selector
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyGroup
from kerf.scheduling.nodes import existing
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.placing.host_counts import HostCounts
from kerf.scheduling.solve import context_of, solve
from kerf.scheduling.topology import admits
from kerf_api import labels
from kerf_api.v1.nodeclaim import ClaimResources, NodeClaim
from tests.unit.scheduling import worlds as w


def _group(kind: str, key: str = labels.HOSTNAME) -> TopologyGroup:
    return TopologyGroup(kind, key, None, Selector())


def _places(number: int) -> ExistingNodes:
    snapshot = w.world(w.pool(), *[w.node(f"n{i}") for i in range(number)])
    return context_of(snapshot).places


def test_arrays_follow_the_counts_of_groups() -> None:
    places, group, other = _places(3), _group(ANTI), _group(AFFINITY)
    hosts = [target.hostname for target in places.targets]
    group.counts, group.owners = {hosts[1]: 2, "gone": 7}, {hosts[2]: 1}
    found = HostCounts(places)
    assert found.counts(group).tolist() == [0, 2, 0]
    assert found.owners(group).tolist() == [0, 0, 1]
    assert [found.clear((group,), place) for place in range(3)] == [True, True, False]
    assert [admits.clear(group, (host,)) for host in hosts] == [True, True, False]
    found.count((group, _group(ANTI)), 0)
    found.follow_owner(group, 0)
    found.follow(other, 0)  # nobody has asked for its array
    assert found.counts(group).tolist() == [1, 2, 0]
    assert found.owners(group).tolist() == [1, 0, 1]
    assert group.counts == {hosts[0]: 1, hosts[1]: 2, "gone": 7}
    assert found.counts(other).tolist() == [0, 0, 0]


def test_only_anti_affinity_over_hostnames_counts_on_every_node_by_its_hostname() -> None:
    far, zones, near, spread = _group(ANTI), _group(ANTI, labels.ZONE), _group(AFFINITY), _group(SPREAD)
    assert HostCounts(_places(1)).parted((far, zones, near, spread)) == ((far,), (zones, near, spread))


def test_claims_on_their_way_that_differ_in_name_alone_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    original = existing._open_claim

    def open_claim(claim: NodeClaim, *given: Any) -> Any:
        read.append(claim.name)
        return original(claim, *given)

    monkeypatch.setattr(existing, "_open_claim", open_claim)
    apart = {"labels": {"app": "web"}, "affinity": w.between("podAntiAffinity")}
    pods = [*w.replicas(3, "p", "900m", "900Mi", **apart)]
    world = w.world(w.pool(), pods)
    claims = w.claims(world, solve(world, list(world.pods.values())))
    one, more = claims[0], ClaimResources(requests={"cpu": "1800m"})
    meta = replace(one.metadata, name="larger", uid="larger")
    larger = replace(one, metadata=meta, spec=replace(one.spec, resources=more))
    read.clear()
    targets = context_of(w.world(w.pool(), pods, claims, larger)).places.targets
    assert len(claims) == 3
    assert len(targets) == 4
    assert len(read) == 2
