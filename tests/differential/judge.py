"""Two answers to one world, held against each other: who is placed, what it costs, and what the referee says of ours.

The peer has an answer for each time it was asked, for it walks maps. Its best one counts: of those that break no rule
of the referee's, if there are any, the one that places most pods, and of these the cheapest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.peers.karpenter import PeerClaim, PeerOutcome
from kerf.model.kubernetes.pods import requests
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources, total
from kerf_api.v1.nodepool import parse_entries
from tests.differential.draft import Json
from tests.differential.ours import Ours, answer
from tests.referee import Violation, violations
from tests.referee.cost import cost
from tests.referee.kinds import Kinds
from tests.referee.planned import limits

#: Ours may cost so much more, in millionths.
TOLERANCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` is unplaced, swapped (as many other pods of the same priority have the places), dearer, failure, or the
    name of a rule of the referee's that our answer breaks.

    `breaks` are the rules that the peer's best answer breaks; `short`: NodePools have limits; `blamed`: the
    referee finds the peer's place wrong for each of the pods in question.
    """

    kind: str
    words: str
    breaks: tuple[str, ...] = ()
    short: bool = False
    blamed: bool = False

    def __str__(self) -> str:
        beside = f" (the peer's answer breaks {', '.join(self.breaks)})" if self.breaks else ""
        return f"{self.kind}: {self.words}{beside}"


@dataclass(frozen=True)
class PeerNode:
    """A node that the peer would buy, as the referee reads it."""

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    requests: Resources
    pods: tuple[str, ...]
    price: int


@dataclass(frozen=True)
class PeerAnswer:
    """One of the peer's answers, in the keys of our snapshot."""

    placed: Mapping[str, str]
    new_nodes: Sequence[PeerNode]
    unplaced: Mapping[str, str]
    problems: tuple[Violation, ...] = ()
    cost: int = 0

    @property
    def served(self) -> frozenset[str]:
        return frozenset(self.placed) | {key for node in self.new_nodes for key in node.pods}


@dataclass(frozen=True)
class Comparison:
    """`our_cost` is of the pods that the peer places, `more` are those that only we place; `yielded` only the peer, for
    in our answer they had to give way to pods of higher priority."""

    ours: Ours
    peer: PeerAnswer
    our_cost: int
    differences: tuple[Difference, ...]
    more: frozenset[str]
    yielded: frozenset[str]

    @classmethod
    def of(cls, ours: Ours, runs: Sequence[PeerOutcome], *, limited: bool) -> Comparison:
        """`limited` says whether a NodePool has limits."""
        peer = max((read(ours, run) for run in runs), key=lambda a: (not a.problems, len(a.served), -a.cost))
        breaks = tuple(sorted({problem.rule for problem in peer.problems}))
        found = [Difference(p.rule, p.words) for p in _first_of_each(ours.violations())]
        found += [Difference("failure", words) for words in ours.failures]
        lost, swapped, yielded = missing(ours, peer)
        if swapped:
            found.append(Difference("swapped", _why(ours, swapped), breaks, limited))
        same = ours
        if not lost and ours.placed != peer.served:
            same = ours.only(peer.served)
            lost = peer.served - same.placed
        if lost:
            alone = "" if same is ours else "even without the others: "
            found.append(Difference("unplaced", alone + _why(same, lost), breaks, blamed=_blamed(ours, peer, lost)))
        our_cost = cost(ours.snapshot, same.solution)
        if not lost and our_cost * 1_000_000 > peer.cost * (1_000_000 + TOLERANCE):
            found.append(Difference("dearer", f"{our_cost / 1e6:.4f} instead of {peer.cost / 1e6:.4f}", breaks))
        return cls(ours, peer, our_cost, tuple(found), ours.placed - peer.served, yielded)


def compare(world: Json, runs: Sequence[PeerOutcome]) -> Comparison:
    """Our answer to a world beside the peer's, of which there is one for each time that it was asked."""
    limited = any(pool["spec"].get("limits") for pool in world["nodePools"])
    return Comparison.of(answer(world), runs, limited=limited)


def missing(ours: Ours, peer: PeerAnswer) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Pods that the peer places and we do not: lost, swapped for as many of their priority, or yielded to a higher one.

    What is short is given by priority: at the first priority, from the highest, of which the answers place different
    numbers of pods, ours must place more; then pods of lower priority had to give way. Pods that are alike are one as
    good as the other.
    """
    gone, nobody = _unmatched(ours, peer.served), frozenset[str]()
    mine, theirs = (Counter(map(ours.priority, served)) for served in (ours.placed, peer.served))
    first = next((p for p in sorted({*mine, *theirs}, reverse=True) if mine[p] != theirs[p]), None)
    if first is not None and mine[first] < theirs[first]:
        return gone, nobody, nobody
    yielded = frozenset(key for key in gone if first is not None and ours.priority(key) < first)
    return nobody, gone - yielded, yielded


def _unmatched(ours: Ours, served: frozenset[str]) -> frozenset[str]:
    """Pods of `served` that we do not place, but for those of which we place as many that are alike."""
    kinds, found = Kinds(), set[str]()
    spare = Counter(kinds.of(ours.snapshot.pods[key]) for key in ours.placed - served)
    for key in sorted(served - ours.placed):
        kind = kinds.of(ours.snapshot.pods[key])
        if spare[kind]:
            spare[kind] -= 1
        else:
            found.add(key)
    return frozenset(found)


def _blamed(ours: Ours, peer: PeerAnswer, lost: frozenset[str]) -> bool:
    """Whether the referee names each of these pods, or one that is alike, in what the peer's answer breaks."""
    kinds, texts = Kinds(), [problem.words for problem in peer.problems]
    named = {kinds.of(ours.snapshot.pods[key]) for key in peer.served if any(key in text for text in texts)}
    return all(kinds.of(ours.snapshot.pods[key]) in named for key in lost)


def _first_of_each(found: Sequence[Violation]) -> list[Violation]:
    return list({problem.rule: problem for problem in reversed(found)}.values())


def _why(ours: Ours, keys: frozenset[str]) -> str:
    texts = {key: str(ours.solution.unplaced.get(key, "not asked for")) for key in keys}
    return "; ".join(f"{key}: {text}" for key, text in sorted(texts.items()))


# --- reading the peer's answer ------------------------------------------------------------------------------------
def read(ours: Ours, run: PeerOutcome) -> PeerAnswer:
    """An outcome of the peer's, judged and priced as ours is, without the nodes that exceed a limit.

    Karpenter does not count a new node towards `limits.nodes` before it exists. What is too much goes, the latest nodes
    first: it takes large pods before small ones, so those whose largest pod is smallest.
    """
    targets = {state.name: key for key, state in ours.snapshot.state_nodes.items()}
    placed = {_key(pod): targets[node] for pod, node in run.existing.items()}
    nodes = _within_limits(ours, [_node(ours, claim) for claim in run.claims])
    served = {*placed, *(key for node in nodes for key in node.pods)}
    left = {pod.key: "" for pod in ours.pods if pod.key not in served}
    asked = [ours.snapshot.pods[key] for key in sorted({*served, *left})]
    problems = tuple(violations(ours.snapshot, asked, _plain(PeerAnswer(placed, nodes, left))))
    return PeerAnswer(placed, nodes, left, problems, sum(node.price for node in nodes))


def _within_limits(ours: Ours, nodes: Sequence[PeerNode]) -> list[PeerNode]:
    found: list[PeerNode] = []
    for name in sorted({node.pool for node in nodes}):
        some = sorted((n for n in nodes if n.pool == name), key=lambda n: (_opener(ours, n), n.pods), reverse=True)
        while some and any(limits(ours.snapshot, _plain(PeerAnswer({}, some, {})), frozenset())):
            some.pop()
        found += some
    return found


def _opener(ours: Ours, node: PeerNode) -> tuple[int, int]:
    """CPU and memory of the node's largest pod, for which it was opened."""
    needs = (requests(ours.snapshot.pods[key]) for key in node.pods)
    return max((need["cpu"], need["memory"]) for need in needs)


def _plain(found: PeerAnswer) -> Any:
    """Frozen, whereas the referee's protocol asks for attributes that can be set."""
    return found


def _key(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _node(ours: Ours, claim: PeerClaim) -> PeerNode:
    pods = tuple(_key(name) for name in claim.pods)
    needs = total(requests(ours.snapshot.pods[key]) for key in pods)
    wanted = parse_entries(claim.requirements)
    return PeerNode(claim.node_pool, wanted, claim.types, needs, pods, round(claim.price_usd_per_hour * 1e6))
