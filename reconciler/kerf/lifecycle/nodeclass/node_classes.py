"""An EC2NodeClass's own state: finalizer, hash, status from what AWS made of its selectors; and its end.

The class stays while a claim refers to it. Then its launch templates and the instance profiles that were made for it
are deleted, and when that has come off it lets go.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kerf.ec2.nodeclass import nodeclass, profile_verdicts
from kerf.lifecycle.nodeclass.class_validation import Trial
from kerf.lifecycle.nodepool.node_pools import rehashes
from kerf.lifecycle.view import View
from kerf.model import failures
from kerf.model.plan import NOTHING, DeleteClassResources, EnsureInstanceProfile, Plan, Reason, Source, joined
from kerf.model.writes import (
    act,
    changed,
    normal,
    unreadable,
    with_annotations,
    with_metadata,
    without_finalizer,
)
from kerf_api import labels
from kerf_api.v1 import hashes
from kerf_api.v1.conditions import AWAITING, READY, UNKNOWN
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus

_LOOK_AGAIN = timedelta(minutes=10)


def reconcile(view: View, node_class: EC2NodeClass) -> Plan:
    """The class's next write, the profile it needs, and the re-hashing of its claims where the version is another."""
    if node_class.metadata.unreadable:
        return unreadable(node_class)
    if node_class.metadata.deleting:
        return _end(view, node_class)
    stamps, snapshot = _stamps(view, node_class), view.snapshot
    rehashed = rehashes(node_class.metadata, stamps, lambda: view.claims_of_class(node_class.name))
    stamped = node_class if rehashed else with_annotations(node_class, stamps)
    finalizers = tuple(dict.fromkeys((*node_class.metadata.finalizers, labels.NODECLASS_FINALIZER)))
    facts = snapshot.class_facts.get(node_class.name)
    trial = Trial(view, node_class)
    status = nodeclass.status(
        node_class,
        facts,
        cluster=snapshot.cluster,
        settings=snapshot.settings,
        now=view.now,
        tried=trial.verdict,
    )
    after = replace(with_metadata(stamped, finalizers=finalizers), status=_with_failure(view, node_class.name, status))
    own = act(*changed(node_class, after, "UpdateClass", Reason("ClassStatus", f"EC2NodeClass {node_class.name}")))
    return joined((*rehashed, own, _profile(view, node_class), trial.plan))


def _with_failure(view: View, name: str, status: EC2NodeClassStatus) -> EC2NodeClassStatus:
    """The status, in which conditions that wait for AWS say so if the read or the dry run that they wait for fails."""
    found = failures.of_class(view.snapshot.failures, name)
    if not found:
        return status
    first = found[0]
    rows = (
        replace(one, reason=f"{first.verb}Failed", message=first.text)
        if one.status == UNKNOWN and one.reason in (AWAITING, f"{first.verb}Failed") and one.type != READY
        else one
        for one in status.conditions
    )
    return replace(status, conditions=tuple(rows))


def _stamps(view: View, node_class: EC2NodeClass) -> dict[str, str]:
    """The hash and its version; empty while the cluster's CA bundle, which is part of it, is not known."""
    if view.snapshot.cluster is None:
        return {}
    return {
        labels.NODECLASS_HASH: hashes.nodeclass_hash(node_class, view.snapshot.cluster.ca_bundle),
        labels.NODECLASS_HASH_VERSION: hashes.NODECLASS_HASH_VERSION,
    }


def _profile(view: View, node_class: EC2NodeClass) -> Plan:
    """The instance profile for `spec.role`, when AWS does not show one yet."""
    snapshot, role = view.snapshot, node_class.spec.role
    facts = snapshot.class_facts.get(node_class.name)
    if snapshot.cluster is None or not role or facts is None or facts.generation != node_class.metadata.generation:
        return NOTHING
    if facts.instance_profile or profile_verdicts.CONDITION in facts.problems or snapshot.settings.isolated_vpc:
        return NOTHING
    name, path, tags = nodeclass.profile_for(node_class, snapshot.cluster)
    reason = Reason("InstanceProfile", f"EC2NodeClass {node_class.name} has role {role}")
    return act(
        EnsureInstanceProfile(reason=reason, class_name=node_class.name, profile=name, role=role, path=path, tags=tags)
    )


# --- its end ----------------------------------------------------------------------------------------------------
def _end(view: View, node_class: EC2NodeClass) -> Plan:
    """Wait for the claims; then the resources, and after them, in the same lane, the finalizer."""
    snapshot = view.snapshot
    if labels.NODECLASS_FINALIZER not in node_class.metadata.finalizers:
        return NOTHING
    claims = view.claims_of_class(node_class.name)
    if claims:
        names = ", ".join(claim.name for claim in claims[:5]) + (", …" if len(claims) > 5 else "")
        event = normal(node_class, "WaitingOnNodeClaimTermination", f"waiting for {len(claims)} node claims: {names}")
        return Plan(events=(event,), next_due=snapshot.now + _LOOK_AGAIN)
    if snapshot.cluster is None:
        return Plan(next_due=snapshot.now + timedelta(seconds=10))
    managed = node_class.spec.role and not snapshot.settings.isolated_vpc
    path = nodeclass.profile_path(node_class, snapshot.cluster) if managed else ""
    reason = Reason("Terminating", f"EC2NodeClass {node_class.name} is being deleted")
    sources = frozenset({Source.NODE_CLAIMS, Source.NODE_CLASSES})
    resources = DeleteClassResources(reason=reason, sources=sources, class_name=node_class.name, profile_path=path)
    free = without_finalizer(node_class, labels.NODECLASS_FINALIZER)
    return act(resources, *changed(node_class, free, "ReleaseClass", reason, *sources))
