"""The rules between one pod and one node: selectors, taints, host ports. All of them read manifests.

Source: Kubernetes, "Assigning Pods to Nodes", "Taints and Tolerations"; plugins NodeAffinity, TaintToleration,
NodeUnschedulable and NodePorts of the kube-scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kerf.sandbox.scheduling.pod_requests import restarts

Manifest = Mapping[str, Any]
#: Address, protocol and number of a host port.
Port = tuple[str, str, int]

_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_HARD = ("NoSchedule", "NoExecute")
_EVERY_ADDRESS = "0.0.0.0"
_NUMBER = re.compile(r"[+-]?[0-9]+")


# --- labels and fields ------------------------------------------------------------------------------------------
def selected(spec: Manifest, name: str, labels: Mapping[str, str]) -> bool:
    """Whether node selector and required node affinity of a pod accept a node."""
    if any(key not in labels or labels[key] != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any_term(required.get("nodeSelectorTerms") or (), name, labels)


def any_term(terms: Iterable[Manifest], name: str | None, labels: Mapping[str, str]) -> bool:
    """Whether a node meets one of the terms; an empty term is met by no node.

    Without a name, the fields of a term do not count.
    """
    return any(_term(term, name, labels) for term in terms)


def _term(term: Manifest, name: str | None, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = name is None or all(_field(row, name) for row in fields)
    return named and all(_expression(row, labels) for row in expressions)


def _expression(row: Manifest, labels: Mapping[str, str]) -> bool:
    operator: str = row["operator"]
    value: str | None = labels.get(row["key"])
    values: Sequence[str] = row.get("values") or ()
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists" | "DoesNotExist":
            return (value is not None) == (operator == "Exists")
        case "Gt" | "Lt":
            return _compares(operator, value or "", values)
    return False


def _compares(operator: str, value: str, values: Sequence[str]) -> bool:
    if not all(_NUMBER.fullmatch(text) for text in (value, *values)) or len(values) != 1:
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def _field(row: Manifest, name: str) -> bool:
    """A field requirement names one value."""
    operator: str = row["operator"]
    value = name if row["key"] == "metadata.name" else ""
    values: Sequence[str] = row.get("values") or ()
    if len(values) != 1 or operator not in ("In", "NotIn"):
        return False
    return (value in values) == (operator == "In")


# --- taints -----------------------------------------------------------------------------------------------------
def tolerated(tolerations: Iterable[Manifest], taints: Iterable[Manifest]) -> bool:
    """Whether no taint with the effect NoSchedule or NoExecute keeps the pod away."""
    rows = tuple(tolerations)
    return all(any(tolerates(row, taint) for row in rows) for taint in taints if taint.get("effect") in _HARD)


def tolerates_cordon(tolerations: Iterable[Manifest]) -> bool:
    return any(tolerates(row, _UNSCHEDULABLE) for row in tolerations)


def tolerates(row: Manifest, taint: Manifest) -> bool:
    if row.get("effect") and row["effect"] != taint.get("effect"):
        return False
    if row.get("key") and row["key"] != taint["key"]:
        return False
    operator = row.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and (row.get("value") or "") == (taint.get("value") or ""))


# --- host ports -------------------------------------------------------------------------------------------------
def host_ports(spec: Manifest) -> frozenset[Port]:
    """The host ports of all containers that run as long as the pod."""
    running = [*(c for c in spec.get("initContainers") or () if restarts(c)), *(spec.get("containers") or ())]
    rows = [port for container in running for port in container.get("ports") or () if port.get("hostPort")]
    return frozenset((r.get("hostIP") or _EVERY_ADDRESS, r.get("protocol") or "TCP", r["hostPort"]) for r in rows)


def ports_clash(wanted: Iterable[Port], used: Iterable[Port]) -> bool:
    """Whether two ports have the same protocol and number on the same address, or one of them on every address."""
    taken = tuple(used)
    return any(
        one[1:] == other[1:] and (one[0] == other[0] or _EVERY_ADDRESS in (one[0], other[0]))
        for one in wanted
        for other in taken
    )
