"""The lines that tools parse, field for field and in their order: the steps in a node's life.

A public parser of Karpenter's logs reads nine of them with regular expressions; each has the context of the controller
that writes it there. Source: operations reference §4.2; docs/reference/logs.md lists them beside all others.
"""

from __future__ import annotations

from typing import Any, Final

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf.telemetry.log.logs import Logger, about, named, shortened
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

#: So many instance types are named.
_MOST_TYPES: Final = 5
_LIFECYCLE: Final = "nodeclaim.lifecycle"
#: By the condition that became true.
STEPS: Final = {
    "Launched": "launched nodeclaim",
    "Registered": "registered nodeclaim",
    "Initialized": "initialized nodeclaim",
}


def created(log: Logger, claim: NodeClaim, controller: str) -> None:
    """`controller`: `provisioner`, or `disruption` for a replacement."""
    types = next((e.values for e in claim.spec.requirements if e.key == labels.INSTANCE_TYPE), ())
    log.info(
        "created nodeclaim",
        **about(controller),
        NodePool=named(claim.pool_name),
        NodeClaim=named(claim.name),
        requests=dict(claim.spec.resources.requests),
        **{"instance-types": shortened(types, _MOST_TYPES)},
    )


def step(log: Logger, condition: str, claim: NodeClaim) -> None:
    """A condition of STEPS became true."""
    own, status = claim.metadata.labels, claim.status
    fields: dict[str, Any] = {"provider-id": status.provider_id}
    if condition == "Launched":
        fields |= {
            "instance-type": own.get(labels.INSTANCE_TYPE, ""),
            "zone": own.get(labels.ZONE, ""),
            "capacity-type": own.get(labels.CAPACITY_TYPE, ""),
        }
    else:
        fields["Node"] = named(status.node_name)
    if condition != "Registered":
        fields["allocatable"] = dict(status.allocatable)
    log.info(STEPS[condition], **_of_claim(claim), **fields)


def annotated(log: Logger, claim: NodeClaim) -> None:
    """The end of a drain was written down."""
    key = labels.TERMINATION_TIMESTAMP
    log.info("annotated nodeclaim", **_of_claim(claim), **{key: claim.metadata.annotations[key]})


def deleted(log: Logger, claim: NodeClaim) -> None:
    """A claim is gone."""
    fields = {"provider-id": claim.status.provider_id, "Node": named(claim.status.node_name)}
    log.info("deleted nodeclaim", **_of_claim(claim), **fields)


def tainted(log: Logger, node: Node) -> None:
    """Nothing new is to come to a node."""
    owners = [owner.name for owner in node.metadata.owner_references if owner.kind == kinds.NODE_CLAIM.name]
    claim = {"NodeClaim": named(owners[0])} if owners else {}
    taint = {"taint.Key": labels.DISRUPTED_TAINT, "taint.Value": "", "taint.Effect": "NoSchedule"}
    context = about("node.termination", kinds.NODE.name, kinds.NODE.group, node.name)
    log.info("tainted node", **context, **claim, **taint)


def interrupted(log: Logger, kind: str, claim: str, node: str) -> None:
    """A message of EC2's (`spot_interrupted`) ends a claim."""
    fields = {"messageKind": kind, "NodeClaim": named(claim), "action": "CordonAndDrain", "Node": named(node)}
    log.info("initiating delete from interruption message", **about("interruption"), **fields)


def _of_claim(claim: NodeClaim) -> dict[str, Any]:
    return about(_LIFECYCLE, kinds.NODE_CLAIM.name, kinds.NODE_CLAIM.group, claim.name)
