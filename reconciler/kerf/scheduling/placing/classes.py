"""Pods of one shape are one class: all that scheduling reads of them is equal, so they are decided about together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.host_ports import HostPort, host_ports
from kerf.pods.requirements import Demand, relaxations_of
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.nodes.volume_usage import NOTHING, Attaching
from kerf.scheduling.placing.pod_parts import Shape, has_terms, shapes_of
from kerf.scheduling.placing.reading import Marks, Reading
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import NO_TURNS, Turns, Work
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements
from kerf_api.resources import Resources


@dataclass(slots=True, eq=False)
class Relaxation:
    """One relaxation of a class with its topology constraints, by kind and key: `hosts` are those over hostnames.

    `over_domains`: it has constraints over other keys, too. `steady`: of these it has affinity only, and none over
    hostnames: as soon as an affinity is founded, pods on new nodes change nothing for further ones.
    """

    demand: Demand
    constraints: tuple[TopologyConstraint, ...]
    spreads: tuple[TopologyConstraint, ...] = field(init=False)
    others: tuple[TopologyConstraint, ...] = field(init=False)
    hosts: tuple[TopologyConstraint, ...] = field(init=False)
    over_domains: bool = field(init=False)
    steady: bool = field(init=False)

    def __post_init__(self) -> None:
        self.spreads = tuple(constraint for constraint in self.constraints if constraint.group.kind == SPREAD)
        self.others = tuple(constraint for constraint in self.constraints if constraint.group.kind != SPREAD)
        self.hosts = tuple(constraint for constraint in self.constraints if constraint.key == labels.HOSTNAME)
        self.over_domains = len(self.constraints) > len(self.hosts)
        self.steady = all((one.group.kind == AFFINITY) != (one.key == labels.HOSTNAME) for one in self.constraints)

    @property
    def near(self) -> list[TopologyGroup]:
        """The groups of its affinity terms."""
        return [constraint.group for constraint in self.others if constraint.group.kind == AFFINITY]


@dataclass(slots=True, eq=False)
class PodClass:
    """`members` in the order in which they are placed; `volumes` are alternatives that a node must meet one of;
    `attaching` is what each of them has attached to it. A pod that is `claiming` devices is a class of its own.
    `domains` are what the latest attempt found for its spreads (`domains_of`). `measured` are the domains that these
    were measured over for each pod that has a place; of hostnames, those for any of them.

    `keep_away` are those of the groups that count it, `counted`, whose owners keep it away (anti-affinity).
    `beside_daemons`: pods of some DaemonSet matter to its constraints, or have anti-affinity to its pods.
    `daemon_spreads` of the pass count DaemonSet pods: each new node adds to them, so its domain must be certain.
    `keep_company_away` are anti-affinity, over more than a host, that keeps DaemonSet pods off nodes to which its pods
    would come because of these: in some domains new nodes are without them.
    """

    number: int
    sample: Pod
    members: tuple[Pod, ...]
    requests: Resources
    relaxations: tuple[Relaxation, ...]
    ports: tuple[HostPort, ...]
    volumes: tuple[Requirements, ...]
    attaching: Attaching
    settled: bool
    counted: tuple[TopologyGroup, ...] = ()
    keep_away: tuple[TopologyGroup, ...] = ()
    beside_daemons: bool = False
    daemon_spreads: tuple[TopologyGroup, ...] = ()
    keep_company_away: tuple[TopologyGroup, ...] = ()
    claiming: bool = False
    domains: dict[TopologyGroup, Set[str]] = field(default_factory=dict)
    measured: dict[TopologyGroup, Set[str]] = field(default_factory=dict)

    def bind(self, relaxation: Relaxation) -> None:
        """A pod of the class is placed on a relaxation: the spreads bind it from now on."""
        for constraint in relaxation.spreads:
            group = constraint.group
            if self.daemon_spreads:
                group.binds = True
            now = self.domains.get(group)
            if now is self.measured.get(group) and not group.to_come:
                continue
            if now is not None and group.to_come:  # a node without the expected pods may come there
                now = frozenset(domain for domain in now if not group.expected(domain))
            if now is not None:
                before = self.measured.get(group, now)
                if before is not now:
                    now = before | now if group.key == labels.HOSTNAME else before & now
                self.measured[group] = now

    @property
    def possible(self) -> Sequence[int]:
        """The numbers of the relaxations that do not contradict themselves."""
        return [number for number, relaxation in enumerate(self.relaxations) if relaxation.demand.possible]

    @property
    def unlike(self) -> Sequence[int]:
        """Those of the possible relaxations that can differ in the domains of new nodes: of equal ones the first.

        A preference that is given up mostly leaves others over the same keys.
        """
        if len(self.relaxations) == 1 or self.beside_daemons:  # DaemonSet pods leave each constraint other nodes
            return self.possible
        first: dict[object, int] = {}
        for number in self.possible:
            relaxation, demand = self.relaxations[number], self.relaxations[number].demand
            keys = frozenset((one.key, one.group.kind == ANTI) for one in relaxation.constraints)
            first.setdefault((demand.requirements, demand.tolerations, keys), number)
        return list(first.values())

    @property
    def waits(self) -> bool:
        """Whether another pod's placement can help a pod of this class."""
        return any(
            constraint.group.kind in (AFFINITY, SPREAD)
            for relaxation in self.relaxations
            for constraint in relaxation.constraints
        )

    def owns(self, groups: Set[TopologyGroup]) -> bool:
        """Whether pods of the class own one of these spreads."""
        return any(constraint.group in groups for relaxation in self.relaxations for constraint in relaxation.spreads)

    def domains_of(self, constraint: TopologyConstraint) -> Set[str]:
        """The domains that a spread's skew is measured over: of nodes there are, and of nodes that can be made."""
        found = self.domains.get(constraint.group)
        return constraint.group.standing() if found is None else found


class _Particulars(NamedTuple):
    """What is looked up for each pod by its key: most pods have nothing of it. `alone` is the key of one that claims
    devices."""

    volumes: tuple[Requirements, ...] | None = None
    attaching: Attaching | None = None
    settled: bool = False
    alone: str = ""


@dataclass(slots=True, eq=False)
class _Draft:
    """`constraints`: pods for which they are equal have the same relaxations, whatever their size."""

    members: list[Pod]
    shape: Shape
    constraints: tuple[bytes, str, Marks]
    particulars: _Particulars


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What is known of pods by their keys: what their volumes demand, what has to be attached for them; who runs
    somewhere now (`settled`), and who claims devices (`claiming`)."""

    volumes: Mapping[str, tuple[Requirements, ...]] = field(default_factory=dict)
    attaching: Mapping[str, Attaching] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    claiming: Collection[str] = ()

    @property
    def none(self) -> bool:
        """Whether nothing is known of any pod."""
        return not (self.volumes or self.attaching or self.settled or self.claiming)

    def of(self, name: str) -> _Particulars:
        alone = name if name in self.claiming else ""
        return _Particulars(self.volumes.get(name), self.attaching.get(name), name in self.settled, alone)


def classes_of(
    found: Sequence[Pod],
    facts: PodFacts,
    *,
    topology: Topology,
    respect_preferences: bool,
    soft_taints: bool,
    work: Work,
    turns: Turns = NO_TURNS,
) -> tuple[list[PodClass], dict[str, Exception], list[Pod]]:
    """The pods' classes in the order in which they are placed; the pods that make no sense with the reason; and those
    that have to wait, because to read the constraints of all would take more than half of the `work` of a round.
    """
    readable, keys, unreadable = shapes_of(found)
    classes: list[PodClass] = []
    builder = _Builder(topology, respect_preferences, soft_taints)
    affordable, waiting = _affordable(_drafts(readable, keys, facts, topology), work, turns)
    for draft in affordable:
        try:
            classes.append(builder.built(len(classes), draft))
        except Exception as error:  # an unforeseen value concerns these pods alone
            unreadable |= dict.fromkeys((pod.key for pod in draft.members), error)
    builder.count(classes)
    return sorted(classes, key=_Order()), unreadable, waiting


def _drafts(readable: Sequence[tuple[Pod, Shape]], keys: Set[str], facts: PodFacts, topology: Topology) -> list[_Draft]:
    """The pods, sorted into those that are equal in all that decides about their place.

    Args:
        keys: the pod label keys that some constraint of theirs looks at.
    """
    wishes = {shape[0]: pod for pod, shape in reversed(readable)}
    read = keys | {key for g in topology.groups.values() for key in g.selector.keys}
    local = bool(topology.groups) or any(has_terms(pod) for pod in wishes.values())
    drafts: dict[tuple[object, ...], _Draft] = {}
    marks: dict[int, Marks] = {}  # pods of one workload share their labels, too
    particulars, plain = _Particulars(), facts.none
    for pod, shape in readable:
        own = pod.metadata.labels
        chosen = marks.get(id(own)) if read and own else ()
        if chosen is None:
            some = [item for item in own.items() if item[0] in read]
            chosen = marks[id(own)] = tuple(sorted(some) if len(some) > 1 else some)
        place = pod.metadata.namespace if local else ""
        if not plain:
            particulars = facts.of(pod.key)
        virtual = bool(pod.metadata.annotations) and pods.virtual(pod)
        key = (shape, pod.spec.priority, virtual, place, chosen, particulars)
        draft = drafts.get(key)
        if draft is None:
            draft = drafts[key] = _Draft([], shape, (shape[0], place, chosen), particulars)
        draft.members.append(pod)
    return list(drafts.values())


def _affordable(drafts: Sequence[_Draft], work: Work, turns: Turns) -> tuple[Sequence[_Draft], list[Pod]]:
    """Those that can be read with half of the work of a round, one at least, and the pods of the others; usually all.

    Their order stays.
    """
    whole = Reading(len(drafts))
    for draft in {draft.constraints: draft for draft in drafts}.values():
        whole.read(draft.shape[0], draft.members[0].spec, draft.constraints[2])
    if whole.steps <= work.limit // 2:
        work.charge(whole.steps)
        return drafts, []
    kept = set[int]()
    part, seen = Reading(0), set[tuple[bytes, str, Marks]]()
    for draft in turns.fairly(drafts, lambda one: one.members):
        part.pods += 1
        if draft.constraints not in seen:
            seen.add(draft.constraints)
            part.read(draft.shape[0], draft.members[0].spec, draft.constraints[2])
        if kept and part.steps > work.limit // 2:
            break
        kept.add(id(draft))
    work.charge(part.steps)
    others = (draft for draft in drafts if id(draft) not in kept)
    return [draft for draft in drafts if id(draft) in kept], [pod for draft in others for pod in draft.members]


class _Builder:
    """Makes classes; what pods of different sizes but equal constraints have in common is worked out once."""

    def __init__(self, topology: Topology, respect_preferences: bool, soft_taints: bool) -> None:
        self._topology, self._preferences, self._soft_taints = topology, respect_preferences, soft_taints
        self._relaxations: dict[tuple[Hashable, ...], tuple[Relaxation, ...]] = {}
        self._takes: dict[bytes, tuple[Resources, tuple[HostPort, ...]]] = {}
        self._kept_away: dict[frozenset[Daemon], tuple[TopologyGroup, ...]] = {}

    def built(self, number: int, draft: _Draft) -> PodClass:
        members = sorted(draft.members, key=age) if len(draft.members) > 1 else draft.members
        sample, own = members[0], draft.particulars
        relaxations, takes = self._relaxations.get(draft.constraints), self._takes.get(draft.shape[1])
        if relaxations is None:
            relaxations = self._relaxations[draft.constraints] = self._relaxed(sample)
        if takes is None:
            takes = self._takes[draft.shape[1]] = (pods.requests(sample), host_ports(sample))
        return PodClass(
            number,
            sample,
            tuple(members),
            takes[0],
            relaxations,
            takes[1],
            (EMPTY,) if own.volumes is None else own.volumes,
            NOTHING if own.attaching is None else own.attaching,
            own.settled,
            claiming=bool(own.alone),
        )

    def _relaxed(self, sample: Pod) -> tuple[Relaxation, ...]:
        demands = relaxations_of(sample, respect_preferences=self._preferences, soft_taints=self._soft_taints)
        relaxations = tuple(Relaxation(d, self._topology.constraints(sample, d)) for d in demands if d.possible)
        return relaxations or (Relaxation(demands[-1], ()),)

    def count(self, classes: Sequence[PodClass]) -> None:
        """Set on each class the groups that count it, when all groups are known."""
        selecting = self._topology.selecting([cls.sample for cls in classes])
        daemons = any(group.daemons or group.owner_daemons for group in self._topology.groups.values())
        spreads = (constraint.group for cls in classes for constraint in cls.relaxations[-1].spreads) if daemons else ()
        counting = tuple(dict.fromkeys(g for g in spreads if g.daemons and g.key != labels.HOSTNAME))
        for cls in classes:
            cls.counted, cls.daemon_spreads = selecting(cls.sample), counting
            cls.keep_away = tuple([group for group in cls.counted if group.kind == ANTI]) if cls.counted else ()
            cls.beside_daemons = daemons and _beside_daemons(cls)
            if cls.beside_daemons:
                cls.keep_company_away = self._keeping_company_away(cls)

    def _keeping_company_away(self, cls: PodClass) -> tuple[TopologyGroup, ...]:
        near = (group for relaxation in cls.relaxations for group in relaxation.near)
        company = frozenset(daemon for group in near for daemon in group.daemons)
        known = self._kept_away.get(company)
        if known is None:
            wide = [g for g in self._topology.groups.values() if g.kind == ANTI and g.key != labels.HOSTNAME]
            known = tuple([group for group in wide if any(group.keeps_away(daemon) for daemon in company)])
            self._kept_away[company] = known
        return known


def _beside_daemons(cls: PodClass) -> bool:
    own = any(constraint.group.daemons for relaxation in cls.relaxations for constraint in relaxation.constraints)
    return own or any(group.owner_daemons for group in cls.counted)


def age(pod: Pod) -> tuple[float, str, str]:
    """Oldest first; ties by UID, which is the pod's own where it has one, then key."""
    meta = pod.metadata
    created = meta.creation_timestamp
    return (created.timestamp() if created is not None else -inf, meta.uid, "" if meta.uid else pod.key)


class _Order:
    """Who is more important first; then who must be spread, before those who are merely counted.

    Of those who must be spread, they come first who count for a spread that does not bind them: whatever the order in
    which the kube-scheduler takes them, the others find what their plan has reckoned with.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Relaxation, tuple[TopologyGroup, ...]], tuple[bool, bool]] = {}

    def __call__(self, cls: PodClass) -> tuple[object, ...]:
        size = (-cls.requests["cpu"], -cls.requests["memory"])
        return (-cls.sample.spec.priority, *self._spread(cls.relaxations[-1], cls.counted), *size, age(cls.sample))

    def _spread(self, relaxation: Relaxation, counted: tuple[TopologyGroup, ...]) -> tuple[bool, bool]:
        known = self._known.get((relaxation, counted))
        if known is None:
            own = {constraint.group for constraint in relaxation.spreads}
            counts = bool(own) and any(other.kind == SPREAD and other not in own for other in counted)
            known = self._known[relaxation, counted] = (not own, not counts)
        return known
