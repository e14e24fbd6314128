"""Which ResourceClaims a pod has, which of them have their devices, and who holds what others can not have.

A claim that only pods hold which are gone, going or being moved gets new devices, and what it has is free; one
that no pod holds keeps what it has as long as that can be reached. Source: scheduling reference §10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.devices import Consumer, DeviceResult, ResourceClaim
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.devices.asks import Asked, read
from kerf.scheduling.devices.pools import PoolId, Reach, reaches_of


@dataclass(frozen=True, slots=True, eq=False)
class PodClaims:
    """A pod's claims: those that are still to get devices, and for each of the others where these can be reached."""

    asked: tuple[Asked, ...]
    reaches: tuple[tuple[Reach, ...], ...]

    @property
    def on_node(self) -> bool:
        """Whether devices that were given keep the pod to Nodes that are there."""
        return any(all(reach.node for reach in one) for one in self.reaches)


class Holders:
    """Who holds claims, when the pods in `moving` are not where they are now."""

    def __init__(self, snapshot: Snapshot, moving: frozenset[str]) -> None:
        self._snapshot, self._moving = snapshot, moving
        self._asked: dict[str, Asked | ValueError] = {}

    def claims_of(self, pod: Pod) -> PodClaims:
        """Raises ValueError, with words for a person, when a claim is missing or makes no sense."""
        asked: list[Asked] = []
        reaches: list[tuple[Reach, ...]] = []
        for claim in self._own(pod):
            if self.holds(claim):
                allocation = claim.status.allocation
                assert allocation is not None
                if allocation.node_selector is not None:
                    reaches.append(reaches_of(allocation.node_selector))
            else:
                asked.append(self._read(claim))
        return PodClaims(tuple({one.key: one for one in asked}.values()), tuple(reaches))

    def _own(self, pod: Pod) -> Iterator[ResourceClaim]:
        made = {row.name: row.resource_claim_name for row in pod.status.resource_claim_statuses}
        for row in pod.spec.resource_claims:
            name = row.resource_claim_name or made.get(row.name)
            if name is None:
                raise ValueError(f'the resourceclaim for "{row.name}" has not been made yet')
            if not name:
                continue  # its maker says that none is needed
            claim = self._snapshot.resource_claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                raise ValueError(f'resourceclaim "{name}" not found')
            if claim.metadata.unreadable:
                raise ValueError(f'resourceclaim "{name}" cannot be read: {claim.metadata.unreadable}')
            if claim.metadata.deleting:
                raise ValueError(f'resourceclaim "{name}" is being deleted')
            yield claim

    def _read(self, claim: ResourceClaim) -> Asked:
        known = self._asked.get(claim.key)
        if known is None:
            try:
                known = read(claim, self._snapshot.device_classes)
            except ValueError as error:
                known = error
            self._asked[claim.key] = known
        if isinstance(known, ValueError):
            raise known
        return known

    # --- what is held -------------------------------------------------------------------------------------------
    def holds(self, claim: ResourceClaim) -> bool:
        """Whether the claim has devices and keeps them."""
        allocation = claim.status.allocation
        if allocation is None:
            return False
        if claim.status.reserved_for:
            return any(self._lives(one, claim.metadata.namespace) for one in claim.status.reserved_for)
        try:
            reaches = reaches_of(allocation.node_selector) if allocation.node_selector is not None else ()
        except ValueError:
            return True
        return not reaches or any(not reach.node or self._stands(reach.node) for reach in reaches)

    def _lives(self, one: Consumer, namespace: str) -> bool:
        if one.api_group or one.resource != "pods":
            return True
        key = f"{namespace}/{one.name}"
        pod = self._snapshot.pods.get(key)
        same = pod is not None and (not one.uid or pod.metadata.uid == one.uid)
        return same and pod is not None and pods.active(pod) and key not in self._moving

    def _stands(self, node_name: str) -> bool:
        node = self._snapshot.nodes.get(node_name)
        return node is not None and not node.metadata.deleting

    def held(self) -> dict[PoolId, list[DeviceResult]]:
        """What claims hold, by pool. Access for administrators takes nothing from anybody."""
        found: dict[PoolId, list[DeviceResult]] = {}
        for key in sorted(self._snapshot.resource_claims):
            claim = self._snapshot.resource_claims[key]
            if claim.metadata.unreadable or not self.holds(claim):
                continue
            assert claim.status.allocation is not None
            for result in claim.status.allocation.devices.results:
                if not result.admin_access:
                    found.setdefault((result.driver, result.pool), []).append(result)
        return found
