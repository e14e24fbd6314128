"""Nodes in the making for pods that claim devices: one pod after the other, before anything else is packed.

A pod joins a node that has been started if that costs no more than a node for it alone; else it starts one. What other
pods need is not known here: they join these nodes later, within the types that have the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import AFFINITY, TopologyGroup
from kerf.scheduling.devices.inventory import Host
from kerf.scheduling.devices.ledger import DeviceLedger, Offer
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, PoolDemand
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.topology.admits import bounds, founded_on_nodes
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement


class Seating:
    """The nodes that pods with claims start in one pool."""

    def __init__(self, template: NodeClaimTemplate, ledger: DeviceLedger, seated: set[TopologyGroup]) -> None:
        self._template, self._ledger, self._seated = template, ledger, seated
        self.bins: list[Bin] = []
        self._hosts: dict[int, Host] = {}
        self._hosting: dict[int, Host] = {}
        #: By the difference between pods: how many pods a node had when it had nothing for one, and the price of one's
        #: own.
        self._in_vain: dict[tuple[object, ...], int] = {}
        self._alone: dict[tuple[object, ...], int | None] = {}

    def seat(self, stocks: Sequence[PoolDemand]) -> list[Bin]:
        """Start nodes for as many of these pods as can have their devices; who shares claims is tried again."""
        waiting = [stock for stock in stocks if stock.item.cls.claiming and stock.left]
        while waiting:
            left = [stock for stock in waiting if not self._seat(stock)]
            if len(left) == len(waiting):
                break
            waiting = left
        return self.bins

    def keep(self, closed: Iterable[Packed]) -> None:
        """Of the nodes that were started only these are to be had; the others give back."""
        stocks = (stock for packed in closed for stock, _ in packed.content)
        kept = {id(self._hosting[id(stock)]) for stock in stocks if id(stock) in self._hosting}
        for host in self._hosts.values():
            if id(host) not in kept:
                self._ledger.give_back(host)

    # --- one pod ------------------------------------------------------------------------------------------------
    def _seat(self, stock: PoolDemand) -> bool:
        (pod,) = stock.item.pods
        shape = self._ledger.shape(pod)
        like = None if shape is None or stock.hosts or stock.counted else (shape, stock.lane, stock.item.need.tobytes())
        alone = self._price_alone(stock, pod, like)
        for full in self.bins:
            tried = None if like is None else (id(full), *like, stock.item.cls.ports)
            if tried is not None and self._in_vain.get(tried) == len(full.content):
                continue
            if self._join(full, self._hosts[id(full)], stock, pod, alone):
                return True
            if tried is not None:
                self._in_vain[tried] = len(full.content)
        if alone is None:
            return False
        full = Bin(self._template, self._template.requirements, np.zeros_like(stock.item.need))
        host = self._new_host()
        if not self._join(full, host, stock, pod, None):
            return False
        self.bins.append(full)
        self._hosts[id(full)] = host
        return True

    def _new_host(self) -> Host:
        return self._ledger.new_host(sorted(self._template.type_names(self._template.requirements)))

    def _price_alone(self, stock: PoolDemand, pod: Pod, like: tuple[object, ...] | None) -> int | None:
        """What a node for the pod alone costs at least; None when there is none."""
        if like is None:
            return self._alone_price(stock, pod)
        key = (*like, stock.item.cls.ports)
        if key not in self._alone or self._ledger.shares_devices:
            self._alone[key] = self._alone_price(stock, pod)
        return self._alone[key]

    def _alone_price(self, stock: PoolDemand, pod: Pod) -> int | None:
        empty = Bin(self._template, self._template.requirements, np.zeros_like(stock.item.need))
        tried = self._tried(empty, self._new_host(), stock, pod)
        return None if tried is None else self._price(tried[0])

    def _price(self, full: Bin) -> int:
        return int(self._template.shape(full.requirements).price_at[full.types()].min())

    def _join(self, full: Bin, host: Host, stock: PoolDemand, pod: Pod, most: int | None) -> bool:
        """Put the pod there if it can have its devices, for no more than `most` above what the node costs now."""
        tried = self._tried(full, host, stock, pod)
        if tried is None:
            return False
        trial, offer = tried
        if most is not None and self._price(trial) - self._price(full) > most:
            return False
        full.add(stock.item, 1, trial.requirements)
        self._ledger.take(pod, offer)
        self._seated.update(stock.item.cls.counted)
        self._hosting[id(stock)] = host
        return True

    def _tried(self, full: Bin, host: Host, stock: PoolDemand, pod: Pod) -> tuple[Bin, Offer] | None:
        """The node with the pod on it, and what the pod would get there."""
        if not full.most(stock.item, with_company=_founds(stock, self._seated)):
            return None
        joint = self._template.join(full.requirements, stock.served)
        if joint is None:
            return None
        trial = full.copy()
        trial.add(stock.item, 1, joint)
        types = trial.types()
        if not len(types):
            return None
        offer = self._ledger.within(pod, host, frozenset(self._template.table.names[int(i)] for i in types), joint)
        narrowed = None if offer is None else self._template.join(joint, offer.requirements & _only(offer))
        if offer is None or narrowed is None:
            return None
        trial.requirements = narrowed
        return (trial, offer) if len(trial.types()) else None


def _only(offer: Offer) -> Requirements:
    return Requirements([requirement(labels.INSTANCE_TYPE, IN, offer.types)])


def _founds(stock: PoolDemand, seated: set[TopologyGroup]) -> bool:
    """Whether the pods of its own kind that it wants beside it may begin with itself."""
    near = [constraint for constraint in stock.hosts if constraint.group.kind == AFFINITY]
    return all(bounds(constraint, founded=founded_on_nodes(constraint, seated)).admits(0) for constraint in near)
