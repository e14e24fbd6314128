"""Law of default spread constraints: the answer is the one that pods get which ask for the same by themselves.

Who says what they would ask for is the referee, who finds out by himself whom a default counts.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from kerf.model import kinds
from kerf.model.cluster import FIELDS, build
from kerf.model.kubernetes.objects import Pod, TopologySpreadConstraint
from kerf.model.snapshot import Snapshot
from kerf.scheduling.solve import Solution, solve
from kerf_api.v1.meta import OwnerReference, decode
from tests.laws.test_scheduling_laws import APPS, KEYS, RELAXED, a_world
from tests.referee.defaults import with_defaults

OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController", "Job")


def rebuilt(snapshot: Snapshot, pods: list[Pod], *more: Any, **settings: Any) -> Snapshot:
    """The same world with other pods, further objects and other settings."""
    tables = [field for kind, field in FIELDS.items() if kind != "Pod"]
    objects = [value for field in tables for value in getattr(snapshot, field).values()]
    changed_settings = replace(snapshot.settings, **settings)
    return build([*objects, *pods, *more], now=snapshot.now, settings=changed_settings, catalogues=snapshot.catalogues)


def made(kind: str, name: str, selector: Any) -> Any:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{kind}-{name}"}
    return decode(kinds.BY_NAME[kind].type, {"metadata": meta, "spec": {"selector": selector}})


def selector(rng: Random, kind: str, app: str) -> Any:
    """Mostly of its own pods, now and then of others, or of none."""
    chosen = rng.choice([app, app, app, rng.choice(APPS)])
    if kind == "ReplicationController":
        return {"app": chosen}
    row = {"key": "app", "operator": rng.choice(["In", "Exists", "NotIn"]), "values": [chosen]}
    return rng.choice([{"matchLabels": {"app": chosen}}, {"matchLabels": {"app": chosen}}, {"matchExpressions": [row]}])


def default(rng: Random) -> TopologySpreadConstraint:
    mode = rng.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
    row = {"topologyKey": rng.choice(KEYS), "maxSkew": rng.randint(1, 2), "whenUnsatisfiable": mode}
    return decode(TopologySpreadConstraint, row)


def with_workloads(rng: Random, snapshot: Snapshot) -> Snapshot:
    """Pods are owned, some of their owners are known, some apps have Services, and there are defaults."""
    owner_of = {app: rng.choice(OWNERS) for app in APPS}
    pods = [owned(pod, owner_of) for pod in snapshot.pods.values()]
    known = [made(kind, app, selector(rng, kind, app)) for app, kind in owner_of.items() if kind != OWNERS[-1]]
    known = [value for value in known if rng.random() < 0.8]
    services = [
        made("Service", f"{app}-{n}", {"app": app}) for n, app in enumerate(rng.sample(APPS, rng.randint(0, 3)))
    ]
    defaults = tuple(default(rng) for _ in range(rng.randint(1, 2)))
    return rebuilt(snapshot, pods, *known, *services, default_constraints=defaults)


def owned(pod: Pod, owner_of: dict[str, str]) -> Pod:
    app = pod.metadata.labels["app"]
    version = "v1" if owner_of[app] == "ReplicationController" else "apps/v1"
    owner = OwnerReference(api_version=version, kind=owner_of[app], name=app, uid="u", controller=True)
    return changed(pod, metadata=changed(pod.metadata, owner_references=(owner,)))


def homes(solution: Solution) -> tuple[object, ...]:
    return dict(solution.placed), solution.new_nodes, sorted(solution.unplaced), solution.zones


@RELAXED
@given(st.integers(0, 10**9))
def test_a_default_is_as_good_as_a_constraint_of_ones_own(seed: int) -> None:
    rng = Random(seed)
    given_ = with_workloads(rng, a_world(rng))
    asked = rebuilt(given_, [with_defaults(given_, pod) for pod in given_.pods.values()], default_constraints=())
    assert homes(solve(given_, list(given_.pods.pending.values()))) == homes(
        solve(asked, list(asked.pods.pending.values()))
    )
    assert homes(solve(given_, list(given_.pods.values()))) == homes(solve(asked, list(asked.pods.values())))
