"""The referee: checks a scheduler's answer against the rules of Kubernetes and the API, plainly and slowly.

It shares nothing with the engine but the values of `api` and `reconciler.model`. A planned node is judged by every
(type, zone, capacity type) that it may become. Where an answer depends on the order in which pods bind (a spread that
counts pods which do not own it), it asks only for what every order needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from api import labels
from api.requirements import Requirements
from api.resources import Resources, total
from api.v1.meta import Taint
from api.v1.nodepool import NodePool
from reconciler.model import pods as podrules
from reconciler.model.instance_type import InstanceType, Offering
from reconciler.model.objects import DaemonSet, LabelSelector, NodeSelectorTerm, Pod, PodAffinityTerm
from reconciler.model.snapshot import Snapshot, StateNode


class PlannedNode(Protocol):
    """What the referee reads of a planned node."""

    @property
    def pool(self) -> str: ...
    @property
    def requirements(self) -> Requirements: ...
    @property
    def instance_types(self) -> tuple[str, ...]: ...
    @property
    def requests(self) -> Resources: ...
    @property
    def pods(self) -> tuple[str, ...]: ...
    @property
    def price(self) -> int: ...


class Answer(Protocol):
    """What the referee reads of a solution."""

    @property
    def placed(self) -> Mapping[str, str]: ...
    @property
    def new_nodes(self) -> Sequence[PlannedNode]: ...
    @property
    def unplaced(self) -> Mapping[str, Any]: ...


@dataclass
class Place:
    """A node, real or planned: `outcomes` are the label sets it may end up with; `staying` pods are there already."""

    name: str
    outcomes: list[dict[str, str]]
    taints: tuple[Taint, ...]
    staying: list[Pod] = field(default_factory=list)
    coming: list[Pod] = field(default_factory=list)

    def domains(self, key: str) -> set[str | None]:
        if key == labels.HOSTNAME:
            return {self.name}
        return {outcome.get(key) for outcome in self.outcomes}

    def domain(self, key: str) -> str | None:
        found = self.domains(key)
        return next(iter(found)) if len(found) == 1 else None


def violations(
    snapshot: Snapshot, pods: Sequence[Pod], solution: Answer, exclude: frozenset[str] = frozenset()
) -> list[str]:
    """Every rule that the answer breaks, in words; empty when it is right."""
    by_key = {pod.key: pod for pod in pods}
    found = list(_bookkeeping(by_key, solution))
    if found:
        return found
    existing = _existing(snapshot, by_key, solution, exclude, found)
    planned = [_planned(snapshot, node, i, by_key, found) for i, node in enumerate(solution.new_nodes)]
    places = [*existing, *planned]
    for place in places:
        found.extend(_node_rules(snapshot, place))
    for place in existing:
        found.extend(_room(snapshot, place))
    for node in solution.new_nodes:
        found.extend(_types(snapshot, node, by_key))
    found.extend(_limits(snapshot, solution, exclude))
    found.extend(_topology(snapshot, places))
    return found


def _bookkeeping(by_key: Mapping[str, Pod], solution: Answer) -> Iterator[str]:
    seen = Counter([*solution.placed, *solution.unplaced, *(k for n in solution.new_nodes for k in n.pods)])
    for key in sorted(set(seen) | set(by_key)):
        if key not in by_key:
            yield f"{key} was not asked for"
        elif seen[key] != 1:
            yield f"{key} has {seen[key]} answers"


# --- places -----------------------------------------------------------------------------------------------------
def _existing(
    snapshot: Snapshot, by_key: Mapping[str, Pod], solution: Answer, exclude: frozenset[str], found: list[str]
) -> list[Place]:
    places: dict[str, Place] = {}
    for key, state in snapshot.state_nodes.items():
        staying = []
        if state.node is not None:
            staying = [p for p in snapshot.pods.on(state.node.name) if p.key not in by_key and podrules.active(p)]
        places[key] = Place(state.name, _outcomes_of_state(snapshot, state), state.taints, staying)
    for pod, target in solution.placed.items():
        if target not in places or target in exclude or snapshot.state_nodes[target].deleting:
            found.append(f"{pod} is placed on {target}, which is no target")
        else:
            places[target].coming.append(by_key[pod])
    return list(places.values())


def _outcomes_of_state(snapshot: Snapshot, state: StateNode) -> list[dict[str, str]]:
    if state.node is not None or state.claim is None or state.claim.status.allocatable:
        return [{labels.HOSTNAME: state.name, **state.labels}]
    claim = state.claim
    requirements = claim.requirements() & Requirements.of_labels(claim.metadata.labels)
    types = snapshot.catalogues.get(claim.spec.node_class_ref.name, ())
    return _outcomes(snapshot, requirements, types)


def _outcomes(snapshot: Snapshot, requirements: Requirements, types: Iterable[InstanceType]) -> list[dict[str, str]]:
    fixed = {k: next(iter(r.values)) for k, r in requirements.items() if not r.complement and len(r.values) == 1}
    return [
        {**fixed, **_single_values(t), labels.ZONE: o.zone, labels.CAPACITY_TYPE: o.capacity_type}
        for t in types
        if requirements.conflict(t.requirements) is None
        for o in _offers(snapshot, requirements, t)
    ]


def _single_values(instance_type: InstanceType) -> dict[str, str]:
    rows = instance_type.requirements.items()
    return {k: next(iter(r.values)) for k, r in rows if not r.complement and len(r.values) == 1}


def _offers(snapshot: Snapshot, requirements: Requirements, instance_type: InstanceType) -> list[Offering]:
    return [
        o
        for o in instance_type.offerings
        if o.available
        and not snapshot.out_of_stock_now(o.key)
        and requirements.allowed(labels.ZONE).has(o.zone)
        and requirements.allowed(labels.CAPACITY_TYPE).has(o.capacity_type)
    ]


def _types_of(snapshot: Snapshot, pool: NodePool) -> dict[str, InstanceType]:
    """The types that a NodePool can use, by name."""
    return {t.name: t for t in snapshot.catalogues.get(pool.class_name, ())}


def _planned(snapshot: Snapshot, node: PlannedNode, number: int, by_key: Mapping[str, Pod], found: list[str]) -> Place:
    pool = snapshot.node_pools[node.pool]
    known = _types_of(snapshot, pool)
    types = [known[name] for name in node.instance_types if name in known]
    outcomes = _outcomes(snapshot, node.requirements, types)
    if not outcomes or len(types) < len(node.instance_types):
        found.append(f"new node {number} lists types that cannot be had")
    own = pool.template_labels()
    name = f"new-{number}"
    coming = [by_key[key] for key in node.pods]
    taints = pool.spec.template.spec.taints
    return Place(name, [{**o, **own, labels.HOSTNAME: name} for o in outcomes], taints, [], coming)


# --- one node ---------------------------------------------------------------------------------------------------
def _node_rules(snapshot: Snapshot, place: Place) -> Iterator[str]:
    for pod in place.coming:
        for taint in place.taints:
            if taint.effect != "PreferNoSchedule" and not podrules.tolerates(pod, taint):
                yield f"{pod.key} does not tolerate {taint} of {place.name}"
        if not all(_selects(pod, outcome) for outcome in place.outcomes):
            yield f"{pod.key} may not run on {place.name} by its node selector or affinity"
    ports = [(pod.key, port) for pod in [*place.staying, *place.coming] for port in _host_ports(pod)]
    old = {pod.key for pod in place.staying}
    for i, (one, a) in enumerate(ports):
        for two, b in ports[:i]:
            if (
                one != two
                and not {one, two} <= old
                and a[1:] == b[1:]
                and (a[0] == b[0] or {a[0], b[0]} & {"0.0.0.0", "::"})
            ):
                yield f"{one} and {two} want the same host port on {place.name}"


def _host_ports(pod: Pod) -> set[tuple[str, int, str]]:
    every = (p for c in pod.spec.containers for p in c.ports)
    return {(p.host_ip or "0.0.0.0", p.host_port, p.protocol) for p in every if p.host_port}


def _selects(pod: Pod, node_labels: Mapping[str, str]) -> bool:
    selector = {labels.normalise(k): v for k, v in pod.spec.node_selector.items()}
    if any(node_labels.get(k) != v for k, v in selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return any(_term_matches(term, node_labels) for term in affinity.required.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, node_labels: Mapping[str, str]) -> bool:
    return all(_holds(node_labels, labels.normalise(e.key), e.operator, e.values) for e in term.match_expressions)


def _holds(found: Mapping[str, str], key: str, operator: str, values: Sequence[str]) -> bool:
    value = found.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if value is None or not value.isdigit():
        return False
    number, bound = int(value), int(values[0])
    return {"Gt": number > bound, "Lt": number < bound, "Gte": number >= bound, "Lte": number <= bound}[operator]


def _room(snapshot: Snapshot, place: Place) -> Iterator[str]:
    if not place.coming:
        return
    state = next(s for s in snapshot.state_nodes.values() if s.name == place.name)
    room = state.allocatable
    if not room:
        return
    used = total(podrules.requests(p) for p in [*place.staying, *place.coming])
    for resource, amount in used.items():
        if amount > room[resource]:
            yield f"{place.name} has {room[resource]} {resource}, its pods want {amount}"


def _types(snapshot: Snapshot, node: PlannedNode, by_key: Mapping[str, Pod]) -> Iterator[str]:
    pool = snapshot.node_pools[node.pool]
    known = _types_of(snapshot, pool)
    needs = total(podrules.requests(by_key[key]) for key in node.pods)
    if not 0 < len(node.instance_types) <= snapshot.settings.max_instance_types:
        yield f"a new node of {node.pool} lists {len(node.instance_types)} types"
    prices: list[int] = []
    for name in node.instance_types:
        instance_type = known.get(name)
        if instance_type is None:
            yield f"{name} is no type of {node.pool}"
            continue
        offers = _offers(snapshot, node.requirements, instance_type)
        prices.append(min((o.price for o in offers), default=-1))
        if not offers:
            yield f"{name} has no offering for a new node of {node.pool}"
        daemons = total(
            podrules.requests(Pod(metadata=d.metadata, spec=d.spec.template.spec))
            for d in snapshot.daemon_sets.values()
            if _daemon_runs(
                d, pool.spec.template.spec.taints, {**_single_values(instance_type), **pool.template_labels()}
            )
        )
        for resource, amount in (needs + daemons).items():
            if amount > instance_type.allocatable[resource]:
                yield f"{name} has too little {resource} for a new node of {node.pool}"
    if prices != sorted(prices):
        yield f"types of a new node of {node.pool} are not in order of price"
    if prices and node.price != prices[0]:
        yield f"a new node of {node.pool} says that it costs {node.price}, not {prices[0]}"
    if not all(node.requests[r] >= amount for r, amount in needs.items()):
        yield f"a new node of {node.pool} requests less than its pods"
    yield from _min_values(snapshot, node, known)


def _daemon_runs(daemon: DaemonSet, taints: Iterable[Taint], node_labels: Mapping[str, str]) -> bool:
    """Whether a daemon set surely runs on such a node (labels that are still open are not counted on)."""
    pod = Pod(metadata=daemon.metadata, spec=daemon.spec.template.spec)
    soft = {"PreferNoSchedule"}
    tolerated = all(t.effect in soft or podrules.tolerates(pod, t) for t in taints)
    return tolerated and _selects(pod, node_labels)


def _min_values(snapshot: Snapshot, node: PlannedNode, known: Mapping[str, InstanceType]) -> Iterator[str]:
    if snapshot.settings.min_values_policy != "Strict":
        return
    for key, row in snapshot.node_pools[node.pool].requirements().items():
        if row.min_values is not None:
            listed = (known[name].requirements.get(key) for name in node.instance_types)
            values = {v for r in listed if r is not None and not r.complement for v in r.values}
            if len(values) < row.min_values:
                yield f"a new node of {node.pool} has {len(values)} values of {key}, not {row.min_values}"


def _limits(snapshot: Snapshot, solution: Answer, exclude: frozenset[str]) -> Iterator[str]:
    for name, pool in snapshot.node_pools.items():
        new = [node for node in solution.new_nodes if node.pool == name]
        try:
            limits = pool.limits
        except ValueError:
            continue
        if limits is None or not new:
            continue
        known = _types_of(snapshot, pool)
        living = [
            s for k, s in snapshot.state_nodes.items() if s.pool_name == name and k not in exclude and not s.deleting
        ]
        for resource, limit in limits.items():
            if resource == "nodes":
                used = len(living) + len(new)
            else:
                used = sum(s.capacity[resource] for s in living)
                used += sum(max(known[t].capacity[resource] for t in node.instance_types) for node in new)
            if used > limit:
                yield f"nodepool {name} would use {used} {resource} of {limit}"


# --- topology ---------------------------------------------------------------------------------------------------
def _topology(snapshot: Snapshot, places: Sequence[Place]) -> Iterator[str]:
    for place in places:
        for pod in place.coming:
            yield from _spreads(snapshot, places, place, pod)
            affinity = pod.spec.affinity
            if affinity is not None and affinity.pod_affinity is not None:
                for term in affinity.pod_affinity.required:
                    yield from _near(snapshot, places, place, pod, term)
        for pod in [*place.staying, *place.coming]:
            affinity = pod.spec.affinity
            if affinity is not None and affinity.pod_anti_affinity is not None:
                for term in affinity.pod_anti_affinity.required:
                    yield from _far(snapshot, places, place, pod, term)


def _spreads(snapshot: Snapshot, places: Sequence[Place], place: Place, pod: Pod) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        extra = {k: pod.metadata.labels[k] for k in constraint.match_label_keys if k in pod.metadata.labels}
        here = place.domain(constraint.topology_key)
        if here is None:
            yield f"{pod.key} is spread over {constraint.topology_key}, but {place.name} has no one value of it"
            continue

        def counted(other: Pod, extra: Mapping[str, str] = extra, constraint: Any = constraint) -> bool:
            own = other.metadata
            selected = _matches(constraint.label_selector, own.labels) and extra.items() <= dict(own.labels).items()
            return own.namespace == pod.metadata.namespace and selected

        if not counted(pod):
            continue
        counts: Counter[str] = Counter()
        mine = 0
        for other in places:
            domain = other.domain(constraint.topology_key)
            honors = constraint.node_affinity_policy != "Ignore"
            if domain is None or (honors and not any(_selects(pod, o) for o in other.outcomes)):
                continue
            if constraint.node_taints_policy == "Honor" and not _tolerates_all(pod, other.taints):
                continue
            counts[domain] += sum(1 for p in [*other.staying, *other.coming] if counted(p))
            if domain == here:
                mine += sum(1 for p in other.staying if counted(p))
                mine += sum(1 for p in other.coming if counted(p) and constraint in p.spec.topology_spread_constraints)
        least = 0
        if constraint.topology_key != labels.HOSTNAME:
            domains = {d for d in counts if _domain_allowed(pod, constraint.topology_key, d)}
            least = 0 if len(domains) < (constraint.min_domains or 0) else min((counts[d] for d in domains), default=0)
        if mine - least > constraint.max_skew:
            yield f"{pod.key}: {mine} pods in {here}, {least} elsewhere, skew {constraint.max_skew}"


def _domain_allowed(pod: Pod, key: str, value: str) -> bool:
    """Whether the pod's own demands on one label admit a value."""
    wanted = pod.spec.node_selector.get(key, value)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    fits = [
        all(_holds({key: value}, key, e.operator, e.values) for e in t.match_expressions if e.key == key) for t in terms
    ]
    return wanted == value and (not fits or any(fits))


def _tolerates_all(pod: Pod, taints: Iterable[Taint]) -> bool:
    return all(podrules.tolerates(pod, t) for t in taints)


def _near(snapshot: Snapshot, places: Sequence[Place], place: Place, pod: Pod, term: PodAffinityTerm) -> Iterator[str]:
    here = place.domain(term.topology_key)
    if here is None:
        yield f"{pod.key} wants company by {term.topology_key}, but {place.name} has no one value of it"
        return
    matching = [
        (p.domain(term.topology_key), other, other in p.coming)
        for p in places
        for other in [*p.staying, *p.coming]
        if _in_reach(snapshot, pod, term, other)
    ]
    others = {d for d, other, _ in matching if other.key != pod.key}
    if not _in_reach(snapshot, pod, term, pod):
        if here not in others:
            yield f"{pod.key} has no company in {here}"
        return
    anchors = {d for d, other, new in matching if not (new and _owns_affinity(other, term))}
    settled = any(not new for _, _, new in matching)
    founded = {d for d, other, new in matching if new and _owns_affinity(other, term)} - anchors
    if here not in anchors and (settled or founded != {here}):
        yield f"{pod.key} has no company in {here}"


def _owns_affinity(pod: Pod, term: PodAffinityTerm) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.pod_affinity is not None and term in affinity.pod_affinity.required


def _far(snapshot: Snapshot, places: Sequence[Place], place: Place, pod: Pod, term: PodAffinityTerm) -> Iterator[str]:
    here = place.domains(term.topology_key) - {None}
    for other_place in places:
        if not here & other_place.domains(term.topology_key):
            continue
        for other in [*other_place.staying, *other_place.coming]:
            both_old = pod in place.staying and other in other_place.staying
            if other.key != pod.key and not both_old and _in_reach(snapshot, pod, term, other):
                yield f"{pod.key} and {other.key} are both in {sorted(h for h in here if h)}"


def _in_reach(snapshot: Snapshot, owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    if term.namespace_selector is None:
        spaces = set(term.namespaces or (owner.metadata.namespace,))
    else:
        spaces = set(term.namespaces)
        if term.namespace_selector == LabelSelector():
            spaces.add(other.metadata.namespace)
        for name, namespace in snapshot.namespaces.items():
            if _matches(term.namespace_selector, namespace.metadata.labels):
                spaces.add(name)
    return other.metadata.namespace in spaces and _matches(term.label_selector, other.metadata.labels)


def _matches(selector: LabelSelector | None, found: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(found.get(k) != v for k, v in selector.match_labels.items()):
        return False
    return all(_holds(found, e.key, e.operator, e.values) for e in selector.match_expressions)
