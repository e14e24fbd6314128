"""The cause of a blocker, for an operator who wants to remove it: pods that fit on no other node with the rule, the
price of a new node, the allowance of a PodDisruptionBudget.

It simulates once or twice more, with full explanations; plans do not contain these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerf.disruption.asking import Manner, Scheduler, Solve
from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.consolidation.balanced import K, Policy
from kerf.disruption.consolidation.consequences import listed, owner_of
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.simulation import simulate, unhoused
from kerf.disruption.view import View
from kerf.judgement.values import Hold
from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.explanation import NodesAccount
from kerf.scheduling.answers.solution import NewNode, PodRefusal
from kerf.scheduling.offerings import prices
from kerf.scheduling.refusals.existing_nodes import LEFT_OUT
from kerf_api.requirements import Requirements
from kerf_api.texts import counted
from kerf_api.v1.budgets import DRIFTED

#: Codes of moves that fail because they need new nodes, and these are too expensive or not allowed.
DEAR = frozenset({"NotCheaper", "TooManyNodes", "SpotToSpotDisabled", "TooFewSpotTypes", "MinValues", "WouldComeBack"})
STRANDED = "PodsWouldNotSchedule"
NOT_WORTH_IT = "NotWorthIt"
#: The most groups of equal pods in a list, and the most NodePools for each of them.
_MOST_CLASSES, _MOST_POOLS = 10, 3


def manner_of(reason: str) -> Manner:
    """Return the manner of placing the pods of a node that is disrupted for this reason."""
    return Manner.FREELY if reason == DRIFTED else Manner.SPARING


def facts(view: View, one: Candidate, reason: str, hold: Hold, ask: Solve) -> tuple[str, ...]:
    """Return lines on the cause of one blocker of a disruption for this reason; none when no cause is known."""
    if hold.code == "PodDisruptionBudget":
        return tuple(_allowances(view, one, hold))
    if hold.code == NOT_WORTH_IT:
        return tuple(_score(view, one, ask))
    if hold.code == STRANDED and isinstance(ask, Scheduler):
        return tuple(_homeless(one, unhoused(view, one, ask, manner_of(reason), open_new=True)))
    if hold.code in DEAR and isinstance(ask, Scheduler):
        needed = simulate(view, [one], ask, Manner.SPARING).new_nodes
        strays = unhoused(view, one, ask, Manner.SPARING, open_new=False)
        lines = (*_homeless(one, strays), *_costs(view, one, needed))
        return (*lines, *_values(view, one, needed)) if hold.code == "MinValues" else lines
    return ()


# --- pods without a place ---------------------------------------------------------------------------------------
def alike(one: Candidate, refusals: Mapping[str, PodRefusal]) -> list[tuple[tuple[Pod, ...], PodRefusal]]:
    """Return the pods of the candidate grouped by their shared refusal, the largest group first."""
    known = {pod.key: pod for pod in one.movable}
    found: dict[int, tuple[list[Pod], PodRefusal]] = {}
    for key in sorted(refusals.keys() & known.keys()):
        found.setdefault(id(refusals[key]), ([], refusals[key]))[0].append(known[key])
    return sorted(((tuple(some), why) for some, why in found.values()), key=lambda row: -len(row[0]))


def _homeless(one: Candidate, refusals: Mapping[str, PodRefusal]) -> Iterator[str]:
    """Return for each group of equal pods the rules that exclude the other nodes and new nodes of each NodePool."""
    classes = alike(one, refusals)
    for some, refusal in classes[:_MOST_CLASSES]:
        account = refusal.account
        if account is None:
            yield f"{_named(some)}: {refusal.text}"
            continue
        yield f"{_named(some)}: {_elsewhere(account.nodes)}"
        yield from (f"{_named(some)}: NodePool {pool.pool}: {pool}" for pool in account.pools[:_MOST_POOLS])
    rest = sum(len(some) for some, _ in classes[_MOST_CLASSES:])
    if rest:
        yield f"further pods that fit on no other node: {rest}"


def _named(some: tuple[Pod, ...]) -> str:
    """`pod shop/web-1 of Deployment web`, `2 pods of Deployment shop/web`."""
    if len(some) == 1:
        return pods.named(some[0])
    owners = sorted({owner_of(pod) for pod in some})
    return (
        f"{len(some)} pods of {owners[0]}" if len(owners) == 1 and owners[0] else f"pods {listed(p.key for p in some)}"
    )


def _elsewhere(nodes: NodesAccount) -> str:
    """Return the reasons that exclude the remaining nodes, with the number of nodes for each."""
    rows = [(text, count) for text, count in nodes.rows if text != LEFT_OUT]
    others = sum(count for _, count in rows)
    if not others:
        return "there is no other node"
    near = f"; nearest: {nodes.nearest}" if nodes.nearest else ""
    if others == 1:
        return f"the other node {rows[0][0]}{near}"
    told = ", ".join(f"{text} ({count})" for text, count in rows)
    return f"fits on none of the {others} other nodes: {told}{near}"


# --- money ------------------------------------------------------------------------------------------------------
def _costs(view: View, one: Candidate, needed: Iterable[NewNode]) -> Iterator[str]:
    """Return the price of the node, and the highest possible price of each new node that would replace it."""
    for new in needed:
        found = cheapest(view, new)
        number = counted(len(new.pods), "pod")
        if found is not None:
            price, listed, name = found
            what = f"{name} {' or '.join(new.capacity_types)}, for up to {prices.dollars(price)} an hour"
            if listed:
                what += f" ({prices.dollars(listed)} on demand)"
            yield f"the cheapest new node for {number}: {what}; this one {_own_price(one)}"


def _own_price(one: Candidate) -> str:
    if one.reserved:
        return f"is on reserved capacity, which costs nothing more ({prices.dollars(one.reserved)} on demand)"
    return f"costs {prices.dollars(one.price)}" if one.price else "has no known price"


def cheapest(view: View, new: NewNode) -> tuple[int, int, str] | None:
    """Return the cheapest allowed instance type of a new node, by the price in its most expensive zone: that price, the
    on-demand price of a reserved one (else 0), the name. Prices are in millionths of a dollar per hour."""
    known = view.types_of(view.snapshot.node_pools[new.pool])
    found = []
    for name in new.instance_types:
        type_ = known[name].holding(new.requests) if name in known else None
        worst = prices.worst_launch_price(type_, new.requirements, view.snapshot) if type_ is not None else None
        if type_ is not None and worst is not None:
            reserved = prices.reserved_price(type_, new.requirements, view.snapshot)
            found.append((worst, reserved or 0, name))
    return min(found, default=None)


def beats(view: View, one: Candidate, type_: InstanceType, requirements: Requirements) -> bool:
    """Whether a type costs less than the node with any of these offerings."""
    worst = prices.worst_launch_price(type_, requirements, view.snapshot)
    if one.reserved and worst == one.price:
        reserved = prices.reserved_price(type_, requirements, view.snapshot)
        return reserved is not None and reserved < one.reserved
    return worst is not None and worst < one.price


def shortfalls(view: View, one: Candidate, new: NewNode) -> Iterator[tuple[str, int, int]]:
    """Return labels with fewer values among the cheaper types than minValues requires: the label, the required number,
    the available number."""
    known = view.types_of(view.snapshot.node_pools[new.pool])
    cheaper = [known[n] for n in new.instance_types if n in known and beats(view, one, known[n], new.requirements)]
    for key in sorted(new.requirements):
        row = new.requirements[key]
        there = {value for type_ in cheaper for value in type_.requirements.allowed(key).values if row.has(value)}
        if row.min_values is not None and len(there) < row.min_values:
            yield key, row.min_values, len(there)


def _values(view: View, one: Candidate, needed: Iterable[NewNode]) -> Iterator[str]:
    for new in needed:
        for key, asked, there in shortfalls(view, one, new):
            yield f"NodePool {new.pool} requires {asked} values of {key} (minValues); the cheaper types have {there}"


def _score(view: View, one: Candidate, ask: Solve) -> Iterator[str]:
    """Return the score of a move that the policy Balanced rejects."""
    move = judge(view, [one], ask)
    saving = move.saving if isinstance(move, Move) else one.price
    most = "" if isinstance(move, Move) else "at most "
    for pool, score in Policy(view).scores([one], saving):
        saved, disturbed = (f"{float(100 * share):.1f} %" for share in (score.saved, score.disturbed))
        yield f"NodePool {pool.name} would save {most}{saved} of its cost ({prices.dollars(saving)} an hour)"
        yield f"for {disturbed} of its disruption: a score of {score.text}, where {1 / K} is required"


# --- PodDisruptionBudgets ---------------------------------------------------------------------------------------
def _allowances(view: View, one: Candidate, hold: Hold) -> Iterator[str]:
    """Return the requirements of the PodDisruptionBudgets that block these pods, and the current numbers."""
    held = [pod for pod in one.pods if pod.key in hold.pods]
    for key in sorted({key for pod in held for key in view.pdbs.blocking(pod, view.snapshot.now)}):
        pdb = view.snapshot.pdbs.get(key)
        if pdb is not None:
            asked = {"minAvailable": pdb.spec.min_available, "maxUnavailable": pdb.spec.max_unavailable}
            rule = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
            status = pdb.status
            there = (
                f"{status.current_healthy} of {status.expected_pods} pods are healthy, {status.desired_healthy} must be"
            )
            known = [part for part in (rule, there if status.expected_pods else "") if part]
            yield from [": ".join(known)] if known else []
