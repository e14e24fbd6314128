"""The addresses that subnets have left, within one look: each call that is planned leaves fewer to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from kerf.ec2 import addresses
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetRequest

#: What EC2 says of a subnet may not know yet of machines that were launched so shortly before.
_LAG = timedelta(seconds=5)


class SubnetRoom:
    """`calls` are under way."""

    def __init__(self, view: View, calls: Iterable[FleetRequest]) -> None:
        self._snapshot, self._calls = view.snapshot, list(calls)
        self._known: dict[str, tuple[dict[str, int], Mapping[str, int]]] = {}

    def of(self, class_name: str) -> Mapping[str, int]:
        """Free addresses by subnet, of the subnets of a node class; empty while AWS has not returned them."""
        if class_name not in self._known:
            self._known[class_name] = self._work_out(class_name)
        return self._known[class_name][0]

    def planned(self, call: FleetRequest) -> None:
        """One more call."""
        self._calls.append(call)
        for free, pods in self._known.values():
            addresses.take(free, call, pods)

    def _work_out(self, class_name: str) -> tuple[dict[str, int], Mapping[str, int]]:
        facts, asked = self._snapshot.class_facts.get(class_name), self._snapshot.resolved_at.get(class_name)
        if facts is None or asked is None:
            return {}, {}
        pods = addresses.pods_by_type(self._snapshot.catalogues.get(class_name, ()))
        launched = (i for i in self._snapshot.instances.values() if i.launched >= asked - _LAG)
        return addresses.left(facts.subnets, launched, self._calls, pods), pods
