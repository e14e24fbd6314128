"""Pods that have no place, tried again when everything else is planned: nothing that has a place loses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.placing.assign import Assignment, Batch
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.ways import PodGroup


def on_new_nodes(assignment: Assignment, place: Callable[[PodGroup, int], int], *, late: bool = False) -> None:
    """Plan pods that have no place again, on new nodes, as many as `place` finds room for.

    It is asked for so many pods of an item, the last ones, and says how many of them have a place. Those of the
    highest priority come first; who depends on others' counts comes one by one. A `late` pod is placed on an existing
    node that a spread opens to it meanwhile.
    """
    progress = True
    while progress:
        progress = False
        assignment.opening.lift()
        for cls, pods in _waiting(assignment):
            done = _planned(assignment, cls, pods, place, late)
            progress = progress or (done > 0 and any(c.waits for c, _ in _waiting(assignment)))


def on_existing_nodes(assignment: Assignment, groups: Set[TopologyGroup]) -> None:
    """Place pods that have no place, and own one of these spreads, as if no node could be made for their class."""
    assignment.opening.put_off = False
    progress = True
    while progress:
        progress = False
        for cls, pods in _waiting(assignment):
            for pod in pods if cls.owns(groups) else ():
                if not assignment.place_without_nodes(cls, pod, assignment.columns.vector(cls.requests)):
                    break
                del assignment.left[pod.key]
                progress = True


def _waiting(assignment: Assignment) -> list[Batch]:
    found: dict[int, tuple[PodClass, list[Pod]]] = {}
    for cls, pod in assignment.left.values():
        if not cls.claiming and not assignment.columns.unknown(cls.requests):
            found.setdefault(cls.number, (cls, []))[1].append(pod)
    return sorted(found.values(), key=lambda batch: -batch[0].sample.spec.priority)


def _planned(
    assignment: Assignment, cls: PodClass, pods: Sequence[Pod], place: Callable[[PodGroup, int], int], late: bool
) -> int:
    """Plan pods of one class where that leads to a place; how many (the first ones)."""
    need, done = assignment.columns.vector(cls.requests), 0
    for number, relaxation in enumerate(cls.relaxations):
        alone = bool(relaxation.constraints or cls.counted)
        while done < len(pods) and relaxation.demand.possible:
            asked = pods[done : done + 1] if alone else pods[done:]
            if late and assignment.place_without_nodes(cls, asked[0], need):
                del assignment.left[asked[0].key]
                done += 1
                continue
            planned = assignment.opening.retry(cls, number, asked, need)
            if planned is None:
                break
            found = place(planned[0], len(asked))
            if found < len(asked):
                assignment.opening.withdraw(*planned, len(asked) - found)
            for pod in asked[:found]:
                del assignment.left[pod.key]
            done += found
    return done
