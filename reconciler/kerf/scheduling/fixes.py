"""Edits are tried before they are offered: the edited pod, or the edited NodePool, is solved again by the same rules.

An edit helps when all pods of the class have a place after it and no other pod has lost its own. What may be spent on
trials is counted in pods that are solved, so that it holds nothing up however many classes wait; another class comes
first as time goes by, so that none is always left over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.edits import Edit, PodEdit, RaiseLimits
from kerf.scheduling.answers.explanation import Account
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf.scheduling.context import SolveContext
from kerf.scheduling.offerings.instance_types import MOST
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.solve import SolveOptions, solve
from kerf.scheduling.work import Work
from kerf_api.resources import Resources

#: How long the same class comes first; passes are ten seconds apart, and each should begin with another one.
_TURN_SECONDS = 7
#: A trial counts as no less than this many pods.
_LEAST = 20
#: Limits are written as whole cores and GiB.
_STEPS = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}


def with_fixes(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    solution: Solution,
    context: SolveContext,
    *,
    spend: int,
    only: str = "",
    work: Work | None = None,
) -> Solution:
    """The solution of these pods with what helps in the accounts of its refusals; or only in that of one pod's class.

    So many pods are solved in trials, and a few more, within the `work`.
    """
    trials = _Trials(snapshot, pods, solution, context, spend, work if work is not None else Work())
    answers: dict[int, PodRefusal] = {}
    for keys, refusal in _turns(snapshot, solution):
        if not only or only in keys:
            answers[id(refusal)] = _answered(trials, keys, refusal)
    unplaced = {key: answers.get(id(refusal), refusal) for key, refusal in solution.unplaced.items()}
    return replace(solution, unplaced=unplaced)


def _turns(snapshot: Snapshot, solution: Solution) -> list[tuple[list[str], PodRefusal]]:
    """The classes that have an account: the keys of their pods, and what they share."""
    found: dict[int, tuple[list[str], PodRefusal]] = {}
    for key, refusal in solution.unplaced.items():
        if refusal.account is not None:
            found.setdefault(id(refusal), ([], refusal))[0].append(key)
    turns = list(found.values())
    first = int(snapshot.now.timestamp()) // _TURN_SECONDS % len(turns) if turns else 0
    return [*turns[first:], *turns[:first]]


def _answered(trials: _Trials, keys: Iterable[str], refusal: PodRefusal) -> PodRefusal:
    account = refusal.account
    if account is None or trials.spent:
        return refusal
    try:
        return replace(refusal, account=trials.search(frozenset(keys), account))
    except Exception:  # what is only advice must not cost a pod its place
        return refusal


@dataclass(slots=True)
class _Trials:
    """See `with_fixes`; `left` is how many pods may still be solved, `tried` how many edits of one class were."""

    snapshot: Snapshot
    pods: Sequence[Pod]
    solution: Solution
    context: SolveContext
    left: int
    work: Work
    tried: int = 0

    @property
    def spent(self) -> bool:
        return self.left < len(self.pods) or self.work.worn

    def search(self, keys: frozenset[str], account: Account) -> Account:
        """The account with the first edit of the pod and the first of a pool that help, the likelier one first."""
        fixes: list[Edit] = []
        helped: set[bool] = set()
        self.tried = 0
        for edit in account.edits:
            of_pod = isinstance(edit, PodEdit)
            if of_pod in helped:
                continue
            if self.spent:
                break
            found = self._tried(keys, edit)
            if found is not None:
                fixes.append(found)
                helped.add(of_pod)
        return replace(account, fixes=tuple(fixes), tried=self.tried)

    def _tried(self, keys: frozenset[str], edit: Edit) -> Edit | None:
        """The edit when it helps, with its amounts if it had none."""
        if isinstance(edit, RaiseLimits):
            return next((e for e in self._raises(keys, edit) if self._outcome(keys, e) is not None), None)
        return edit if self._outcome(keys, edit) is not None else None

    def _outcome(self, keys: frozenset[str], edit: Edit) -> Solution | None:
        """The solution after the edit when it helps."""
        pods, context = self.pods, self.context
        if isinstance(edit, PodEdit):
            pods = [edit.made(pod) if pod.key in keys else pod for pod in pods]
            changed = any(one is not other for one, other in zip(pods, self.pods, strict=True))
        else:
            before = next(t.pool for t, _ in context.pools if t.name == edit.pool)
            after = edit.made(before)
            changed, context = after is not before, context.with_pool(after)
        if not changed:
            return None
        self.left -= max(len(pods), _LEAST)
        self.tried += 1
        found = solve(self.snapshot, pods, SolveOptions(reasons=False), context=context, work=self.work)
        return found if found.unplaced.keys() <= self.solution.unplaced.keys() - keys else None

    # --- limits -------------------------------------------------------------------------------------------------
    def _raises(self, keys: frozenset[str], edit: RaiseLimits) -> Iterator[RaiseLimits]:
        """Limits that would do: what would be in use if there were none, then one more node's worth."""
        template, usage = next((t, u) for t, u in self.context.pools if t.name == edit.pool)
        limits = template.limits or Resources()
        unlimited = self._outcome(keys, replace(edit, limits=tuple((n, limits[n], MOST) for n in sorted(limits))))
        if unlimited is None:
            return
        nodes = [node for node in unlimited.new_nodes if node.pool == edit.pool]
        for more in (0, 1):
            rows = []
            for name in sorted(limits):
                sizes = [_size(template, name, node) for node in nodes]
                wanted = usage.whole[name] + sum(sizes) + more * max(sizes, default=0)
                if wanted > limits[name]:
                    rows.append((name, limits[name], -(-wanted // _STEPS.get(name, 1)) * _STEPS.get(name, 1)))
            yield replace(edit, limits=tuple(rows))


def _size(template: NodeClaimTemplate, resource: str, node: NewNode) -> int:
    """What a planned node may count against a limit: the most that any of its types has."""
    listed, capacity = set(node.instance_types), template.table.capacity(resource)
    return max(int(amount) for name, amount in zip(template.table.names, capacity, strict=True) if name in listed)
