"""The domains of a spread are those of all relaxations of a pod, although equal ones are read once."""

from __future__ import annotations

from kerf_api import labels
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}


def test_a_pool_that_is_avoided_if_possible_brings_its_domains() -> None:
    """The relaxation that tolerates a soft taint has constraints over the same keys as the one before."""
    plain = w.pool("plain", requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}])
    taint = {"key": "old", "effect": "PreferNoSchedule"}
    avoided = w.pool("avoided", requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z3"]}], taints=[taint])
    pods = w.replicas(6, "web", labels=WEB, topologySpreadConstraints=[w.spread()])
    assert w.counts(w.solved(plain, avoided, pods)) == [2, 2, 2]


def test_a_preference_that_daemons_on_each_node_break_takes_no_domain() -> None:
    """Two relaxations have anti-affinity over hostnames, and only the second one tolerates pods of the DaemonSet."""
    affinity = w.between("podAntiAffinity", app="other")
    preferred = w.preferences(1)["podAntiAffinity"]
    affinity = {"podAntiAffinity": {**affinity["podAntiAffinity"], **preferred}}
    spreads = [w.spread()]
    pods = w.replicas(6, "web", labels=WEB, topologySpreadConstraints=spreads, affinity=affinity)
    solution = w.solved(w.pool(), w.daemon_set("agent", labels={"app": "a0"}), pods)
    assert not solution.unplaced
    assert w.counts(solution) == [2, 2, 2]
