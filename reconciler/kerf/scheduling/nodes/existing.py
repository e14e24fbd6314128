"""Nodes that exist or are on their way, as places for pods: room, labels, taints, host ports, volumes.

A claim that has not been launched yet counts with what is certain whatever it becomes: the least room among its types,
and a label only where all outcomes agree. The pods that it was made for fit it by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from kerf.model.aws.instance_type import OFFERING_LABELS
from kerf.model.boundaries import broken
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Reason
from kerf.model.snapshot import Snapshot, StateNode
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.host_ports import HostPort, clash, host_ports
from kerf.pods.volumes import Attachment, attachments
from kerf.scheduling.facts.nodes import NOBODY, Needs, NodeFacts, Residents, residents, site_of
from kerf.scheduling.nodes.arrivals import Arrivals
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Columns, Ints, Tables, TypeTable
from kerf_api import labels
from kerf_api.requirements import IN, Requirement, Requirements, requirement
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True, eq=False)
class ExistingNode:
    """One place. `possible` holds each label's possible values; `marks` name the pods that it was made for.

    Once it is initialised the kube-scheduler has had its say, and the marks count no more. While it is `settling`
    (within its pool's consolidateAfter) consolidation moves nothing there. `attached` are the volumes of who is there,
    `attachable` is how many there can be, by driver. `awaited` are the DaemonSets whose pods are still to come there.
    A `cordoned` one takes only pods that tolerate `nodes.table.CORDON`.
    """

    key: str
    state: StateNode
    possible: Requirements
    taints: tuple[Taint, ...]
    free: Ints
    ports: tuple[HostPort, ...]
    marks: frozenset[str]
    hostname: str
    settling: bool
    attached: frozenset[Attachment] = frozenset()
    attachable: Mapping[str, int] = field(default_factory=dict)
    awaited: tuple[Daemon, ...] = ()
    cordoned: bool = False

    def domains(self, key: str) -> tuple[str | None, ...]:
        """The values that a label may have; `(None,)` when the node has none."""
        if key == labels.HOSTNAME:
            return (self.hostname,)
        row = self.possible.get(key)
        return tuple(sorted(row.values)) if row is not None and row.values else (None,)

    def domain(self, key: str) -> str | None:
        """The value of a label; None when it has none, or may have several."""
        found = self.domains(key)
        return found[0] if len(found) == 1 else None


def tried(target: ExistingNode) -> tuple[bool, str, str]:
    """The order in which places are tried: initialised ones first, then by name."""
    return not target.state.initialized, target.state.name, target.key


class NodeReader:
    """Reads sites and their residents as targets.

    `sites` are by the keys of state nodes, `residents` by the names of Nodes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        columns: Columns,
        tables: Tables,
        daemons: Sequence[Daemon],
        sites: Mapping[str, NodeFacts],
        residents: Mapping[str, Residents],
        arrivals: Arrivals,
    ) -> None:
        self._snapshot, self._columns, self._tables, self._daemons = snapshot, columns, tables, daemons
        self._sites, self._residents, self._arrivals = sites, residents, arrivals
        self._shares = _Shares(columns, daemons)
        self._needs = Needs()
        self._opened: dict[object, tuple[Requirements, Ints] | None] = {}
        #: The nodes that could not be read so far, by key.
        self.unread: dict[str, Reason] = {}

    def beside(self, new: Mapping[str, StateNode]) -> NodeReader:
        """The same with nodes more."""
        added = {key: site for key, state in new.items() if (site := site_of(state, self._snapshot)) is not None}
        sites = {**self._sites, **added}
        return NodeReader(
            self._snapshot, self._columns, self._tables, self._daemons, sites, self._residents, self._arrivals
        )

    def targets(self, keys: Iterable[str] | None = None) -> list[ExistingNode]:
        """The places of these keys (by default of all), in the order in which they are tried."""
        chosen = self._sites if keys is None else {key: self._sites[key] for key in self._sites.keys() & set(keys)}
        found = self._targets((key, site, self._on(site)) for key, site in chosen.items())
        return sorted(found, key=tried)

    def without(self, key: str, moving: frozenset[str]) -> ExistingNode | None:
        """The place of a key when the pods in `moving` take no room there; None when it takes no pods."""
        site = self._sites.get(key)
        if site is None:
            return None
        there = residents(self._snapshot, site.name, self._needs, moving)
        return next(self._targets([(key, site, there)], moving), None)

    def filled(self, target: ExistingNode, arriving: Iterable[Pod]) -> ExistingNode:
        """The place with these pods more; it takes no others when they bring host ports or volumes."""
        arriving = tuple(arriving)
        if any(host_ports(pod) or attachments(self._snapshot, pod) for pod in arriving):
            return replace(target, free=np.zeros_like(target.free))
        used = sum(map(self._columns.vector, (dict(self._needs.of(pod)) for pod in arriving)), self._columns.vector({}))
        return replace(target, free=np.maximum(target.free - used, 0))

    def _on(self, site: NodeFacts) -> Residents:
        return NOBODY if site.state.node is None else self._residents.get(site.name, NOBODY)

    def _targets(
        self, found: Iterable[tuple[str, NodeFacts, Residents]], moving: frozenset[str] = frozenset()
    ) -> Iterator[ExistingNode]:
        """What is there; a node with unknown use takes no pods."""
        standing: list[tuple[str, NodeFacts, Residents]] = []
        shares: list[Ints] = []
        for key, site, there in found:
            try:
                if site.open:
                    target = self._open(key, site)
                    if target is not None:
                        yield target
                elif there.used is not None:
                    shares.append(self._shares.on(site))
                    standing.append((key, site, there))
                elif there.problem is not None:
                    self.unread[key] = there.problem
            except Exception as error:
                self.unread[key] = broken(error)
        if not standing:
            return
        rooms = self._rooms([site for _, site, _ in standing], [there for *_, there in standing], np.array(shares))
        for (key, site, there), free in zip(standing, rooms, strict=True):
            yield self._standing(key, site, there, free, moving)

    def _rooms(self, sites: Sequence[NodeFacts], there: Sequence[Residents], shares: Ints) -> Ints:
        """Allocatable less what runs there less what daemon sets will still bring, [sites, columns]."""
        vectors = self._columns.vectors
        still = np.maximum(shares - vectors(one.daemon_used for one in there), 0)
        left: Ints = vectors(site.allocatable for site in sites) - vectors(one.used or {} for one in there) - still
        return left

    def _open(self, key: str, site: NodeFacts) -> ExistingNode | None:
        claim = site.state.claim
        assert claim is not None
        table = self._tables.of(claim.pool_name, claim.spec.node_class_ref.name)
        asked = _asked_for(claim, self._snapshot)
        opened = self._outcome(claim, table, asked) if isinstance(table, TypeTable) else None
        if opened is None:
            return None
        possible, free = opened
        coming = (d for d in self._daemons if d.ports and d.accepts(site.taints) and d.terms_for(possible))
        ports = tuple(port for daemon in coming for port in daemon.ports)
        awaited = tuple(daemon for daemon in self._daemons if daemon.fits_labels(possible, site.taints))
        target = ExistingNode(key, site.state, possible, site.taints, free, ports, site.marks, site.name, False)
        if self._arrivals.exacting(awaited):
            awaited = self._arrivals.coming(awaited, target.domain, self._columns.most(), ())
        return replace(target, awaited=awaited)

    def _outcome(self, claim: NodeClaim, table: TypeTable, asked: bool) -> tuple[Requirements, Ints] | None:
        """`_open_claim`; once for all claims that only differ in name."""
        spec, own = claim.spec, frozenset(claim.metadata.labels.items())
        look = table, asked, spec.requirements, own, tuple(spec.resources.requests.items()), spec.taints
        if look not in self._opened:
            self._opened[look] = _open_claim(claim, table, self._daemons, asked)
        return self._opened[look]

    def _standing(
        self, key: str, site: NodeFacts, there: Residents, left: Ints, moving: frozenset[str]
    ) -> ExistingNode:
        """`left` may be negative. Then a pod that asks for none of that resource still has a place."""
        settling = site.settles is not None and self._snapshot.now < site.settles
        awaited = self._shares.missing(site, there)
        coming = tuple(port for daemon in awaited for port in daemon.ports)
        if awaited and ((left < 0).any() or clash(coming, there.ports) or self._arrivals.exacting(awaited)):
            awaited, left = self._arriving(site, there, awaited, left, moving)
            coming = tuple(port for daemon in awaited for port in daemon.ports)
        return ExistingNode(
            key,
            site.state,
            site.possible,
            site.taints,
            np.maximum(left, 0),
            (*there.ports, *coming),
            site.marks,
            site.hostname,
            settling,
            there.attached,
            site.attachable,
            awaited,
            site.cordoned,
        )

    def _arriving(
        self, site: NodeFacts, there: Residents, missing: tuple[Daemon, ...], left: Ints, moving: frozenset[str]
    ) -> tuple[tuple[Daemon, ...], Ints]:
        """The missing DaemonSets whose pods come, and the free resources without a share for the others."""
        vector = self._columns.vector
        free = vector(site.allocatable) - vector(there.used or {})
        coming = self._arrivals.coming(missing, partial(_domain, site), free, there.ports, moving)
        share = self._shares.on(site) - sum(
            (vector(daemon.requests) for daemon in missing if daemon not in coming), vector({})
        )
        return coming, free - np.maximum(share - vector(there.daemon_used), 0)


class _Shares:
    """What daemon sets take of existing nodes: the same of nodes that look the same to them."""

    def __init__(self, columns: Columns, daemons: Sequence[Daemon]) -> None:
        self._nothing = columns.vector({})
        self._daemons = [(daemon, columns.vector(daemon.requests)) for daemon in daemons]
        terms = [term for daemon in daemons for term in daemon.terms]
        self._keys = sorted({key for term in terms for key in term} - {labels.NAME_FIELD})
        #: The nodes that a term names: all others look the same to it.
        self._named = frozenset(
            name for term in terms if labels.NAME_FIELD in term for name in term[labels.NAME_FIELD].values
        )
        self._known: dict[object, tuple[Sequence[Daemon], Ints]] = {}
        #: By the identity of the daemon sets that run there, which `_known` keeps, and the keys of those there are.
        self._missing: dict[tuple[int, tuple[str, ...]], tuple[Daemon, ...]] = {}

    def on(self, site: NodeFacts) -> Ints:
        return self._fitting(site)[1]

    def missing(self, site: NodeFacts, there: Residents) -> tuple[Daemon, ...]:
        """The daemon sets whose pods run on such nodes and are not on this one yet."""
        fitting, running = self._fitting(site)[0], tuple(name for name, _ in there.daemons)
        known = self._missing.get((id(fitting), running))
        if known is None:
            known = tuple(daemon for daemon in fitting if daemon.key not in running)
            self._missing[id(fitting), running] = known
        return known

    def _fitting(self, site: NodeFacts) -> tuple[Sequence[Daemon], Ints]:
        """The daemon sets that run there, and what they take together."""
        name = site.name if site.name in self._named else None
        look = (*(site.possible.get(key) for key in self._keys), name, site.taints)
        known = self._known.get(look)
        if known is None:
            fitting = [row for row in self._daemons if row[0].fits_labels(site.possible, site.taints)]
            shares = sum((share for _, share in fitting), self._nothing)
            known = self._known[look] = [daemon for daemon, _ in fitting], shares
        return known


def _domain(site: NodeFacts, key: str) -> str | None:
    """The value that a label of the node has; None when it has none."""
    row = site.possible.get(key)
    return site.hostname if key == labels.HOSTNAME else min(row.values, default=None) if row is not None else None


def _asked_for(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether EC2 may have given the claim its machine, or may be about to, whatever is out of stock by now."""
    group = claim.metadata.annotations.get(labels.LAUNCH_GROUP, "")
    failed = group in snapshot.launch_failures
    return bool(group) and (not failed or bool(claim.assigned_instance) or bool(snapshot.spare(group)))


def _open_claim(
    claim: NodeClaim, table: TypeTable, daemons: Sequence[Daemon], asked: bool
) -> tuple[Requirements, Ints] | None:
    """What is certain of a claim that has not been launched: label values, and the least room of its types.

    None when it cannot be launched now, unless a machine was `asked` for.
    """
    wanted = claim.requirements() & Requirements.of_labels(claim.metadata.labels)
    mask = table.masks(wanted)
    sold = table.listed if asked else _launchable(table)
    mask &= sold[:, table.market_mask(wanted)].any(axis=1)
    if not mask.any():
        return None
    holding = mask & (table.allocatable >= table.columns.vector(claim.requests())).all(axis=1)
    mask = holding if holding.any() else mask  # a launch names only what holds the requests
    rooms = [
        table.allocatable[row] - _daemon_share(table, int(row), wanted, claim.spec.taints, daemons)
        for row in np.flatnonzero(mask)
    ]
    least: Ints = np.min(np.array(rooms), axis=0)
    return _outcomes(table, mask, wanted, sold), least


def _launchable(table: TypeTable) -> Bools:
    """Where each type can be had, [types, markets]; the machine that a claim holds of a reservation is its own, though
    there be no other left."""
    return np.asarray((table.price < NO_PRICE) | (table.listed & table.reserved))


def _daemon_share(
    table: TypeTable, row: int, wanted: Requirements, taints: Sequence[Taint], daemons: Sequence[Daemon]
) -> Ints:
    share = table.columns.vector({})
    for daemon in daemons:
        if daemon.accepts(taints) and any(
            table.types[row].requirements.conflict(term) is None for term in daemon.terms_for(wanted)
        ):
            share = share + table.columns.vector(daemon.requests)
    return share


def _outcomes(table: TypeTable, mask: Bools, wanted: Requirements, sold: Bools) -> Requirements:
    """For each label the values that the launched node may have; `sold` [types, markets] is where it may come from."""
    rows: list[Requirement] = [row for row in wanted.values() if not row.complement]
    for instance_type_key in sorted({k for i in np.flatnonzero(mask) for k in table.types[int(i)].requirements}):
        values = {v for v in table.values(instance_type_key, mask) if wanted.allowed(instance_type_key).has(v)}
        if values:
            rows.append(requirement(instance_type_key, IN, values))
    allowed = np.flatnonzero(table.market_mask(wanted) & sold[mask].any(axis=0))
    for place, key in enumerate(OFFERING_LABELS):
        values = {table.markets[int(i)][place] for i in allowed} - {""}
        if values:
            rows.append(requirement(key, IN, values))
    return Requirements(rows)
