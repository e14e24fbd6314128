"""The objects of a cluster for a reader who may list the pods of some namespaces only.

Pods and PodDisruptionBudgets of other namespaces are made again from the few fields that counts, costs and blockers
depend on. Everything else in these namespaces is left out. Only the fields and kinds that are named here are shown, so
a field or a kind that Kerf reads later is hidden first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from kerf.disruption.candidates.canary import Canary
from kerf.model import kinds
from kerf.model.annotations import read, text_of
from kerf.model.changes.pdbs import Budget
from kerf.model.kinds import Kind
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import (
    Container,
    ContainerStatus,
    LabelSelector,
    Pod,
    PodCondition,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodSpec,
    PodStatus,
    ResourceNeeds,
    Toleration,
)
from kerf.model.kubernetes.selectors import Selector, selector_of
from kerf_api import durations, labels
from kerf_api.v1.meta import ObjectMeta, OwnerReference

T = TypeVar("T")

Objects = Mapping[str, Sequence[Any]]
#: In place of every other namespace. No namespace can have this name.
OTHERS: Final = "(other namespaces)"
_SOME: Final = "others"
#: Kinds without a namespace that hold no name of an object in one.
SHOWN_KINDS: Final = (
    kinds.NODE_CLASS,
    kinds.NODE,
    kinds.CSI_NODE,
    kinds.STORAGE_CLASS,
    kinds.NODE_OVERLAY,
    kinds.DEVICE_CLASS,
    kinds.RESOURCE_SLICE,
)
#: In place of the pods that a failed canary names.
_FAILING: Final = "some of its pods fail"
_ALWAYS, _IF_HEALTHY = "AlwaysAllow", "IfHealthyBudget"
#: Conditions of NodeClaims whose messages name no pod.
_SHOWN_MESSAGES: Final = frozenset({"Launched", "Registered", "Initialized", "Ready", "Drifted"})
#: Controllers of pods by which decisions differ; any other one counts as a ReplicaSet.
_OWNERS: Final = frozenset(
    {("apps/v1", "DaemonSet"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("v1", "Node")},
)
_REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
_CONDITIONS: Final = frozenset({"Ready", "PodScheduled", pods.RESIZE_PENDING})


class Redaction:
    """The objects of a cluster for readers of the pods of some namespaces.

    Objects that several readers see alike are made once, so a further reader costs lists of references.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects: Final = objects

    def shown(self, namespaces: Collection[str]) -> dict[str, tuple[Any, ...]]:
        """The objects by kind as a reader of the pods of these namespaces may see them.

        Bound pods of other namespaces are counted under the name OTHERS, pending ones are left out.
        """
        shown = frozenset(namespaces)
        found = dict(self._alike)
        for name, some in self._objects.items():
            if not kinds.BY_NAME[name].cluster_scoped:
                found[name] = tuple(one for one in some if one.metadata.namespace in shown)
        found[kinds.NAMESPACE.name] = tuple(one for one in self._some(kinds.NAMESPACE) if one.metadata.name in shown)
        for kind, hidden in ((kinds.PDB, self._budgets), (kinds.POD, self._pods)):
            others = (one for namespace, one in hidden if namespace not in shown)
            found[kind.name] = (*found.get(kind.name, ()), *others)
        return found | _volumes(self._objects, found.get(kinds.PVC.name, ()))

    def _some(self, kind: Kind) -> Sequence[Any]:
        return self._objects.get(kind.name, ())

    @cached_property
    def _alike(self) -> dict[str, tuple[Any, ...]]:
        """The objects that every reader sees."""
        found = {kind.name: tuple(self._some(kind)) for kind in SHOWN_KINDS}
        found[kinds.NODE_POOL.name] = tuple(_pool(one) for one in self._some(kinds.NODE_POOL))
        found[kinds.NODE_CLAIM.name] = tuple(_claim(one) for one in self._some(kinds.NODE_CLAIM))
        return found

    @cached_property
    def _labels(self) -> list[tuple[str, Any]]:
        """Each PodDisruptionBudget with the label that stands for it."""
        return [(f"budget-{number}", one) for number, one in _numbered(self._some(kinds.PDB))]

    @cached_property
    def _budgets(self) -> list[tuple[str, PodDisruptionBudget]]:
        """Each PodDisruptionBudget in place of the original, with the namespace of that."""
        return [(one.metadata.namespace, _budget(label, one)) for label, one in self._labels]

    @cached_property
    def _pods(self) -> list[tuple[str, Pod]]:
        """Each bound pod in place of the original, with the namespace of that."""
        selectors: dict[str, list[tuple[str, Selector]]] = {}
        for label, one in self._labels:
            selectors.setdefault(one.metadata.namespace, []).append((label, selector_of(one.spec.selector, {}, ())))
        shared, bound = _Shared(), (one for one in self._some(kinds.POD) if one.spec.node_name)
        return [
            (one.metadata.namespace, _pod(f"pod-{number}", one, selectors, shared)) for number, one in _numbered(bound)
        ]


def _numbered(some: Iterable[T]) -> Iterable[tuple[int, T]]:
    """Objects with numbers by their UIDs: numbers by name would show the order of hidden names."""
    return enumerate(sorted(some, key=lambda one: str(one.metadata.uid)), 1)  # type: ignore[attr-defined]


def _pool(pool: Any) -> Any:
    """The NodePool without the names of the pods that failed after its canary."""
    canary = read(pool.metadata.annotations, labels.CANARY, Canary)
    if canary is None or not canary.failed:
        return pool
    notes = {**pool.metadata.annotations, labels.CANARY: text_of(replace(canary, failed=_FAILING))}
    return replace(pool, metadata=replace(pool.metadata, annotations=notes))


def _claim(claim: Any) -> Any:
    """The NodeClaim without messages that may name pods."""
    conditions = tuple(
        one if one.type in _SHOWN_MESSAGES else replace(one, message="") for one in claim.status.conditions
    )
    return replace(claim, status=replace(claim.status, conditions=conditions))


def _volumes(objects: Objects, claims: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
    """The volumes of these claims, and their attachments."""
    used = {claim.spec.volume_name for claim in claims} - {""}
    volumes = (one for one in objects.get(kinds.PV.name, ()) if one.metadata.name in used)
    attachments = (
        one for one in objects.get(kinds.VOLUME_ATTACHMENT.name, ()) if one.spec.source.persistent_volume_name in used
    )
    return {kinds.PV.name: tuple(volumes), kinds.VOLUME_ATTACHMENT.name: tuple(attachments)}


# --- PodDisruptionBudgets ---------------------------------------------------------------------------------------
#: By namespace: the label that stands for a budget, and its selector.
_Selectors = Mapping[str, Sequence[tuple[str, Selector]]]


def _budget(label: str, pdb: PodDisruptionBudget) -> PodDisruptionBudget:
    """A budget of the same effect under the name of its label."""
    meta = ObjectMeta(name=label, namespace=OTHERS, uid=f"{OTHERS}/{label}", generation=1)
    spec, status = _effect(pdb, LabelSelector(match_labels={label: ""}))
    return PodDisruptionBudget(metadata=meta, spec=spec, status=status)


def _effect(
    pdb: PodDisruptionBudget, selector: LabelSelector
) -> tuple[PodDisruptionBudgetSpec, PodDisruptionBudgetStatus]:
    """A budget of generation 1 with the same effect on evictions, without amounts and counts of pods."""
    effect = Budget.of(pdb)
    spec = PodDisruptionBudgetSpec(
        selector=selector,
        max_unavailable=0 if effect.closed else None,
        unhealthy_pod_eviction_policy=_ALWAYS if effect.frees_unready else _IF_HEALTHY,
    )
    return spec, PodDisruptionBudgetStatus(disruptions_allowed=int(effect.allows), observed_generation=1)


# --- pods -------------------------------------------------------------------------------------------------------
class _Shared:
    """Parts that several pods share are made once, by the identity of the original: later steps compare identities."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], tuple[Any, Any]] = {}

    def of(self, make: Callable[..., T], part: Any, *more: str) -> T:
        """`make(part, *more)`."""
        key = ("".join(more), id(part))
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = (part, make(part, *more))  # the original stays alive, and so its identity
        made: T = known[1]
        return made


def _pod(name: str, pod: Pod, selectors: _Selectors, shared: _Shared) -> Pod:
    meta, rows = pod.metadata, selectors.get(pod.metadata.namespace, ())
    protection = _protection(meta.annotations)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=OTHERS,
            uid=f"{OTHERS}/{name}",
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
            labels={label: "" for label, selector in rows if selector.matches(meta.labels)},
            annotations={} if protection is None else {labels.DO_NOT_DISRUPT: protection},
            owner_references=_owners(pod),
        ),
        spec=_spec(pod, shared),
        status=PodStatus(
            phase=pod.status.phase,
            start_time=pod.status.start_time,
            conditions=shared.of(_conditions, pod.status.conditions),
            container_statuses=_statuses(pod.spec.containers, pod.status.container_statuses, "c"),
            init_container_statuses=_statuses(pod.spec.init_containers, pod.status.init_container_statuses, "i"),
            resources=pod.status.resources,
            allocated_resources=pod.status.allocated_resources,
        ),
    )


def _conditions(some: Iterable[PodCondition]) -> tuple[PodCondition, ...]:
    """Those that decisions read, without messages."""
    return tuple(
        PodCondition(
            type=one.type,
            status=one.status,
            reason=one.reason if one.type == pods.RESIZE_PENDING and one.reason == "Infeasible" else "",
            last_transition_time=one.last_transition_time,
        )
        for one in some
        if one.type in _CONDITIONS
    )


def _protection(annotations: Mapping[str, str]) -> str | None:
    """The value of do-not-disrupt that has an effect: `true`, or a time."""
    value = annotations.get(labels.DO_NOT_DISRUPT)
    return value if value == "true" or (value is not None and durations.parse_go(value) is not None) else None


def _owners(pod: Pod) -> tuple[OwnerReference, ...]:
    owner = pods.controller(pod)
    if owner is None:
        return ()
    key = (owner.api_version, owner.kind)
    api_version, kind = key if key in _OWNERS else _REPLICA_SET
    return (OwnerReference(api_version=api_version, kind=kind, name=_SOME, uid=_SOME, controller=True),)


def _spec(pod: Pod, shared: _Shared) -> PodSpec:
    tolerated = (Toleration(operator="Exists"),) if pods.tolerates_disruption(pod) else ()
    return PodSpec(
        node_name=pod.spec.node_name,
        containers=shared.of(_containers, pod.spec.containers, "c"),
        init_containers=shared.of(_containers, pod.spec.init_containers, "i"),
        overhead=pod.spec.overhead,
        resources=None if pod.spec.resources is None else shared.of(_needs, pod.spec.resources),
        priority=pod.spec.priority,
        tolerations=tolerated,
        termination_grace_period_seconds=pod.spec.termination_grace_period_seconds,
    )


def _containers(some: Iterable[Container], letter: str) -> tuple[Container, ...]:
    """With numbers in place of names, by which `_statuses` belong to them."""
    return tuple(
        Container(
            name=f"{letter}{number}",
            resources=_needs(one.resources),
            ports=one.ports,
            restart_policy=one.restart_policy,
        )
        for number, one in enumerate(some)
    )


def _statuses(some: Iterable[Container], of: Iterable[ContainerStatus], letter: str) -> tuple[ContainerStatus, ...]:
    reported = [one for one in of if one.resources is not None or one.allocated_resources]
    if not reported:
        return ()
    names = {one.name: f"{letter}{number}" for number, one in enumerate(some)}
    return tuple(
        ContainerStatus(name=names[one.name], resources=one.resources, allocated_resources=one.allocated_resources)
        for one in reported
        if one.name in names
    )


def _needs(needs: ResourceNeeds) -> ResourceNeeds:
    return ResourceNeeds(requests=needs.requests, limits=needs.limits)
