"""The cause of a refusal: the fields that contradict each other or the cluster, and the edits that were found for it.

The account of a refusal says which rule of which NodePool left nothing; here that becomes fields of manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kerf.ec2.errors import LACKS_OF_ACCOUNT
from kerf.ec2.quotas import UsedUp
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.pods.requirements import own_problem
from kerf.provisioning import missing
from kerf.provisioning.contradictions import REQUIREMENTS
from kerf.scheduling.answers import explanation
from kerf.scheduling.answers.edits import Respell
from kerf.scheduling.answers.explanation import PoolAccount
from kerf.scheduling.answers.patches import CORRECT, Cause, Field, FieldRef, Patch, of_fix, of_pod, owner_ref, within
from kerf.scheduling.refusals.explain import NO_POOL
from kerf.scheduling.refusals.spelling import value_near
from kerf.scheduling.solve import PodRefusal
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool

#: The values of labels that are the same in every cluster.
_VALUES: Final = {labels.CAPACITY_TYPE: (labels.ON_DEMAND, labels.RESERVED, labels.SPOT)}
#: The kind of a quota in causes and patches.
_QUOTA: Final = "ServiceQuota"


def cause_of(snapshot: Snapshot, pod: Pod, refusal: PodRefusal) -> Cause | None:
    """The likeliest cause of a refusal; None when the answer has no more than its text."""
    account = refusal.account
    absent = missing.cause_of(snapshot, pod)
    if absent is not None:
        return absent
    if refusal.quotas:
        text = " and ".join(one.name for one in refusal.quotas)
        return Cause(f"{text}: used up", tuple(FieldRef(_QUOTA, _quota_name(one)) for one in refusal.quotas))
    alone = missing.without_pools(snapshot) if refusal.code == NO_POOL else None
    if alone is not None:
        return alone[0]
    if account is None:
        return None
    if not account.pools:
        text = f"no NodePool can make a node: {refusal.text}"
        return Cause(text, (owner_ref(pod, "spec.nodeSelector"), owner_ref(pod, "spec.affinity.nodeAffinity")))
    first = account.pools[0]
    pool = snapshot.node_pools.get(first.pool)
    if pool is None:
        return None
    if not first.rule:
        return missing.cause_of_pool(snapshot, pool, first.verdict)
    return Cause(f"NodePool {first.pool}: {first}", tuple(_FIELDS[first.rule](snapshot, pod, pool, first)))


def patches_of(snapshot: Snapshot, pod: Pod, refusal: PodRefusal) -> tuple[Patch, ...]:
    """The edits that help, the first one first: those that were tried, else what a user has to set right."""
    account = refusal.account
    absent = missing.patches_of(snapshot, pod)
    if refusal.quotas:
        fixes = (of_fix(edit, pod, snapshot.node_pools) for edit in refusal.fixes)
        return (*absent, *map(_to_raise, refusal.quotas), *fixes)
    alone = missing.without_pools(snapshot) if refusal.code == NO_POOL else None
    if alone is not None:
        return absent or (alone[1],)
    if account is None:
        return absent
    tried = tuple(of_fix(edit, pod, snapshot.node_pools) for edit in account.fixes)
    if absent:
        spelled = tuple(of_fix(edit, pod, snapshot.node_pools) for edit in account.fixes if isinstance(edit, Respell))
        return (*spelled, *absent)
    if not tried and account.pools and account.pools[0].about == labels.OS:
        tried = missing.patches_of_system(pod, account.pools[0].pool)
    if not tried:
        tried = tuple(_to_correct(cause_of(snapshot, pod, refusal)))
    first = snapshot.node_pools.get(account.pools[0].pool) if account.pools else None
    if first is None or account.pools[0].rule:
        return tried
    return missing.patches_of_pool(snapshot, first, account.pools[0].verdict) or tried


def of_problem(pod: Pod) -> tuple[Cause, tuple[Patch, ...]] | None:
    """Of a pod that no node could ever be made for, the fields of the label that it is about and their correction."""
    problem = own_problem(pod)
    if problem is None or not problem.label:
        return None
    key, spec = problem.label, pod.spec
    written = next((own for own in spec.node_selector if labels.normalise(own) == key), None)
    path = within("spec.nodeSelector", written) if written is not None else "spec.affinity.nodeAffinity"
    ref = owner_ref(pod, path)
    meant = value_near(key, spec.node_selector[written], _VALUES.get(key, ())) if written is not None else None
    if meant is not None:
        patch = of_pod(pod, edit := Respell(key, key, spec.node_selector[written or key], meant), f"the pod: {edit}")
    else:
        patch = Patch(CORRECT, ref.kind, ref.name, f"{ref.kind} {ref.name}: correct {ref.path}", (Field(ref.path),))
    return Cause(problem.text, (ref,)), (patch,)


def _quota_name(quota: UsedUp) -> str:
    return quota.service_quota or f"{quota.capacity_type}/{quota.group}"


def _to_raise(quota: UsedUp) -> Patch:
    """A person has to do that in AWS."""
    text = f"{quota.name}: {LACKS_OF_ACCOUNT[quota.code]}"
    return Patch(CORRECT, _QUOTA, _quota_name(quota), text)


def _to_correct(cause: Cause | None) -> Iterator[Patch]:
    """The first field of a cause, where no edit that was tried helps."""
    for one in cause.fields[:1] if cause is not None else ():
        yield Patch(CORRECT, one.kind, one.name, f"{one.kind} {one.name}: correct {one.path}", (Field(one.path),))


# --- the fields of each rule ------------------------------------------------------------------------------------
def _pool_field(pool: NodePool, path: str) -> FieldRef:
    return FieldRef("NodePool", pool.name, path)


def _of_taints(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    yield _pool_field(pool, "spec.template.spec.taints")
    yield owner_ref(pod, "spec.tolerations")


def _of_labels(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    """The pod's side of a label, then the NodePool's."""
    key = found.about
    selected = next((own for own in pod.spec.node_selector if labels.normalise(own) == key), None)
    if selected is not None:
        yield owner_ref(pod, within("spec.nodeSelector", selected))
    else:
        yield owner_ref(pod, "spec.affinity.nodeAffinity")
    asked = [labels.normalise(entry.key) for entry in pool.spec.template.spec.requirements]
    if key in asked:
        yield _pool_field(pool, f"{REQUIREMENTS}[{asked.index(key)}]")
    elif key in labels.WELL_KNOWN:
        yield _pool_field(pool, REQUIREMENTS)
    else:
        yield _pool_field(pool, within("spec.template.metadata.labels", key))


def _of_volumes(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    asked = [labels.normalise(entry.key) for entry in pool.spec.template.spec.requirements]
    if found.about in asked:
        yield _pool_field(pool, f"{REQUIREMENTS}[{asked.index(found.about)}]")
    yield owner_ref(pod, "spec.volumes")


def _of_offerings(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    yield _pool_field(pool, REQUIREMENTS)
    yield FieldRef("EC2NodeClass", pool.class_name, "spec.subnetSelectorTerms")
    yield from _asked_places(pod)


def _asked_places(pod: Pod) -> Iterator[FieldRef]:
    for key in pod.spec.node_selector:
        if labels.normalise(key) in (labels.ZONE, labels.CAPACITY_TYPE):
            yield owner_ref(pod, within("spec.nodeSelector", key))


def _of_resources(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    if found.about == "ephemeral-storage":  # the disk is as large as the class says, whatever the instance type
        yield FieldRef("EC2NodeClass", pool.class_name, "spec.blockDeviceMappings")
    yield owner_ref(pod, _most_asking(pod, found.about))
    yield _pool_field(pool, REQUIREMENTS)
    if found.crowded:
        yield from _daemon_sets(snapshot, found.about)


def _most_asking(pod: Pod, resource: str) -> str:
    """The containers whose requests the pod's are: its init containers run before the others, one after another."""
    others = replace(pod, spec=replace(pod.spec, init_containers=(), resources=None))
    own = replace(pod, spec=replace(pod.spec, resources=None))
    return (
        "spec.initContainers" if pods.requests(own)[resource] > pods.requests(others)[resource] else "spec.containers"
    )


def _daemon_sets(snapshot: Snapshot, resource: str) -> Iterator[FieldRef]:
    """The DaemonSet that requests most of a resource."""
    asking = {
        key: pods.requests(Pod(metadata=one.spec.template.metadata, spec=one.spec.template.spec))[resource]
        for key, one in snapshot.daemon_sets.items()
    }
    if asking:
        key = min(asking, key=lambda name: (-asking[name], name))
        yield FieldRef("DaemonSet", key, "spec.template.spec.containers")


def _of_limits(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    yield _pool_field(pool, within("spec.limits", found.about) if found.about else "spec.limits")


def _of_ports(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    yield owner_ref(pod, "spec.containers")


def _of_min_values(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    asked = [labels.normalise(entry.key) for entry in pool.spec.template.spec.requirements]
    if found.about in asked:
        yield _pool_field(pool, f"{REQUIREMENTS}[{asked.index(found.about)}].minValues")


def _of_topology(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    spec, affinity = pod.spec, pod.spec.affinity
    if any(one.label == found.about for one in spec.topology_spread_constraints):
        yield owner_ref(pod, "spec.topologySpreadConstraints")
    for path, between in (
        ("spec.affinity.podAffinity", affinity.pod_affinity if affinity is not None else None),
        ("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity if affinity is not None else None),
    ):
        if between is not None and any(term.label == found.about for term in between.required):
            yield owner_ref(pod, path)
    asked = [labels.normalise(entry.key) for entry in pool.spec.template.spec.requirements]
    if found.about in asked:
        yield _pool_field(pool, f"{REQUIREMENTS}[{asked.index(found.about)}]")


def _of_all(snapshot: Snapshot, pod: Pod, pool: NodePool, found: PoolAccount) -> Iterator[FieldRef]:
    if pool.spec.limits:
        yield _pool_field(pool, "spec.limits")
    if pod.spec.topology_spread_constraints:
        yield owner_ref(pod, "spec.topologySpreadConstraints")


_FIELDS: Final[Mapping[str, Callable[[Snapshot, Pod, NodePool, PoolAccount], Iterator[FieldRef]]]] = {
    explanation.TAINTS: _of_taints,
    explanation.REQUIREMENTS: _of_labels,
    explanation.VOLUMES: _of_volumes,
    explanation.OFFERINGS: _of_offerings,
    explanation.RESOURCES: _of_resources,
    explanation.LIMITS: _of_limits,
    explanation.HOST_PORTS: _of_ports,
    explanation.MIN_VALUES: _of_min_values,
    explanation.TOPOLOGY: _of_topology,
    explanation.TOGETHER: _of_all,
}
