"""The engine's answer beside the kube-scheduler's plugins.

Four directions:

    a  the plugins allow each placement on an existing node, in the engine's order
    b  with all placements bound, no pod with a new node or a refusal fits on an existing node
    c  planned nodes take their pods together, in the engine's order
    d  no NodePool without limits can make one more node that takes a refused pod after all others

Pods that are expected elsewhere come first: daemon pods, and pods that are nominated to a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Final

from tests.differential.draft import Json
from tests.oracle import referee
from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.difference import (
    BLAMED,
    DAEMON,
    EXISTING,
    FAILED,
    LEFT_OUT,
    LET_PASS,
    MISSED,
    NEW_NODE,
    PLANNED,
    Difference,
)
from tests.oracle.draws_nodes import SOON
from tests.oracle.ours import AT_FIRST, Launch, Ours, answer, each_choice, planned_nodes
from tests.oracle.sketch import daemon_pod, key_of, kubernetes, pending
from tests.oracle.unmade import unmade


@dataclass(frozen=True, slots=True)
class Comparison:
    """`ours` is None when the engine raised. See `exceptions.Case` for the last five."""

    world: Json
    ours: Ours | None
    differences: tuple[Difference, ...]
    refused: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    soon: tuple[Difference, ...] | None = None
    apart: frozenset[str] = frozenset()
    lifted: frozenset[str] = frozenset()


def compare(world: Json, oracle: Oracle) -> Comparison:
    """Compare the engine's answer. A difference in placements hides the others."""
    try:
        ours = answer(world)
    except Exception as error:
        return Comparison(world, None, (Difference(FAILED, "", "", type(error).__name__, str(error)),))
    if ours.failures:
        return Comparison(world, ours, tuple(Difference(FAILED, "", "", "", text) for text in ours.failures))
    there = with_planned(world, ours)
    before, wrong = _placements(there, ours, oracle)
    found = tuple(_left_out(world, ours)) or wrong
    found = found or (*missed(world, ours, oracle), *one_more(world, ours, oracle))
    later = frozenset(one.pod for one in found if one.message == NEW_NODE and _later(there, ours, before, one, oracle))
    apart = frozenset(one.pod for one in found if one.message == NEW_NODE and _apart(world, ours, one, oracle))
    lifted = frozenset(
        one.pod for one in found if one.message == NEW_NODE and _lifted(there, ours, before, one, oracle)
    )
    soon = _soon(there, ours, oracle) if found else None
    nominated = {key_of(pod) for pod in pending(world) if pod["status"].get("nominatedNodeName")}
    refused = nominated & (expected(there).keys() - before.keys())
    names = {node["metadata"]["name"] for node in world["nodes"]}
    settled = bound_as({**there, "nodes": world["nodes"]}, {k: node for k, node in before.items() if node in names})
    differences = (*found, *_of_the_referee(settled, there, ours, wrong, oracle))
    return Comparison(world, ours, differences, frozenset(refused), later, soon, apart, lifted)


def _of_the_referee(
    settled: Json, there: Json, ours: Ours, wrong: tuple[Difference, ...], oracle: Oracle
) -> Iterator[Difference]:
    """Pod by pod and node by node; then of the whole answer, which the plugins allow or refuse."""
    yield from referee.pairs(ours, oracle, settled)
    words = referee.of_the_answer(ours)
    if words and not wrong:
        yield Difference(BLAMED, "", "the whole answer", "", words[0])
    elif (
        wrong and not words and not referee.of_the_launched(there, ours) and not _in_another_order(there, ours, oracle)
    ):
        first = wrong[0]
        yield Difference(LET_PASS, first.pod, f"{first.node}, in the whole answer", first.plugin, first.message)


def _in_another_order(world: Json, ours: Ours, oracle: Oracle) -> bool:
    """Whether all pods get their places when those that are refused come in other turns. The referee knows no order."""
    homes = {**expected(world), **ours.homes}

    def refused(order: list[str]) -> list[str]:
        found = oracle.ask(kubernetes(world), queue=order, bind=homes)
        return [one.pod for one in found.queue if not one.node and one.pod in ours.homes]

    order = [*expected(world), *ours.solution.order]
    left = refused(order)
    while left:
        others = [_moved(order, pod, at) for pod in left for at in range(len(order))]
        better = next((other for other in others if len(refused(other)) < len(left)), None)
        if better is None:
            return False
        order, left = better, refused(better)
    return True


def _moved(order: list[str], pod: str, at: int) -> list[str]:
    others = [one for one in order if one != pod]
    return [*others[:at], pod, *others[at:]]


def with_planned(world: Json, ours: Ours, launch: Launch = AT_FIRST) -> Json:
    """The world with the planned nodes, and with the daemon pods that are still missing on any node."""
    nodes = [*world["nodes"], *planned_nodes(ours, launch)]
    there = {key_of(pod) for pod in world["pods"]}
    daemons = [
        daemon_pod(one, node["metadata"]["name"], settled=False) for node in nodes for one in world["daemonSets"]
    ]
    return {**world, "nodes": nodes, "pods": [*world["pods"], *(pod for pod in daemons if key_of(pod) not in there)]}


def expected(world: Json) -> dict[str, str]:
    """The nodes of pods that come before those of the engine's answer: daemon pods and nominated pods."""
    names = [node["metadata"]["name"] for node in world["nodes"]]
    found = {}
    for pod in pending(world):
        if "ownerReferences" in pod["metadata"]:
            found[key_of(pod)] = next(name for name in names if pod["metadata"]["name"].endswith(f"-{name}"))
        elif pod["status"].get("nominatedNodeName") in names:
            found[key_of(pod)] = pod["status"]["nominatedNodeName"]
    return found


def _placements(world: Json, ours: Ours, oracle: Oracle) -> tuple[dict[str, str], tuple[Difference, ...]]:
    """Directions a and c: the expected pods first, then the engine's placements in its order.

    Returns the nodes of the expected pods that are bound, and the first difference: others may be its effects.
    """
    before, homes, existing = expected(world), ours.homes, set(ours.solution.placed)
    found = oracle.ask(kubernetes(world), queue=[*before, *ours.solution.order], bind={**before, **homes})
    differences = []
    for binding in found.queue:
        if binding.node:
            continue
        wanted = before.get(binding.pod) or homes[binding.pod]
        why = binding.refusals[wanted]
        if binding.pod not in before:
            direction = EXISTING if binding.pod in existing else PLANNED
        elif why.plugin in _SHORT and wanted in homes.values() and wanted.startswith("planned-"):
            direction = DAEMON
        else:
            continue
        differences.append(Difference(direction, binding.pod, wanted, why.plugin, why.message))
    bound = {binding.pod: binding.node for binding in found.queue if binding.node and binding.pod in before}
    return bound, tuple(differences[:1])


#: A planned node has resources and ports for its daemon pods. Other plugins say that a daemon pod has no place there.
_SHORT: Final = ("NodeResourcesFit", "NodePorts")


def _left_out(world: Json, ours: Ours) -> Iterator[Difference]:
    known = {*ours.homes, *ours.refused, *ours.solution.unplaced, *expected(world)}
    for pod in pending(world):
        if key_of(pod) not in known and not pod["spec"].get("schedulingGates"):
            yield Difference(LEFT_OUT, key_of(pod), "", "", "it has neither a place nor a refusal")


def _missed(world: Json, ours: Ours, before: Mapping[str, str], oracle: Oracle) -> tuple[Difference, ...]:
    """Direction b, pod by pod: all other placements are bound."""
    homes, existing = ours.homes, {node["metadata"]["name"] for node in world["nodes"]} - set(_planned_names(ours))
    refused = {**ours.refused, **{key: str(why) for key, why in ours.solution.unplaced.items()}}
    new = {key: NEW_NODE for key in homes if key not in ours.solution.placed}
    asked = [(tuple(refused), frozenset[str]())] if refused else []
    asked += [((key,), frozenset((key,))) for key in new]
    differences = []
    for keys, left_out in asked:
        there = bound_as(world, {**before, **{key: node for key, node in homes.items() if key not in left_out}})
        found = oracle.ask(kubernetes(there), verdicts=[(key, ALL_NODES) for key in keys])
        fits = [one for one in found.verdicts if one.fits and one.node in existing]
        differences += [Difference(MISSED, one.pod, one.node, "", {**refused, **new}[one.pod]) for one in fits]
    return tuple(differences)


#: So many choices of types and offerings are tried by chance.
_LAUNCHES: Final = 8


def missed(world: Json, ours: Ours, oracle: Oracle) -> tuple[Difference, ...]:
    """Direction b: the pods that fit whichever of the open types and offerings the planned nodes get."""
    found: tuple[Difference, ...] | None = None
    for launch in range(_LAUNCHES):
        there = with_planned(world, ours, Launch(launch))
        now = _missed(there, ours, _placements(there, ours, oracle)[0], oracle)
        found = now if found is None else tuple(one for one in found if one in now)
        if not found:
            break
    return found or ()


def one_more(world: Json, ours: Ours, oracle: Oracle) -> tuple[Difference, ...]:
    """Direction d: the pods that one more node takes whichever of the open types and offerings the planned nodes get.

    It does so before and after the pods are gone that terminate within seconds, and others have the places that they
    wait for.
    """
    found: tuple[Difference, ...] | None = None
    left = [pod for pod in world["pods"] if pod["metadata"].get("deletionTimestamp") != SOON]
    states = (
        [(world, ours)]
        if len(left) == len(world["pods"])
        else [(world, ours), ({**world, "pods": left}, _waited(ours))]
    )
    by_chance = ((Launch(number), states[number % len(states)]) for number in range(_LAUNCHES))
    for launch, (some, then) in chain(by_chance, product(each_choice(ours), states)):
        there = with_planned(some, ours, launch)
        now = tuple(unmade(there, then, _placements(there, then, oracle)[0], oracle))
        pods = {one.pod for one in now}
        found = now if found is None else tuple(one for one in found if one.pod in pods)
        if not found:
            break
    return found or ()


def _planned_names(ours: Ours) -> list[str]:
    return [name for key, name in ours.homes.items() if key not in ours.solution.placed]


def bound_as(world: Json, homes: Mapping[str, str]) -> Json:
    """The world with these pods bound, in a copy."""
    pods = []
    for pod in world["pods"]:
        home = homes.get(key_of(pod))
        if home is not None:
            pod = deepcopy(pod)
            pod["spec"]["nodeName"] = home
        pods.append(pod)
    return {**world, "pods": pods}


# --- for exceptions -----------------------------------------------------------------------------------------------
def _later(world: Json, ours: Ours, before: Mapping[str, str], missed: Difference, oracle: Oracle) -> bool:
    """Whether the pod fits on the node only because of pods that come after it in the engine's order."""
    order = ours.solution.order
    earlier = order[: order.index(missed.pod)]
    there = bound_as(world, {**before, **{key: ours.homes[key] for key in earlier}})
    found = oracle.ask(kubernetes(there), verdicts=[(missed.pod, missed.node)])
    return not found.verdicts[0].fits


def _apart(world: Json, ours: Ours, missed: Difference, oracle: Oracle) -> bool:
    """Whether a spread keeps the pod off the node while there is one more node like that of the pod, without pods."""
    own = next(node for node in planned_nodes(ours) if node["metadata"]["name"] == ours.homes[missed.pod])
    own["metadata"]["name"] = own["metadata"]["uid"] = own["metadata"]["labels"]["kubernetes.io/hostname"] = _EMPTY
    there = with_planned({**world, "nodes": [*world["nodes"], own]}, ours)
    before = _placements(there, ours, oracle)[0]
    others = {key: node for key, node in ours.homes.items() if key != missed.pod}
    found = oracle.ask(kubernetes(bound_as(there, {**before, **others})), verdicts=[(missed.pod, missed.node)])
    return found.verdicts[0].plugin == "PodTopologySpread"


def _lifted(world: Json, ours: Ours, before: Mapping[str, str], missed: Difference, oracle: Oracle) -> bool:
    """Whether a spread keeps the pod off the node while its planned node is not there, which has no other such pod."""
    home = ours.homes[missed.pod]
    if list(ours.homes.values()).count(home) > 1:
        return False
    there = {**world, "nodes": [node for node in world["nodes"] if node["metadata"]["name"] != home]}
    others = {key: node for key, node in {**before, **ours.homes}.items() if node != home}
    found = oracle.ask(kubernetes(bound_as(there, others)), verdicts=[(missed.pod, missed.node)])
    return found.verdicts[0].plugin == "PodTopologySpread"


#: The name of a node without pods.
_EMPTY: Final = "empty"


def _soon(world: Json, ours: Ours, oracle: Oracle) -> tuple[Difference, ...] | None:
    """The differences that are left when the pods that terminate within seconds are gone; None without such pods.

    Pods of the answer that have a place on a node that is there are bound before planned nodes come, if the plugins
    allow it. Pods that wait for a place get it in any order with the pods of the answer.
    """
    left = [pod for pod in world["pods"] if pod["metadata"].get("deletionTimestamp") != SOON]
    if len(left) == len(world["pods"]):
        return None
    gone = {**world, "pods": left}
    targets = {key: why.target for key, why in ours.solution.unplaced.items() if why.target}
    placed = [key for key in ours.solution.order if key in ours.solution.placed]
    if not _placements(_without_planned(world, ours), _in_order(ours, placed), oracle)[1]:
        gone = bound_as(gone, {key: ours.homes[key] for key in placed})
        ours = _in_order(ours, [key for key in ours.solution.order if key not in ours.solution.placed])
    later = _waited(ours)
    before, wrong = _placements(gone, later, oracle)
    if wrong and targets and _in_another_order(gone, later, oracle):
        wrong = ()
    return wrong or _missed(gone, later, before, oracle)


def _waited(ours: Ours) -> Ours:
    """The answer with the pods that wait for a place on the nodes where they wait for it."""
    targets = {key: why.target for key, why in ours.solution.unplaced.items() if why.target}
    waited = replace(
        ours.solution,
        placed={**ours.solution.placed, **targets},
        unplaced={key: why for key, why in ours.solution.unplaced.items() if key not in targets},
        order=(*targets, *ours.solution.order),
    )
    return replace(ours, solution=waited)


def _without_planned(world: Json, ours: Ours) -> Json:
    """The world before the planned nodes and their daemon pods are there."""
    planned = {*_planned_names(ours)}
    coming = {key for key, node in expected(world).items() if node in planned}
    nodes = [node for node in world["nodes"] if node["metadata"]["name"] not in planned]
    return {**world, "nodes": nodes, "pods": [pod for pod in world["pods"] if key_of(pod) not in coming]}


def _in_order(ours: Ours, order: list[str]) -> Ours:
    return replace(ours, solution=replace(ours.solution, order=tuple(order)))
