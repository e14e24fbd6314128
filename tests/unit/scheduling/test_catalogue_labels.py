"""Selectors, requirements and labels: behaviours 13 to 32 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

import pytest

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w


def test_013_selectors_with_existing_and_unknown_values() -> None:
    """Each well-known key is served for a value that exists and leaves the pod waiting for one that does not."""
    known = {
        labels.NODEPOOL: "default",
        labels.ZONE: "z2",
        labels.INSTANCE_TYPE: "small",
        labels.ARCH: "arm64",
        labels.OS: "linux",
    }
    for key, value in known.items():
        assert c.run(w.pool(), w.pod("p", nodeSelector={key: value})).node
        assert c.run(w.pool(), w.pod("p", nodeSelector={key: "unknown"})).pending == ["p"]


def test_014_an_unknown_capacity_type_is_invalid() -> None:
    """The pod is not even planned for, and is told what the key may be."""
    done = c.run(w.pool(), w.pod("p", nodeSelector={labels.CAPACITY_TYPE: "unknown"}))
    assert done.pending == ["p"]
    assert "default/p" in done.refused
    assert c.run(w.pool(), w.pod("p", nodeSelector={labels.CAPACITY_TYPE: "spot"})).node.capacity_types == ("spot",)


def test_015_custom_labels_come_from_the_pool() -> None:
    """A label that nobody defines cannot be selected; one of the template can, and the claim carries it."""
    pod = w.pod("p", nodeSelector={"team": "red"})
    assert c.run(w.pool(), pod).pending == ["p"]
    (claim,) = c.run(w.pool(labels={"team": "red"}), pod).claims()
    assert claim.metadata.labels["team"] == "red"


def test_016_a_template_label_of_another_value_does_not_serve() -> None:
    """k=v on the pool, k=other in the pod."""
    assert c.run(w.pool(labels={"k": "v"}), w.pod("p", nodeSelector={"k": "other"})).pending == ["p"]


def test_017_a_pod_picks_one_of_the_values_that_a_pool_offers() -> None:
    """The node gets the value that the pod asked for."""
    done = c.run(c.pool(c.row("k", "In", "v", "w")), w.pod("p", **c.wants(("k", "In", ["v"]))))
    assert done.claims()[0].metadata.labels["k"] == "v"


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [("In", ["v"], False), ("Exists", [], False), ("NotIn", ["v"], True), ("DoesNotExist", [], True)],
)
def test_018_a_custom_key_without_a_definition(operator: str, values: list[str], fits: bool) -> None:
    """Only what absence satisfies is served."""
    assert (not c.run(w.pool(), w.pod("p", **c.wants(("k", operator, values)))).pending) == fits


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["v"], True),
        ("NotIn", ["other"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("NotIn", ["v"], False),
        ("In", ["other"], False),
    ],
)
def test_019_a_custom_key_with_a_value_from_the_pool(operator: str, values: list[str], fits: bool) -> None:
    """What the value satisfies is served."""
    pod = w.pod("p", **c.wants(("k", operator, values)))
    assert (not c.run(w.pool(labels={"k": "v"}), pod).pending) == fits


def test_020_a_hostname_cannot_be_asked_for() -> None:
    """Nobody knows the name of a node to come."""
    assert c.run(w.pool(), w.pod("p", nodeSelector={labels.HOSTNAME: "somewhere"})).pending == ["p"]


def test_021_a_zone_outside_the_pools_own() -> None:
    """The pool's zones bound what its pods may ask for."""
    zones = c.pool(c.row(labels.ZONE, "In", "z1", "z2"))
    assert c.run(zones, w.pod("p", nodeSelector={labels.ZONE: "z3"})).pending == ["p"]
    assert c.run(zones, w.pod("p", nodeSelector={labels.ZONE: "z2"})).node.zones == ("z2",)


@pytest.mark.parametrize(
    ("operator", "bound", "left"),
    [
        ("Gt", "8", {"arm"}),
        ("Lt", "8", {"default", "small", "gpu-a", "gpu-b", "single-pod"}),
        ("Gte", "16", {"arm"}),
        ("Lte", "2", {"small"}),
    ],
)
def test_022_integer_labels_select_types(operator: str, bound: str, left: set[str]) -> None:
    """Only types in the range are listed."""
    assert set(c.run(w.pool(), w.pod("p", **c.wants((w.SIZE, operator, [bound])))).node.instance_types) == left


def test_023_two_demands_on_one_key_hold_together() -> None:
    """z1 and z2 at once is nowhere."""
    both = c.wants((labels.ZONE, "In", ["z1"]), (labels.ZONE, "In", ["z2"]))
    assert c.run(w.pool(), w.pod("p", **both)).pending == ["p"]


def test_024_not_in_leaves_the_other_zone() -> None:
    """Neither z1 nor z2 is z3."""
    pod = w.pod("p", **c.wants((labels.ZONE, "NotIn", ["z1", "z2"])))
    assert c.run(w.pool(), pod).node.zones == ("z3",)


def test_025_selector_requirement_and_preference_meet() -> None:
    """The zone is the one that all three admit."""
    affinity = {
        "nodeAffinity": {
            **w.node_affinity([(labels.ZONE, "In", ["z1", "z2"])])["nodeAffinity"],
            **c.prefers((1, labels.ZONE, "z2"))["nodeAffinity"],
        }
    }
    pod = w.pod("p", nodeSelector={labels.ARCH: "amd64"}, affinity=affinity)
    assert c.run(w.pool(), pod).node.zones == ("z2",)
    pod = w.pod("p", nodeSelector={labels.ZONE: "z2"}, affinity=affinity)
    assert c.run(w.pool(), pod).node.zones == ("z2",)


def test_026_restricted_labels_are_refused_and_kubernetes_own_are_not() -> None:
    """Karpenter's own domain is closed except for what is well known; Kubernetes' domains are open to pools."""
    for key in ("karpenter.sh/unknown", "deep.karpenter.sh/unknown", "karpenter.k8s.aws/unknown"):
        done = c.run(w.pool(), w.pod("p", nodeSelector={key: "x"}))
        assert done.pending == ["p"]
        assert "restricted" in done.refused.get("default/p", "")
    for key in ("kubernetes.io/x", "k8s.io/x", "deep.kubernetes.io/x", "deep.k8s.io/x"):
        assert c.run(w.pool(labels={key: "x"}), w.pod("p", nodeSelector={key: "x"})).node


def test_027_compatible_custom_labels_share_a_node_and_others_do_not() -> None:
    """Two pods of one team together, two of different teams apart."""
    teams = c.pool(c.row("team", "In", "red", "blue"))
    red = w.pod("a", nodeSelector={"team": "red"})
    either = w.pod("b", **c.wants(("team", "In", ["red", "blue"])))
    blue = w.pod("b", nodeSelector={"team": "blue"})
    assert c.run(teams, red, either).sizes() == [2]
    assert c.run(teams, red, blue).sizes() == [1, 1]


def test_028_a_pod_that_only_wants_the_key_joins_the_one_that_wants_a_value() -> None:
    """The label stays what the first one asked for."""
    custom = c.pool(c.row("k", "In", "v", "w"))
    done = c.run(custom, w.pod("a", **c.wants(("k", "In", ["v"]))), w.pod("b", "200m", **c.wants(("k", "Exists", []))))
    assert done.sizes() == [2]
    assert done.claims()[0].metadata.labels["k"] == "v"


def test_029_nodes_get_a_value_that_satisfies_the_pools_requirement() -> None:
    """Whatever is left open is settled by some value; what must not exist is absent."""
    rows = [
        c.row("not", "NotIn", "0", "1"),
        c.row("less", "Lt", "5"),
        c.row("more", "Gt", "7"),
        c.row("any", "Exists"),
        c.row("gone", "DoesNotExist"),
    ]
    (claim,) = c.run(c.pool(*rows), w.pod("p")).claims()
    own = claim.metadata.labels
    assert {"not", "less", "more", "any"} <= own.keys()
    assert own["not"] not in ("0", "1")
    assert 0 <= int(own["less"]) < 5
    assert int(own["more"]) > 7
    assert own["any"]
    assert "gone" not in own


def test_030_no_value_is_made_up_for_a_well_known_key() -> None:
    """Such labels come from the instance."""
    (claim,) = c.run(c.pool(c.row(labels.WINDOWS_BUILD, "NotIn", "10.0.1")), w.pod("p")).claims()
    assert labels.WINDOWS_BUILD not in claim.metadata.labels


def test_031_greater_than_two_is_at_least_three() -> None:
    """A claim knows inclusive bounds only."""
    (claim,) = c.run(c.pool(c.row("tier", "Gt", "2")), w.pod("p")).claims()
    assert {e.key: (e.operator, tuple(e.values)) for e in claim.spec.requirements}["tier"] == ("Gt", ("2",))


def test_032_a_pod_that_opts_out_is_passed_over_in_silence() -> None:
    """No node, and no event."""
    out = w.pod("p", **c.wants((labels.NODEPOOL, "DoesNotExist", [])))
    assert c.run(w.pool(), out).pending == ["p"]
    done = c.plan(w.pool(), out)
    assert done.actions == ()
    assert done.events == ()
