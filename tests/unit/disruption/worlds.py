"""Small worlds for the tests of disruption: objects with sensible defaults, and an API server that applies plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.disrupt import disrupt
from kerf.disruption.view import view
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.backoff import REGISTRATION_FAILED, Registration
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Node, Pod, PodDisruptionBudget
from kerf.model.plan import Action, CreateNodeClaim, DeleteObject, PatchObject, Plan, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode, encode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.merge_patch import merged

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ZONE = "us-west-2a"
#: What a claim and a pool of this module differ by when only their hashes do.
LOST = "the template has lost a label or an annotation that the node has"
#: A NodePool with these has other hashes than the claims that have drifted.
HASHES = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}
PROTECTED = {labels.DO_NOT_DISRUPT: "true"}


def stamp(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def pool(name: str = "default", **disruption: Any) -> NodePool:
    """`replicas`, `generation`, `annotations` and `requirements` are taken out; the rest is `spec.disruption`."""
    meta: dict[str, Any] = {"name": name, "uid": f"pool-{name}", "resourceVersion": "1"}
    meta["generation"] = disruption.pop("generation", 1)
    meta["annotations"] = disruption.pop("annotations", {})
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    spec: dict[str, Any] = {"template": {"spec": {"nodeClassRef": ref}}}
    spec["template"]["spec"]["requirements"] = disruption.pop("requirements", [])
    replicas = disruption.pop("replicas", None)
    if replicas is not None:
        spec["replicas"] = replicas
    spec["disruption"] = {"budgets": [{"nodes": "100%"}], **disruption}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(NOW - 9 * HOUR)}]
    return decode(NodePool, {"metadata": meta, "spec": spec, "status": {"conditions": ready}})


def condition(type_: str, at: datetime, reason: str = "", status: str = "True") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason or type_, "lastTransitionTime": stamp(at)}


def claim(
    name: str = "a",
    *,
    pool_name: str = "default",
    conditions: Mapping[str, datetime] = {},
    drifted: datetime | None = None,
    consolidatable: bool = True,
    since: datetime = NOW - HOUR,
    instance_type: str = "m5.large",
    capacity_type: str = "on-demand",
    annotations: Mapping[str, str] = {},
    taken_over: bool = False,
    **spec: Any,
) -> NodeClaim:
    """Launched (by another controller, if taken over), registered, initialised and consolidatable since an hour, unless
    told otherwise."""
    rows = [condition(t, since) for t in ("Launched", "Registered", "Initialized", "Ready")]
    rows += [condition("Consolidatable", since)] if consolidatable else []
    rows += [{**condition("Drifted", drifted, "NodePoolDrifted"), "message": LOST}] if drifted else []
    own = {labels.NODEPOOL: pool_name, labels.INSTANCE_TYPE: instance_type, labels.ZONE: ZONE}
    own |= {labels.CAPACITY_TYPE: capacity_type}
    meta: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1, "labels": own}
    launched = {} if taken_over else {labels.LAUNCH_GROUP: f"group-{name}"}
    meta |= {"creationTimestamp": stamp(since), "annotations": {**launched, **annotations}}
    if drifted:
        meta["annotations"] = {labels.NODEPOOL_HASH: "old", labels.NODEPOOL_HASH_VERSION: "v3", **meta["annotations"]}
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    status = {"conditions": rows, "providerID": f"aws:///{ZONE}/i-{name}", "nodeName": f"node-{name}"}
    return decode(NodeClaim, {"metadata": meta, "spec": {"nodeClassRef": ref, **spec}, "status": status})


def node(
    of: NodeClaim,
    *,
    ready: bool = True,
    annotations: Mapping[str, str] = {},
    conditions: Iterable[Mapping[str, Any]] = (),
    **spec: Any,
) -> Node:
    """Ready or not since an hour, unless `conditions` say more of that; they come beside it."""
    own = {**of.metadata.labels, labels.REGISTERED: "true", labels.INITIALIZED: "true"}
    meta = {"name": f"node-{of.name}", "uid": f"node-uid-{of.name}", "resourceVersion": "1", "labels": own}
    meta["annotations"] = dict(annotations)
    rows, plain = [*conditions], condition("Ready", NOW - HOUR, status="True" if ready else "False")
    status = {
        "conditions": rows if any(row["type"] == "Ready" for row in rows) else [plain, *rows],
        "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "29"},
        "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
    }
    return decode(Node, {"metadata": meta, "spec": {"providerID": of.status.provider_id, **spec}, "status": status})


def pairs(*names: str, pool_name: str = "default", **more: Any) -> list[Any]:
    """Claims with their nodes."""
    return [each for n in names for one in (claim(n, pool_name=pool_name, **more),) for each in (one, node(one))]


def drifted(*names: str, **more: Any) -> list[Any]:
    """Claims with their nodes, the first of which has drifted longest; none of them may be consolidated."""
    times = {name: NOW - (len(names) - i) * MINUTE for i, name in enumerate(names)}
    return [each for n in names for each in pairs(n, drifted=times[n], consolidatable=False, **more)]


def unjoined(made: NodePool, count: int, at: datetime = NOW - MINUTE) -> NodePool:
    """The same NodePool after so many nodes that have not joined."""
    failed = tuple(Registration(claim=f"u{n}", at=at, reason=REGISTRATION_FAILED) for n in range(count))
    notes = {**made.metadata.annotations, labels.REGISTRATIONS: text_of(failed)}
    return replace(made, metadata=replace(made.metadata, annotations=notes))


def rolling(name: str = "default", **more: Any) -> NodePool:
    """The pool of `drifted`: it never consolidates."""
    return pool(name, annotations=HASHES, consolidateAfter="Never", **more)


def pod(name: str, on: str = "", *, owner: str = "ReplicaSet", annotations: Mapping[str, str] = {}, **more: Any) -> Pod:
    """`on` is a claim's name. `more` goes to the spec; `phase`, `deletion` and `labels_` are taken out."""
    meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": f"pod-{name}", "resourceVersion": "1"}
    meta |= {"annotations": dict(annotations), "labels": dict(more.pop("labels_", {"app": "web"}))}
    versions = {"Node": "v1"}
    meta["ownerReferences"] = [{"apiVersion": versions.get(owner, "apps/v1"), "kind": owner, "name": "x", "uid": "x"}]
    deletion = more.pop("deletion", None)
    if deletion is not None:
        meta["deletionTimestamp"] = stamp(deletion)
    status: dict[str, Any] = {"phase": more.pop("phase", "Running")}
    status |= {"startTime": stamp(more.pop("started", NOW - HOUR))} if on else {}
    status["conditions"] = more.pop("pod_conditions", [])
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}], **more}
    if on:
        spec["nodeName"] = f"node-{on}"
    return decode(Pod, {"metadata": meta, "spec": spec, "status": status})


def torn(value: Any, problem: str = "Expected `str`, got `int` - at `$.spec`") -> Any:
    """The object, of which a part could not be read."""
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(value.metadata, unreadable=problem))


def pdb(name: str, allowed: int = 0, app: str = "web", **spec: Any) -> PodDisruptionBudget:
    meta = {"name": name, "namespace": spec.pop("namespace", "shop"), "resourceVersion": "1"}
    spec = {"selector": {"matchLabels": {"app": app}}, **spec}
    return decode(PodDisruptionBudget, {"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": allowed}})


def instance_type(name: str, price: int, spot: int | None = None) -> InstanceType:
    offers = [Offering(name, ZONE, "on-demand", price)]
    offers += [Offering(name, ZONE, "spot", spot)] if spot is not None else []
    rows = [requirement(labels.INSTANCE_TYPE, IN, (name,)), requirement(labels.ZONE, IN, (ZONE,))]
    rows += [requirement(labels.CAPACITY_TYPE, IN, tuple(o.capacity_type for o in offers))]
    rows += [requirement(labels.ARCH, IN, ("amd64",)), requirement(labels.OS, IN, ("linux",))]
    cpu = {"large": 2000, "xlarge": 4000, "small": 1000}.get(name.split(".")[1], 2000)
    room = Resources({"cpu": cpu, "memory": 8 * 2**30, "pods": 29})
    return InstanceType(name, Requirements(rows), room, room, tuple(offers))


CATALOGUE = (
    instance_type("m5.large", 96_000, 40_000),
    instance_type("m5.xlarge", 192_000, 80_000),
    instance_type("t3.small", 20_000, 8_000),
)


def snapshot(
    objects: Iterable[Any], *, now: datetime = NOW, settings: Settings | None = None, **facts: Any
) -> Snapshot:
    facts.setdefault("catalogues", {"default": CATALOGUE})
    facts.setdefault("fresh_at", dict.fromkeys(Source, now))
    return build(objects, now=now, settings=settings or Settings("test"), **facts)


# --- what is found ----------------------------------------------------------------------------------------------
def judged(*objects: Any, key: str = "a", eventual: bool = False, **facts: Any) -> Candidate | Blocker:
    return candidate(view(snapshot(objects, **facts)), key, eventual=eventual)


def code(*objects: Any, **more: Any) -> str:
    """Of what speaks against disrupting the node; empty when nothing does."""
    found = judged(*objects, **more)
    return found.code if isinstance(found, Blocker) else ""


def started(plan: Plan) -> list[str]:
    """The claims about which it begins commands."""
    return [a.lane.split("/")[1] for a in plan.actions if a.key.startswith("StartCommand")]


def refusals(plan: Plan) -> dict[str, str]:
    """The codes, by subject."""
    return {r.subject: r.reason.code for r in plan.refusals}


def blocked(plan: Plan) -> dict[str, str]:
    """What the events DisruptionBlocked say, by the kind of their object."""
    return {e.ref.kind: e.message for e in plan.events if e.reason == "DisruptionBlocked"}


# --- schedulers -------------------------------------------------------------------------------------------------
def elsewhere(key: str) -> Solve:
    """Places every pod on one state node, or nowhere when that is excluded."""

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        if key in exclude:
            return nowhere(pods, exclude, manner, *beside)
        return Solution(placed={p.key: key for p in pods})

    return ask


def on_new_nodes(
    *types: str, count: int = 1, capacity_types: tuple[str, ...] = ("on-demand",), price: int = 1
) -> Solve:
    """Spreads the pods over so many new nodes, and finds room for all of them once these are there."""

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        if any(beside):
            return Solution(placed={p.key: "planned-0" for p in pods})
        rows = Requirements([requirement(labels.CAPACITY_TYPE, IN, capacity_types)])
        shares = [tuple(p.key for p in pods[i::count]) for i in range(count)]
        return Solution(
            new_nodes=tuple(
                NewNode(
                    pool="default",
                    requirements=rows,
                    instance_types=types,
                    requests=Resources({"cpu": 500}),
                    pods=share,
                    price=price,
                    zones=(ZONE,),
                    capacity_types=capacity_types,
                )
                for share in shares
                if share
            )
        )

    return ask


def nowhere(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    return Solution(unplaced={p.key: PodRefusal("NoRoom", "no room") for p in pods})


def alone(ask: Solve) -> Solve:
    """Places nothing when several nodes are to go at once."""

    def one(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        return (ask if len(exclude) == 1 else nowhere)(pods, exclude, manner, *beside)

    return one


def never(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    """Fails the test. No simulation can take that for a scheduler that broke, which would be a mere "no"."""
    pytest.fail("nothing was to be simulated")


# --- an API server ----------------------------------------------------------------------------------------------
@dataclass
class World:
    """Objects by address; `perform` does what the executor would do with the actions of a plan."""

    objects: dict[str, Any]
    now: datetime = NOW
    facts: dict[str, Any] = field(default_factory=dict)
    ask: Solve | None = never
    done: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, *objects: Any, **rest: Any) -> World:
        return cls({str(kinds.ref(o)): o for o in objects}, **rest)

    def snapshot(self) -> Snapshot:
        return snapshot(self.objects.values(), now=self.now, **self.facts)

    def plan(self) -> Plan:
        return disrupt(self.snapshot(), self.ask)

    def tick(self, first: int | None = None) -> Plan:
        """Decide and perform the first so many actions (all by default)."""
        plan = self.plan()
        self.perform(plan.actions[:first])
        return plan

    def settle(self, most: int = 20) -> None:
        """Tick until nothing more is to be done."""
        for _ in range(most):
            if not self.tick().actions:
                return
        raise AssertionError(f"does not settle: {self.done}")

    def perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.done.append(action.key)
            if isinstance(action, CreateNodeClaim):
                meta = {"uid": f"uid-{action.claim.name}", "creationTimestamp": stamp(self.now), "resourceVersion": "1"}
                self.objects.setdefault(action.lane, _merged(action.claim, {"metadata": meta}))
            elif isinstance(action, PatchObject):
                self._patch(action)
            elif isinstance(action, DeleteObject) and self.objects[action.lane].metadata.uid == action.uid:
                self.edit(action.lane, {"metadata": {"deletionTimestamp": stamp(self.now)}})

    def _patch(self, action: PatchObject) -> None:
        value = self.objects.get(action.lane)
        if value is not None and value.metadata.resource_version == action.resource_version:
            self.edit(action.lane, action.patch)

    def edit(self, lane: str, patch: Mapping[str, Any]) -> None:
        value = self.objects[lane]
        version = {"metadata": {"resourceVersion": str(int(value.metadata.resource_version) + 1)}}
        self.objects[lane] = _merged(_merged(value, patch), version)

    def join(self, name: str) -> None:
        """The replacement claim `name` gets its instance and node, and is initialised."""
        made = claim(name, since=self.now, consolidatable=False)
        made = _merged(made, {"metadata": encode(self.objects[f"nodeclaim/{name}"].metadata)})
        self.objects[f"nodeclaim/{name}"] = _merged(made, {"metadata": {"labels": dict(made.metadata.labels)}})
        self.objects[f"node/node-{name}"] = node(claim(name))

    def add(self, *objects: Any) -> None:
        self.objects.update({str(kinds.ref(o)): o for o in objects})

    def claim(self, name: str) -> NodeClaim:
        found: NodeClaim = self.objects[f"nodeclaim/{name}"]
        return found

    def tainted(self, name: str) -> bool:
        taints = self.objects[f"node/node-{name}"].spec.taints
        return any(t.key == labels.DISRUPTED_TAINT for t in taints)

    @property
    def replacements(self) -> list[str]:
        found = (o for o in self.objects.values() if isinstance(o, NodeClaim))
        return sorted(c.name for c in found if labels.REPLACES in c.metadata.annotations)


def _merged(value: Any, patch: Mapping[str, Any]) -> Any:
    return msgspec.convert(merged(encode(value), patch), type(value), strict=False)
