"""Devices by claim: every claim of a pod with a place is answered, and no device is given beyond what it allows.

Where claims are ignored, no pod that claims devices has a place. What CEL expressions say is not asked here: only that
the devices are there, for whom they can be reached from, and that they are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from kerf.model.kubernetes.devices import ResourceClaim, ResourceSliceSpec, SliceDevice
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf_api import labels, quantity
from tests.referee.answers import Answer, Violation
from tests.referee.needs import claims_devices

Id = tuple[str, str, str]


class Had(NamedTuple):
    """A device for a claim, and what is taken of it."""

    claim: str
    device: Id
    amounts: Mapping[str, Fraction]


def problems(snapshot: Snapshot, by_key: Mapping[str, Pod], answer: Answer) -> Iterator[Violation]:
    if snapshot.settings.ignore_dra_requests:
        for key in sorted({*answer.placed, *(key for node in answer.new_nodes for key in node.pods)}):
            if claims_devices(by_key[key]):
                yield Violation("devices", f"{key} has a place, although it claims devices")
        return
    if any(pod.spec.resource_claims for pod in by_key.values()):
        yield from _Devices(snapshot, by_key, answer).problems()


class _Devices:
    def __init__(self, snapshot: Snapshot, by_key: Mapping[str, Pod], answer: Answer) -> None:
        self.snapshot, self.by_key, self.answer = snapshot, by_key, answer
        self.moving = {key for key, pod in by_key.items() if pod.spec.node_name}
        self.published = {
            (found.spec.driver, found.spec.pool.name, device.name): (found.spec, device)
            for found in snapshot.resource_slices.values()
            for device in found.spec.devices
        }

    def problems(self) -> Iterator[Violation]:
        standing = list(self.answer.devices)
        self.elsewhere = self._of_the_cluster()
        own = [Had(grant.claim, grant.device, grant.amounts) for grant in standing if not grant.planned]
        taken = {(one.claim, one.device): one for one in (*self._held(), *own)}
        for target in sorted(set(self.answer.placed.values())):
            yield from self._standing(target, standing)
        for node in self.answer.new_nodes:
            claiming = [key for key in node.pods if self.by_key[key].spec.resource_claims]
            for kind in node.instance_types if claiming else ():
                here = [grant for grant in node.devices if grant.instance_type == kind]
                yield from self._answered(claiming, here, kind)
                planned = [Had(g.claim, g.device, g.amounts) for g in here if g.planned]
                yield from _overtaken(planned, self._planned(kind), f"a new {kind}")
                taken |= {(g.claim, g.device): Had(g.claim, g.device, g.amounts) for g in here if not g.planned}
        yield from _overtaken(taken.values(), self.published, "the cluster")

    def _standing(self, target: str, standing: Sequence[Any]) -> Iterator[Violation]:
        """A node that is there or on its way: each type that it may become has what its pods claim."""
        keys = sorted(key for key, at in self.answer.placed.items() if at == target)
        claims = {claim.key for key in keys for claim in self._claims(self.by_key[key])}
        kinds = {grant.instance_type for grant in standing if grant.claim in claims - self.elsewhere.keys()}
        for kind in sorted(kinds or {""}):
            here = [grant for grant in standing if grant.claim in claims and grant.instance_type == kind]
            yield from self._answered(keys, here, kind)
            planned = [Had(grant.claim, grant.device, grant.amounts) for grant in here if grant.planned]
            yield from _overtaken(planned, self._planned(kind), f"{target} as {kind}")

    # --- answers ------------------------------------------------------------------------------------------------
    def _answered(self, keys: Iterable[str], grants: Sequence[Any], kind: str) -> Iterator[Violation]:
        for key in keys:
            for claim in self._claims(self.by_key[key]):
                if self._kept(claim):
                    continue
                own = [grant.request for grant in grants if grant.claim == claim.key]
                names = Counter(own or self.elsewhere.get(claim.key, []))
                for request in claim.spec.devices.requests:
                    if not _fulfilled(request, names):
                        where = f" on {kind}" if kind else ""
                        yield Violation("devices", f"{key} has no devices for {claim.key}/{request.name}{where}")

    def _of_the_cluster(self) -> dict[str, list[str]]:
        """The requests of claims that were answered, for whichever pod, with devices that are no node's own."""
        found: dict[str, list[str]] = {}
        for grants in (self.answer.devices, *(node.devices for node in self.answer.new_nodes)):
            for claim in {grant.claim for grant in grants}:
                own = [grant for grant in grants if grant.claim == claim]
                first = [grant for grant in own if grant.instance_type == own[0].instance_type]
                ids = [self.published.get(grant.device) for grant in own]
                if not any(grant.planned for grant in own) and all(one and not one[0].node_name for one in ids):
                    found[claim] = [grant.request for grant in first]
        return found

    def _claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        made = {row.name: row.resource_claim_name for row in pod.status.resource_claim_statuses}
        for row in pod.spec.resource_claims:
            name = row.resource_claim_name or made.get(row.name, "")
            if name:
                yield self.snapshot.resource_claims[f"{pod.metadata.namespace}/{name}"]

    # --- who has what -------------------------------------------------------------------------------------------
    def _held(self) -> Iterator[Had]:
        for claim in self.snapshot.resource_claims.values():
            if self._kept(claim) and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    amounts = {n: quantity.parse(text) for n, text in result.consumed_capacity.items()}
                    yield Had(claim.key, (result.driver, result.pool, result.device), amounts)

    def _kept(self, claim: ResourceClaim) -> bool:
        """Whether somebody who stays has the claim's devices, or nobody has and they are still there."""
        if claim.status.allocation is None:
            return False
        users = [f"{claim.metadata.namespace}/{one.name}" for one in claim.status.reserved_for]
        staying = [user for user in users if self._stays(user)]
        return bool(staying) if users else True

    def _stays(self, key: str) -> bool:
        pod = self.snapshot.pods.get(key)
        if pod is None or key in self.moving or pod.metadata.deletion_timestamp is not None:
            return False
        return pod.status.phase not in ("Succeeded", "Failed")

    def _planned(self, kind: str) -> dict[Id, tuple[ResourceSliceSpec, SliceDevice]]:
        """What a node of a type may publish: what its type says, or what some node of the type has."""
        said = [
            spec for types in self.snapshot.catalogues.values() for t in types if t.name == kind for spec in t.devices
        ]
        for found in self.snapshot.resource_slices.values() if not said else ():
            node = self.snapshot.nodes.get(found.spec.node_name)
            if node is not None and node.metadata.labels.get(labels.INSTANCE_TYPE) == kind:
                said.append(found.spec)
        return {
            (spec.driver, name, device.name): (spec, device)
            for spec in said
            for device in spec.devices
            for name in (spec.pool.name, kind)
        }


def _fulfilled(request: Any, names: Mapping[str, int]) -> bool:
    """Whether there are as many devices as the request, or one of its alternatives, asks for."""
    if request.exactly is not None:
        return _enough(request.exactly, names.get(request.name, 0))
    return any(_enough(sub, names.get(f"{request.name}/{sub.name}", 0)) for sub in request.first_available)


def _enough(exact: Any, number: int) -> bool:
    return number >= 1 if exact.allocation_mode == "All" else number == exact.count


def _overtaken(
    had: Iterable[Had], there: Mapping[Id, tuple[ResourceSliceSpec, SliceDevice]], where: str
) -> Iterator[Violation]:
    """Devices that are not there, or that are given more often, or more of, than they allow."""
    by_device: dict[Id, list[Had]] = {}
    for one in had:
        by_device.setdefault(one.device, []).append(one)
    budgets: Counter[tuple[str, str, str, str]] = Counter()
    for device, holders in by_device.items():
        if device not in there:
            if len(holders) > 1:
                yield Violation("devices", f"{device} of {where} is had by {len(holders)}, and is not there")
            continue
        _, known = there[device]
        if len(holders) > 1 and not known.allow_multiple_allocations:
            yield Violation("devices", f"{device} of {where} is had by {[one.claim for one in holders]}")
        for name, capacity in known.capacity.items() if known.allow_multiple_allocations else ():
            if sum(one.amounts.get(name, 0) for one in holders) > quantity.parse(capacity.value):
                yield Violation("devices", f"{device} of {where} has not so much {name}")
        for need in known.consumes_counters:
            for name, counter in need.counters.items():
                budgets[device[0], device[1], need.counter_set, name] += int(quantity.parse(counter.value) * 1000)
    for (driver, pool, group, name), amount in budgets.items():
        counters = [
            c.counters[name].value
            for (of, its, _), (spec, _) in there.items()
            if (of, its) == (driver, pool)
            for c in spec.shared_counters
            if c.name == group and name in c.counters
        ]
        if not counters or amount > quantity.parse(counters[0]) * 1000:
            yield Violation("devices", f"pool {pool} of {driver} in {where} has not so much {group}/{name}")
