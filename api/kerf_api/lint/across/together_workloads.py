"""Workloads beside NodePools: pods that no pool of these files can host, and budgets that hold its nodes for ever.

A problem reported here is certain as far as the files go: a pod that may have a place somewhere is not spoken of, and
neither are pods that ask for nodes of another making. Zones, prices and what is in stock are AWS's matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint.advice.requirement_advice import requirements
from kerf_api.lint.catalogue import Catalogue
from kerf_api.lint.problem import Found, Problem, Steps, at, shown, some
from kerf_api.lint.reading.reading import amount, entries, is_kind, mapping, part, texts
from kerf_api.lint.reading.workloads import Toleration, pod_spec, tolerations
from kerf_api.requirements import EMPTY, Requirements, requirement
from kerf_api.texts import counted

_TEMPLATE: Final = ("spec", "template", "spec")
_HARD: Final = ("NoSchedule", "NoExecute")
#: Pods that ask for these are meant for nodes that others make, or for one node.
_ELSEWHERE: Final = ("eks.amazonaws.com/", labels.HOSTNAME, "karpenter.sh/controller")
_AFFINITY: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_SIZES: Final = (
    ("cpu", f"{labels.AWS_GROUP}/instance-cpu", 1),
    ("memory", f"{labels.AWS_GROUP}/instance-memory", 2**20),
)
_MOST_TERMS: Final = 50


@dataclass(frozen=True, slots=True)
class _Host:
    """A NodePool as pods see it."""

    name: str
    wanted: Requirements
    taints: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Pods:
    """The pods of a workload: where they may be placed (any of several), what they bear, and what they ask for."""

    place: Steps
    terms: tuple[Requirements, ...]
    borne: tuple[Toleration, ...]
    asks: Mapping[str, Fraction]


def check(manifests: Sequence[Mapping[str, Any]], types: Catalogue, *, hosted_elsewhere: bool = False) -> Found:
    """The problems of workloads and PodDisruptionBudgets, each with its manifest's index.

    With `hosted_elsewhere` other controllers have NodePools among the files: any pod may have a place there.
    """
    pools = [default(manifest) for manifest in manifests if is_kind(manifest, "NodePool")]
    if not pools:
        return
    hosts = [_host(pool) for pool in pools]
    for index, manifest in enumerate(manifests):
        for problem in (
            *(() if hosted_elsewhere else _homeless(manifest, hosts, types)),
            *_endless(manifest, pools, manifests),
        ):
            yield index, problem


def _host(pool: Mapping[str, Any]) -> _Host:
    name, class_name = str(part(pool, "metadata", "name")), str(part(pool, *_TEMPLATE, "nodeClassRef", "name"))
    own = Requirements.of_labels({labels.NODEPOOL: name, labels.NODECLASS: class_name})
    taints = tuple(taint for _, taint in entries(pool, *_TEMPLATE, "taints") if taint.get("effect") in _HARD)
    return _Host(name, requirements("NodePool", pool) & own, taints)


def _homeless(manifest: Mapping[str, Any], hosts: Sequence[_Host], types: Catalogue) -> Iterator[Problem]:
    pods = _pods(manifest)
    if pods is None:
        return
    reasons = [(host.name, _refusal(pods, host, types)) for host in hosts]
    if all(reason for _, (reason, _) in reasons):
        told = "; ".join(f"{name}: {reason}" for name, (reason, _) in reasons[:3])
        more = f"; and {counted(len(reasons) - 3, 'other')}" if len(reasons) > 3 else ""
        place = next(place for _, (_, place) in reversed(reasons))
        message = f"no NodePool of these files can host these pods ({told}{more})"
        hint = "change the requirements of the pods, or a NodePool; ignore the rule where other nodes are meant"
        yield at((*pods.place, *place), "KERF-SET-315", "warning", message, hint)


def _pods(manifest: Mapping[str, Any]) -> _Pods | None:
    """The pods of a workload; None for those of which nothing can be said."""
    place = pod_spec(manifest)
    if place is None or manifest.get("kind") == "DaemonSet":
        return None
    spec = mapping(manifest, *map(str, place))
    selector = mapping(spec, "nodeSelector")
    try:
        fixed = Requirements.of_labels({key: value for key, value in selector.items() if isinstance(value, str)})
        terms = [term for _, term in entries(spec, *_AFFINITY, "nodeSelectorTerms")][:_MOST_TERMS]
        allowed = tuple(fixed & _expressions(term) for term in terms) or (fixed,)
    except ValueError:
        return None
    named = {key for term in allowed for key in term}
    elsewhere = any(key.startswith(_ELSEWHERE) for key in named)
    if elsewhere or spec.get("nodeName") or spec.get("schedulerName") not in (None, "default-scheduler"):
        return None
    return _Pods(place, allowed, tuple(tolerations(manifest)), _asked(spec))


def _expressions(term: Mapping[str, Any]) -> Requirements:
    """Raises ValueError for what Kubernetes would not take."""
    if term.get("matchFields"):
        raise ValueError("fields of nodes are not known here")
    rows = [row for _, row in entries(term, "matchExpressions")]
    return Requirements(requirement(str(r.get("key")), str(r.get("operator")), texts(r.get("values"))) for r in rows)


def _asked(spec: Mapping[str, Any]) -> dict[str, Fraction]:
    """What the containers of one pod ask for together."""
    asked: dict[str, Fraction] = {}
    for _, container in entries(spec, "containers"):
        for resource, quantity in mapping(container, "resources", "requests").items():
            asked[resource] = asked.get(resource, Fraction(0)) + (amount(quantity) or 0)
    return asked


def _refusal(pods: _Pods, host: _Host, types: Catalogue) -> tuple[str, Steps]:
    """Why a pool cannot host pods, and where in their spec that stands; ("", ()) when it may."""
    for taint in host.taints:
        if not any(toleration.tolerates(taint) for toleration in pods.borne):
            return f"taint {shown(taint.get('key'), quotes=False)}", ("tolerations",)
    fitting, reason = [], ""
    for term in pods.terms:
        clash = host.wanted.incompatible(term, labels.WELL_KNOWN)
        reason = reason or (f"label {clash}" if clash else "")
        if clash is None:
            fitting.append(types.meeting_all((host.wanted & term).values()))
    if not any(fitting):
        place = ("nodeSelector",) if pods.terms != (EMPTY,) else ()
        return reason or "no instance type has these labels", place
    for resource, label, unit in _SIZES:
        asked = pods.asks.get(resource, Fraction(0))
        enough = 0
        for size, having in types.values(label).items():
            enough |= having if int(size) * unit >= asked else 0
        fitting = [left & enough for left in fitting]
        if not any(fitting):
            return f"no instance type that it allows has so much {resource}", ("containers", 0, "resources", "requests")
    return "", ()


def _endless(
    manifest: Mapping[str, Any], pools: Sequence[Mapping[str, Any]], manifests: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    """A PodDisruptionBudget that allows no eviction, and pools that wait for it without an end."""
    if manifest.get("kind") != "PodDisruptionBudget":
        return
    field = _never(manifest, manifests)
    waiting = [
        str(part(pool, "metadata", "name"))
        for pool in pools
        if part(pool, *_TEMPLATE, "terminationGracePeriod") is None
    ]
    if field and waiting:
        message = (
            f"it never allows an eviction: a node of NodePool {some(waiting)} that has such a pod is never replaced"
        )
        hint = "allow one pod to be away (maxUnavailable: 1), or give the NodePool a terminationGracePeriod"
        yield at(("spec", field), "KERF-SET-316", "warning", message, hint, part(manifest, "spec", field))


def _never(budget: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]) -> str:
    """The field by which a PodDisruptionBudget allows no eviction at all; "" when it may allow one."""
    spec = mapping(budget, "spec")
    if spec.get("maxUnavailable") in (0, "0", "0%") and not isinstance(spec["maxUnavailable"], bool):
        return "maxUnavailable"
    least = spec.get("minAvailable")
    if least == "100%":
        return "minAvailable"
    if isinstance(least, int) and not isinstance(least, bool):
        counts = [replicas for manifest in manifests if (replicas := _replicas(manifest, budget)) is not None]
        return "minAvailable" if counts and 0 < sum(counts) <= least else ""
    return ""


def _replicas(workload: Mapping[str, Any], budget: Mapping[str, Any]) -> int | None:
    """How many pods a workload has that a budget is about; None where it is about none, or their number is open."""
    wanted = mapping(budget, "spec", "selector", "matchLabels")
    own = mapping(workload, "spec", "template", "metadata", "labels")
    spaces = [part(manifest, "metadata", "namespace") or "default" for manifest in (workload, budget)]
    replicas = part(workload, "spec", "replicas")
    if not wanted or spaces[0] != spaces[1] or not isinstance(replicas, int):
        return None
    return replicas if all(own.get(key) == value for key, value in wanted.items()) else None
