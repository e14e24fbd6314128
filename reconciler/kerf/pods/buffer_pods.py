"""CapacityBuffers: the pods that a buffer keeps room for. They exist nowhere but in simulations.

Virtual pods want a place like pending ones, after all real pods; what they get is room that real pods take when they
come. A step resolves each buffer: whose pods, how many, or why there are none. Source: scheduling reference §1.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from kerf.model.boundaries import broken
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import (
    Affinity,
    Expression,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplate,
)
from kerf.model.memory import Step, Turn
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import IN, NOT_IN
from kerf_api.resources import Resources
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.meta import ObjectMeta

RESOLVED, NO_TEMPLATE, NO_WORKLOAD, FAILED = (
    "Resolved",
    "PodTemplateNotFound",
    "ScalableRefNotFound",
    "ResolutionFailed",
)
PROVISIONING: Final = "Provisioning"
#: A buffer is for pods that may come any moment; a larger one is taken for a slip of the keyboard.
MOST_PODS: Final = 10_000
_TABLES: Final = {"Deployment": "deployments", "StatefulSet": "stateful_sets", "ReplicaSet": "replica_sets"}
_LOWEST_PRIORITY: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a buffer: `reason` and `message` of its readiness, and the pods that room is kept for."""

    reason: str = RESOLVED
    message: str = ""
    template_generation: int | None = None
    pods: tuple[Pod, ...] = ()

    @property
    def ready(self) -> bool:
        return self.reason == RESOLVED


class _Unresolved(Exception):
    """Why a buffer has no pods: a reason of its condition, and words for a person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def resolutions(turn: Turn) -> Mapping[str, Resolution]:
    """All buffers by `namespace/name`; none without the gate CapacityBuffer, or that cannot be read."""
    if not turn.snapshot.settings.gates.capacity_buffer:
        return {}
    return turn.all(RESOLUTIONS, turn.noted).spoken


def virtual_pods(turn: Turn) -> tuple[Pod, ...]:
    """The pods of all buffers. A real pod that has the name of one of them stands in its place."""
    found = (pod for resolution in resolutions(turn).values() for pod in resolution.pods)
    return tuple(pod for pod in found if pod.key not in turn.snapshot.pods)


def settled_pods(turn: Turn) -> frozenset[str]:
    """The keys of the pods of buffers that had room on nodes at the latest pass."""
    buffers = turn.snapshot.capacity_buffers
    return frozenset(
        pod.key
        for key, resolution in resolutions(turn).items()
        if any(c.type == PROVISIONING and c.status == "True" for c in buffers[key].status.conditions)
        for pod in resolution.pods
    )


# --- one buffer ---------------------------------------------------------------------------------------------------
def _resolve(snapshot: Snapshot, key: str) -> tuple[Resolution | None, None]:
    try:
        buffer = snapshot.capacity_buffers[key]
        if buffer.metadata.unreadable:
            return None, None
        template, generation, workload_replicas = _template(snapshot, buffer)
        sample = _virtual(buffer, template, 1)
        number = size(buffer, pods.requests(sample), workload_replicas)
        if number > MOST_PODS:
            raise _Unresolved(FAILED, f"capacity for {number} pods is requested; a buffer may have {MOST_PODS} at most")
    except _Unresolved as problem:
        return Resolution(problem.reason, str(problem)), None
    except ValueError as error:
        return Resolution(FAILED, f"its limits or its pods' requests cannot be read: {error}"), None
    except Exception as error:
        reason = broken(error)
        return Resolution(reason.code, reason.text), None
    members = tuple(_virtual(buffer, template, i) for i in range(1, number + 1))
    return Resolution(template_generation=generation, pods=members), None


def _template(snapshot: Snapshot, buffer: CapacityBuffer) -> tuple[PodTemplate, int | None, int | None]:
    """The template of its pods; the generation of a PodTemplate, or the replicas of a workload. Raises _Unresolved."""
    spec, space = buffer.spec, buffer.metadata.namespace
    if spec.pod_template_ref is not None:
        name = spec.pod_template_ref.name
        stored = snapshot.pod_templates.get(f"{space}/{name}")
        _check(stored, NO_TEMPLATE, f"PodTemplate {space}/{name}")
        assert stored is not None
        return stored.template, stored.metadata.generation, None
    ref = spec.scalable_ref
    if ref is None:
        raise _Unresolved(
            FAILED, "neither spec.podTemplateRef nor spec.scalableRef is set, so the pods of the buffer are unknown"
        )
    if ref.api_group not in ("", "apps") or ref.kind not in _TABLES:
        what = f"{ref.kind}.{ref.api_group}" if ref.api_group else ref.kind
        raise _Unresolved(FAILED, f"spec.scalableRef: {what} is none of {', '.join(sorted(_TABLES))} of apps")
    workload = getattr(snapshot, _TABLES[ref.kind]).get(f"{space}/{ref.name}")
    _check(workload, NO_WORKLOAD, f"{ref.kind} {space}/{ref.name}")
    return workload.spec.template, None, workload.spec.replicas


def _check(found: Any | None, reason: str, what: str) -> None:
    if found is None:
        raise _Unresolved(reason, f"{what} not found")
    if found.metadata.unreadable:
        raise _Unresolved(FAILED, f"{what} cannot be read: {found.metadata.unreadable}")


def size(buffer: CapacityBuffer, requests: Resources, workload_replicas: int | None) -> int:
    """For how many pods the buffer wants room; `workload_replicas` is None where there is no workload.

    The larger of `replicas` and the share of the workload, as far as limits allow; with neither, all that they allow.
    Raises ValueError when a limit is no quantity.
    """
    spec = buffer.spec
    wanted = [] if spec.replicas is None else [max(spec.replicas, 0)]
    if spec.percentage is not None and workload_replicas is not None:
        wanted.append(-(-max(workload_replicas, 0) * max(spec.percentage, 0) // 100))
    limits = Resources.parse(spec.limits)
    allowed = [max(limits[name], 0) // requests[name] for name in limits if requests[name] > 0]
    return min([*([max(wanted)] if wanted else []), *allowed], default=0)


def _virtual(buffer: CapacityBuffer, template: PodTemplate, number: int) -> Pod:
    """Its UID is its own key: no other pod has such a one, and a claim that is planned for it knows it by that."""
    space, name = buffer.metadata.namespace, f"capacity-buffer-{buffer.metadata.name}-{number}"
    marks = {
        labels.BUFFER_FAKE_POD: "true",
        labels.BUFFER_NAME: buffer.metadata.name,
        labels.BUFFER_NAMESPACE: space,
    }
    refused = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=space, uid=f"{space}/{name}", labels=template.metadata.labels, annotations=marks
        ),
        spec=_unbound(template.spec, template.metadata.labels),
        status=PodStatus(phase="Pending", conditions=(refused,)),
    )


def _unbound(spec: PodSpec, own: Mapping[str, str]) -> PodSpec:
    """Nowhere yet, and without volumes that would have to exist; `own` are the labels of the pod."""
    return replace(
        spec,
        affinity=_as_admitted(spec.affinity, own),
        node_name="",
        priority=_LOWEST_PRIORITY,
        scheduling_gates=(),
        volumes=tuple(v for v in spec.volumes if v.persistent_volume_claim is None and v.ephemeral is None),
    )


def _as_admitted(affinity: Affinity | None, own: Mapping[str, str]) -> Affinity | None:
    """As the API server admits a pod: it writes the values of `matchLabelKeys` into the selectors of the terms."""
    if affinity is None:
        return None

    def admitted(one: PodAffinity | None) -> PodAffinity | None:
        if one is None:
            return None
        preferred = (replace(row, pod_affinity_term=_term(row.pod_affinity_term, own)) for row in one.preferred)
        return PodAffinity(required=tuple(_term(term, own) for term in one.required), preferred=tuple(preferred))

    return replace(
        affinity,
        pod_affinity=admitted(affinity.pod_affinity),
        pod_anti_affinity=admitted(affinity.pod_anti_affinity),
    )


def _term(term: PodAffinityTerm, own: Mapping[str, str]) -> PodAffinityTerm:
    asked = ((IN, term.match_label_keys), (NOT_IN, term.mismatch_label_keys))
    rows = [Expression(key=key, operator=o, values=(own[key],)) for o, keys in asked for key in keys if key in own]
    if not rows or term.label_selector is None:
        return term
    before = term.label_selector.match_expressions
    return replace(term, label_selector=replace(term.label_selector, match_expressions=(*before, *rows)))


RESOLUTIONS: Step[Snapshot, Resolution] = Step(
    "capacity buffers",
    "capacity_buffers",
    _resolve,  # type: ignore[arg-type]
    speaks=lambda found: found is not None,
)
