"""A solve that fails must not stop all pods: who is to blame is found by trying, and only they are left out.

Most invalid values are refused where it is read, and never come here. Of the rest, NodePools with which not even the
plainest pod can be solved are left out; then pods are halved until those are found with which solving fails. Pods of
one shape stand or fall together, so one of each is tried first. What may be spent is counted in pods: a pass takes a
few times as long as one in which nothing is wrong, never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

from kerf.model.boundaries import broken
from kerf.model.kubernetes.objects import Pod, PodSpec, Toleration
from kerf.model.memory import Memory, Turn
from kerf.model.plan import Reason
from kerf.model.snapshot import Snapshot
from kerf.provisioning.used_up import with_quotas
from kerf.provisioning.waiting import patiently
from kerf.scheduling.fixes import with_fixes
from kerf.scheduling.placing.pod_parts import Shape, shape_of
from kerf.scheduling.solve import PodRefusal, Solution, SolveContext, SolveOptions, context_of, solve
from kerf.scheduling.work import Work
from kerf_api.v1.meta import ObjectMeta

#: So many classes of pods without a place get a full account, and so many pods may be solved to find what would help.
ACCOUNTS: Final = 50
SPEND: Final = 1000
#: About half a second; and of very many pods, some time for each: what is as plain as most pods takes a tenth of that.
_STEPS: Final = 100_000
_STEPS_A_POD: Final = 30
_STEPS_A_SECOND: Final = 200_000
#: What would help those without a place may be looked for with this part of the steps.
_FOR_FIXES: Final = 4
#: Trials may solve all pods of a pass so many times over; one counts as no less than this part of them.
_TIMES: Final = 4
_LEAST: Final = 32
_PLAINEST: Final = Pod(metadata=ObjectMeta(name="plainest"), spec=PodSpec(tolerations=(Toleration(operator="Exists"),)))

#: Pods of one shape.
Kind = Sequence[Pod]
#: Reasons by the names of NodePools or the keys of pods.
Problems = Mapping[str, PodRefusal]
NO_PROBLEMS: Final[Problems] = MappingProxyType({})


def solve_apart(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    turn: Turn | None = None,
    *,
    accounts: int = ACCOUNTS,
    spend: int = SPEND,
    only: str = "",
    without: Problems = NO_PROBLEMS,
) -> Solution:
    """A solution for all pods and pools but those with which there is none; these are refused, with the error.

    So many classes without a place get a full account; `spend` and `only` are as in `with_fixes`. NodePools that are
    left out (`without`) make no nodes.
    """
    turn = turn or Memory().turn(snapshot)
    context = _context(snapshot, turn, without)
    solution = _solved(snapshot, pods, context, accounts, spend, only)
    solution = with_quotas(snapshot, pods, solution, context, turn, only)
    return replace(solution, unread=context.unread)


def _context(snapshot: Snapshot, turn: Turn, without: Problems) -> SolveContext:
    context = context_of(snapshot, turn)
    if not without:
        return context
    return replace(context.without_pools(without), problems={**context.problems, **without})


def solve_early(snapshot: Snapshot, pods: Sequence[Pod], turn: Turn, *, without: Problems = NO_PROBLEMS) -> Solution:
    """A solution for the pods of a batch that is open, without words about those that have no place.

    One that fails is empty: all wait for the close, when the pods and NodePools that are to blame are found.
    """
    try:
        context = _context(snapshot, turn, without)
        options = SolveOptions(reasons=False, early=True, improve=snapshot.settings.improve)
        return replace(patiently(snapshot, pods, context, partial(_round, options)), unread=context.unread)
    except Exception:
        return Solution()


def solve_roughly(snapshot: Snapshot, pods: Sequence[Pod], turn: Turn, *, without: Problems = NO_PROBLEMS) -> Solution:
    """Which pods have a place, and of which kind: without a search for a cheaper answer, and without words about those
    that have none. It takes a tenth of the time of `solve_apart`."""
    try:
        context = _context(snapshot, turn, without)
        return patiently(snapshot, pods, context, partial(_round, SolveOptions(reasons=False)))
    except Exception:
        return solve_apart(snapshot, pods, turn, without=without)


def _round(
    options: SolveOptions,
    snapshot: Snapshot,
    asked: Sequence[Pod],
    context: SolveContext,
    gone: Sequence[Pod],
    *,
    improved: bool,
) -> Solution:
    """A solve within the budget of a pass."""
    improve = options.improve if improved else timedelta()
    work = Work(budget(len(asked)), luxury=int(improve.total_seconds() * _STEPS_A_SECOND))
    return solve(snapshot, asked, replace(options, gone=gone, improve=improve), context=context, work=work)


def _solved(
    snapshot: Snapshot, pods: Sequence[Pod], context: SolveContext, accounts: int, spend: int, only: str
) -> Solution:
    try:
        options = SolveOptions(accounts=accounts, improve=snapshot.settings.improve)
        solution = patiently(snapshot, pods, context, partial(_round, options))
        work = Work(budget(len(pods)) // _FOR_FIXES)
        return with_fixes(snapshot, pods, solution, context, spend=spend, only=only, work=work)
    except Exception as error:
        reason = broken(error)
    trials = _Trials(snapshot, _sound(snapshot, context), _TIMES * len(pods), len(pods) // _LEAST)
    kinds = _kinds(snapshot, pods)
    for most in (1, len(pods)):
        good, bad = _halved(trials, kinds, most)
        try:
            return _refusing(solve(snapshot, _some(good), context=trials.context, work=Work(budget(len(pods)))), bad)
        except Exception as error:
            reason = broken(error)
    return _refusing(Solution(pool_problems=trials.context.problems), [(pods, reason)])


@dataclass(slots=True)
class _Trials:
    """Solves of which only the error is of interest; `left` is how many pods may still be solved in them."""

    snapshot: Snapshot
    context: SolveContext
    left: int
    least: int

    def error(self, pods: Sequence[Pod]) -> Reason | None:
        """What solving for these pods fails with; None when it succeeds."""
        self.left -= max(len(pods), self.least)
        try:
            solve(self.snapshot, pods, context=self.context, work=Work(budget(len(pods))))
        except Exception as error:
            return broken(error)
        return None


def budget(pods: int) -> int:
    """The steps that one round of a pass over so many pods may take."""
    return max(_STEPS, _STEPS_A_POD * pods)


def _sound(snapshot: Snapshot, context: SolveContext) -> SolveContext:
    """Without the pools with which, each by itself and on new nodes, solving for the plainest pod fails."""
    sound, problems = [], dict(context.problems)
    everywhere = frozenset(snapshot.state_nodes)
    for pair in context.pools:
        try:
            solve(snapshot, (_PLAINEST,), SolveOptions(exclude=everywhere), context=replace(context, pools=(pair,)))
            sound.append(pair)
        except Exception as error:
            reason = broken(error)
            problems[pair[0].name] = PodRefusal(reason.code, reason.text)
    return replace(context, pools=tuple(sound), problems=problems)


def _kinds(snapshot: Snapshot, pods: Iterable[Pod]) -> list[Kind]:
    """The pods by shape. Another shape comes first as time goes by, so that none is always left over."""
    found: dict[Shape | None, list[Pod]] = {}
    for pod in pods:
        try:
            shape: Shape | None = shape_of(pod)
        except Exception:
            shape = None  # such a pod is refused without a trial
        found.setdefault(shape, []).append(pod)
    kinds = list(found.values())
    first = int(snapshot.now.timestamp()) % len(kinds)
    return [*kinds[first:], *kinds[:first]]


def _halved(trials: _Trials, kinds: Sequence[Kind], most: int) -> tuple[list[Kind], list[tuple[Kind, Reason]]]:
    """The kinds that can be solved, tried with so many pods of each at most, and the others with the error of each.

    When all is spent, what is in question is tried again as it is, and then waits with the guilty.
    """
    good: list[Kind] = []
    bad: list[tuple[Kind, Reason]] = []
    open_: list[tuple[Sequence[Kind], Reason | None]] = [(kinds, None)]
    while open_:
        some, reason = open_.pop()
        reason = reason or trials.error(_some(some, most))
        if reason is None:
            good += some
        elif len(some) == 1:
            bad.append((some[0], reason))
        elif trials.left <= 0:
            unsure = replace(reason, text=f"{reason.text} (or placing one of {len(_some(some))} pods with it)")
            bad += [(kind, unsure) for kind in some]
        else:
            one, other = some[: len(some) // 2], some[len(some) // 2 :]
            failure = trials.error(_some(one, most))
            if failure is None:
                good += one
            # where one half does not fail, the other one does
            open_ += [(other, reason)] if failure is None else [(other, None), (one, failure)]
    return good, bad


def _some(kinds: Iterable[Kind], most: int | None = None) -> list[Pod]:
    return [pod for kind in kinds for pod in kind[:most]]


def _refusing(solution: Solution, bad: Iterable[tuple[Kind, Reason]]) -> Solution:
    refused = {
        pod.key: PodRefusal(reason.code, f"placing it failed: {reason.text}") for kind, reason in bad for pod in kind
    }
    return replace(solution, unplaced={**solution.unplaced, **refused})
