"""Calls of the Cloud port, timed and counted by Karpenter's names. Source: operations reference §2.8."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kerf.model.aws.cloud import (
    ClassFacts,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Impairment,
    Instance,
    LaunchTemplate,
    Region,
    ZonalShift,
)
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import Resource
from kerf.ports import Cloud
from kerf.telemetry.series.metrics import Metrics
from kerf_api.v1.ec2nodeclass import EC2NodeClass

T = TypeVar("T")
_PROVIDER = "aws"


class MeasuredCloud:
    """A Cloud that hands every call on to another. `clock` is in seconds and only ever grows."""

    def __init__(self, cloud: Cloud, metrics: Metrics, clock: Callable[[], float] = time.perf_counter) -> None:
        self._cloud, self._metrics, self._clock = cloud, metrics, clock

    def _measured(self, method: str, call: Callable[[], T], *, timed: bool = True) -> T:
        began = self._clock()
        try:
            return call()
        except Exception as error:
            self._metrics.cloud_errors.labels("", method, _PROVIDER, type(error).__name__).inc()
            raise
        finally:
            if timed:
                self._metrics.cloud_calls.labels("", method, _PROVIDER).observe(self._clock() - began)

    def region(self) -> Region:
        return self._measured("GetInstanceTypes", self._cloud.region)

    def on_demand_prices(self) -> Mapping[str, int]:
        return self._measured("GetOnDemandPrices", self._cloud.on_demand_prices)

    def spot_prices(self) -> Mapping[tuple[str, str], int]:
        return self._measured("GetSpotPrices", self._cloud.spot_prices)

    def cluster(self) -> ClusterFacts:
        return self._measured("GetCluster", self._cloud.cluster)

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        return self._measured("Resolve", lambda: self._cloud.resolve(node_class, cluster))

    def instances(self) -> Sequence[Instance]:
        return self._measured("List", self._cloud.instances)

    def impairments(self, of: Sequence[str] | None = None) -> Sequence[Impairment]:
        return self._measured("Examine", lambda: self._cloud.impairments(of))

    def zonal_shifts(self, cluster: ClusterFacts) -> Sequence[ZonalShift]:
        return self._measured("GetZonalShifts", lambda: self._cloud.zonal_shifts(cluster))

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        return self._measured("Create", lambda: self._cloud.create_fleet(request, may_act))

    def ensure_template(self, template: LaunchTemplate) -> None:
        self._measured("EnsureTemplate", lambda: self._cloud.ensure_template(template))

    def dry_run(self, request: FleetRequest) -> tuple[str, str] | None:
        return self._measured("DryRun", lambda: self._cloud.dry_run(request))

    def terminate(self, instance_id: str) -> None:
        self._measured("Delete", lambda: self._cloud.terminate(instance_id))

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        self._measured("Tag", lambda: self._cloud.tag(instance_id, tags))

    def ensure_instance_profile(self, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
        self._measured("EnsureInstanceProfile", lambda: self._cloud.ensure_instance_profile(name, role, path, tags))

    def delete_class_resources(self, class_name: str, profile_path: str) -> None:
        self._measured("DeleteClassResources", lambda: self._cloud.delete_class_resources(class_name, profile_path))

    def launch_templates(self) -> Sequence[Resource]:
        return self._measured("ListLaunchTemplates", self._cloud.launch_templates)

    def instance_profiles(self) -> Sequence[Resource]:
        return self._measured("ListInstanceProfiles", self._cloud.instance_profiles)

    def delete_resource(self, resource: Resource) -> None:
        self._measured("DeleteUnused", lambda: self._cloud.delete_resource(resource))

    def receive(self) -> Sequence[Message]:
        """Waiting for messages is not work: only its errors count."""
        return self._measured("Receive", self._cloud.receive, timed=False)

    def delete_message(self, message: Message) -> None:
        self._measured("DeleteMessage", lambda: self._cloud.delete_message(message))
