"""The Cloud port over EC2 in memory: the same answers, errors and blind spots as the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from kerf.ec2.nodeclass import profile_verdicts, unmatched
from kerf.ec2.nodeclass.nodeclass import profiles_path
from kerf.model.aws.cloud import (
    ClassFacts,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Impairment,
    Instance,
    LaunchTemplate,
    Region,
    SecurityGroup,
    Subnet,
    ZonalShift,
)
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import PROFILE, TEMPLATE, Resource
from kerf.ports import NotLeading, RoleNotFound
from kerf.sandbox.api.manifests import digest
from kerf.sandbox.aws import account
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.faults import Call, Faults
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass

T = TypeVar("T")
VERSION = "1.34"


class SandboxCloud:
    """What the controller sees of AWS."""

    def __init__(self, ec2: Ec2, clock: VirtualClock, faults: Faults, cluster_name: str) -> None:
        self._ec2, self._clock, self._faults, self._name = ec2, clock, faults, cluster_name
        #: Of the control plane.
        self.kubernetes_version = VERSION
        self._groups = account.security_groups(cluster_name)
        self._subnets = account.subnets(cluster_name, ec2.region.zones)
        #: Instance profiles by name: (role, path, tags).
        self.profiles: dict[str, tuple[str, str, dict[str, str]]] = {}
        #: Names that IAM does not know.
        self.absent_roles: set[str] = set()
        self.absent_profiles: set[str] = set()
        #: What speaks against every launch (reason and message), if anything does.
        self.objection: tuple[str, str] | None = None
        #: Launch templates by name, with their tags.
        self.templates: dict[str, tuple[Resource, Mapping[str, str]]] = {}
        self._made: dict[str, datetime] = {}

    def region(self) -> Region:
        return self._request("region", "", lambda: replace(self._ec2.region, on_demand={}, spot={}))

    def on_demand_prices(self) -> Mapping[str, int]:
        return self._request("on_demand_prices", "", lambda: self._ec2.region.on_demand)

    def spot_prices(self) -> Mapping[tuple[str, str], int]:
        return self._request("spot_prices", "", lambda: self._ec2.region.spot)

    def cluster(self) -> ClusterFacts:
        facts = ClusterFacts(
            name=self._name,
            endpoint=f"https://{self._name}.sandbox.example",
            ca_bundle="c2FuZGJveA==",
            dns_ip="10.100.0.10",
            service_cidr="10.100.0.0/16",
            kubernetes_version=self.kubernetes_version,
            region=self._ec2.region.name,
            account="123456789012",
        )
        return self._request("cluster", "", lambda: facts)

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        return self._request("resolve", node_class.name, lambda: self._resolved(node_class, cluster.kubernetes_version))

    def instances(self) -> Sequence[Instance]:
        return self._request("instances", "", lambda: [one for one in self._ec2.describe() if self._ours(one)])

    def impairments(self, of: Sequence[str] | None = None) -> Sequence[Impairment]:
        def asked() -> list[Impairment]:
            return [one for one in self._ec2.impairments() if of is None or one.instance_id in of]

        return self._request("impairments", "", asked)

    def zonal_shifts(self, cluster: ClusterFacts) -> Sequence[ZonalShift]:
        return self._request("zonal_shifts", "", self._ec2.zonal_shifts)

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        def launch() -> FleetResult:
            if not may_act():
                raise NotLeading(f"create_fleet {request.group}: not asked any more")
            for template in request.templates:
                self._make(template)
            self._clock.sleep(self._ec2.weather.fleet_seconds)
            return self._ec2.fleet(request)

        return self._request("create_fleet", request.group, launch)

    def ensure_template(self, template: LaunchTemplate) -> None:
        self._request("ensure_template", template.name, lambda: self._make(template))

    def _make(self, template: LaunchTemplate) -> None:
        made = Resource(TEMPLATE, f"lt-{digest(template.name)[:17]}", template.name, self._clock.now())
        self.templates.setdefault(template.name, (made, template.tags))

    def dry_run(self, request: FleetRequest) -> tuple[str, str] | None:
        return self._request("dry_run", request.group, lambda: self.objection)

    def terminate(self, instance_id: str) -> None:
        self._request("terminate", instance_id, lambda: self._ec2.terminate(instance_id))

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        self._request("tag", instance_id, lambda: self._ec2.tag(instance_id, tags))

    def ensure_instance_profile(self, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
        def ensure() -> None:
            if role.rpartition("/")[2] in self.absent_roles:
                name_of = role.rpartition("/")[2]
                text = f"The role with name {name_of} cannot be found."
                raise RoleNotFound(f"iam:AddRoleToInstanceProfile: NoSuchEntity: {text}")
            self.profiles[name] = (role, path, dict(tags))
            self._made.setdefault(name, self._clock.now())

        self._request("ensure_instance_profile", name, ensure)

    def delete_class_resources(self, class_name: str, profile_path: str) -> None:
        def remove() -> None:
            own = [n for n, (_, tags) in self.templates.items() if self._of(tags) == (self._name, class_name)]
            for name in own:
                del self.templates[name]
            if profile_path:
                self.profiles = {n: p for n, p in self.profiles.items() if p[1] != profile_path}

        self._request("delete_class_resources", class_name, remove)

    def launch_templates(self) -> Sequence[Resource]:
        def ours() -> list[Resource]:
            return [one for _, (one, tags) in sorted(self.templates.items()) if self._of(tags)[0] == self._name]

        return self._request("launch_templates", "", ours)

    def instance_profiles(self) -> Sequence[Resource]:
        def ours() -> list[Resource]:
            path = profiles_path(self._ec2.region.name, self._name)
            names = sorted(name for name, profile in self.profiles.items() if profile[1].startswith(path))
            return [Resource(PROFILE, name, name, self._made[name]) for name in names]

        return self._request("instance_profiles", "", ours)

    def delete_resource(self, resource: Resource) -> None:
        def remove() -> None:
            (self.templates if resource.kind == TEMPLATE else self.profiles).pop(resource.name, None)
            self._made.pop(resource.name, None)

        self._request("delete_resource", resource.name, remove)

    @staticmethod
    def _of(tags: Mapping[str, str]) -> tuple[str, str]:
        """Whose something is, by its tags: cluster and node class."""
        return tags.get(labels.TAG_EKS_CLUSTER, ""), tags.get(labels.TAG_NODECLASS, "")

    def receive(self) -> Sequence[Message]:
        return self._request("receive", "", self._ec2.receive)

    def delete_message(self, message: Message) -> None:
        self._request("delete_message", message.id, lambda: self._ec2.delete_message(message))

    def _request(self, verb: str, subject: str, effect: Callable[[], T]) -> T:
        call = Call("cloud", verb, subject)
        self._faults.before(call)
        self._ec2.log(verb, subject)
        answer = effect()
        self._faults.after(call)
        return answer

    def _ours(self, instance: Instance) -> bool:
        """Whether an instance was launched for a node pool of this cluster."""
        tags = instance.tags
        return (
            tags.get(labels.TAG_EKS_CLUSTER) == self._name
            and {labels.TAG_NODEPOOL, labels.TAG_NODECLASS} <= tags.keys()
        )

    def _resolved(self, node_class: EC2NodeClass, version: str) -> ClassFacts:
        spec = node_class.spec
        subnets = [one.thing for one in account.select(self._subnets, spec.subnet_selector_terms)]
        groups = [one.thing for one in account.select(self._groups, spec.security_group_selector_terms)]
        images = account.images_of(account.images(version), node_class)
        problems = {}
        if spec.instance_profile in self.absent_profiles:
            text = f"iam:GetInstanceProfile: NoSuchEntity: Instance Profile {spec.instance_profile} cannot be found."
            problems[profile_verdicts.CONDITION] = (profile_verdicts.PROFILE_NOT_FOUND, text)
        for condition, found in (("SubnetsReady", subnets), ("SecurityGroupsReady", groups), ("AMIsReady", images)):
            if not found:
                problems[condition] = unmatched.problem(condition, node_class)
        group = self._ec2.placement_groups.find(spec.placement_group_selector)
        if spec.placement_group_selector is not None and group is None:
            problems["PlacementGroupReady"] = unmatched.placement_group(node_class)
        return ClassFacts(
            generation=node_class.metadata.generation,
            subnets=tuple(self._free(one) for one in subnets if isinstance(one, Subnet)),
            security_groups=tuple(one for one in groups if isinstance(one, SecurityGroup)),
            images=images,
            images_complete=account.images_complete(account.images(version), node_class),
            instance_profile=spec.instance_profile or self._profile_of(node_class),
            problems=problems,
            reservations=self._ec2.reserved(spec.capacity_reservation_selector_terms),
            placement_group=group,
        )

    def _free(self, subnet: Subnet) -> Subnet:
        return replace(subnet, free_addresses=subnet.free_addresses - self._ec2.used_addresses.get(subnet.id, 0))

    def _profile_of(self, node_class: EC2NodeClass) -> str:
        """The profile that was made for this class and carries its role; empty until there is one."""
        wanted = (node_class.spec.role or "").rsplit("/", 1)[-1]
        for name, (role, path, tags) in sorted(self.profiles.items()):
            own = node_class.metadata.uid in path or tags.get(labels.TAG_NODECLASS) == node_class.name
            if own and role.rsplit("/", 1)[-1] == wanted:
                return name
        return ""
