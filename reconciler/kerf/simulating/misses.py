"""Assertions that pass because nothing of their kind ever was."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.simulating.observed import Observed
from kerf.simulating.reading import camel
from kerf.simulating.scenario import Scenario
from kerf.simulating.targets import full
from kerf_api.texts import counted


def of_assertions(scenario: Scenario, seen: Observed) -> Iterator[str]:
    """A warning for each assertion about a workload without a pod or a NodePool without a node."""
    workloads = {one.workload for one in seen.pods}
    pools = {one.node_pool for one in seen.nodes if one.instance_type}
    for number, assertion in enumerate(scenario.assertions):
        for name in assertion.__struct_fields__:
            given, path = getattr(assertion, name), f"assertions[{number}].{camel(name)}"
            workload, pool = getattr(given, "workload", ""), getattr(given, "node_pool", "")
            if workload and full(workload) not in workloads:
                yield f"{path}: workload {full(workload)} had no pod"
            if pool and pool not in pools:
                yield f"{path}: NodePool {pool} had no node"
            if getattr(given, "drifted", False) and not any(one.had_drifted for one in seen.nodes):
                yield f"{path}: no node drifted"
    yield from _of_pods(seen)


def _of_pods(seen: Observed) -> Iterator[str]:
    """Warnings about pods that no assertion may cover."""
    if seen.pods and not any(one.started for one in seen.pods):
        yield "no pod ran"
    waiting = sum(one.started is None and one.stopped is None for one in seen.pods)
    if waiting:
        yield f"{counted(waiting, 'pod')} had no node at the end"
