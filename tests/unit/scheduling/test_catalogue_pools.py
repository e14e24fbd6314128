"""NodePools: weight, limits, what nodes take over from them, static ones (104 to 120 of the catalogue)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
APART = w.between("podAntiAffinity")


def apart(count: int, cpu: str, name: str = "p") -> list[Any]:
    """Pods of which no two may be on one host."""
    return w.replicas(count, name, cpu, labels={"app": "web"}, affinity=APART)


def test_104_who_names_a_pool_gets_it() -> None:
    """Although another weighs more."""
    pools = [w.pool("heavy", weight=100), w.pool("light")]
    assert c.run(pools, w.pod("p", nodeSelector={labels.NODEPOOL: "light"})).node.pool == "light"


def test_105_the_heaviest_pool_that_can_is_taken_at_any_price() -> None:
    """The cheap one is light."""
    cheap = w.pool("cheap", weight=1)
    dear = c.pool(c.row(labels.INSTANCE_TYPE, "In", "gpu-a"), name="dear", weight=99)
    assert c.run(cheap, dear, w.pod("p")).types() == ["gpu-a"]
    assert c.run(cheap, dear, w.pod("p", nodeSelector={labels.ARCH: "arm64"})).node.pool == "cheap"


def test_106_a_pool_beyond_its_limit_makes_no_more() -> None:
    """20 are allowed and 100 in use."""
    used = w.node("n", cpu="100", labels={labels.NODEPOOL: "default"}, taints=[TAINT])
    done = c.run(w.pool(limits={"cpu": "20"}), used, w.pod("p"))
    assert done.pending == ["p"]
    assert "exceed limits" in done.why()


def test_107_a_limit_counts_what_is_there() -> None:
    """One node of two CPU fits the limit, a second one does not."""
    story = c.Story.of(w.pool(limits={"cpu": "2"}))
    assert story.batch(w.pod("a", "1750m")).types() == ["small"]
    done = story.batch(w.pod("b", "1750m"))
    assert (done.pending, done.nodes) == (["b"], ())


def test_108_a_pod_that_only_types_beyond_the_limit_hold() -> None:
    """2.1 CPU under a limit of two."""
    done = c.run(w.pool(limits={"cpu": "2"}), w.pod("p", "2100m"))
    assert done.pending == ["p"]
    assert "all available instance types exceed limits for nodepool" in done.why()


def test_109_a_limit_holds_within_one_pass() -> None:
    """Three CPU: one of two pods that cannot share a node."""
    done = c.run(w.pool(limits={"cpu": "3"}), apart(2, "1500m"))
    assert done.sizes() == [1]
    assert len(done.pending) == 1


def test_110_any_resource_may_be_limited() -> None:
    """One pod slot, where the type has five."""
    pool = w.pool(limits={"pods": "1"})
    assert c.run(pool, w.pod("p", requests={c.GPU_A: "1"})).pending == ["p"]


def test_111_the_number_of_nodes_may_be_limited() -> None:
    """Two, over three passes; and within one pass, too."""
    story = c.Story.of(w.pool(limits={"nodes": "2"}))
    found = [story.batch(apart(1, "1", f"b{number}")) for number in range(3)]
    assert [len(done.nodes) for done in found] == [1, 1, 0]
    assert found[2].pending == ["b2-0"]
    once = c.run(w.pool(limits={"nodes": "2"}), apart(3, "1"))
    assert (len(once.nodes), len(once.pending)) == (2, 1)


def test_112_a_pool_that_is_not_ready_is_passed_over() -> None:
    """The others are used."""
    assert c.run(w.pool("heavy", weight=50, ready="False"), w.pool("light"), w.pod("p")).node.pool == "light"
    assert c.run(w.pool(ready="False"), w.pod("p")).pending == ["p"]


def test_113_how_long_a_node_may_take_to_go() -> None:
    """What the pool says; nothing where it says nothing, for the provider has no default of its own."""
    for period in ("30m", None):
        pool = w.pool()
        template = pool.spec.template
        own = msgspec.structs.replace(template.spec, termination_grace_period=period)
        spec = msgspec.structs.replace(pool.spec, template=msgspec.structs.replace(template, spec=own))
        (claim,) = c.run(msgspec.structs.replace(pool, spec=spec), w.pod("p")).claims()
        assert claim.spec.termination_grace_period == period


def test_114_what_the_template_says_is_on_the_claim() -> None:
    """Annotations, labels, taints, startup taints. Taints must be tolerated, startup taints need not be."""
    boot = {"key": "boot", "value": "x", "effect": "NoSchedule"}
    pool = w.pool(annotations={"note": "n"}, labels={"team": "red"}, taints=[TAINT], startupTaints=[boot])
    done = c.run(pool, w.pod("p", tolerations=[{"key": "k", "operator": "Exists"}]), w.pod("intolerant"))
    (claim,) = done.claims()
    assert (claim.metadata.annotations["note"], claim.metadata.labels["team"]) == ("n", "red")
    assert [t.key for t in claim.spec.taints] == ["k"]
    assert [t.key for t in claim.spec.startup_taints] == ["boot"]
    assert done.pending == ["intolerant"]
    assert "did not tolerate taint" in done.why()


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Equal", "value": "other"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_115_how_a_taint_is_tolerated(toleration: dict[str, str], fits: bool) -> None:
    """Exists without a key tolerates all; another value nothing."""
    assert (not c.run(w.pool(taints=[TAINT]), w.pod("p", tolerations=[toleration])).pending) == fits


def test_116_a_claim_belongs_to_its_pool() -> None:
    """By an owner reference that blocks its deletion, with the pool's node class."""
    (claim,) = c.run(w.pool(), w.pod("p")).claims()
    (owner,) = claim.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name) == ("karpenter.sh/v1", "NodePool", "default")
    assert owner.block_owner_deletion
    ref = claim.spec.node_class_ref
    assert (ref.group, ref.kind, ref.name) == (labels.AWS_GROUP, "EC2NodeClass", "default")
