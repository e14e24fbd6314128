"""The stable hash of a pod's shape: the part of a pod that decides where it can run.

It outlasts the pod: a replica, a new ReplicaSet, the next run of a Job and a restart of Kerf have the same one. Left
out are the pod's name and UID, and labels whose values controllers generate (`pod-template-hash` and the like), also
where the API server has copied them into selectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from kerf.model.kubernetes.objects import Pod, PodAffinity
from kerf.model.kubernetes.selectors import selector_of
from kerf.model.snapshot import Snapshot
from kerf.scheduling.placing.pod_parts import label_keys, parts_of

#: Labels whose values distinguish single pods, or generations of pods.
GENERATED: Final = frozenset(
    {
        "pod-template-hash",
        "rollouts-pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
_DIGITS: Final = 12


class PodShapes:
    """Hashes of shapes in one snapshot; pods that share their parts are read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._keys = _daemon_keys(snapshot)
        self._known: dict[tuple[object, ...], tuple[Pod, str]] = {}

    def of(self, pod: Pod) -> str:
        """The hash; empty for a pod that is not readable."""
        own = pod.metadata
        if pod.spec.volumes:  # names of claims are a pod's own
            return self._made(pod)
        key = (*parts_of(pod), id(own.labels) if own.labels else 0, own.namespace, pod.spec.scheduler_name)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (pod, self._made(pod))
        return known[1]

    def _made(self, pod: Pod) -> str:
        try:
            content = list(self._content(pod))
        except Exception:
            return ""
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:_DIGITS]

    def _content(self, pod: Pod) -> Iterator[Any]:
        spec, space = pod.spec, pod.metadata.namespace
        yield space
        yield spec.scheduler_name
        yield dict(spec.node_selector)
        yield _stable(_builtins(spec.affinity))
        yield _builtins(spec.tolerations)
        yield _stable(_builtins(spec.topology_spread_constraints))
        for containers in (spec.containers, spec.init_containers):
            yield [_builtins((c.resources, c.ports, c.restart_policy)) for c in containers]
        yield dict(spec.overhead)
        yield _builtins(spec.resources)
        yield spec.host_network
        yield sorted(claim.resource_claim_template_name for claim in spec.resource_claims)
        keys = (label_keys(pod) | self._keys) - GENERATED
        yield {key: value for key, value in pod.metadata.labels.items() if key in keys}
        yield sorted(self._volumes(pod))

    def _volumes(self, pod: Pod) -> Iterator[list[str]]:
        """Of each volume by claim the storage class, and the place where it is bound."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                claim = self._snapshot.volume_claims.get(
                    f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
                )
                bound = self._snapshot.volumes.get(claim.spec.volume_name) if claim is not None else None
                place = bound.spec.node_affinity if bound is not None else None
                name = claim.class_name if claim is not None else None
                yield [name or "", msgspec.json.encode(place, order="sorted").decode()]
            elif volume.ephemeral is not None:
                yield [volume.ephemeral.volume_claim_template.spec.storage_class_name or "", "ephemeral"]


def _builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=dict)


def _stable(value: Any) -> Any:
    """Without generated labels in selectors and `matchLabelKeys`."""
    if isinstance(value, Mapping):
        return {key: _stable(part) for key, part in value.items() if key not in GENERATED}
    if isinstance(value, (list, tuple)):
        return [_stable(part) for part in value if not _is_generated(part)]
    return value


def _is_generated(part: Any) -> bool:
    return part in GENERATED if isinstance(part, str) else isinstance(part, Mapping) and part.get("key") in GENERATED


def _daemon_keys(snapshot: Snapshot) -> set[str]:
    """The pod labels that (anti-)affinity of daemon sets looks at; one that is not readable looks at none."""
    keys: set[str] = set()
    for name in sorted(snapshot.daemon_sets):
        with suppress(Exception):
            affinity = snapshot.daemon_sets[name].spec.template.spec.affinity
            for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
                keys |= set(_keys_of(one))
    return keys


def _keys_of(affinity: PodAffinity | None) -> Iterator[str]:
    for term in affinity.required if affinity is not None else ():
        try:
            yield from selector_of(term.label_selector, {}, ()).keys
        except ValueError:
            continue
