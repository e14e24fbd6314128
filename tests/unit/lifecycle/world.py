"""A small world that obeys plans: API objects, EC2 instances and a clock, all values, nothing hidden.

`decide` asks lifecycle about the present; `obey` performs a plan, or the first few actions of it, the way the executor
and the API server would: guarded patches, deletions held up by finalizers, idempotent fleet calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from functools import singledispatchmethod
from typing import Any

from msgspec.structs import replace

from kerf.ec2.nodeclass.validation import dated
from kerf.lifecycle.lifecycle import lifecycle
from kerf.model import cluster, kinds
from kerf.model.aws.cloud import (
    ClassFacts,
    ClusterFacts,
    DryRun,
    FleetError,
    Image,
    Instance,
    SecurityGroup,
    Subnet,
)
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.aws.launch_marks import LaunchMark
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import (
    Action,
    DeleteClassResources,
    DeleteObject,
    DeleteUnused,
    EnsureInstanceProfile,
    EnsureTemplate,
    EvictPod,
    LaunchInstances,
    PatchObject,
    Plan,
    Source,
    TagInstance,
    TerminateInstance,
    ValidateClass,
)
from kerf.model.settings import Settings
from kerf.model.snapshot import LaunchFailure, Snapshot
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.state.marks import Marks
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode, encode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.merge_patch import merged

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = ClusterFacts(
    name="demo",
    endpoint="https://demo.example",
    ca_bundle="Q0E=",
    dns_ip="10.100.0.10",
    service_cidr="10.100.0.0/16",
    kubernetes_version="1.33",
    region="us-west-2",
)
FACTS = ClassFacts(
    generation=1,
    subnets=(Subnet("subnet-a", "us-west-2a", "usw2-az1", 100),),
    security_groups=(SecurityGroup("sg-1", "nodes"),),
    images=(Image(id="ami-1", name="al2023", architecture="amd64", variant="standard"),),
    instance_profile="demo_1",
)
SHUTDOWN = timedelta(seconds=20)


def text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- manifests --------------------------------------------------------------------------------------------------
def node_class(name: str = "default", **spec: Any) -> EC2NodeClass:
    body = {
        "role": "node-role",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-a"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    }
    meta = {"name": name, "uid": f"uid-{name}", "generation": 1, "creationTimestamp": text(NOW)}
    return decode(EC2NodeClass, {"metadata": meta, "spec": body | spec})


def node_pool(name: str = "default", **template: Any) -> NodePool:
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    meta = {"name": name, "uid": f"uid-pool-{name}", "generation": 1, "creationTimestamp": text(NOW)}
    spec = {"template": {"spec": {"nodeClassRef": ref, "requirements": [], **template}}}
    return decode(NodePool, {"metadata": meta, "spec": spec})


def node_claim(name: str = "a", *, meta: Mapping[str, Any] = {}, **spec: Any) -> NodeClaim:
    header = {
        "name": name,
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": text(NOW),
        "labels": {labels.NODEPOOL: "default", labels.NODECLASS: "default"},
        "finalizers": [labels.TERMINATION_FINALIZER],
    }
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    body = {"nodeClassRef": ref, "requirements": [], "resources": {"requests": {"cpu": "1", "pods": "2"}}}
    return decode(NodeClaim, {"metadata": {**header, **meta}, "spec": {**body, **spec}})


def pod(name: str, node: str, **fields: Any) -> Pod:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", **fields.pop("meta", {})}
    status = {"phase": "Running", "startTime": text(NOW), **fields.pop("status", {})}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 30, **fields}
    return decode(Pod, {"metadata": meta, "spec": spec, "status": status})


def large() -> InstanceType:
    rows = {labels.INSTANCE_TYPE: "m5.large", labels.ARCH: "amd64", labels.OS: "linux"}
    room = Resources.parse({"cpu": "2", "memory": "8Gi", "pods": "29", "ephemeral-storage": "20Gi"})
    return InstanceType(
        name="m5.large",
        requirements=Requirements(requirement(key, IN, (value,)) for key, value in rows.items()),
        capacity=room,
        allocatable=room,
        offerings=(Offering("m5.large", "us-west-2a", labels.ON_DEMAND, 96_000),),
    )


# --- the world --------------------------------------------------------------------------------------------------
class World:
    """See the module. `given` is how many instances a fleet call gives (None: all), `errors` what it says then;
    `objection` is what a dry run says against a launch, if anything."""

    def __init__(self, *objects: Any, now: datetime = NOW) -> None:
        self.now, self.version = now, 100
        self.objects: dict[Ref, Any] = {}
        self.instances: dict[str, Instance] = {}
        self.shutting_down: dict[str, datetime] = {}
        self.calls: dict[str, tuple[str, ...]] = {}
        self.failures: dict[str, LaunchFailure] = {}
        self.given: int | None = None
        self.errors: tuple[FleetError, ...] = ()
        self.deeds: list[Action] = []
        self.listed: datetime = now
        self.facts: dict[str, Any] = {}
        self.class_facts: dict[str, ClassFacts] = {"default": FACTS}
        self.dry_runs: dict[str, DryRun] = {}
        self.objection: tuple[str, str] | None = None
        self.keys = LaunchKeys.of_the_process("demo")
        self.marks, self._seen = Marks(self.keys), dict[str, NodeClaim]()
        #: A class that is tried is tried again for ever; who wants that says so.
        self.settings = Settings(cluster_name="demo", disable_dry_run=True)
        for value in objects:
            self.put(value)

    # --- objects
    def put(self, value: Any) -> Any:
        self.version += 1
        value = replace(value, metadata=replace(value.metadata, resource_version=str(self.version)))
        self.objects[kinds.ref(value)] = value
        return value

    def get(self, kind: kinds.Kind, name: str) -> Any:
        return self.objects.get(Ref(kind.name, "", name))

    def claim(self, name: str = "a") -> NodeClaim:
        found: NodeClaim = self.objects[Ref("NodeClaim", "", name)]
        return found

    def node(self, name: str) -> Node:
        found: Node = self.objects[Ref("Node", "", name)]
        return found

    def condition(self, type_: str, claim: str = "a") -> tuple[str, str] | None:
        found = self.claim(claim).condition(type_)
        return None if found is None else (found.status, found.reason)

    def delete(self, ref: Ref, grace: int = 0) -> None:
        value = self.objects.get(ref)
        if value is None:
            return
        if not value.metadata.finalizers and ref.kind != "Pod":
            del self.objects[ref]
            return
        if value.metadata.deleting and ref.kind != "Pod":
            return
        meta = replace(
            value.metadata,
            deletion_timestamp=self.now + timedelta(seconds=grace),
            generation=value.metadata.generation + 1,
        )
        self.put(replace(value, metadata=meta))

    # --- time
    def pass_time(self, seconds: float = 0) -> None:
        """Time passes; pods whose grace is over and instances that shut down vanish; all lists are read again."""
        self.now += timedelta(seconds=seconds)
        for ref, value in list(self.objects.items()):
            until = value.metadata.deletion_timestamp
            if ref.kind == "Pod" and until is not None and until <= self.now and not value.metadata.finalizers:
                del self.objects[ref]
        for id_, since in list(self.shutting_down.items()):
            if self.now - since >= SHUTDOWN:
                self.instances.pop(id_, None)
                del self.shutting_down[id_]
        self.listed = self.now

    # --- deciding and obeying
    def _marked(self) -> Mapping[str, LaunchMark]:
        claims = {ref.name: value for ref, value in self.objects.items() if ref.kind == "NodeClaim"}
        for name in {*claims, *self._seen}:
            self.marks.noticed(self._seen.get(name), claims.get(name), self.now)
        self._seen = claims
        return self.marks.at(claims, self.now)

    def snapshot(self) -> Snapshot:
        fresh = dict.fromkeys(Source, self.now) | {Source.INSTANCES: self.listed}
        known = {
            "cluster": CLUSTER,
            "class_facts": self.class_facts,
            "dry_runs": dict(self.dry_runs),
            "catalogues": {"default": (large(),)},
            "instances": dict(sorted(self.instances.items())),
            "launch_failures": self.failures,
            "launch_marks": self._marked(),
            "fresh_at": fresh,
        }
        return cluster.build(self.objects.values(), now=self.now, settings=self.settings, **known | self.facts)

    def decide(self) -> Plan:
        return lifecycle(self.snapshot())

    def obey(self, plan: Plan, first: int | None = None) -> None:
        """Perform a plan's actions, or the first so many; one that conflicts has no effect."""
        for action in plan.actions[:first]:
            self.deeds.append(action)
            self._do(action)

    def settle(self, rounds: int = 12) -> Plan:
        """Decide and obey until nothing is left to do at this instant; the last plan."""
        for _ in range(rounds):
            plan = self.decide()
            if not plan.actions:
                return plan
            self.obey(plan)
        raise AssertionError(f"never comes to rest: {[a.key for a in self.decide().actions]}")

    def done(self, kind: type[Action]) -> list[Any]:
        return [deed for deed in self.deeds if isinstance(deed, kind)]

    @singledispatchmethod
    def _do(self, action: Action) -> None:
        raise AssertionError(f"nobody can do {action!r}")

    @_do.register
    def _(self, asked: PatchObject) -> None:
        action = self.keys.marked(asked)
        assert isinstance(action, PatchObject)
        old = self.objects.get(action.ref)
        if old is None or action.resource_version not in ("", old.metadata.resource_version):
            return
        if action.subresource != "status":
            assert "status" not in action.patch, "a status is written through its subresource"
        new = decode(type(old), merged(encode(old), action.patch))
        if new.metadata.deleting and not new.metadata.finalizers:
            del self.objects[action.ref]
        else:
            self.put(new)

    @_do.register
    def _(self, action: DeleteObject) -> None:
        value = self.objects.get(action.ref)
        if value is not None and value.metadata.uid == action.uid:
            grace = action.grace_seconds
            default = getattr(value.spec, "termination_grace_period_seconds", 0) or 0
            self.delete(action.ref, default if grace is None else grace)

    @_do.register
    def _(self, action: EvictPod) -> None:
        value = self.objects.get(action.ref)
        if value is not None and value.metadata.uid == action.uid:
            self.delete(action.ref, value.spec.termination_grace_period_seconds or 0)

    @_do.register
    def _(self, action: LaunchInstances) -> None:
        """The same token gives the same instances, however often it comes."""
        request = action.request
        if request.group not in self.calls:
            wanted = len(request.members) if self.given is None else self.given
            ids = tuple(f"i-{len(self.calls)}{number:03}" for number in range(wanted))
            self.calls[request.group] = ids
            for id_ in ids:
                made = self.add_instance(id_, request.tags)
                self.instances[id_] = changed(made, profile=request.templates[0].instance_profile)
            if wanted < len(request.members):
                self.failures[request.group] = LaunchFailure(self.errors, self.now)

    def add_instance(self, id_: str, tags: Mapping[str, str], launched: datetime | None = None) -> Instance:
        instance = Instance(
            id=id_,
            instance_type="m5.large",
            zone="us-west-2a",
            state="running",
            capacity_type=labels.ON_DEMAND,
            launched=launched or self.now,
            image_id="ami-1",
            subnet_id="subnet-a",
            tags=dict(tags),
        )
        self.instances[id_] = instance
        return instance

    @_do.register
    def _(self, action: TerminateInstance) -> None:
        if action.instance_id in self.instances:
            self.instances[action.instance_id] = changed(self.instances[action.instance_id], state="shutting-down")
            self.shutting_down.setdefault(action.instance_id, self.now)

    @_do.register
    def _(self, action: TagInstance) -> None:
        instance = self.instances[action.instance_id]
        self.instances[instance.id] = changed(instance, tags={**instance.tags, **action.tags})

    @_do.register
    def _(self, action: DeleteUnused) -> None:
        known = self.facts["inventories"][action.resource.kind]
        left = tuple(one for one in known.resources if one != action.resource)
        self.facts["inventories"] = {action.resource.kind: changed(known, resources=left)}

    @_do.register(EnsureInstanceProfile)
    @_do.register(EnsureTemplate)
    @_do.register(DeleteClassResources)
    def _(self, action: Action) -> None:
        """Noted in `deeds`."""

    @_do.register
    def _(self, action: ValidateClass) -> None:
        found = DryRun(action.request.group, self.now, self.objection)
        self.dry_runs[action.class_name] = dated(found, self.dry_runs.get(action.class_name))

    # --- nodes
    def join(self, claim: NodeClaim, *, ready: bool = True, taints: Iterable[Mapping[str, str]] | None = None) -> Node:
        """The claim's machine registers with the API server, as its user data says."""
        unregistered = {"key": labels.UNREGISTERED_TAINT, "effect": "NoExecute"}
        name = f"node-{claim.name}"
        body = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": {labels.HOSTNAME: name}},
            "spec": {
                "providerID": claim.status.provider_id,
                "taints": [unregistered] if taints is None else list(taints),
            },
            "status": {
                "capacity": dict(claim.status.capacity),
                "allocatable": dict(claim.status.allocatable),
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        }
        self.put(decode(Node, body))
        return self.node(name)

    def set_ready(self, name: str, ready: bool) -> None:
        node = self.node(name)
        told = tuple(replace(c, status="True" if ready else "Unknown") for c in node.status.conditions)
        self.put(replace(node, status=replace(node.status, conditions=told)))


def prepared(*claims: NodeClaim) -> World:
    """A pool and a ready class at rest, and claims that nothing has happened to yet."""
    world = World(node_class(), node_pool())
    world.settle()
    for claim in claims:
        world.put(claim)
    world.deeds.clear()
    return world


def running(*claims: NodeClaim) -> World:
    """Claims that have launched, registered and initialised."""
    world = prepared(*claims)
    world.settle()
    for claim in claims:
        world.join(world.claim(claim.name))
    world.settle()
    world.deeds.clear()
    return world
