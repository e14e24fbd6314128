"""Judge the observations of a run by the assertions of its scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.simulating import scenario
from kerf.simulating.observed import NodeLife, Observed, PodLife
from kerf.simulating.results import Verdict
from kerf.simulating.scenario import Assertion, shortest
from kerf.simulating.targets import full
from kerf_api.texts import counted

#: So many examples explain a failure.
_EXAMPLES: Final = 3
_MICRO: Final = 1_000_000
HOUR: Final = timedelta(hours=1)


def judged(assertion: Assertion, seen: Observed) -> Verdict:
    """The result of one assertion."""
    for name, judge in _JUDGES.items():
        given = getattr(assertion, name)
        if given is not None:
            return judge(given, seen)
    raise ValueError("an assertion without a field")  # reading refuses it


def cost(seen: Observed) -> float:
    """The price of all instances from the end of the warm-up to the end, in US dollars."""
    return sum(price * ((end - start) / HOUR) for start, end, price in _spans(seen)) / _MICRO


def _spans(seen: Observed) -> Iterator[tuple[datetime, datetime, int]]:
    """Start, end and price per hour of each level after the warm-up."""
    ends = [*(one.at for one in seen.levels[1:]), seen.ended]
    for one, end in zip(seen.levels, ends, strict=True):
        start = max(one.at, seen.measured)
        if end > start:
            yield start, end, one.price


def wait(pod: PodLife, seen: Observed) -> timedelta:
    """The time from the creation of a pod, or from the end of the warm-up, until it ran, or so far."""
    return (pod.started or pod.stopped or seen.ended) - max(pod.created, seen.measured)


def waited(pod: PodLife, seen: Observed) -> bool:
    """Whether a pod waited after the warm-up: also one that was created before and did not run by its end."""
    return (pod.started or pod.stopped or seen.ended) > seen.measured or pod.created >= seen.measured


# --- pods -----------------------------------------------------------------------------------------------------------
def _run_within(given: scenario.RunWithin, seen: Observed) -> Verdict:
    pods = [one for one in seen.pods if waited(one, seen) and _of(one, given.workload)]
    late = [one for one in pods if wait(one, seen) > given.duration.value]
    text = f"every pod{_named(given.workload)} runs within {given.duration}"
    if not any(_of(one, given.workload) for one in seen.pods):
        return Verdict(text, False, "there was no pod", seen.measured - seen.began)
    if not pods:
        return Verdict(text, passed=True, message="no pod waited after the warm-up")
    if not late:
        slowest = max((wait(one, seen) for one in pods if one.started), default=timedelta(0))
        rest = sum(one.started is None and one.stopped is None for one in pods)
        waiting = f"; {counted(rest, 'pod')} still waiting at the end" if rest else ""
        message = f"{counted(len(pods), 'pod')}, the slowest in {shortest(slowest)}{waiting}"
        return Verdict(text, passed=True, message=message)
    first = min(late, key=lambda one: one.created)
    at = max(first.created, seen.measured) + given.duration.value - seen.began
    message = f"{len(late)} of {counted(len(pods), 'pod')} did not"
    return Verdict(text, False, message, at, (*(_waited(one, seen) for one in late[:_EXAMPLES]), *_failures(seen)))


def _waited(pod: PodLife, seen: Observed) -> str:
    spent = shortest(wait(pod, seen))
    done = f"ran after {spent}" if pod.started else f"did not run for {spent}"
    return f"pod {pod.key} {done}{f': {pod.reason}' if pod.reason else ''}"


def _failures(seen: Observed) -> Iterator[str]:
    """The most frequent reason of failed launches."""
    for reason, number in seen.failures.most_common(1):
        yield f"{counted(number, 'NodeClaim')} found no capacity: {reason}"


def _evictions(given: scenario.Evictions, seen: Observed) -> Verdict:
    workloads = {one.key: one.workload for one in seen.pods}
    found = [one for one in seen.evictions if one.at >= seen.measured]
    if given.workload:
        found = [one for one in found if workloads.get(one.pod) == full(given.workload)]
    text = f"at most {counted(given.at_most, 'eviction', grouped=False)}{_named(given.workload)}"
    if len(found) <= given.at_most:
        return Verdict(text, passed=True, message=counted(len(found), "eviction"))
    nodes = {one.name: one for one in seen.nodes}
    over = found[given.at_most :]
    reasons = tuple(
        f"{_clock(one.at, seen)}: pod {one.pod} from {_node(nodes.get(one.node), one.node)}" for one in over[:_EXAMPLES]
    )
    return Verdict(text, False, counted(len(found), "eviction"), over[0].at - seen.began, reasons)


def _running(given: scenario.RunningPods, seen: Observed) -> Verdict:
    text = f"at least {counted(given.at_least, 'running pod', grouped=False)}{_named(given.workload)}"
    begun, levels = False, list[tuple[datetime, int]]()
    for at, running in _sweep(seen, given.workload):
        begun = begun or len(running) >= given.at_least
        if begun and at >= seen.measured:
            levels.append((at, len(running)))
    if not begun:
        pending = _pending(seen, given.workload)
        return Verdict(text, False, "there were never so many", seen.measured - seen.began, pending)
    least = min(levels, key=lambda row: row[1], default=(seen.measured, given.at_least))
    if least[1] >= given.at_least:
        return Verdict(text, passed=True, message=f"at least {least[1]}")
    first = next(at for at, running in levels if running < given.at_least)
    lost = _lost(seen, given.workload, least[0])
    return _violated(text, f"only {least[1]}", seen, (first, least[0]), lost)


def _zones(given: scenario.ZonesShort, seen: Observed) -> Verdict:
    text = f"at most {counted(given.at_most, 'zone', grouped=False)} without a running pod{_named(given.workload)}"
    had: set[str] = set()
    levels: list[tuple[datetime, set[str]]] = []
    for at, running in _sweep(seen, given.workload):
        zones = {pod.zone for pod in running}
        had |= zones
        if at >= seen.measured:
            levels.append((at, had - zones))
    if not had:
        return Verdict(text, False, "no pod ran", seen.measured - seen.began, _pending(seen, given.workload))
    if len(had) <= given.at_most:
        message = f"pods ran only in {', '.join(sorted(had))}: it could not fail; spread the pods over more zones"
        return Verdict(text, False, message, seen.measured - seen.began)
    worst = max(levels, key=lambda row: len(row[1]))
    if len(worst[1]) <= given.at_most:
        return Verdict(text, passed=True, message=f"pods in {', '.join(sorted(had))}")
    first = next(at for at, short in levels if len(short) > given.at_most)
    lost = _lost(seen, given.workload, worst[0])
    return _violated(text, f"none in {', '.join(sorted(worst[1]))}", seen, (first, worst[0]), lost)


def _violated(
    text: str, message: str, seen: Observed, times: tuple[datetime, datetime], reasons: Iterable[str]
) -> Verdict:
    """A failure with the times of its first and its worst violation."""
    first, worst = (max(at, seen.measured) - seen.began for at in times)
    return Verdict(text, False, message, first, tuple(reasons), worst if worst > first else None)


def _sweep(seen: Observed, workload: str) -> Iterator[tuple[datetime, list[PodLife]]]:
    """The running pods of a workload after each change of them, and at the end of the warm-up."""
    pods = [one for one in seen.pods if one.started and _of(one, workload)]
    times = {seen.measured} | {at for one in pods for at in (one.started, one.stopped) if at is not None}
    for at in sorted(times):
        yield (
            at,
            [one for one in pods if one.started and one.started <= at and (one.stopped is None or one.stopped > at)],
        )


def _pending(seen: Observed, workload: str) -> tuple[str, ...]:
    return tuple(_waited(one, seen) for one in seen.pods if one.started is None and _of(one, workload))[:_EXAMPLES]


def _lost(seen: Observed, workload: str, at: datetime) -> tuple[str, ...]:
    """The last pods of a workload that stopped until then, and the nodes that were being deleted."""
    stopped = [one for one in seen.pods if one.stopped and one.stopped <= at and one.started and _of(one, workload)]
    nodes = {move.pod: move.node for move in seen.evictions}
    known = {one.name: one for one in seen.nodes}
    last = sorted(stopped, key=lambda one: one.stopped or at)[-_EXAMPLES:]
    return tuple(f"{_clock(one.stopped or at, seen)}: pod {one.key} stopped{_from(one, nodes, known)}" for one in last)


def _from(pod: PodLife, nodes: Mapping[str, str], known: Mapping[str, NodeLife]) -> str:
    name = nodes.get(pod.key)
    return f" (evicted from {_node(known.get(name), name)})" if name else f" in {pod.zone}"


# --- nodes and cost -------------------------------------------------------------------------------------------------
def _disruptions(given: scenario.Disruptions, seen: Observed) -> Verdict:
    of = f" of NodePool {given.node_pool}" if given.node_pool else ""
    why = f" ({', '.join(given.reasons)})" if given.reasons else ""
    text = f"at most {counted(given.at_most, 'disruption', grouped=False)}{of} an hour{why}"
    found = _ended(given, seen)
    windows = [[row for row in found[: number + 1] if row[0] > at - HOUR] for number, (at, _) in enumerate(found)]
    most = max(windows, key=len, default=[])
    if len(most) <= given.at_most:
        return Verdict(text, passed=True, message=f"at most {len(most)}")
    first = next(one for one in windows if len(one) > given.at_most)
    reasons = (f"{_clock(at, seen)}: {_node(one, one.name)}" for at, one in most[-_EXAMPLES:])
    return _violated(text, f"{len(most)} in an hour", seen, (first[-1][0], most[-1][0]), reasons)


def _ended(given: scenario.Disruptions, seen: Observed) -> list[tuple[datetime, NodeLife]]:
    """The nodes that count, by the time at which their deletion started."""
    found = [
        (one.ending, one)
        for one in seen.nodes
        if one.instance_type
        and one.ending is not None
        and one.ending >= seen.measured
        and given.node_pool in ("", one.node_pool)
        and (not given.reasons or one.reason in given.reasons)
    ]
    return sorted(found, key=lambda row: (row[0], row[1].name))


def _cost(given: scenario.Cost, seen: Observed) -> Verdict:
    if given.per_hour:
        return _cost_per_hour(given, seen)
    total = cost(seen)
    text = f"cost of at most {_dollars(given.at_most)}"
    message = f"{_against(total, given.at_most)} in {shortest(seen.ended - seen.measured)}"
    if total <= given.at_most:
        return Verdict(text, passed=True, message=message)
    return Verdict(text, False, message, _exceeded(given.at_most, seen) - seen.began, tuple(_priciest(seen)))


def _exceeded(at_most: float, seen: Observed) -> datetime:
    """The time at which the sum of the price exceeds so many US dollars."""
    left = at_most * _MICRO
    for start, end, price in _spans(seen):
        spent = price * ((end - start) / HOUR)
        if spent > left:
            return start + left / price * HOUR
        left -= spent
    return seen.ended


def _cost_per_hour(given: scenario.Cost, seen: Observed) -> Verdict:
    most = max(seen.measured_levels, key=lambda one: one.price)
    text = f"cost of at most {_dollars(given.at_most)} an hour"
    message = f"{_against(most.price / _MICRO, given.at_most)} with {counted(most.nodes, 'node')}"
    if most.price <= given.at_most * _MICRO:
        return Verdict(text, passed=True, message=message)
    first = next(one.at for one in seen.measured_levels if one.price > given.at_most * _MICRO)
    return _violated(text, message, seen, (first, most.at), _priciest(seen))


def _dollars(amount: float) -> str:
    """An amount with as many digits as it needs: `$0.60`, `$0.0015`."""
    whole, _, rest = f"{amount:.4f}".rstrip("0").partition(".")
    return f"${whole}.{rest:0<2}"


def _against(amount: float, bound: float) -> str:
    """An amount, with more digits when it would look like its bound."""
    alike = amount != bound and f"{amount:.2f}" == f"{bound:.2f}"
    return f"${amount:.4f}" if alike else f"${amount:.2f}"


def _priciest(seen: Observed) -> Iterator[str]:
    """The nodes of each kind that were launched, the most frequent first."""
    count: dict[str, int] = {}
    for one in seen.nodes:
        if one.instance_type:
            kind = f"{one.instance_type} {one.capacity_type} of NodePool {one.node_pool}"
            count[kind] = count.get(kind, 0) + 1
    for kind, number in sorted(count.items(), key=lambda row: (-row[1], row[0]))[:_EXAMPLES]:
        yield f"launched {number} x {kind}"


def _at_end(given: scenario.NodesAtEnd, seen: Observed) -> Verdict:
    word = "drifted node" if given.drifted else "node"
    of = f" of NodePool {given.node_pool}" if given.node_pool else ""
    found = [one for one in seen.nodes if one.gone is None and given.node_pool in ("", one.node_pool)]
    found = [one for one in found if one.drifted or not given.drifted]
    text = f"at most {counted(given.at_most, word, grouped=False)}{of} at the end"
    message = counted(len(found), word)
    if len(found) <= given.at_most:
        return Verdict(text, passed=True, message=message)
    ordered = sorted(found, key=lambda one: (not one.blocker, one.name))[:_EXAMPLES]
    return Verdict(text, False, message, seen.ended - seen.began, tuple(map(_stays, ordered)))


def _stays(node: NodeLife) -> str:
    where = f"node {node.name} ({node.instance_type}, {node.zone}) of NodePool {node.node_pool} stays"
    return f"{where}{f': {node.blocker}' if node.blocker else ''}"


# --- words ----------------------------------------------------------------------------------------------------------
def _of(pod: PodLife, workload: str) -> bool:
    return not workload or pod.workload == full(workload)


def _named(workload: str) -> str:
    return f" of {workload}" if workload else ""


def _clock(at: datetime, seen: Observed) -> str:
    return shortest(at - seen.began)


def _node(node: NodeLife | None, name: str) -> str:
    if node is None:
        return f"node {name}"
    return f"node {name} of NodePool {node.node_pool} ({node.reason or 'not disrupted'})"


_JUDGES: Final[Mapping[str, Callable[[Any, Observed], Verdict]]] = {
    "pods_run_within": _run_within,
    "cost": _cost,
    "evictions": _evictions,
    "disruptions_per_hour": _disruptions,
    "running_pods": _running,
    "zones_short": _zones,
    "nodes_at_end": _at_end,
}
