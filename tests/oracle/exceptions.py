"""Where Kerf differs from the kube-scheduler's plugins on purpose. Each rule is named, counted, and in docs/testing.md.

No exception may be in more than one world of a hundred (`MOST`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tests.differential.draft import REQUIRED, Json
from tests.oracle.difference import EXISTING, MISSED, NEW_NODE, PLANNED, UNMADE, Difference
from tests.oracle.features import FEATURES, hard, meant, ports_of
from tests.oracle.objects import HOST
from tests.oracle.sketch import key_of, pending

_SPREAD_OVER_DAEMONS: Final = next(one.found for one in FEATURES if one.name == "spread: daemon pods")
#: The share of worlds that one exception may be in.
MOST: Final = 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """A difference in a world.

    `refused` are pods that the plugins refuse on the node that they are nominated to; `later` are pods that fit on an
    existing node only after pods that the engine places after them; `soon` are the differences that are left when the
    pods that terminate within seconds are gone, None without such pods; `apart` are pods that do not fit there while
    one more node without pods is there; `lifted` are pods that fit there only beside the node that is planned for them
    alone.
    """

    world: Json
    difference: Difference
    refused: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    soon: tuple[Difference, ...] | None = None
    apart: frozenset[str] = frozenset()
    lifted: frozenset[str] = frozenset()

    @property
    def pod(self) -> Json | None:
        """The pod that the difference is about, if it is one of the world."""
        return next((pod for pod in self.world["pods"] if key_of(pod) == self.difference.pod), None)

    @property
    def spec(self) -> Json:
        """The pod's spec; empty when there is no such pod."""
        return {} if self.pod is None else dict(self.pod["spec"])


@dataclass(frozen=True, slots=True)
class Rule:
    """`admits` says whether a difference is of this rule."""

    name: str
    why: str
    admits: Callable[[Case], bool]


def _of_the_engine(case: Case) -> bool:
    return case.difference.direction in (EXISTING, MISSED, PLANNED) or "whole answer" in case.difference.node


def _terminating(case: Case) -> bool:
    if case.soon is None or not _of_the_engine(case):
        return False
    rest = [replace(case, difference=one, soon=None) for one in case.soon]
    return all(any(rule.admits(one) for rule in EXCEPTIONS) for one in rest)


def _nominated(case: Case) -> bool:
    return bool(case.refused)


def _later(case: Case) -> bool:
    return case.difference.pod in case.later


def _hosts_to_come(case: Case) -> bool:
    """The pod gets a new node: its spread over hostnames is measured against a host without pods, as in Karpenter."""
    over_hosts = any(one["topologyKey"] == HOST for one in hard(case.spec))
    return over_hosts and case.difference.pod in case.apart


def _beside_its_node(case: Case) -> bool:
    """The pod gets a node alone, and fits on an existing one only when that node has brought pods of a DaemonSet."""
    return case.difference.pod in case.lifted and bool(hard(case.spec)) and _SPREAD_OVER_DAEMONS(case.world)


def _one_term_of_several(case: Case) -> bool:
    """The pod gets a new node by a term of its node affinity before the last."""
    required = case.spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {})
    new = case.difference.direction == MISSED and case.difference.message == NEW_NODE
    return new and len(required.get("nodeSelectorTerms", [])) > 1


def _by_fields(case: Case) -> bool:
    return case.difference.direction == MISSED and "by fields" in case.difference.message


def _open_labels(case: Case) -> bool:
    """The pod has a spread and one more constraint, and planned nodes may be of types that the spread does not count.

    A zone counts as one without pods where such a node alone has it, although it is no domain then.
    """
    company = case.spec.get("affinity", {}).get("podAffinity", {}).get(REQUIRED, [])
    spreads = hard(case.spec)
    return case.difference.direction == UNMADE and bool(spreads) and len(spreads) + len(company) > 1


def _daemons_of_new_nodes(case: Case) -> bool:
    """A new node may carry the pods of a DaemonSet, which a spread counts, or which anti-affinity is about.

    The pods get no node in a zone where some new nodes have such pods, and some rounds that count them have no end.
    """
    counted = bool(hard(case.spec)) and _SPREAD_OVER_DAEMONS(case.world)
    return case.difference.direction == UNMADE and (counted or "pods of DaemonSet" in case.difference.message)


def _ports_kept_free(case: Case) -> bool:
    """The pod's host ports are those of a DaemonSet, whose pods the anti-affinity of other pods keeps off some nodes.

    That anti-affinity ends with its pods. Then the DaemonSet's pod comes to the node, and needs its ports.
    """
    if case.difference.direction != UNMADE or "daemon sets use its host ports" not in case.difference.message:
        return False
    templates = [one["spec"]["template"] for one in case.world["daemonSets"]]
    with_ports = [one for one in templates if any(ports_of(one["spec"]))]
    others = (pod for pod in case.world["pods"] if pod is not case.pod)
    return any(meant(pod["spec"], "podAntiAffinity", with_ports) for pod in others)


def _wanted_near(case: Case) -> bool:
    """The pod gets a new node, where other pending pods that must be near it have room too."""
    chosen, words = case.pod, case.difference.message
    elsewhere = case.difference.direction == MISSED and (words == NEW_NODE or words.startswith("waits for a place"))
    if chosen is None or not elsewhere:
        return False
    return any(meant(pod["spec"], "podAffinity", [chosen]) for pod in pending(case.world) if pod is not chosen)


#: Kerf's own rules, and Karpenter's. Each is a row of the table in docs/testing.md.
EXCEPTIONS: tuple[Rule, ...] = (
    Rule("short grace", "a pod that terminates within a launch counts as gone", _terminating),
    Rule("later pods", "a pod with a new node would fit, but only after pods that are placed after it", _later),
    Rule("hosts to come", "a spread over hostnames is measured against a host without pods", _hosts_to_come),
    Rule("beside its node", "a pod fits elsewhere only beside the daemon pods of its new node", _beside_its_node),
    Rule("node affinity: OR", "a term is tried on all nodes, new ones too, before the next term", _one_term_of_several),
    Rule("node affinity: matchFields", "no node is made for a pod that asks for nodes by field", _by_fields),
    Rule("wanted near", "a pod gets a new node beside pending pods that must be near it, if these fit", _wanted_near),
    Rule("daemon pods to come", "no node where pods of a DaemonSet on new nodes may break it", _daemons_of_new_nodes),
    Rule(
        "daemon pods: ports", "a new node has the host ports of its DaemonSets free, as in Karpenter", _ports_kept_free
    ),
    Rule("nominated, but refused", "a nominated pod counts on its node, although the plugins refuse it", _nominated),
    Rule("open labels", "a spread is in doubt about domains that planned nodes with open labels bring", _open_labels),
)
