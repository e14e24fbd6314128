"""Explain one pending pod: its planned node, the cause of its delay, the reason of its refusal, or why Kerf ignores it.

The solver of the controller places all pending pods, so the answer is the controller's decision for the same snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from kerf.ec2 import refused_launches
from kerf.model import failures
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot, StateNode
from kerf.provisioning import hindrances, missing
from kerf.provisioning.boundary import NO_PROBLEMS, Problems, solve_apart, solve_roughly
from kerf.provisioning.causes import cause_of, of_problem, patches_of
from kerf.provisioning.pending import pending_pods, rehoused_pods
from kerf.provisioning.progress import with_progress
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.answers.patches import Cause, Patch
from kerf.scheduling.offerings import prices
from kerf.scheduling.offerings.learned import differences
from kerf.scheduling.solve import NewNode, PodRefusal, Solution
from kerf_api import labels
from kerf_api.texts import shortened
from kerf_api.v1 import conditions

#: Stable codes of answers: ignored on purpose, placed on an existing or launching node, placed on a node that is still
#: to be launched, refused, no such pod.
LEFT_OUT, PLACED, PLANNED, REFUSED, UNKNOWN = "LeftOut", "Placed", "Planned", "Refused", "NotFound"
#: The most pods with similar names that are listed when the name does not exist.
_MOST_NAMES = 5
#: Of names that are compared with an unknown one: the difference in length, their number, and their likeness.
_MOST_EDITS: Final = 3
_MOST_COMPARED: Final = 2_000
_LIKENESS: Final = 0.7
#: Solver trials per pod: enough for every edit of one group of equal pods, and three trials of each limit.
_TRIALS = 40
_GATED = "is gated"


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is the answer in a line; `details` are further lines. `refusal` is set when the solver refused the pod.

    `cause` is the most likely cause, `patches` are the edits that help as data, the best one first.
    """

    pod: str
    code: str
    text: str
    details: tuple[str, ...] = ()
    refusal: PodRefusal | None = None
    cause: Cause | None = None
    patches: tuple[Patch, ...] = ()


def why(snapshot: Snapshot, key: str) -> Answer:
    """Explain the pod `namespace/name`."""
    pod = snapshot.pods.get(key)
    if pod is None:
        return Answer(key, UNKNOWN, "there is no such pod", _similar(snapshot, key))
    outside = left_out(pod, snapshot.nodes)
    if outside:
        return outside_of(snapshot, pod, outside)
    pending, refused = pending_pods(snapshot)
    if key in refused:
        return invalid(pod, refused[key].text)
    everyone = [*pending, *rehoused_pods(snapshot)]
    spend = _TRIALS * max(len(everyone), 20)
    answer = decided(snapshot, solution_of(snapshot, everyone, accounts=len(everyone), spend=spend, only=key), key)
    return replace(answer, details=(*answer.details, *_scheduler(pod), *_of_its_node(snapshot, pod)))


def outside_of(snapshot: Snapshot, pod: Pod, text: str) -> Answer:
    """Return the answer for a pod that Kerf launches no node for; `text` is the reason of `left_out`."""
    return _gated(pod, Answer(pod.key, LEFT_OUT, text, _failing(snapshot, f"pod/{pod.key}")))


def solution_of(snapshot: Snapshot, everyone: Sequence[Pod], **limits: Any) -> Solution:
    """Return the placement of these pods; `limits` are those of `solve_apart`."""
    turn = Memory().turn(snapshot)

    def solved(some: Sequence[Pod], without: Problems = NO_PROBLEMS, /, *, roughly: bool = False) -> Solution:
        if roughly:
            return solve_roughly(snapshot, some, turn, without=without)
        return solve_apart(snapshot, some, turn, without=without, **limits)

    return with_progress(turn, snapshot, everyone, solved)


def invalid(pod: Pod, text: str) -> Answer:
    """Return the answer for a pod that `pending_pods` refuses with this text."""
    if not text:
        return Answer(pod.key, LEFT_OUT, "has opted out: it requires nodes without the label karpenter.sh/nodepool")
    cause, patches = of_problem(pod) or (None, ())
    return Answer(pod.key, REFUSED, text, cause=cause, patches=patches)


def _scheduler(pod: Pod) -> Iterator[str]:
    """Return the message of the kube-scheduler."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and one.message:
            yield f"the kube-scheduler reports: {one.message}"


def _of_its_node(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Return the nodes that were launched for the pod, with each field that differs from the plan."""
    mark = pod_mark(pod.metadata.uid)
    for name in sorted(snapshot.state_nodes):
        state = snapshot.state_nodes[name]
        claim, node = state.claim, state.node
        if claim is None or node is None or not state.initialized:
            continue
        if mark in claim.metadata.annotations.get(labels.PLANNED_PODS, "").split(","):
            found = differences(claim, node)
            yield f"node {node.name} was launched for it: {'; '.join(map(str, found)) or 'it has the planned fields'}"


def _gated(pod: Pod, answer: Answer) -> Answer:
    """Return the answer with the edit for a pod that waits only for its scheduling gates."""
    if not answer.text.startswith(_GATED):
        return answer
    cause, patch = missing.gates(pod)
    return replace(answer, cause=cause, patches=(patch,))


def left_out(pod: Pod, nodes: Mapping[str, object]) -> str:
    """Return why Kerf launches no node for a pod in any cluster; empty when it may. `nodes` are by name."""
    spec = pod.spec
    if pods.terminating(pod):
        return "is being deleted"
    if pods.terminal(pod):
        return f"has terminated ({pod.status.phase})"
    if spec.node_name:
        return f"is already on node {spec.node_name}"
    if pods.of_daemon_set(pod):
        return "belongs to a DaemonSet: Kerf launches no node for it, and reserves resources for it on each new node"
    if pods.of_node(pod):
        return "is a static pod of its node's kubelet"
    if spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in spec.scheduling_gates[:_MOST_NAMES])
        return f"{_GATED} ({gates}): no scheduler handles it before its scheduling gates are removed"
    if pod.status.nominated_node_name in nodes:
        expected = f"is expected on node {pod.status.nominated_node_name}, where resources are reserved for it"
        return f"{expected}: Kerf launched the node for it, or its scheduler preempts other pods there"
    if not pods.provisionable(pod, nodes):
        return f"is not evaluated yet: its scheduler ({spec.scheduler_name}) has not reported that it is Unschedulable"
    return ""


# --- the solver's answer ----------------------------------------------------------------------------------------
def decided(snapshot: Snapshot, solution: Solution, key: str) -> Answer:
    """Return the answer for a pod of a solution."""
    if key in solution.placed:
        target = solution.placed[key]
        state = snapshot.state_nodes[target]
        place = f"has a place on {_named(state)}{_but(snapshot, state)}"
        return Answer(key, PLACED, place, (_waits_for(state), *_of_launch(snapshot, state)))
    node = next((node for node in solution.new_nodes if key in node.pods), None)
    if node is not None:
        waits = _waits_for_others(snapshot, snapshot.pods[key])
        failing = (*_refused(snapshot, node.pool), *_failing(snapshot, f"nodepool/{node.pool}"))
        gets = f"gets a new node of NodePool {node.pool}{_hindered(snapshot, node.pool)}"
        return Answer(key, PLANNED, gets, (*failing, *waits, *_about(node)))
    refusal = solution.unplaced[key]
    pod = snapshot.pods[key]
    cause, patches = cause_of(snapshot, pod, refusal), patches_of(snapshot, pod, refusal)
    return Answer(key, REFUSED, refusal.text, (), refusal, cause, patches)


def _but(snapshot: Snapshot, state: StateNode) -> str:
    launched = state.claim is None or state.claim.is_true("Launched")
    return "" if launched else _hindered(snapshot, state.pool_name)


def _hindered(snapshot: Snapshot, pool_name: str) -> str:
    """Return the end of an answer that rests on a node which cannot be launched now."""
    pool = snapshot.node_pools.get(pool_name)
    found = next(hindrances.of(snapshot, pool), None) if pool is not None else None
    return f", but the NodePool gets no nodes now: {found}" if found is not None else ""


def _named(state: StateNode) -> str:
    if state.claim is None:
        return f"node {state.name}"
    of_pool = f" of NodePool {state.pool_name}" if state.pool_name else ""
    return f"NodeClaim {state.claim.name}{of_pool}" + (f" (node {state.node.name})" if state.node is not None else "")


def _failing(snapshot: Snapshot, *names: str) -> tuple[str, ...]:
    """Return the failing actions on some objects."""
    return tuple(one.standing(snapshot.now) for one in failures.of(snapshot.failures, *names))


def _refused(snapshot: Snapshot, pool: str) -> tuple[str, ...]:
    """Return the errors for which EC2 refuses launches of a NodePool."""
    found = refused_launches.refused(snapshot.launch_failures.values(), snapshot.now, pool)
    return tuple(one.standing(pool, snapshot.now) for one in found)


def _of_launch(snapshot: Snapshot, state: StateNode) -> Iterator[str]:
    """Return the conditions of a NodeClaim whose launch or registration is not complete."""
    claim = state.claim
    if claim is None:
        return
    condition = conditions.first_broken(claim.status.conditions, conditions.NODECLAIM_DEPENDENTS)
    if condition is not None and condition.message:
        yield conditions.words(condition)
    launched = claim.is_true("Launched")
    for one in failures.of_coming(snapshot.failures, claim.name, claim.pool_name, launched=launched):
        yield one.standing(snapshot.now)


def _waits_for(state: StateNode) -> str:
    """Return the next step before the pod can run on its node."""
    if state.claim is not None and not state.claim.status.provider_id:
        return "it waits for the instance to be launched"
    if state.node is None:
        return "it waits for the instance to join the cluster as a node"
    if not state.registered:
        return "it waits for the node to be registered"
    if not state.initialized:
        return "it waits for the node to be initialized: ready, without start-up taints, with all its resources"
    return "the pod waits for its scheduler to bind it there"


def _waits_for_others(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Return the close of the pod's batch while it may be open: outside of the controller only the pod's age is known.

    Kerf launches nodes that later pods cannot make cheaper before the close.
    """
    if snapshot.batch is not None and snapshot.batch.asks_at is None:
        closes, when = snapshot.batch.closes(snapshot.settings), ""
    else:
        since = pods.waiting_since(pod) or datetime.min.replace(tzinfo=UTC)
        closes, when = since + snapshot.settings.batch_max, " at the latest"
    if closes > snapshot.now:
        yield f"its batch is open: its node is launched when the batch closes, at {closes:%H:%M:%S} UTC{when}"


def _about(node: NewNode) -> tuple[str, ...]:
    pods_ = "it alone" if len(node.pods) == 1 else f"it and {len(node.pods) - 1} more"
    return (
        f"instance types: {shortened(node.instance_types, _MOST_NAMES)}",
        f"zones: {', '.join(node.zones)}; capacity types: {', '.join(node.capacity_types)}",
        f"from {prices.dollars(node.price)} an hour, for {pods_}",
    )


def _similar(snapshot: Snapshot, key: str) -> tuple[str, ...]:
    """Return pods of that name in other namespaces, and pods of the namespace with the same prefix; else a pod of each
    workload whose name is almost that of the pod."""
    namespace, _, name = key.partition("/")
    stem = name.rsplit("-", 1)[0]
    found = sorted(
        other
        for other in snapshot.pods
        if other.endswith(f"/{name}") or (other.startswith(f"{namespace}/{stem}") and stem)
    )
    found = found or _misspelled(snapshot, namespace, name)
    return (f"did you mean {', '.join(found[:_MOST_NAMES])}?",) if found else ()


def _misspelled(snapshot: Snapshot, namespace: str, name: str) -> list[str]:
    """Return the first pod of each workload, or the pod without one, whose name is almost that of the pod.

    The workloads are those of the namespace; of all namespaces when it has none. The suffixes of the pod's name may be
    generated, so it is compared with and without them.
    """
    words = dict.fromkeys((name, name.rsplit("-", 1)[0], name.rsplit("-", 2)[0]))
    own = [key for key in snapshot.pods if key.startswith(f"{namespace}/")]
    firsts: dict[str, str] = {}
    for key in own or snapshot.pods:
        title = (pods.workload(snapshot.pods[key]) or ("Pod", key.partition("/")[2]))[1]
        firsts[title] = min(firsts.get(title, key), key)
    found: dict[str, None] = {}
    for word in words:
        near = [one for one in firsts if abs(len(one) - len(word)) <= _MOST_EDITS]
        near.sort(key=lambda one: (one[:1] != word[:1], one))  # a name's first letter is rarely wrong
        found.update(dict.fromkeys(get_close_matches(word, near[:_MOST_COMPARED], _MOST_NAMES, _LIKENESS)))
    return [firsts[one] for one in found]
