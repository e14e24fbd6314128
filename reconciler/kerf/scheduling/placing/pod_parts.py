"""The shapes of pods: what scheduling reads of a pod, as bytes; and which labels of pods some constraint looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod, PodAffinity, PodAffinityTerm
from kerf.model.kubernetes.selectors import keys_of

#: The bytes of what a pod asks of nodes and of others, and of what it takes of a node.
Shape = tuple[bytes, bytes]
#: The hook is for mappings that are no dict.
_encode: Callable[[object], bytes] = msgspec.msgpack.Encoder(order="deterministic", enc_hook=dict).encode


def shapes_of(found: Iterable[Pod]) -> tuple[list[tuple[Pod, Shape]], set[str], dict[str, Exception]]:
    """The pods with their shapes; the pod label keys that some constraint looks at; and the pods, by key, whose
    constraints cannot even be looked through."""
    shapes: list[tuple[Pod, Shape]] = []
    keys: set[str] = set()
    unreadable: dict[str, Exception] = {}
    same: dict[tuple[int, ...], Shape] = {}
    looked_through: set[bytes] = set()
    for pod in found:
        try:
            # pods of one workload share their parts (see kube/interning), so most need no second look
            parts = parts_of(pod)
            shape = same.get(parts)
            if shape is None:
                shape = shape_of(pod)
                if shape[0] not in looked_through:
                    keys |= label_keys(pod)
                    looked_through.add(shape[0])
                same[parts] = shape
        except Exception as error:
            unreadable[pod.key] = error
        else:
            shapes.append((pod, shape))
    return shapes, keys, unreadable


def parts_of(pod: Pod) -> tuple[int, ...]:
    """The identities of what scheduling reads of a pod, labels and volumes aside; 0 for what is empty."""
    spec = pod.spec
    parts = (
        id(spec.node_selector) if spec.node_selector else 0,
        id(spec.affinity) if spec.affinity else 0,
        id(spec.tolerations) if spec.tolerations else 0,
        id(spec.topology_spread_constraints) if spec.topology_spread_constraints else 0,
        id(spec.containers),
        id(spec.init_containers) if spec.init_containers else 0,
        id(spec.overhead) if spec.overhead else 0,
        id(spec.resources) if spec.resources else 0,
        int(spec.host_network),
    )
    return (*parts, *map(id, pods.reported(pod))) if spec.node_name else parts


def shape_of(pod: Pod) -> Shape:
    """The bytes of what scheduling reads of a pod, labels and volumes aside. Raises the errors of invalid values."""
    spec = pod.spec
    wishes = (spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints)
    whole = (spec.overhead, spec.resources, spec.host_network, pods.reported(pod))
    if len(spec.containers) == 1 and not spec.init_containers:  # most pods
        (only,) = spec.containers
        return _encode(wishes), _encode((only.resources.requests, only.resources.limits, only.ports, whole))
    containers = [(c.resources.requests, c.resources.limits, c.ports) for c in spec.containers]
    started = [(c.resources.requests, c.resources.limits, c.restart_policy, c.ports) for c in spec.init_containers]
    return _encode(wishes), _encode((containers, started, whole))


def has_terms(pod: Pod) -> bool:
    """Whether the pod has constraints about other pods."""
    affinity = pod.spec.affinity
    between = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return between or bool(pod.spec.topology_spread_constraints)


def label_keys(pod: Pod) -> set[str]:
    """The pod label keys that some constraint of the pod looks at."""
    keys: set[str] = set()
    for constraint in pod.spec.topology_spread_constraints:
        keys.update(keys_of(constraint.label_selector), constraint.match_label_keys)
    if pod.spec.affinity is not None:
        for affinity in (pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity):
            for term in _terms(affinity):
                keys.update(keys_of(term.label_selector))
    return keys


def _terms(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    if affinity is None:
        return ()
    return (*affinity.required, *[weighted.pod_affinity_term for weighted in affinity.preferred])
