"""Objects of a scenario that have no effect in a simulation, although they would have one in a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kerf.model import kinds
from kerf.planning.changes import key
from kerf.sandbox.api import selectors
from kerf.simulating.reading import steps
from kerf.simulating.workloads import manifests
from kerf.simulating.world import Case, Given
from kerf_api.lint.reading.reading import mapping, part
from kerf_api.lint.reading.workloads import pod_spec

_REPLICAS: Final = "describe the replicas in overTime of a workload"
_PODS: Final = "describe its pods as a workload"
#: Kinds that change pods in a cluster and that a simulation does not run, with the fix.
_NOT_RUN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("HorizontalPodAutoscaler", "ScaledObject"), _REPLICAS),
    **dict.fromkeys(("CronJob", "Job", "ReplicationController", "Rollout", "ScaledJob"), _PODS),
    "VerticalPodAutoscaler": "write the requests into the workload",
    **dict.fromkeys(("LimitRange", "ResourceQuota"), "write requests and replicas as the cluster would admit them"),
}


def warning(given: Given) -> str:
    """The warning for an object of a kind that a simulation does not use; empty for one that changes no pod."""
    words = not_run(given.kind) or (f"the simulation does not run this kind; {_PODS}" if _is_like(given) else "")
    return f"{_named(given)} has no effect: {words}" if words else ""


def _is_like(given: Given) -> bool:
    """Whether a kind of another group has the name of a workload, such as OpenKruise's StatefulSet."""
    known = kinds.BY_NAME.get(given.kind)
    return known is not None and (pod_spec(given.manifest) is not None or given.kind == kinds.SERVICE.name)


def not_run(kind: str) -> str:
    """The problem with a kind that changes pods in a cluster and its fix; empty for other kinds."""
    fix = _NOT_RUN.get(kind)
    return f"the simulation does not run this kind; {fix}" if fix else ""


def budgets(case: Case) -> Iterator[str]:
    """A warning for each PodDisruptionBudget that selects no pod of the world and its timeline."""
    if case.captured is not None:  # its pods are known only during the run
        return
    every = [*case.manifests, *(one for some in case.applied.values() for one in some)]
    workloads = [one for workload in case.scenario.workloads for one in manifests(workload)]
    pods = list(_pods([*(one.manifest for one in every), *workloads]))
    for one in every:
        if one.kind == kinds.PDB.name:
            space, selector = key(one.manifest)[1], part(dict(one.manifest), "spec", "selector")
            if not any(space == own and selectors.selects(selector, labels) for own, labels in pods):
                yield f"{_named(one)} has no effect: it selects no pod of the scenario; change selector or namespace"


def _pods(given: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The namespace and the labels of pods, and of those of templates."""
    for one in given:
        owner = dict(one) if one.get("kind") == kinds.POD.name else part(dict(one), "spec", "template")
        yield key(one)[1], mapping(owner, "metadata", "labels")


def _named(given: Given) -> str:
    """The place and the name of an object."""
    where = f"{steps(given.path)}: " + (f"{given.place}: " if given.place else "")
    space, name = (part(dict(given.manifest), "metadata", field) for field in ("namespace", "name"))
    return f"{where}{given.kind} {f'{space}/' if space else ''}{name or ''}"
