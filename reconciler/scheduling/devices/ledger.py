"""What a plan has given of devices so far: on nodes that are there, on nodes in the making, and of the cluster's own.

A node that is initialized has what it has published. One that is not, and one in the making, has what its type will
publish; as long as it may become one of several types, each of these is a variant with devices of its own, and the same
devices back all of them. A node in the making loses the variants that cannot serve; of a node on its way all must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from api import labels, quantity
from api.requirements import EMPTY, Requirements
from reconciler.model.boundaries import broken
from reconciler.model.devices import DeviceResult, ResourceSliceSpec
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.devices.asks import Asked
from reconciler.scheduling.devices.claiming import Holders, PodClaims
from reconciler.scheduling.devices.pools import NO_POOLS, Device, PoolId, Pools, Reach, pools_of
from reconciler.scheduling.devices.refused import CODE
from reconciler.scheduling.devices.search import NONE, Found, Matching, Narrowed, Pick, Search
from reconciler.scheduling.devices.templates import templates_of
from reconciler.scheduling.devices.usage import Usage
from reconciler.scheduling.places import serves
from reconciler.scheduling.solution import Grant, NewNode, PodRefusal
from reconciler.scheduling.targets import Target

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """What a node has if it is, or becomes, one of these types; `usage` counts what is taken of the planned devices."""

    types: frozenset[str]
    pools: Pools
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True, eq=False)
class Host:
    """A node with devices. `variants` become fewer while it is in the making; `given` is what pods got, by variant."""

    variants: tuple[Variant, ...]
    given: list[tuple[str, Mapping[Variant, tuple[Pick, ...]]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Home:
    """What became of a claim: on this host alone, or wherever `requirements` hold."""

    host: Host
    bound: bool
    requirements: Requirements


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """What a pod would get on a host, by variant, and under which requirements."""

    host: Host
    asked: tuple[str, ...]
    by_variant: Mapping[Variant, tuple[Pick, ...]]
    requirements: Requirements

    @property
    def types(self) -> frozenset[str]:
        return frozenset().union(*(variant.types for variant in self.by_variant))


def ledger_of(snapshot: Snapshot, asked: Sequence[Pod], exclude: frozenset[str]) -> Ledger | None:
    """The devices of one solve; None when none of these pods claims any."""
    return Ledger(snapshot, asked, exclude) if any(pod.spec.resource_claims for pod in asked) else None


class Ledger:
    """The devices of one solve. `claims` are by the keys of the pods that are asked for; `refused` are pods of which a
    claim is missing or makes no sense, with the reason."""

    def __init__(self, snapshot: Snapshot, asked: Iterable[Pod], exclude: frozenset[str]) -> None:
        self._snapshot, self._exclude = snapshot, exclude
        asking = list(asked)
        self._holders = Holders(snapshot, frozenset(pod.key for pod in asking if pod.spec.node_name))
        self.claims: dict[str, PodClaims] = {}
        self.refused: dict[str, Exception] = {}
        for pod in asking:
            if pod.spec.resource_claims:
                try:
                    self.claims[pod.key] = self._holders.claims_of(pod)
                except Exception as error:
                    self.refused[pod.key] = error
        self.why: dict[str, str] = {}
        self._matching = Matching()
        self._held = self._holders.held() if self.claims else {}
        self._templates = templates_of(snapshot) if self.claims else {}
        self._codes = {name: _encode(slices) for name, slices in self._templates.items()}
        self._pools: dict[bytes, Pools] = {}
        self._published: dict[str, Pools] = {}
        self._shared = pools_of(self._slices_of_all()) if self.claims else NO_POOLS
        self.reset()

    def _slices_of_all(self) -> Iterator[ResourceSliceSpec]:
        """Slices that are not one node's; those that a Node owns count while it is in use."""
        for name in sorted(self._snapshot.resource_slices):
            found = self._snapshot.resource_slices[name]
            if found.spec.node_name or found.metadata.unreadable:
                continue
            owners = [one.name for one in found.metadata.owner_references if one.kind == "Node"]
            if all(self._in_use(owner) for owner in owners):
                yield found.spec

    def _in_use(self, node_name: str) -> bool:
        node = self._snapshot.nodes.get(node_name)
        if node is None or node.metadata.deleting:
            return False
        states = self._snapshot.claims_by_provider.get(node.spec.provider_id, ())
        keys = [claim.name for claim in states] or [f"node/{node_name}"]
        return all((s := self._snapshot.state_nodes.get(k)) is not None and s.initialized for k in keys) and not (
            self._exclude & set(keys)
        )

    def reset(self) -> None:
        """Forget what was given; what is held by others is taken."""
        self._usage = Usage()
        self._seeded: set[PoolId] = set()
        self._places: dict[str, Host] = {}
        self._homes: dict[str, Home] = {}
        self._ahead: set[str] = set()
        self._given: dict[str, Host] = {}
        self._seed(self._shared.devices)

    # --- what there is ------------------------------------------------------------------------------------------
    def _seed(self, devices: Sequence[Device]) -> None:
        """Take what claims hold of these published devices."""
        fresh = {(device.driver, device.pool) for device in devices} - self._seeded
        by_id = {device.id: device for device in devices}
        for pool in sorted(fresh):
            for result in self._held.get(pool, ()):
                device = by_id.get((result.driver, result.pool, result.device))
                if device is not None:
                    _take(self._usage, device, result)
        self._seeded |= fresh

    def _host(self, target: Target) -> Host:
        known = self._places.get(target.key)
        if known is None:
            known = self._places[target.key] = self._at(target)
        return known

    def _at(self, target: Target) -> Host:
        node = target.state.node
        if node is not None and target.state.initialized:
            if node.name not in self._published:
                slices = self._snapshot.slices_by_node.get(node.name, ())
                self._published[node.name] = pools_of(s.spec for s in slices if not s.metadata.unreadable)
            own = self._published[node.name]
            self._seed(own.devices)
            return Host((Variant(frozenset(), own),))
        row = target.possible.get(labels.INSTANCE_TYPE)
        variants = self.variants(sorted(row.values) if row is not None and not row.complement else ())
        if node is not None:
            for variant in variants:
                self._seed_planned(variant, node.name)
        return Host(variants)

    def _seed_planned(self, variant: Variant, node_name: str) -> None:
        """What pods already hold of a node that is not initialized: by the devices' names, for pools may be renamed."""
        pools = {(s.spec.driver, s.spec.pool.name) for s in self._snapshot.slices_by_node.get(node_name, ())}
        for pool in sorted(pools):
            for result in self._held.get(pool, ()):
                same = (d for d in variant.pools.devices if (d.driver, d.spec.name) == (result.driver, result.device))
                for device in same:
                    _take(variant.usage, device, result)

    def variants(self, types: Iterable[str]) -> tuple[Variant, ...]:
        """These types, those that publish the same together."""
        together: dict[bytes, list[str]] = {}
        for name in types:
            together.setdefault(self._codes.get(name, b""), []).append(name)
        return tuple(Variant(frozenset(names), self._planned(names[0], code)) for code, names in together.items())

    def _planned(self, name: str, code: bytes) -> Pools:
        if code not in self._pools:
            self._pools[code] = pools_of(self._templates.get(name, ()), planned=True)
        return self._pools[code]

    # --- what a pod would get -----------------------------------------------------------------------------------
    def on(self, pod: Pod, target: Target) -> Offer | None:
        """What the pod would get on a node that is there or on its way; None when it cannot have all it claims."""
        claims = self.claims[pod.key]
        if not all(any(_reached(target, reach) for reach in reaches) for reaches in claims.reaches):
            return self._none(pod, "what its claims have been given is not to be had there")
        if any(one.key in self._ahead for one in claims.asked):
            return None  # it is given its devices together with another pod, on a node in the making

        def narrowed(now: Requirements, reach: Reach) -> Requirements | None:
            return now & reach.labels if _reached(target, reach) else None

        host = self._host(target)
        offer = self._offer(pod, host, EMPTY, narrowed, lambda wanted: _reached(target, Reach("", wanted)))
        return offer if offer is not None and len(offer.by_variant) == len(host.variants) else None

    def possible(self, pod: Pod, types: Iterable[str], requirements: Requirements) -> bool:
        """Whether a node that is the pod's alone could have what it claims, as one of these types."""
        names = frozenset(types)
        return self.within(pod, self.new_host(sorted(names)), names, requirements) is not None

    def new_host(self, types: Iterable[str]) -> Host:
        """A node in the making that may become one of these types."""
        return Host(self.variants(types))

    def within(self, pod: Pod, host: Host, types: frozenset[str], requirements: Requirements) -> Offer | None:
        """What the pod would get on a node in the making that meets these requirements, as one of these types."""
        if self.claims[pod.key].on_node:
            return self._none(pod, "what its claims have been given is on a node that is there")

        def narrowed(now: Requirements, reach: Reach) -> Requirements | None:
            return now & reach.labels if not reach.node and now.conflict(reach.labels) is None else None

        return self._offer(
            pod, host, requirements, narrowed, lambda wanted: requirements.conflict(wanted) is None, types
        )

    def _offer(
        self,
        pod: Pod,
        host: Host,
        requirements: Requirements,
        narrowed: Narrowed,
        meets: Callable[[Requirements], bool],
        types: frozenset[str] | None = None,
    ) -> Offer | None:
        asked: list[Asked] = []
        for one in self.claims[pod.key].asked:
            home = self._homes.get(one.key)
            if home is None:
                asked.append(one)
            elif (home.bound and home.host is not host) or not meets(home.requirements):
                return self._none(pod, f"another pod that shares {one.key} has its devices elsewhere")
            else:
                requirements = requirements & home.requirements
        by_variant: dict[Variant, tuple[Pick, ...]] = {}
        for variant in host.variants:
            if types is None or variant.types & types:
                found = self._found(pod, variant, asked, requirements, narrowed)
                if found is not None:
                    by_variant[variant], requirements = found.picks, found.requirements
        return Offer(host, tuple(one.key for one in asked), by_variant, requirements) if by_variant else None

    def _found(
        self, pod: Pod, variant: Variant, asked: Sequence[Asked], requirements: Requirements, narrowed: Narrowed
    ) -> Found | None:
        if not asked:
            return Found((), requirements)
        devices = (*self._shared.devices, *variant.pools.devices)
        unsound = {**self._shared.unsound, **variant.pools.unsound}
        search = Search(asked, devices, unsound, self._counted(variant), narrowed, self._matching)
        found = search.run(requirements)
        if found is None:
            self._none(pod, search.why)
        return found

    def _counted(self, variant: Variant) -> Callable[[Device], Usage]:
        return lambda device: variant.usage if device.planned else self._usage

    def _none(self, pod: Pod, why: str) -> Offer | None:
        """Remember why the pod has no devices somewhere: best where there were some that it wants."""
        if self.why.get(pod.key, NONE).endswith(NONE):
            self.why[pod.key] = why
        return None

    # --- giving -------------------------------------------------------------------------------------------------
    def place(self, pod: Pod, target: Target) -> None:
        """The pod goes to a node that is there or on its way."""
        offer = self.on(pod, target)
        if offer is not None:
            self.take(pod, offer)

    def take(self, pod: Pod, offer: Offer) -> None:
        """The pod goes there: what it was offered is taken, and variants without an offer are none any more."""
        host = offer.host
        host.variants = tuple(variant for variant in host.variants if variant in offer.by_variant)
        for variant, picks in offer.by_variant.items():
            for pick in picks:
                if pick.device.planned:
                    variant.usage.take(pick.device, pick.share)
        for pick in _common(offer.by_variant):
            self._usage.take(pick.device, pick.share)
        host.given.append((pod.key, offer.by_variant))
        self._given[pod.key] = host
        for key in offer.asked:
            own = [pick for picks in offer.by_variant.values() for pick in picks if pick.claim == key]
            wanted = EMPTY
            for pick in own:
                wanted = wanted & pick.reach.labels
            bound = any(pick.device.local or pick.reach.node for pick in own)
            self._homes[key] = Home(host, bound, wanted)

    def give_back(self, host: Host) -> None:
        """A node in the making that is not to be had after all: what its pods were given is free again."""
        for pod_key, by_variant in host.given:
            for pick in _common(by_variant):
                self._usage.give_back(pick.device, pick.share)
            self._given.pop(pod_key, None)
        self._homes = {key: home for key, home in self._homes.items() if home.host is not host}

    def look_ahead(self, pod: Pod) -> None:
        """The pod is to go on a node in the making: whom it shares a claim with goes with it."""
        self._ahead |= {one.key for one in self.claims[pod.key].asked}

    def settled_here(self, pod: Pod) -> bool:
        """Whether a claim of the pod has been given devices of a node that is there, in this plan or before."""
        claims = self.claims[pod.key]
        homes = (self._homes.get(one.key) for one in claims.asked)
        return claims.on_node or any(home is not None and home.bound for home in homes)

    # --- telling ------------------------------------------------------------------------------------------------
    def refusals(self) -> dict[str, PodRefusal]:
        """The answers to pods of which a claim is missing or makes no sense, by key."""
        return {key: PodRefusal(CODE, broken(error).text) for key, error in sorted(self.refused.items())}

    def demands(self, volumes: Mapping[str, tuple[Requirements, ...]]) -> dict[str, tuple[Requirements, ...]]:
        """Where volumes and devices that were given already can be had together, as alternatives, by pod."""
        found: dict[str, tuple[Requirements, ...]] = {}
        for key, claims in self.claims.items():
            alternatives = volumes.get(key, (EMPTY,))
            for reaches in claims.reaches:
                pairs = [(a, reach.labels) for a in alternatives for reach in reaches]
                good = [a & b for a, b in pairs if a.conflict(b) is None]
                alternatives = tuple(dict.fromkeys(good)) or tuple(a & b for a, b in pairs[:1])
            if claims.reaches:
                found[key] = alternatives
        return found

    def explained(self, left: Mapping[str, PodRefusal]) -> dict[str, PodRefusal]:
        """With what was missed of devices, for pods that claim some."""
        return {
            key: replace(refusal, code=CODE, text=f"{self.why[key]}; {refusal.text}") if key in self.why else refusal
            for key, refusal in left.items()
        }

    def equipped(self, nodes: Sequence[NewNode]) -> tuple[NewNode, ...]:
        """New nodes with what claims get there."""
        return tuple(self._equipped(node) for node in nodes)

    def _equipped(self, node: NewNode) -> NewNode:
        own = [grant for key in node.pods if key in self._given for grant in self._grants(key, node.instance_types)]
        return replace(node, devices=tuple(own)) if own else node

    def granted(self, placed: Mapping[str, str]) -> tuple[Grant, ...]:
        """What claims get for pods that go to nodes that are there or on their way."""
        return tuple(grant for key in sorted(placed) if key in self._given for grant in self._grants(key))

    def _grants(self, pod_key: str, types: Sequence[str] = ()) -> Iterator[Grant]:
        """What the pod was given; on a new node for each of the types that it lists."""
        host = self._given.get(pod_key)
        for key, by_variant in host.given if host is not None else ():
            if key != pod_key:
                continue
            for variant, picks in by_variant.items():
                listed = [name for name in types if name in variant.types] if types else [""]
                for name in listed:
                    for pick in picks:
                        yield Grant(
                            pick.claim, pick.request, pick.device.id, dict(pick.share), name, pick.device.planned
                        )


def _reached(target: Target, reach: Reach) -> bool:
    """Whether what is to be reached so can be reached from a node."""
    node = target.state.node
    if reach.node and (node is None or node.name != reach.node):
        return False
    return all(serves(target.possible.get(key), row) for key, row in reach.labels.items())


def _take(usage: Usage, device: Device, result: DeviceResult) -> None:
    shared = device.spec.allow_multiple_allocations
    known = {name: text for name, text in result.consumed_capacity.items() if name in device.spec.capacity}
    usage.take(device, {name: quantity.parse(text) for name, text in known.items()} if shared else {})


def _common(by_variant: Mapping[Variant, tuple[Pick, ...]]) -> list[Pick]:
    """The cluster's own devices that some variant uses: the same one is taken once, whatever the node becomes."""
    found: dict[tuple[object, ...], Pick] = {}
    for picks in by_variant.values():
        seen: dict[tuple[object, ...], int] = {}
        for pick in picks:
            if not pick.device.planned:
                key = (pick.claim, pick.request, pick.device.id)
                seen[key] = seen.get(key, 0) + 1
                found[*key, seen[key]] = pick
    return list(found.values())
