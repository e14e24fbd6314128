"""Whether an instance is a NodeClaim's own: what stands on the claim alone does not say so, for others may write there.

The instance's tag names the claim. Before it is tagged, the tag of its launch group is that of the claim, and no other
claim has it.
"""

from __future__ import annotations

from typing import Final

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle.view import View
from reconciler.lifecycle.writes import warning
from reconciler.model.cloud import Instance
from reconciler.model.plan import Plan, Reason, Refusal

NOT_ITS_INSTANCE: Final = "NotItsInstance"


def is_own(view: View, claim: NodeClaim, instance: Instance) -> bool:
    """Whether the instance may be terminated for this claim."""
    named = instance.tags.get(labels.TAG_NODECLAIM, "")
    if named:
        return named == claim.name
    group = claim.metadata.annotations.get(labels.LAUNCH_GROUP, "")
    others = any(one.name != claim.name for one in view.snapshot.claims_by_instance.get(instance.id, ()))
    return bool(group) and instance.tags.get(labels.LAUNCH_GROUP, "") == group and not others


def kept(view: View, claim: NodeClaim, instance: Instance) -> Plan:
    """The report that a claim goes and the instance that it names stays."""
    named = instance.tags.get(labels.TAG_NODECLAIM, "")
    whose = f"its tag {labels.TAG_NODECLAIM} names {named}" if named else "no tag of it says that it is this claim's"
    return _report(claim, f"instance {instance.id} is not terminated: {whose}")


def named_by(view: View, instance: Instance) -> NodeClaim | None:
    """The claim that an instance's tag names, while that claim is there and stays, with another instance.

    An instance that is older than the claim is of an earlier claim of that name.
    """
    claim = view.snapshot.node_claims.get(instance.tags.get(labels.TAG_NODECLAIM, ""))
    if claim is None or not claim.managed or claim.metadata.deleting or claim.assigned_instance in ("", instance.id):
        return None
    created = claim.metadata.creation_timestamp
    return claim if created is not None and created <= instance.launched else None


def strayed(claim: NodeClaim, instance: Instance) -> Plan:
    """The report that a claim names another instance than the one that was launched for it, which is kept."""
    text = f"its instance is {instance.id} by that instance's tag, and the claim names {claim.assigned_instance}: "
    text += f"{instance.id} is kept, and the other one is not terminated for this claim"
    return _report(claim, text)


def _report(claim: NodeClaim, text: str) -> Plan:
    refusal = Refusal(f"nodeclaim/{claim.name}", Reason(NOT_ITS_INSTANCE, text))
    return Plan(refusals=(refusal,), events=(warning(claim, NOT_ITS_INSTANCE, text),))
