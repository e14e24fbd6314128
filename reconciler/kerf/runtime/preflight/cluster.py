"""The Kubernetes side of a preflight: the API server, the kinds, permissions, and what there is to work on.

The API server is asked about permissions one by one (reviews of access), so nothing is tried that would change
anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kerf.aws.observe.cluster_facts import OLDEST, check_version
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.ports import AlreadyGone, Forbidden, Invalid, PortError
from kerf.runtime.preflight import served
from kerf.runtime.preflight.asking import REVIEW, Account, Asker, Kube, Right
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, NotAllowed, unchecked
from kerf.runtime.process.connecting import version_of
from kerf.telemetry.log.logs import silent
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

_ROLE: Final = "give the controller's account the rules of the chart's ClusterRole"
#: What is written, whatever the settings are: API group, resource, verb.
WRITES: Final = (
    ("karpenter.sh", "nodeclaims", "create"),
    ("karpenter.sh", "nodeclaims", "patch"),
    ("karpenter.sh", "nodeclaims", "delete"),
    ("karpenter.sh", "nodeclaims/status", "patch"),
    ("karpenter.sh", "nodepools", "patch"),
    ("karpenter.sh", "nodepools/status", "patch"),
    ("karpenter.k8s.aws", "ec2nodeclasses", "patch"),
    ("karpenter.k8s.aws", "ec2nodeclasses/status", "patch"),
    ("", "nodes", "patch"),
    ("", "nodes", "delete"),
    ("", "pods/eviction", "create"),
    ("", "pods", "delete"),
    ("", "events", "create"),
)


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose permissions are checked: those of the controller's `account`, or without one those of the caller.

    Without `reviewed` only reads of the caller are tried; those without a permission are not checked.
    """

    account: Account | None = None
    reviewed: bool = True


CALLER: Final = Whose()


def look(kube: Kube, settings: Settings) -> Iterator[Finding]:
    """Everything about the cluster, for the caller; nothing more once the API server does not answer."""
    first = version(kube)
    yield first
    if first.how == WRONG and not first.seen.startswith("Kubernetes"):
        return
    asker = Asker(kube)
    readable = list(kinds_served(asker, settings))
    yield from readable
    yield from served.look(kube)
    yield from permissions(asker, settings)
    if all(finding.how == GOOD for finding in readable):
        yield from node_pools(kube.list(kinds.NODE_POOL).items, kube.list(kinds.NODE_CLASS).items)


def version(kube: Kube) -> Finding:
    """The API server and its version."""
    try:
        text = version_of(kube.request("GET", "/version"))
    except PortError as error:
        return Finding("API server", WRONG, str(error), "name the cluster: --kubeconfig, --context")
    try:
        check_version(text, silent())
    except Invalid:
        return Finding("API server", WRONG, f"Kubernetes {text}", f"upgrade to {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("API server", GOOD, f"Kubernetes {text}")


def pace(slow: str) -> Iterator[Finding]:
    """The finding about an API server that answers slowly, in words; none when it does not."""
    if slow:
        fix = "check etcd, the load of the API server, its admission webhooks, and the network to it"
        yield Finding("API server", DOUBTFUL, f"answers slowly: {slow}", fix)


def kinds_served(asker: Asker, settings: Settings, whose: Whose = CALLER) -> Iterator[Finding]:
    """Whether each kind that Kerf watches is served, and may be read and watched."""
    for kind in kinds.watched(settings):
        yield from _kind(asker, kind, whose)


def permissions(asker: Asker, settings: Settings, account: Account | None = None) -> Iterator[Finding]:
    """Whether the controller's account, or without one the caller, may write all that Kerf writes."""
    for group, resource, verb in writes(settings):
        yield _right(asker, Right(verb, resource, group), account)


def may_ask_for(asker: Asker, account: Account) -> Finding | None:
    """The finding about permissions that cannot be checked; None when they can."""
    what = f"permissions of {account}"
    try:
        if asker.caller() != account.user:
            asker.require(REVIEW)
    except NotAllowed as error:
        return unchecked(what, f"needs {error}")
    except PortError as error:
        return unchecked(what, str(error))
    return None


def writes(settings: Settings) -> tuple[tuple[str, str, str], ...]:
    """What is written with these settings."""
    more = [
        (settings.gates.node_overlay, "karpenter.sh", "nodeoverlays/status"),
        (settings.gates.capacity_buffer, "autoscaling.x-k8s.io", "capacitybuffers/status"),
        (settings.nominate_pods, "", "pods/status"),
    ]
    return (*WRITES, *((group, resource, "patch") for wanted, group, resource in more if wanted))


def _kind(asker: Asker, kind: Kind, whose: Whose) -> Iterator[Finding]:
    what, right = f"{kind.plural} can be read", Right("list", kind.plural, kind.group)
    try:
        if whose != CALLER:
            asker.require(right)
        asker.kube.request("GET", f"{kind.path()}?limit=1")
    except AlreadyGone:
        yield _not_served(what, kind)
        return
    except NotAllowed as error:
        yield unchecked(what, f"needs {error}")
    except Forbidden:
        yield Finding(what, WRONG, f"no permission to list {kind.plural}", _ROLE)
        return
    except PortError as error:
        yield unchecked(what, str(error))
        return
    if whose.reviewed and whose.account is not None:
        yield _right(asker, right, whose.account)
    if whose.reviewed:
        yield _right(asker, Right("watch", kind.plural, kind.group), whose.account)


def _not_served(what: str, kind: Kind) -> Finding:
    ours = kind.group in ("karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io")
    fix = "helm install kerf-crd charts/kerf-crd" if ours else f"the API server has to serve {kind.api_version}"
    return Finding(what, WRONG, f"the API server has no {kind.api_version} {kind.name}", fix)


def _right(asker: Asker, right: Right, account: Account | None) -> Finding:
    try:
        allowed = asker.may(right, account)
    except NotAllowed as error:
        return unchecked(str(right), f"needs {error}")
    except PortError as error:
        return unchecked(str(right), str(error))
    if allowed:
        return Finding(str(right), GOOD)
    if account is None:
        return Finding(str(right), WRONG, "no permission", _ROLE)
    fix = "upgrade Kerf's chart, whose ClusterRole has it, and see that nothing has changed the role or its binding"
    return Finding(str(right), WRONG, f"{account} has no permission", fix)


# --- what there is to work on -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Objects:
    """All objects of a kind. `unknown` names why there are none: a permission, or no answer; `served`: it has a CRD."""

    items: Sequence[Any] = ()
    unknown: str = ""
    served: bool = True


def objects(kube: Kube, kind: Kind) -> Objects:
    """The objects of a kind, as far as the caller may list them."""
    try:
        return Objects(kube.list(kind).items)
    except Forbidden:
        return Objects(unknown=f"needs {Right('list', kind.plural, kind.group)}")
    except PortError as error:
        missing = isinstance(error, AlreadyGone) or isinstance(error.__cause__, AlreadyGone)
        return Objects(served=False) if missing else Objects(unknown=str(error))


def node_pools(pools: Sequence[NodePool], node_classes: Iterable[EC2NodeClass]) -> Iterator[Finding]:
    """NodePools, and the EC2NodeClasses that they name."""
    classes = {each.name for each in node_classes}
    if not pools:
        yield Finding(
            "NodePools", DOUBTFUL, "there is none", "apply one, such as manifests/examples/general-purpose.yaml"
        )
    for pool in pools:
        what, wanted = f"NodePool {pool.name}", pool.spec.template.spec.node_class_ref.name
        if pool.metadata.unreadable:
            yield Finding(
                what, WRONG, f"it cannot be read: {pool.metadata.unreadable}", "kerf validate reports the details"
            )
        elif not pool.managed:
            yield Finding(what, GOOD, "of another provider")
        elif wanted not in classes:
            yield Finding(what, WRONG, f"there is no EC2NodeClass {wanted}", "create it, or name another one")
        else:
            yield Finding(what, GOOD)
