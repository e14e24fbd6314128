"""All pods without a node, from one solve: by workload and reason, with the answer of `kerf why pod`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kerf.model.kubernetes import pods
from kerf.model.snapshot import Snapshot
from kerf.provisioning.pending import pending_pods, rehoused_pods
from kerf.provisioning.why import (
    PLACED,
    PLANNED,
    REFUSED,
    Answer,
    decided,
    invalid,
    left_out,
    outside_of,
    solution_of,
)
from kerf.scheduling.solve import PodRefusal, Solution


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one workload (`namespace/name`, sorted) with the same reason; `answer` is for the first one."""

    pods: tuple[str, ...]
    since: datetime | None
    answer: Answer


def groups(snapshot: Snapshot) -> tuple[Group, ...]:
    """The groups: pods without a place first, then by the number of pods."""
    asked = _Asked.of(snapshot)
    found: dict[tuple[object, ...], list[str]] = {}
    for key in _unbound(snapshot):
        pod = snapshot.pods[key]
        reason = asked.standing(key) or left_out(pod, snapshot.nodes)
        owner = pods.workload(pod) or ("Pod", pod.metadata.name)
        found.setdefault((pod.metadata.namespace, owner, reason), []).append(key)
    made = [asked.group(snapshot, keys) for keys in found.values()]
    return tuple(sorted(made, key=lambda group: (group.answer.code != REFUSED, -len(group.pods), group.pods)))


def _unbound(snapshot: Snapshot) -> list[str]:
    """The pods that a scheduler has still to bind, in order."""
    return sorted(
        key
        for key, pod in snapshot.pods.items()
        if not pod.spec.node_name and pods.active(pod) and not pods.of_daemon_set(pod)
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The solution for all pending pods; `planned` are the NodePools of new nodes by pod."""

    solution: Solution
    invalid: Mapping[str, PodRefusal]
    planned: Mapping[str, str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Asked:
        pending, refused = pending_pods(snapshot)
        solution = solution_of(snapshot, [*pending, *rehoused_pods(snapshot)]) if pending else Solution()
        return cls(solution, refused, {key: node.pool for node in solution.new_nodes for key in node.pods})

    def standing(self, key: str) -> str:
        """A text that pods with the same answer share; empty for a pod outside of the solve."""
        refusal = self.invalid.get(key) or self.solution.unplaced.get(key)
        if refusal is not None:
            return f"{REFUSED} {refusal.text}"
        if key in self.planned:
            return f"{PLANNED} {self.planned[key]}"
        return f"{PLACED} {self.solution.placed[key]}" if key in self.solution.placed else ""

    def group(self, snapshot: Snapshot, keys: list[str]) -> Group:
        """The group of these pods."""
        first, key = snapshot.pods[keys[0]], keys[0]
        dates = [since for key in keys if (since := pods.waiting_since(snapshot.pods[key])) is not None]
        if key in self.invalid:
            answer = invalid(first, self.invalid[key].text)
        elif self.standing(key):
            answer = decided(snapshot, self.solution, key)
        else:
            answer = outside_of(snapshot, first, left_out(first, snapshot.nodes))
        return Group(tuple(keys), min(dates, default=None), answer)
