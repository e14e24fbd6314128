"""The Kubernetes side of a preflight: the API server, the kinds, the rights of whoever asks, what there is to work on.

Rights are asked of the API server one by one (SelfSubjectAccessReview), so nothing is tried that would change anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from kerf.aws.observe.cluster_facts import OLDEST, check_version
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.ports import AlreadyGone, Forbidden, Invalid, Listing, PortError
from kerf.runtime.preflight import served
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding
from kerf.runtime.process.connecting import version_of
from kerf.telemetry.log.logs import silent

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
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


class Asks(Protocol):
    """Of the Kubernetes client what a preflight needs."""

    def request(self, method: str, path: str, body: Any = None) -> Any: ...

    def list(self, kind: Kind) -> Listing: ...


def look(kube: Asks, settings: Settings) -> Iterator[Finding]:
    """Everything about the cluster; nothing more once the API server does not answer."""
    try:
        version = version_of(kube.request("GET", "/version"))
    except PortError as error:
        yield Finding("API server", WRONG, str(error), "name the cluster: --kubeconfig, --context")
        return
    yield _version(version)
    readable = [finding for kind in kinds.watched(settings) for finding in _kind(kube, kind)]
    yield from readable
    yield from served.look(kube)
    for group, resource, verb in writes(settings):
        yield from _right(kube, group, resource, verb)
    if not any(finding.how == WRONG for finding in readable):
        yield from _work(kube)


def writes(settings: Settings) -> tuple[tuple[str, str, str], ...]:
    """What is written with these settings."""
    more = [
        (settings.gates.node_overlay, "karpenter.sh", "nodeoverlays/status"),
        (settings.gates.capacity_buffer, "autoscaling.x-k8s.io", "capacitybuffers/status"),
        (settings.nominate_pods, "", "pods/status"),
    ]
    return (*WRITES, *((group, resource, "patch") for wanted, group, resource in more if wanted))


def _version(text: str) -> Finding:
    try:
        check_version(text, silent())
    except Invalid:
        return Finding("API server", WRONG, f"Kubernetes {text}", f"upgrade to {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("API server", GOOD, f"Kubernetes {text}")


def _kind(kube: Asks, kind: Kind) -> Iterator[Finding]:
    what = f"{kind.plural} can be read"
    try:
        kube.request("GET", f"{kind.path()}?limit=1")
    except AlreadyGone:
        ours = kind.group in ("karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io")
        fix = "helm install kerf-crd charts/kerf-crd" if ours else f"the API server has to serve {kind.api_version}"
        yield Finding(what, WRONG, f"the API server has no {kind.api_version} {kind.name}", fix)
    except Forbidden:
        yield Finding(what, WRONG, f"no leave to list {kind.plural}", _ROLE)
    except PortError as error:
        yield Finding(what, WRONG, str(error))
    else:
        yield from _right(kube, kind.group, kind.plural, "watch")


def _right(kube: Asks, group: str, resource: str, verb: str) -> Iterator[Finding]:
    name, _, sub = resource.partition("/")
    attributes = {"group": group, "resource": name, "subresource": sub, "verb": verb}
    what = f"{verb} {name}{f'.{group}' if group else ''}{f'/{sub}' if sub else ''}"
    try:
        answer = kube.request("POST", _REVIEWS, {**_REVIEW, "spec": {"resourceAttributes": attributes}})
    except PortError as error:
        yield Finding(what, DOUBTFUL, f"could not be asked: {error}")
        return
    allowed = answer["status"]["allowed"]
    yield Finding(what, GOOD) if allowed else Finding(what, WRONG, "no leave", _ROLE)


_REVIEW: Final = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}


# --- what there is to work on -----------------------------------------------------------------------------------
def _work(kube: Asks) -> Iterator[Finding]:
    classes = {each.name: each for each in kube.list(kinds.NODE_CLASS).items}
    pools = kube.list(kinds.NODE_POOL).items
    if not pools:
        yield Finding(
            "NodePools", DOUBTFUL, "there is none", "apply one, such as manifests/examples/general-purpose.yaml"
        )
    for pool in pools:
        what, wanted = f"NodePool {pool.name}", pool.spec.template.spec.node_class_ref.name
        if pool.metadata.unreadable:
            yield Finding(what, WRONG, f"it cannot be read: {pool.metadata.unreadable}", "kerf validate says more")
        elif not pool.managed:
            yield Finding(what, GOOD, "of another provider")
        elif wanted not in classes:
            yield Finding(what, WRONG, f"there is no EC2NodeClass {wanted}", "create it, or name another one")
        else:
            yield Finding(what, GOOD)
