"""Claims that one pod at a time may use (access mode ReadWriteOncePod): no second pod gets a node while one does.

Source: the kube-scheduler's plugin VolumeRestrictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot

_MODE = "ReadWriteOncePod"


class InUse(ValueError):
    """A claim that `user` has, by the key of the pod: on its node, or before others that are pending."""

    def __init__(self, claim: str, user: str) -> None:
        super().__init__(f'persistentvolumeclaim "{claim}" is {_MODE}: pod {user} uses it')
        self.user = user


@dataclass(frozen=True, eq=False)
class SoleUsers:
    """The pods on the nodes of a snapshot that use such claims."""

    snapshot: Snapshot

    @cached_property
    def _by_claim(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of the pods that use each claim, by its key; those that are expected on a node will."""
        every, found = self.snapshot.pods, dict[str, tuple[str, ...]]()
        for node_name in sorted((every.by_node.keys() | every.nominated.keys()) & self.snapshot.nodes.keys()):
            for pod in (*every.on(node_name), *every.expected_on(node_name)):
                for claim in () if pods.terminal(pod) else self._claims(pod):
                    found[claim] = (*found.get(claim, ()), pod.key)
        return found

    def refusals(self, asked: Iterable[Pod]) -> dict[str, Exception]:
        """Why some of these pods can have no place, by key. Those that are bound move: they use nothing until then."""
        wanting = [(pod, claims) for pod in asked if pod.spec.volumes and (claims := tuple(self._claims(pod)))]
        if not wanting:
            return {}
        moving = {pod.key for pod, _ in wanting if pod.spec.node_name}
        users = {
            claim: user
            for _, claims in wanting
            for claim in claims
            if (user := min((key for key in self._by_claim.get(claim, ()) if key not in moving), default=""))
        }
        found: dict[str, Exception] = {}
        for pod, claims in sorted(wanting, key=_order):
            taken = next((claim for claim in claims if claim in users), None)
            if taken is None:
                users |= dict.fromkeys(claims, pod.key)
            else:
                found[pod.key] = InUse(taken.rpartition("/")[2], users[taken])
        return found

    def _claims(self, pod: Pod) -> Iterator[str]:
        """Keys of such claims of the pod."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                key = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
                claim = self.snapshot.volume_claims.get(key)
                if claim is not None and _MODE in claim.spec.access_modes:
                    yield key


def _order(wanting: tuple[Pod, tuple[str, ...]]) -> tuple[object, ...]:
    """Pods that run come first, then those of higher priority, then the older ones."""
    pod, _ = wanting
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, -pod.spec.priority, created.timestamp() if created is not None else 0.0, pod.key
