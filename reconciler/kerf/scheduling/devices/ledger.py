"""What a plan has given of devices so far: on nodes that are there, on nodes in the making, and of the cluster's own.

A node in the making loses the variants that cannot serve a pod; of a node on its way all must serve it. A claim that
several pods share is given its devices once: where they are a node's own, the other pods are placed there too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.boundaries import broken
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import Grant, NewNode, PodRefusal
from kerf.scheduling.devices.asks import Asked
from kerf.scheduling.devices.claiming import Holders, PodClaims
from kerf.scheduling.devices.inventory import Host, Inventory, Variant
from kerf.scheduling.devices.pools import Device, Reach
from kerf.scheduling.devices.refused import CODE
from kerf.scheduling.devices.search import NONE, Found, Matching, Narrowed, Pick, Search
from kerf.scheduling.devices.templates import template_problems
from kerf.scheduling.devices.usage import Usage
from kerf.scheduling.nodes.existing import ExistingNode
from kerf.scheduling.nodes.table import serves
from kerf_api.requirements import EMPTY, Requirements


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


def devices_of(snapshot: Snapshot, asked: Iterable[Pod], exclude: frozenset[str]) -> DeviceLedger | None:
    """The devices of one solve; None when none of these pods claims any."""
    asking = list(asked)
    return DeviceLedger(snapshot, asking, exclude) if any(pod.spec.resource_claims for pod in asking) else None


class DeviceLedger:
    """The devices of one solve. `claims` are by the keys of the pods that are asked for; `refused` are pods of which a
    claim is missing or makes no sense, with the reason."""

    def __init__(self, snapshot: Snapshot, asking: Sequence[Pod], exclude: frozenset[str]) -> None:
        self._snapshot = snapshot
        self._holders = Holders(snapshot, frozenset(pod.key for pod in asking if pod.spec.node_name))
        self.claims: dict[str, PodClaims] = {}
        self.refused: dict[str, Exception] = {}
        for pod in asking:
            if pod.spec.resource_claims:
                try:
                    self.claims[pod.key] = self._holders.claims_of(pod)
                except Exception as error:
                    self.refused[pod.key] = error
        self._sharing = Counter(one.key for claims in self.claims.values() for one in claims.asked)
        self.why: dict[str, str] = {}
        self._matching = Matching()
        self._inventory = Inventory(snapshot, exclude, self._holders.held())
        self.reset()

    def reset(self) -> None:
        """Forget what was given; what is held by others is taken."""
        self._inventory.reset()
        self._homes: dict[str, Home] = {}
        self._ahead: set[str] = set()
        self._given: dict[str, Host] = {}

    # --- what a pod would get -----------------------------------------------------------------------------------
    def on(self, pod: Pod, target: ExistingNode) -> Offer | None:
        """What the pod would get on a node that is there or on its way; None when it cannot have all it claims."""
        claims = self.claims[pod.key]
        if not all(any(_reached(target, reach) for reach in reaches) for reaches in claims.reaches):
            return self._none(pod, "what its claims have been given is not to be had there")
        if any(one.key in self._ahead for one in claims.asked):
            return None  # it is given its devices together with another pod, on a node in the making

        def narrowed(now: Requirements, reach: Reach) -> Requirements | None:
            return now & reach.labels if _reached(target, reach) else None

        host = self._inventory.host(target)
        offer = self._offer(pod, host, EMPTY, narrowed, lambda wanted: _reached(target, Reach("", wanted)))
        return offer if offer is not None and len(offer.by_variant) == len(host.variants) else None

    def possible(self, pod: Pod, types: Iterable[str], requirements: Requirements) -> bool:
        """Whether a node that is the pod's alone could have what it claims, as one of these types."""
        names = frozenset(types)
        found = self.within(pod, self._inventory.new_host(sorted(names)), names, requirements) is not None
        if found:
            self.why.pop(pod.key, None)  # whatever keeps it waiting, it is not that there are no such devices
        return found

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
        devices = (*self._inventory.shared.devices, *variant.pools.devices)
        unsound = {**self._inventory.shared.unsound, **variant.pools.unsound}
        search = Search(asked, devices, unsound, self._counted(variant), narrowed, self._matching)
        found = search.run(requirements)
        if found is None:
            self._none(pod, search.why)
        return found

    def _counted(self, variant: Variant) -> Callable[[Device], Usage]:
        return lambda device: variant.usage if device.planned else self._inventory.usage

    def _none(self, pod: Pod, why: str) -> Offer | None:
        """Remember why the pod has no devices somewhere: best where there were some that it wants."""
        if self.why.get(pod.key, NONE).endswith(NONE):
            self.why[pod.key] = why
        return None

    # --- giving -------------------------------------------------------------------------------------------------
    def place(self, pod: Pod, target: ExistingNode) -> None:
        """The pod is placed on a node that is there or on its way."""
        offer = self.on(pod, target)
        if offer is not None:
            self.take(pod, offer)

    def take(self, pod: Pod, offer: Offer) -> None:
        """The pod is placed there: what it was offered is taken, and variants without an offer are none any more."""
        host = offer.host
        host.variants = tuple(variant for variant in host.variants if variant in offer.by_variant)
        for variant, picks in offer.by_variant.items():
            for pick in picks:
                if pick.device.planned:
                    variant.usage.take(pick.device, pick.share)
        for pick in _common(offer.by_variant):
            self._inventory.usage.take(pick.device, pick.share)
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
                self._inventory.usage.give_back(pick.device, pick.share)
            self._given.pop(pod_key, None)
        self._homes = {key: home for key, home in self._homes.items() if home.host is not host}

    def look_ahead(self, pod: Pod) -> None:
        """The pod is to be placed on a planned node, and so are the pods that share a claim with it."""
        self._ahead |= {one.key for one in self.claims[pod.key].asked}

    @property
    def shares_devices(self) -> bool:
        """Whether there are devices that are no node's own, and may be used up by other nodes."""
        return bool(self._inventory.shared.devices)

    def new_host(self, types: Iterable[str]) -> Host:
        """A node in the making that may become one of these types."""
        return self._inventory.new_host(types)

    def shape(self, pod: Pod) -> tuple[bytes, ...] | None:
        """Pods for which it is equal find devices where the others do; None for those that share claims."""
        claims = self.claims[pod.key]
        shared = claims.reaches or any(self._sharing[one.key] > 1 for one in claims.asked)
        return None if shared else tuple(one.shape for one in claims.asked)

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
        return {key: self._explained(key, refusal) for key, refusal in left.items()}

    def _explained(self, key: str, refusal: PodRefusal) -> PodRefusal:
        if key not in self.why:
            return refusal
        texts = (self.why[key], *template_problems(self._snapshot)[:1], refusal.text)
        return replace(refusal, code=CODE, text="; ".join(texts))

    def equipped(self, nodes: Sequence[NewNode]) -> tuple[NewNode, ...]:
        """New nodes with what claims get there."""
        return tuple(self._equipped(node) for node in nodes)

    def _equipped(self, node: NewNode) -> NewNode:
        own = [grant for key in node.pods if key in self._given for grant in self._grants(key, node.instance_types)]
        return replace(node, devices=tuple(own)) if own else node

    def ordered(self, order: Sequence[str], placed: Mapping[str, str]) -> list[str]:
        """The pods in the order in which they were given a place: those on new nodes got their devices last."""
        late = [key for key in self._given if key not in placed]
        known = frozenset(late)
        return [*(key for key in order if key not in known), *late]

    def granted(self, placed: Mapping[str, str]) -> tuple[Grant, ...]:
        """What claims get for pods that are placed on nodes that are there or on their way."""
        return tuple(grant for key in sorted(placed) if key in self._given for grant in self._grants(key))

    def _grants(self, pod_key: str, types: Sequence[str] = ()) -> Iterator[Grant]:
        """What the pod was given; on a new node for each of the types that it lists."""
        host = self._given.get(pod_key)
        for key, by_variant in host.given if host is not None else ():
            if key != pod_key:
                continue
            for variant, picks in by_variant.items():
                listed = [name for name in types if name in variant.types] if types else sorted(variant.types) or [""]
                for name in listed:
                    for pick in picks:
                        yield Grant(
                            pick.claim, pick.request, pick.device.id, dict(pick.share), name, pick.device.planned
                        )


def _reached(target: ExistingNode, reach: Reach) -> bool:
    """Whether what is to be reached so can be reached from a node."""
    node = target.state.node
    if reach.node and (node is None or node.name != reach.node):
        return False
    return all(serves(target.possible.get(key), row) for key, row in reach.labels.items())


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
