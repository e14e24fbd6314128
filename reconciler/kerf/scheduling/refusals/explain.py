"""Why a pod has no place: in words, NodePool by NodePool, and for the first classes of a solve in a full account.

Equal pods share one answer. What a pool says is the rule by which it was left with nothing (`filters`); the account
adds what each rule took, what came nearest (`nearest`), the nodes that exist (`existing_nodes`) and what may help
(`suggestions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.model.boundaries import MALFORMED as NONSENSE
from kerf.model.boundaries import broken
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.explanation import MOST_POOLS, MOST_STEPS, RULES, Account, PoolAccount, Step, cut
from kerf.scheduling.answers.solution import PodRefusal
from kerf.scheduling.context import set_aside
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.settling import SETTLING, Settling, settling
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.refusals import nearest
from kerf.scheduling.refusals.existing_nodes import account_of
from kerf.scheduling.refusals.filters import Filters, farthest
from kerf.scheduling.refusals.kin import ALIKE, NONE, SIBLINGS, Kin, meant
from kerf.scheduling.refusals.suggestions import suggested
from kerf.scheduling.seating.reserved import DEFERRED, waits_for_reservation
from kerf.scheduling.work import WORK_BUDGET
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta

NO_POOL = "NoNodePool"
NO_ROOM = "NoExistingCapacity"
INCOMPATIBLE = "Incompatible"
MALFORMED = "InvalidPod"
#: Of pods that wait for the next pass.
LEFT_OVER = PodRefusal(WORK_BUDGET, "the work of this pass is used up; the next pass begins with this pod")
#: Steps to ask a NodePool why it does not serve a class.
_A_REFUSAL = 100
#: Of more classes than this the answers of NodePools are left out; nor so many accounts, counted by pool.
MOST_CLASSES, MOST_ACCOUNTS = 200, 400

#: What was left of a pool, step by step.
Asked = tuple[Filters, list[Step]]


def not_readable(errors: Mapping[str, Exception]) -> dict[str, PodRefusal]:
    """Refusals of pods that make no sense. An unforeseen error is reported as a bug of Kerf."""
    found = {key: broken(error) for key, error in sorted(errors.items())}
    return {k: PodRefusal(MALFORMED if why.code == NONSENSE else why.code, why.text) for k, why in found.items()}


def left_for_later(waiting: Iterable[Pod]) -> dict[str, PodRefusal]:
    """Refusals of pods whose constraints were not read in this pass."""
    return dict.fromkeys(sorted(pod.key for pod in waiting), LEFT_OVER)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a solve ended with. `problems` are of pools that could not be used; with `open_new` pools were asked.

    `reasons` are the answers of the pools; `accounts` is how many classes get a full account, without `open_new` of the
    nodes that exist. Of the capacity
    reservations in `taken` other nodes of this plan, or claims that have no instance yet, have all there is.
    """

    snapshot: Snapshot
    assignment: Assignment
    templates: Sequence[NodeClaimTemplate]
    problems: Mapping[str, PodRefusal]
    open_new: bool
    reasons: bool
    accounts: int
    taken: frozenset[str] = frozenset()

    @cached_property
    def kin(self) -> Kin:
        """The pods that run, by NodePool."""
        return Kin(self.snapshot)

    @property
    def closed(self) -> int:
        """How many state nodes take no pods."""
        return len(self.snapshot.state_nodes) - len(self.assignment.places.targets)


def no_place(outcome: Outcome) -> dict[str, PodRefusal]:
    """Refusals of the pods that are left."""
    left, cut_off = outcome.assignment.left, outcome.assignment.cut
    waiting = settling(outcome.snapshot) if left and outcome.open_new else {}
    keys: dict[int, list[str]] = {}
    for key, (cls, _) in left.items():
        keys.setdefault(cls.number, []).append(key)
    answers: dict[int, PodRefusal] = {}
    for cls, _ in left.values():
        if cls.number not in answers and cls.number in cut_off:
            answers[cls.number] = LEFT_OVER
        elif cls.number not in answers:
            answers[cls.number] = _refusal(outcome, cls, keys[cls.number], len(answers), waiting)
    return {key: answers[cls.number] for key, (cls, _) in sorted(left.items())}


def _refusal(
    outcome: Outcome, cls: PodClass, pods: Sequence[str], place: int, waiting: Mapping[str, Settling]
) -> PodRefusal:
    """Of a class of which these pods are left; `place` is how many classes have been reported before.

    `waiting` are the NodePools that have not settled.
    """
    if outcome.open_new and waits_for_reservation(outcome.templates, outcome.assignment.columns, cls, outcome.taken):
        return DEFERRED
    short = _short(outcome, cls, waiting)
    outcome.assignment.work.charge(_A_REFUSAL * len(outcome.templates))
    brief = outcome.assignment.work.worn and place > 0
    if not outcome.reasons or brief or place >= MOST_CLASSES or not (outcome.open_new or place < outcome.accounts):
        return short
    try:
        return _with_pools(outcome, cls, pods, place, short, waiting)
    except Exception:  # words are not worth a pass in which others have found places
        return short


def _short(outcome: Outcome, cls: PodClass, waiting: Mapping[str, Settling]) -> PodRefusal:
    if not outcome.open_new:
        return PodRefusal(NO_ROOM, _no_existing(outcome.assignment, cls))
    if not cls.relaxations[-1].demand.possible:
        return PodRefusal(MALFORMED, "its node selector and required node affinity contradict each other")
    if any(one.lately for one in waiting.values()):
        named = "; ".join(
            f"NodePool {name} is settling: {one.text}" for name, one in list(waiting.items())[:MOST_POOLS]
        )
        return PodRefusal(SETTLING, cut(named))
    if not outcome.templates:
        ready = "can make nodes for now" if outcome.problems else "is ready to make nodes"
        return PodRefusal(NO_POOL, f"no NodePool {ready}")
    return PodRefusal(INCOMPATIBLE, f"{_no_existing(outcome.assignment, cls)} and no NodePool can make one")


def _no_existing(assignment: Assignment, cls: PodClass) -> str:
    """That no node that is there will do; of those that suit and have the room, how many are full of volumes."""
    words, drivers = "no existing node has capacity for it", cls.attaching.drivers
    roomy = assignment.roomy(cls, len(cls.relaxations) - 1, assignment.columns.vector(cls.requests))
    full = int((roomy & (assignment.slots.most(cls.attaching) <= 0)).sum())
    if not full or assignment.columns.unknown(cls.requests):
        return words
    return f"{words} ({full} would, but cannot attach its volumes within the limit of {', '.join(drivers)})"


def _with_pools(
    outcome: Outcome,
    cls: PodClass,
    pods: Sequence[str],
    place: int,
    short: PodRefusal,
    waiting: Mapping[str, Settling],
) -> PodRefusal:
    """With each pool's rule; for the first classes with the full account, in which the likeliest pool comes first."""
    templates = outcome.templates if outcome.open_new and cls.relaxations[-1].demand.possible else ()
    asked = [farthest(template, outcome.assignment.columns, cls) for template in templates[:MOST_POOLS]]
    if place >= outcome.accounts or place * len(asked) >= MOST_ACCOUNTS:
        problems = sorted(outcome.problems.items())[:MOST_POOLS]
        told = {name: why.text for name, why in problems} | {f.template.name: f.verdict for f, _ in asked}
        return replace(short, pools={name: cut(text) for name, text in told.items()})
    example = outcome.snapshot.pods.get(pods[0]) or Pod(metadata=ObjectMeta())
    likely = _Likelihood(outcome, cls, example, outcome.kin.scores(example))
    asked.sort(key=lambda pair: likely.of(pair[0]), reverse=True)
    others = list(_not_asked(outcome, waiting)) if outcome.open_new else []
    rows = [(likely.of(filters), _pool(filters, steps)) for filters, steps in asked]
    rows += [(likely.of_aside(one.pool), one) for one in others]
    pools = [one for _, one in sorted(rows, key=lambda row: row[0], reverse=True)]
    account = Account(
        len(pods),
        tuple(pools[:MOST_POOLS]),
        len(templates) - len(asked) + max(len(pools) - MOST_POOLS, 0),
        account_of(outcome.assignment, cls, outcome.closed),
        () if waiting else suggested(cls, [filters for filters, _ in asked], outcome.assignment, _startup(outcome)),
    )
    return replace(short, pools={pool.pool: cut(str(pool)) for pool in account.pools}, account=account)


#: How likely an edit of a NodePool is what its user wants: pods of the same workload have nodes of it; it is one edit
#: away; the pod names something of its own; pods that are alike have nodes of it; its rank among the others.
_Likely = tuple[bool, bool, bool, int, int]


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """Of the NodePools for one pod; `kin` are the scores of running pods."""

    outcome: Outcome
    cls: PodClass
    pod: Pod
    kin: Mapping[str, int]

    def of(self, filters: Filters) -> _Likely:
        """Of a NodePool that was asked; those that are several edits away are in the order of their rank."""
        name = filters.template.name
        score, near = self.kin.get(name, NONE), nearest.close(filters) and not nearest.turned_off(filters)
        own, rank = meant(self.pod, filters.template.pool), nearest.rank(filters)
        return score == SIBLINGS, near, own, score if near else rank, rank

    def of_aside(self, name: str) -> _Likely:
        """Of a NodePool that is not asked. What is not ready is likelier the cause than what a user has written, where
        nothing that is written keeps the pod away."""
        pool, score = self.outcome.snapshot.node_pools.get(name), self.kin.get(name, NONE)
        if pool is None or pool.metadata.deleting or pool.static or pool.metadata.unreadable:
            return False, False, False, NONE, -1
        demand = self.cls.relaxations[-1].demand
        tolerated = demand.tolerates(pool.spec.template.spec.taints)
        served = tolerated and pool.requirements().compatible(demand.requirements, labels.WELL_KNOWN)
        if not served:
            return score == SIBLINGS, False, meant(self.pod, pool), -1, -1
        return score == SIBLINGS, True, meant(self.pod, pool), max(score, ALIKE), 2 * len(RULES)


def _pool(filters: Filters, steps: Sequence[Step]) -> PoolAccount:
    kept = (*steps[: MOST_STEPS - 1], steps[-1]) if len(steps) > MOST_STEPS else tuple(steps)
    types, offerings = filters.at_first
    verdict, near = cut(filters.verdict), nearest.nearest(filters)
    return PoolAccount(
        filters.template.name,
        verdict,
        filters.rule,
        types,
        offerings,
        kept,
        near,
        nearest.about(filters),
        nearest.crowded(filters),
    )


def _startup(outcome: Outcome) -> frozenset[tuple[str, str]]:
    """The keys and effects of the start-up taints of all NodePools: nodes lose them by themselves."""
    pools = outcome.snapshot.node_pools.values()
    return frozenset((taint.key, taint.effect) for pool in pools for taint in pool.spec.template.spec.startup_taints)


def _not_asked(outcome: Outcome, waiting: Mapping[str, Settling]) -> Iterator[PoolAccount]:
    """Pools that could not be used, and those that are not ready."""
    for name, problem in sorted(outcome.problems.items()):
        yield PoolAccount(name, cut(problem.text))
    for name, why in set_aside(outcome.snapshot).items():
        if name not in outcome.problems:
            text = f"is settling: {waiting[name].text}" if name in waiting else why
            yield PoolAccount(name, cut(text))
