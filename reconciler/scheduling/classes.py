"""Pods of one shape are one class: all that scheduling reads of them is equal, so they are decided about together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from api.requirements import EMPTY, Requirements
from api.resources import Resources
from reconciler.model import pods
from reconciler.model.objects import Pod, PodAffinity
from reconciler.model.selectors import selector_of
from reconciler.scheduling.groups import Bond, Group
from reconciler.scheduling.ports import HostPort, host_ports
from reconciler.scheduling.requirements_of import Demand, ladder
from reconciler.scheduling.topology import Topology

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(slots=True, eq=False)
class Rung:
    """One rung of a class's ladder with its topology constraints."""

    demand: Demand
    bonds: tuple[Bond, ...]


@dataclass(slots=True, eq=False)
class PodClass:
    """`members` in the order in which they are placed; `volumes` are alternatives that a node must meet one of."""

    number: int
    sample: Pod
    members: tuple[Pod, ...]
    requests: Resources
    rungs: tuple[Rung, ...]
    ports: tuple[HostPort, ...]
    volumes: tuple[Requirements, ...]
    settled: bool
    counted: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class _Draft:
    members: list[Pod]
    volumes: tuple[Requirements, ...]
    settled: bool


def classes_of(
    found: Sequence[Pod],
    *,
    volumes: Mapping[str, tuple[Requirements, ...]],
    settled: frozenset[str],
    topology: Topology,
    respect_preferences: bool,
    soft_taints: bool,
) -> tuple[list[PodClass], dict[str, Exception]]:
    """The pods' classes, largest requests first, and the pods that make no sense with the reason.

    `volumes` maps pod keys to what their volumes demand; `settled` are keys of pods that run somewhere now.
    """
    shapes, unreadable = _shapes(found)
    found = [pod for pod in found if pod.key in shapes]
    samples = {shapes[pod.key]: pod for pod in reversed(found)}
    read = {key for pod in samples.values() for key in _label_keys(pod)}
    read |= {key for g in topology.groups.values() for key in g.selector.keys}
    local = bool(topology.groups) or any(_has_terms(pod) for pod in samples.values())
    drafts: dict[tuple[object, ...], _Draft] = {}
    for pod in found:
        chosen = tuple(sorted((k, v) for k, v in pod.metadata.labels.items() if k in read))
        place = pod.metadata.namespace if local else ""
        wanted, stays = volumes.get(pod.key, (EMPTY,)), pod.key in settled
        key = (shapes[pod.key], place, chosen, wanted, stays, pods.virtual(pod))
        drafts.setdefault(key, _Draft([], wanted, stays)).members.append(pod)
    classes: list[PodClass] = []
    for draft in drafts.values():
        try:
            classes.append(_class(len(classes), draft, topology, respect_preferences, soft_taints))
        except Exception as error:  # a nonsense that nobody thought of concerns these pods alone
            unreadable |= dict.fromkeys((pod.key for pod in draft.members), error)
    for group_of in classes:
        group_of.counted = topology.selecting(group_of.sample)
    return sorted(classes, key=_order), unreadable


def _class(number: int, draft: _Draft, topology: Topology, respect_preferences: bool, soft_taints: bool) -> PodClass:
    members = sorted(draft.members, key=age)
    sample = members[0]
    demands = ladder(sample, respect_preferences=respect_preferences, soft_taints=soft_taints)
    rungs = tuple(Rung(d, topology.bonds(sample, d)) for d in demands if d.possible) or (Rung(demands[-1], ()),)
    return PodClass(
        number,
        sample,
        tuple(members),
        pods.requests(sample),
        rungs,
        host_ports(sample),
        draft.volumes,
        draft.settled,
    )


def age(pod: Pod) -> tuple[str, str, str]:
    """Oldest first; ties by UID, then key."""
    created = pod.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", pod.metadata.uid, pod.key)


def _order(group: PodClass) -> tuple[object, ...]:
    return (-group.requests["cpu"], -group.requests["memory"], age(group.sample))


def _shapes(found: Iterable[Pod]) -> tuple[dict[str, bytes], dict[str, Exception]]:
    """Each pod's shape; and the pods whose constraints cannot even be looked through."""
    shapes: dict[str, bytes] = {}
    unreadable: dict[str, Exception] = {}
    known: set[bytes] = set()
    for pod in found:
        try:
            shape = shape_of(pod)
            if shape not in known:
                _label_keys(pod)
        except Exception as error:
            unreadable[pod.key] = error
        else:
            known.add(shape)
            shapes[pod.key] = shape
    return shapes, unreadable


def shape_of(pod: Pod) -> bytes:
    """The bytes of what scheduling reads of a pod, labels and volumes aside. Raises what nonsense may raise."""
    spec = pod.spec
    return bytes(
        _encode(
            (
                dict(spec.node_selector),
                spec.affinity,
                spec.tolerations,
                [(dict(c.resources.requests), dict(c.resources.limits), c.ports) for c in spec.containers],
                [
                    (dict(c.resources.requests), dict(c.resources.limits), c.restart_policy)
                    for c in spec.init_containers
                ],
                dict(spec.overhead),
                spec.resources,
                spec.topology_spread_constraints,
            )
        )
    )


def _has_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    between = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return between or bool(pod.spec.topology_spread_constraints)


def _label_keys(pod: Pod) -> set[str]:
    """The pod label keys that some constraint of the pod looks at."""
    keys: set[str] = set()
    for constraint in pod.spec.topology_spread_constraints:
        keys |= selector_of(constraint.label_selector, {}, ()).keys | set(constraint.match_label_keys)
    if pod.spec.affinity is not None:
        for affinity in (pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity):
            keys |= _affinity_keys(affinity)
    return keys


def _affinity_keys(affinity: PodAffinity | None) -> set[str]:
    if affinity is None:
        return set()
    terms = (*affinity.required, *(w.pod_affinity_term for w in affinity.preferred))
    return {key for term in terms for key in selector_of(term.label_selector, {}, ()).keys}
