"""Names in a scenario that cannot exist in its world: zones, instance types, NodePools, workloads, other objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.model.cluster import FIELDS
from kerf.model.kubernetes import pods
from kerf.model.snapshot import Snapshot
from kerf.planning.changes import Key, key
from kerf.sandbox.api.kinds import BY_NAME
from kerf.sandbox.aws import catalogue
from kerf.sandbox.world import ZONES
from kerf.simulating.objects import pods as named_pods
from kerf.simulating.objects import pools as node_pools
from kerf.simulating.observing import workload_of
from kerf.simulating.reading import BadScenario, Path, camel, missing, steps
from kerf.simulating.scenario import Offerings, Scenario, Step
from kerf.simulating.workloads import manifests
from kerf.simulating.world import Case, Given, settings_of

_WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "Pod")
#: PriorityClasses of every cluster.
_SYSTEM: Final = ("system-cluster-critical", "system-node-critical")
#: The end of a message about a Deployment of a snapshot that cannot be scaled.
_TEMPLATELESS: Final = (
    "has no pod and no ReplicaSet, so its pod template is unknown; add one of its pods to the files of "
    "`kerf snapshot -f`, or write the Deployment into workloads"
)
#: Kinds whose objects get their names during the run.
_GENERATED: Final = frozenset(
    {"Pod", "ReplicaSet", "NodeClaim", "Node", "CSINode", "VolumeAttachment", "Event", "Lease"}
)


@dataclass(slots=True)
class _Known:
    """Everything that a world has, or gets by its timeline: names of objects by kind, of workloads, the region.

    `templateless` are Deployments of a snapshot without a pod and without a ReplicaSet.
    """

    region: Region
    objects: Mapping[str, set[str]]
    workloads: set[str] = field(default_factory=set)
    templateless: set[str] = field(default_factory=set)

    @property
    def zones(self) -> set[str]:
        return {zone for zones in self.region.zones_by_type.values() for zone in zones} | {*self.region.zones}


def require(case: Case) -> None:
    """Refuse a scenario that refers to something its world never has. Raises BadScenario."""
    scenario = case.scenario
    _require_world(scenario)
    _require_once(case)
    known = _known(case)
    every = (*case.manifests, *(one for some in case.applied.values() for one in some))
    named_pods.require(scenario, every)
    node_pools.require(every, known.objects[kinds.NODE_CLASS.name], known.region)
    for number, event in enumerate(scenario.weather):
        for name in event.__struct_fields__:
            given = getattr(event, name)
            _require_place(("weather", number, camel(name)), given, known)
            _require_subject(("weather", number, camel(name)), given, known)
    for number, assertion in enumerate(scenario.assertions):
        for name in assertion.__struct_fields__:
            _require_subject(("assertions", number, camel(name)), getattr(assertion, name), known)
    if case.captured is None:  # a snapshot has no PriorityClasses
        named_pods.require_priorities(scenario, every, {*known.objects["PriorityClass"], *_SYSTEM})
    for number, step in enumerate(scenario.timeline):
        _require_objects(("timeline", number), step, known)


def full(name: str) -> str:
    """`namespace/name` of a workload."""
    return name if "/" in name else f"default/{name}"


def _require_once(case: Case) -> None:
    """An object of the world that another one replaces has no effect."""
    seen: dict[Key, Given] = {}
    own = [Given(("workloads", n, "name"), one) for n, w in enumerate(case.scenario.workloads) for one in manifests(w)]
    for given in (*case.manifests, *own):
        kind, space, name = found = key(given.manifest)
        before = seen.setdefault(found, given)
        if kind != "Namespace" and before.manifest != given.manifest:
            where = before.place or steps(before.path)
            own_place = f"{given.place}: " if given.place else ""
            words = f"{own_place}another {kind} {space}/{name}".replace(" /", " ")
            raise BadScenario(given.path, f"{words} is in {where}, and only one would have an effect; remove one")


def _require_world(scenario: Scenario) -> None:
    """The instance types and the settings of a world exist."""
    types = catalogue.region(ZONES).types
    for number, name in enumerate(scenario.world.instance_types):
        if name not in types:
            words = f"{missing('instance type', name, types)} `kerf catalogue --names` lists those of the simulation"
            raise BadScenario(("world", "instanceTypes", number), words)
    settings_of(scenario.world.settings)


def _require_place(path: Path, given: Any, known: _Known) -> None:
    """Zones and instance types of weather exist, and a selection of offerings has one."""
    single = [("zone", getattr(given, "zone", "")), ("instanceType", getattr(given, "instance_type", ""))]
    rows = [((*path, name), "zone" if name == "zone" else "type", value) for name, value in single if value]
    for what, name in (("zone", "zones"), ("type", "instance_types")):
        rows += [((*path, camel(name), index), what, one) for index, one in enumerate(getattr(given, name, ()))]
    for place, what, value in rows:
        if what == "zone" and value not in known.zones:
            raise BadScenario(place, missing("zone", value, known.zones))
        if what == "type" and value not in known.region.types:
            raise BadScenario(place, missing("instance type", value, known.region.types))
    if isinstance(given, Offerings) and not any(_offered(given, known)):
        raise BadScenario(path, "none of these instance types is offered in these zones; change one of the two")


def _offered(given: Offerings, known: _Known) -> Iterator[bool]:
    zones = {*given.zones} or known.zones
    for name in given.instance_types or known.region.types:
        yield not zones.isdisjoint(known.region.zones_by_type.get(name, ()))


def _require_subject(path: Path, given: Any, known: _Known) -> None:
    workload, pool = getattr(given, "workload", ""), getattr(given, "node_pool", "")
    if workload and full(workload) not in known.workloads:
        raise BadScenario((*path, "workload"), _absent("workload", full(workload), known.workloads))
    pools = known.objects[kinds.NODE_POOL.name]
    if pool and pool not in pools:
        raise BadScenario((*path, "nodePool"), missing("NodePool", pool, pools))


def _require_objects(path: Path, step: Step, known: _Known) -> None:
    deployments = known.objects[kinds.DEPLOYMENT.name]
    for name in step.scale:
        if full(name) not in deployments:
            raise BadScenario((*path, "scale", name), _absent("Deployment", full(name), deployments))
        if full(name) in known.templateless:
            raise BadScenario((*path, "scale", name), f"Deployment {name} of the snapshot {_TEMPLATELESS}")
    for index, name in enumerate(step.delete):
        kind, slash, rest = name.partition("/")
        place = (*path, "delete", index)
        if not slash or not rest:
            raise BadScenario(place, f"{name} is no object; write KIND/NAME or KIND/NAMESPACE/NAME")
        if kind not in BY_NAME:
            raise BadScenario(place, missing("kind", kind, BY_NAME))
        own = rest if BY_NAME[kind].cluster_scoped else full(rest)
        if kind not in _GENERATED and own not in known.objects[kind]:
            raise BadScenario(place, _absent(kind, own, known.objects[kind]))


def _absent(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for the name of an object that does not exist; `default` is not written."""
    return missing(kind, name.removeprefix("default/"), (one.removeprefix("default/") for one in known))


# --- the world ------------------------------------------------------------------------------------------------------
def _known(case: Case) -> _Known:
    found: dict[str, set[str]] = defaultdict(set)
    for given in (*case.manifests, *(one for some in case.applied.values() for one in some)):
        kind, space, name = key(given.manifest)
        found[kind].add(f"{space}/{name}" if space else name)
    for workload in case.scenario.workloads:
        name = f"{workload.namespace}/{workload.name}"
        found["Deployment"].add(name)
        found["Namespace"].add(workload.namespace)
        if workload.pod_disruption_budget:
            found["PodDisruptionBudget"].add(name)
    found["Namespace"] |= {"default", "kube-system"}
    own = {name for kind in _WORKLOADS for name in found[kind]}
    if case.captured is None:
        return _Known(_region(case.scenario), found, own)
    snapshot, applied = case.captured.snapshot, {*found["Deployment"]}
    for one in kinds.KNOWN:
        found[one.name] |= set(_names(getattr(snapshot, FIELDS[one.name]).values()))
    listed, own = {*found["Deployment"]}, own | {workload_of(pod) for pod in snapshot.pods.values()}
    scaled = {f"{space}/{name}" for space, name in _scaled(snapshot)}
    found["Deployment"] |= scaled | listed
    return _Known(case.captured.region or _region(case.scenario), found, own, listed - scaled - applied)


def _scaled(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Namespace and name of Deployments whose pod template is known: by a pod or by a ReplicaSet."""
    for pod in snapshot.pods.values():
        kind, name = pods.workload(pod) or ("", "")
        if kind == kinds.DEPLOYMENT.name:
            yield pod.metadata.namespace, name
    for one in snapshot.replica_sets.values():
        yield one.metadata.namespace, one.metadata.name.rpartition("-")[0]


def _region(scenario: Scenario) -> Region:
    return catalogue.region(scenario.world.zones or ZONES, scenario.world.instance_types or None)


def _names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        meta = value.metadata
        yield f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
