"""The scheduling constraints of one shape of pod, read once from a manifest.

Pods of equal namespace, labels and spec share one Demand. Source: Kubernetes, "Assigning Pods to Nodes", "Pod Topology
Spread Constraints".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kerf.sandbox.api import selectors
from kerf.sandbox.scheduling import node_rules, pod_requests
from kerf.sandbox.scheduling.node_rules import Port
from kerf.sandbox.scheduling.pod_requests import Manifest

#: Gives the namespaces that a namespace selector selects.
Namespaces = Callable[[Manifest], Iterable[str]]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HARD = "DoNotSchedule"


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of some namespaces (or of all) that a selector selects, and the label that makes a domain of nodes."""

    namespaces: frozenset[str]
    everywhere: bool
    selector: Manifest | None
    topology_key: str
    #: Equal for equal terms.
    key: str

    @classmethod
    def of(cls, namespaces: Iterable[str], everywhere: bool, selector: Manifest | None, topology_key: str) -> Term:
        own = frozenset(namespaces)
        key = msgspec.json.encode([sorted(own), everywhere, selector, topology_key], order="sorted").decode()
        return cls(own, everywhere, selector, topology_key, key)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.everywhere or namespace in self.namespaces) and selectors.selects(self.selector, labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """A hard spread constraint. With `counts` false the kube-scheduler counts no pod that is there: its selector is
    empty."""

    term: Term
    max_skew: int
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    counts: bool


@dataclass(slots=True)
class Demand:
    """One shape of pod. `verdicts` remembers by node name the version of it that passes the node's own tests, and
    `shortages` what the node lacks for it, by version and load."""

    namespace: str
    labels: Mapping[str, str]
    spec: Manifest
    requests: Mapping[str, int]
    spreads: tuple[Spread, ...]
    affinity: tuple[Term, ...]
    anti_affinity: tuple[Term, ...]
    ports: frozenset[Port]
    verdicts: dict[str, tuple[int, str]] = field(default_factory=dict)
    shortages: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pod: Manifest, namespaces: Namespaces) -> Demand:
        meta, spec = pod["metadata"], pod["spec"]
        namespace, labels = meta.get("namespace", ""), meta.get("labels") or {}
        affinity = spec.get("affinity") or {}
        rows = spec.get("topologySpreadConstraints") or ()
        return cls(
            namespace=namespace,
            labels=labels,
            spec=spec,
            requests=pod_requests.incoming(pod),
            spreads=tuple(_spread(r, namespace, labels) for r in rows if r.get("whenUnsatisfiable", _HARD) == _HARD),
            affinity=_terms(affinity.get("podAffinity"), namespace, namespaces),
            anti_affinity=_terms(affinity.get("podAntiAffinity"), namespace, namespaces),
            ports=node_rules.host_ports(spec),
        )

    @property
    def topological(self) -> bool:
        return bool(self.spreads or self.affinity or self.anti_affinity)

    @property
    def claims_devices(self) -> bool:
        return bool(self.spec.get("resourceClaims"))

    def likes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether node selector and required node affinity accept a node."""
        return node_rules.selected(self.spec, name, labels)

    def tolerates(self, taints: Iterable[Manifest]) -> bool:
        """Whether no hard taint keeps the pod away."""
        return node_rules.tolerated(self.spec.get("tolerations") or (), taints)

    def tolerates_cordon(self) -> bool:
        return node_rules.tolerates_cordon(self.spec.get("tolerations") or ())


def shape(pod: Manifest) -> bytes:
    """Equal for pods between which the scheduler makes no difference."""
    meta, spec = pod["metadata"], pod["spec"]
    if spec.get("nodeName"):
        spec = {name: part for name, part in spec.items() if name != "nodeName"}
    parts: list[Any] = [meta.get("namespace", ""), meta.get("labels") or {}, spec]
    return msgspec.json.encode(parts, order="sorted")


def _spread(row: Manifest, namespace: str, labels: Mapping[str, str]) -> Spread:
    selector = row.get("labelSelector")
    same = {key: labels[key] for key in row.get("matchLabelKeys") or () if key in labels}
    if selector is not None and same:
        rows = [{"key": key, "operator": "In", "values": [value]} for key, value in same.items()]
        selector = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *rows]}
    return Spread(
        term=Term.of((namespace,), False, selector, row["topologyKey"]),
        max_skew=row.get("maxSkew", 1),
        min_domains=row.get("minDomains") or 1,
        honor_affinity=(row.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honor_taints=row.get("nodeTaintsPolicy") == "Honor",
        counts=bool(selector and (selector.get("matchLabels") or selector.get("matchExpressions"))),
    )


def _terms(affinity: Manifest | None, namespace: str, namespaces: Namespaces) -> tuple[Term, ...]:
    return tuple(_term(row, namespace, namespaces) for row in (affinity or {}).get(_REQUIRED) or ())


def _term(row: Manifest, namespace: str, namespaces: Namespaces) -> Term:
    listed, selector = set(row.get("namespaces") or ()), row.get("namespaceSelector")
    everywhere = selector is not None and not (selector.get("matchLabels") or selector.get("matchExpressions"))
    if selector is not None and not everywhere:
        listed |= set(namespaces(selector))
    elif selector is None and not listed:
        listed = {namespace}
    return Term.of(listed, everywhere, row.get("labelSelector"), row["topologyKey"])
