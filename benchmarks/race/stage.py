"""What a load acts on: the objects of a cluster, its spot instances and the stock of its AWS."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any, Final

from kerf.kube.client import KubeClient
from tests.cluster.control_plane import ControlPlane
from tests.cluster.moto_aws import MotoAws

Json = dict[str, Any]
_MERGE: Final = "application/merge-patch+json"
#: From the notice of a spot interruption to its end. Source: EC2 user guide, "Spot Instance interruption notices".
NOTICE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with its AWS, and the dice of the run."""

    cluster: ControlPlane
    kube: KubeClient
    aws: MotoAws
    dice: Random

    def apply(self, manifests: Iterable[Json]) -> None:
        """Apply objects together."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.cluster.kubectl("apply", "-f", "-", input=json.dumps(items))

    def scale(self, name: str, replicas: int) -> None:
        """Set the size of a Deployment."""
        path = f"/apis/apps/v1/namespaces/default/deployments/{name}/scale"
        self.kube.request("PATCH", path, {"spec": {"replicas": replicas}}, content_type=_MERGE)

    def reclaim(self, share: float) -> None:
        """EC2 takes back this share of the spot instances, with its usual notice."""
        spot = sorted(one["id"] for one in self._running("spot"))
        for id_ in self.dice.sample(spot, ceil(share * len(spot))):
            self.aws.interrupt(id_, "spot", terminate_after=NOTICE_SECONDS)

    def sell_out(self) -> None:
        """The type that most of the spot instances have is out of stock as spot."""
        types = Counter(one["instance_type"] for one in self._running("spot"))
        if types:
            self.aws.stock_out(min(types, key=lambda name: (-types[name], name)), "*", "spot")

    def restock(self) -> None:
        """Everything is in stock again."""
        self.aws.restock()

    def _running(self, market: str) -> list[Json]:
        return [one for one in self.aws.instances("pending", "running") if one["capacity_type"] == market]


#: Seconds after the beginning of the load, and what happens then.
Step = tuple[float, Callable[[Stage], None]]
