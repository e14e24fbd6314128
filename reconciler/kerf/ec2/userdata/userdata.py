"""User data: the text by which a new machine joins the cluster as the node we planned.

One form per AMI family; all of them carry the cluster's address, labels, taints and kubelet settings around what the
user wrote. Source: AWS provider reference §2.4 and §5.4.
"""

from __future__ import annotations

from functools import lru_cache

from kerf.ec2 import families
from kerf.ec2.userdata import bootstrap, bottlerocket, nodeadm
from kerf.ec2.userdata.bootstrap import Bootstrap
from kerf_api import labels as names
from kerf_api.userdata import rules
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim

UNREGISTERED = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")
#: Kubelets may not set labels of these domains on their own node.
_KUBELET_FORBIDDEN = ("node-restriction.kubernetes.io", "kubernetes.io", "k8s.io")


def render(family: str, inputs: Bootstrap) -> str:
    """The user data of a family as plain text. Raises ValueError when the custom part is malformed."""
    known = families.of(family)
    if known is families.CUSTOM:
        return inputs.custom or ""
    if known is families.AL2023:
        return nodeadm.render(inputs)
    if known is families.BOTTLEROCKET:
        return bottlerocket.render(inputs)
    return bootstrap.windows(inputs) if known.windows else bootstrap.al2(inputs)


@lru_cache(maxsize=1024)
def fault(family: str, custom: str, raid0: bool = False) -> tuple[str, str] | None:
    """Reason and message of what is wrong with a user's part, whatever node it is for; None when it will do."""
    found = rules.fault(family, custom, raid0=raid0)
    return (found.reason, found.words) if found is not None else None


def claim_labels(claim: NodeClaim, family: str, capacity_type: str) -> dict[str, str]:
    """The labels a claim's node registers with: its own and the capacity type, less what kubelet may not set."""
    wanted = {**claim.metadata.labels, names.CAPACITY_TYPE: capacity_type}
    if families.of(family) is not families.CUSTOM:
        wanted[names.DO_NOT_SYNC_TAINTS] = "true"
    return {key: wanted[key] for key in sorted(wanted) if not _forbidden(key)}


def claim_taints(claim: NodeClaim) -> tuple[Taint, ...]:
    """The taints a claim's node registers with: lasting ones, start-up ones, and the one that says it is new."""
    taints = (*claim.spec.taints, *claim.spec.startup_taints)
    return taints if any(t.matches(UNREGISTERED) for t in taints) else (*taints, UNREGISTERED)


def _forbidden(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return any(domain == d or domain.endswith(f".{d}") for d in _KUBELET_FORBIDDEN)
