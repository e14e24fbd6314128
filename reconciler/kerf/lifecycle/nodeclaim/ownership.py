"""Whether an instance is a NodeClaim's own: what stands on the claim alone does not say so, for others may write there.

The instance's tag names the claim. Before it is tagged, the tag of its launch group is that of the claim, whose mark is
valid, and no other claim has it.
"""

from __future__ import annotations

from typing import Final

from kerf.lifecycle.view import View
from kerf.model.aws.cloud import Instance
from kerf.model.plan import NOTHING, Plan, Reason, Refusal
from kerf.model.writes import warning
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

NOT_ITS_INSTANCE: Final = "NotItsInstance"


def is_own(view: View, claim: NodeClaim, instance: Instance) -> bool:
    """Whether the instance may be terminated for this claim."""
    named = instance.tags.get(labels.TAG_NODECLAIM, "")
    if named:
        return named == claim.name
    group = view.group_of(claim)
    others = any(one.name != claim.name for one in view.snapshot.claims_by_instance.get(instance.id, ()))
    return bool(group) and instance.tags.get(labels.LAUNCH_GROUP, "") == group and not others


def holds(claim: NodeClaim) -> bool:
    """Whether a claim keeps the instance that it names from garbage collection.

    Claims that Kerf does not serve do not, and neither do deleted claims that only a finalizer of others keeps. A claim
    that cannot be read does.
    """
    let_go = claim.metadata.deleting and labels.TERMINATION_FINALIZER not in claim.metadata.finalizers
    return bool(claim.metadata.unreadable) or (claim.managed and not let_go)


def is_of_another(view: View, claim: NodeClaim, instance: Instance) -> bool:
    """Whether the instance's tag names another claim that is there."""
    named = instance.tags.get(labels.TAG_NODECLAIM, "")
    return named != claim.name and named in view.snapshot.node_claims


def kept(view: View, claim: NodeClaim, instance: Instance) -> Plan:
    """The report that a claim is removed and the instance that it names stays."""
    return _report(claim, f"instance {instance.id} is not terminated: {_whose(instance)}")


def _whose(instance: Instance) -> str:
    named = instance.tags.get(labels.TAG_NODECLAIM, "")
    return f"its tag {labels.TAG_NODECLAIM} names {named}" if named else "no tag of it names this NodeClaim"


def foreign(view: View, claim: NodeClaim) -> Plan:
    """The report of a claim that is not launched yet and names an instance that is there and is not its own."""
    instance = view.snapshot.instances.get(claim.assigned_instance)
    if instance is None or is_own(view, claim, instance):
        return NOTHING
    return _report(claim, f"instance {instance.id} does not become the node of this claim: {_whose(instance)}")


def named_by(view: View, instance: Instance, *, deleting: bool = False) -> NodeClaim | None:
    """The claim that an instance's tag names, while that claim is there and stays, with another instance.

    An instance that is older than the claim is of an earlier claim of that name.
    """
    claim = view.snapshot.node_claims.get(instance.tags.get(labels.TAG_NODECLAIM, ""))
    if claim is None or not claim.managed or claim.assigned_instance in ("", instance.id):
        return None
    if claim.metadata.deleting and not deleting:
        return None
    created = claim.metadata.creation_timestamp
    return claim if created is not None and created <= instance.launched else None


def strayed(claim: NodeClaim, instance: Instance) -> Plan:
    """The report that a claim names another instance than the one that was launched for it, which is kept."""
    text = f"its instance is {instance.id} by that instance's tag, and the claim names {claim.assigned_instance}: "
    text += f"{instance.id} is kept, and the other one is not terminated for this claim"
    return _report(claim, text)


def is_strayed(view: View, claim: NodeClaim) -> bool:
    """Whether a claim names an instance that no list of EC2 shows, while the one that was launched for it lives."""
    if claim.assigned_instance in view.snapshot.instances:
        return False
    return any(one.live and named_by(view, one, deleting=True) is claim for one in view.snapshot.instances.values())


def _report(claim: NodeClaim, text: str) -> Plan:
    refusal = Refusal(f"nodeclaim/{claim.name}", Reason(NOT_ITS_INSTANCE, text))
    return Plan(refusals=(refusal,), events=(warning(claim, NOT_ITS_INSTANCE, text),))
