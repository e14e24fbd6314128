"""Single edits, of a pod or of a NodePool, that may give a pod a place: what each does, and how a person would say it.

An edit is a value: it makes of a pod (or a pool) the one that would stand there after an edit of its manifest. So
an edit can be tried against the real rules before it is offered to anybody (see `remedies`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import (
    Affinity,
    Container,
    Expression,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    ResourceNeeds,
    Toleration,
)
from kerf.pods.host_ports import HostPort
from kerf_api import labels, quantity
from kerf_api.requirements import EXISTS, IN, NOT_IN
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry, Taint
from kerf_api.v1.nodepool import NodePool


# --- of the pod -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PodEdit:
    """Base. `made` is the pod after the edit; the same pod when there is nothing to edit."""

    def made(self, pod: Pod) -> Pod:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Tolerate(PodEdit):
    taint: Taint

    def made(self, pod: Pod) -> Pod:
        taint = self.taint
        more = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, more)))

    def __str__(self) -> str:
        return f"tolerate the taint {self.taint}"


@dataclass(frozen=True, slots=True)
class DropSelector(PodEdit):
    """`key` in today's spelling of labels."""

    key: str

    def made(self, pod: Pod) -> Pod:
        kept = {key: value for key, value in pod.spec.node_selector.items() if labels.normalise(key) != self.key}
        return (
            replace(pod, spec=replace(pod.spec, node_selector=kept)) if len(kept) < len(pod.spec.node_selector) else pod
        )

    def __str__(self) -> str:
        return f"remove {self.key} from its nodeSelector"


@dataclass(frozen=True, slots=True)
class DropExpression(PodEdit):
    """Of all terms of the required node affinity. A term in which nothing is left asks for nothing, and so do all."""

    key: str

    def made(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        node = affinity.node_affinity if affinity is not None else None
        if affinity is None or node is None or node.required is None:
            return pod
        before = node.required.node_selector_terms
        after = tuple(_without(term, self.key) for term in before)
        if after == before:
            return pod
        required = NodeSelector(node_selector_terms=after) if all(map(_asks, after)) else None
        return _with_affinity(pod, replace(affinity, node_affinity=replace(node, required=required)))

    def __str__(self) -> str:
        return f"remove {self.key} from its required node affinity"


@dataclass(frozen=True, slots=True)
class Respell(PodEdit):
    """Another spelling of a label that the pod asks for, in its node selector and its required node affinity: of the
    key (in today's spelling of labels), or of one of its values when `value` is given."""

    key: str
    new_key: str
    value: str = ""
    new_value: str = ""

    def made(self, pod: Pod) -> Pod:
        selector = dict(self._selected(*pair) for pair in pod.spec.node_selector.items())
        affinity = pod.spec.affinity
        node = affinity.node_affinity if affinity is not None else None
        if affinity is not None and node is not None and node.required is not None:
            terms = tuple(map(self._term, node.required.node_selector_terms))
            required = NodeSelector(node_selector_terms=terms)
            affinity = replace(affinity, node_affinity=replace(node, required=required))
        spec = replace(pod.spec, node_selector=selector, affinity=affinity)
        return pod if spec == pod.spec else replace(pod, spec=spec)

    def _selected(self, key: str, value: str) -> tuple[str, str]:
        if labels.normalise(key) != self.key:
            return key, value
        return (self.new_key if self.new_key != self.key else key), self._written(value)

    def _term(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        return replace(term, match_expressions=tuple(map(self._expression, term.match_expressions)))

    def _expression(self, one: Expression) -> Expression:
        if labels.normalise(one.key) != self.key:
            return one
        key = self.new_key if self.new_key != self.key else one.key
        return replace(one, key=key, values=tuple(map(self._written, one.values)))

    def _written(self, value: str) -> str:
        return self.new_value if self.value and value == self.value else value

    def __str__(self) -> str:
        if self.value:
            return f"write {self.key}={self.new_value}, not {self.value}"
        return f"write the label {self.new_key}, not {self.key}"


@dataclass(frozen=True, slots=True)
class LowerRequest(PodEdit):
    """What the pod asks for in all, containers, init containers and overhead together."""

    resource: str
    before: int
    after: int

    def made(self, pod: Pod) -> Pod:
        """Of the only container that asks for the resource; else by a request of the pod as a whole, which stands above
        those of its containers."""
        own = self.after - Resources.parse(pod.spec.overhead)[self.resource]
        needs = pod.spec.resources or ResourceNeeds()
        if pods.requests(pod)[self.resource] <= self.after or own < 0:
            return pod
        smaller = replace(
            pod, spec=replace(pod.spec, containers=tuple(self._lower(c, own) for c in pod.spec.containers))
        )
        if pods.requests(smaller)[self.resource] == self.after:
            return smaller
        lowered = {**needs.requests, self.resource: quantity.text(self.resource, own)}
        return replace(pod, spec=replace(pod.spec, resources=replace(needs, requests=lowered)))

    def _lower(self, container: Container, most: int) -> Container:
        """With no more than that, and no limit above it of a resource of which both must be equal."""
        needs, text = container.resources, quantity.text(self.resource, most)
        asked = self.resource in needs.requests or self.resource in needs.limits
        if not asked or Resources.parse({**needs.limits, **needs.requests})[self.resource] <= most:
            return container
        requests, limits = {**needs.requests, self.resource: text}, dict(needs.limits)
        if self.resource in limits and self.resource not in ("cpu", "memory", "ephemeral-storage"):
            limits[self.resource] = text
        if not most:
            requests.pop(self.resource)
            limits.pop(self.resource, None)
        return replace(container, resources=replace(needs, requests=requests, limits=limits))

    def __str__(self) -> str:
        before = quantity.text(self.resource, self.before)
        if not self.after:
            return f"remove its request for {self.resource} ({before})"
        return f"lower its request for {self.resource} from {before} to {quantity.text(self.resource, self.after)}"


@dataclass(frozen=True, slots=True)
class DropSpread(PodEdit):
    """The hard spread constraints over one label."""

    key: str

    def made(self, pod: Pod) -> Pod:
        before = pod.spec.topology_spread_constraints
        kept = tuple(s for s in before if s.topology_key != self.key or s.when_unsatisfiable == "ScheduleAnyway")
        return (
            replace(pod, spec=replace(pod.spec, topology_spread_constraints=kept)) if len(kept) < len(before) else pod
        )

    def __str__(self) -> str:
        return f"remove its topology spread constraint over {self.key}"


@dataclass(frozen=True, slots=True)
class DropTerm(PodEdit):
    """A required term of `podAffinity` or (`away`) `podAntiAffinity`."""

    away: bool
    term: PodAffinityTerm

    def made(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity or Affinity()
        between = (affinity.pod_anti_affinity if self.away else affinity.pod_affinity) or PodAffinity()
        kept = tuple(term for term in between.required if term != self.term)
        if len(kept) == len(between.required):
            return pod
        less = replace(between, required=kept)
        both = replace(affinity, pod_anti_affinity=less) if self.away else replace(affinity, pod_affinity=less)
        return _with_affinity(pod, both)

    def __str__(self) -> str:
        return f"remove its required pod {'anti-' if self.away else ''}affinity over {self.term.topology_key}"


@dataclass(frozen=True, slots=True)
class DropPort(PodEdit):
    port: HostPort

    def made(self, pod: Pod) -> Pod:
        spec = replace(
            pod.spec,
            containers=tuple(map(self._without, pod.spec.containers)),
            init_containers=tuple(map(self._without, pod.spec.init_containers)),
        )
        return pod if spec == pod.spec else replace(pod, spec=spec)

    def _without(self, container: Container) -> Container:
        return replace(container, ports=tuple(p for p in container.ports if (p.host_port, p.protocol) != self.port[1:]))

    def __str__(self) -> str:
        return f"remove its host port {self.port[1]}/{self.port[2]}"


def _without(term: NodeSelectorTerm, key: str) -> NodeSelectorTerm:
    kept = tuple(e for e in term.match_expressions if labels.normalise(e.key) != key)
    return replace(term, match_expressions=kept)


def _asks(term: NodeSelectorTerm) -> bool:
    """Whether anything is left in a term."""
    return bool(term.match_expressions or term.match_fields)


def _with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


# --- of the NodePool --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PoolEdit:
    """Base. `pool` is its name; `made` the pool after the edit, the same pool when there is nothing to edit."""

    pool: str

    def made(self, pool: NodePool) -> NodePool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AddValue(PoolEdit):
    """A value more for a requirement that lists the values it allows, or those that it does not allow."""

    key: str
    value: str

    def made(self, pool: NodePool) -> NodePool:
        return _with_entries(pool, tuple(self._wider(entry) for entry in pool.spec.template.spec.requirements))

    def _wider(self, entry: Entry) -> Entry:
        if labels.normalise(entry.key) != self.key:
            return entry
        if entry.operator == IN and self.value not in entry.values:
            return replace(entry, values=(*entry.values, self.value))
        if entry.operator == NOT_IN and self.value in entry.values:
            kept = tuple(value for value in entry.values if value != self.value)
            return replace(entry, values=kept) if kept else replace(entry, operator=EXISTS, values=())
        return entry

    def __str__(self) -> str:
        return f"NodePool {self.pool}: allow {self.value} in the requirement {self.key}"


@dataclass(frozen=True, slots=True)
class DropRow(PoolEdit):
    key: str

    def made(self, pool: NodePool) -> NodePool:
        rows = pool.spec.template.spec.requirements
        return _with_entries(pool, tuple(entry for entry in rows if labels.normalise(entry.key) != self.key))

    def __str__(self) -> str:
        return f"NodePool {self.pool}: remove the requirement {self.key}"


@dataclass(frozen=True, slots=True)
class AddLabel(PoolEdit):
    key: str
    value: str

    def made(self, pool: NodePool) -> NodePool:
        template = pool.spec.template
        own = {**template.metadata.labels, self.key: self.value}
        wider = replace(template, metadata=replace(template.metadata, labels=own))
        return replace(pool, spec=replace(pool.spec, template=wider))

    def __str__(self) -> str:
        return f"NodePool {self.pool}: give its nodes the label {self.key}={self.value}"


@dataclass(frozen=True, slots=True)
class RemoveTaint(PoolEdit):
    taint: Taint

    def made(self, pool: NodePool) -> NodePool:
        spec = pool.spec.template.spec
        kept = tuple(taint for taint in spec.taints if taint != self.taint)
        return replace(
            pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=replace(spec, taints=kept)))
        )

    def __str__(self) -> str:
        return f"NodePool {self.pool}: remove the taint {self.taint}"


@dataclass(frozen=True, slots=True)
class RaiseLimits(PoolEdit):
    """`limits` holds what is to be raised only, as (resource, before, after); with nothing in it as far as it takes."""

    limits: tuple[tuple[str, int, int], ...] = ()

    def made(self, pool: NodePool) -> NodePool:
        raised: Mapping[str, str] = {name: quantity.text(name, after) for name, _, after in self.limits}
        return replace(pool, spec=replace(pool.spec, limits={**(pool.spec.limits or {}), **raised}))

    def __str__(self) -> str:
        rows = [f"limits.{n} from {quantity.text(n, old)} to {quantity.text(n, new)}" for n, old, new in self.limits]
        return f"NodePool {self.pool}: raise {' and '.join(rows)}"


@dataclass(frozen=True, slots=True)
class LowerMinValues(PoolEdit):
    key: str
    before: int
    after: int

    def made(self, pool: NodePool) -> NodePool:
        least = self.after if self.after > 1 else None
        rows = tuple(
            replace(entry, min_values=least) if labels.normalise(entry.key) == self.key else entry
            for entry in pool.spec.template.spec.requirements
        )
        return _with_entries(pool, rows)

    def __str__(self) -> str:
        change = f"lower minValues from {self.before} to {self.after}" if self.after > 1 else "remove minValues"
        return f"NodePool {self.pool}: {change} in the requirement {self.key}"


def _with_entries(pool: NodePool, rows: tuple[Entry, ...]) -> NodePool:
    spec = pool.spec.template.spec
    if rows == spec.requirements:
        return pool
    template = replace(pool.spec.template, spec=replace(spec, requirements=rows))
    return replace(pool, spec=replace(pool.spec, template=template))


Edit = PodEdit | PoolEdit
