"""What the API server makes of a manifest before it stores it: defaults, a fresh status, and refusals.

Custom kinds are checked by their CustomResourceDefinitions, schema and CEL, exactly as the real server would; what
webhooks refuse beyond that is not its business (`World.apply` asks them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kerf.model.kinds import Kind
from kerf.ports import Invalid
from kerf.sandbox.api import metadata
from kerf.sandbox.api.kinds import CUSTOM
from kerf_api.defaulting import default
from kerf_api.lint.expressions import cel
from kerf_api.lint.shape import schema
from kerf_api.v1.meta import decode

_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_UNKNOWN = "KERF-SCHEMA-UNKNOWN"
_DEFAULT_GRACE_SECONDS = 30
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_PATIENCE = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
)


class Refused(Exception):
    """A user's manifest that the API server or the admission webhook would refuse; `problems` says why, one by one."""

    def __init__(self, what: str, problems: Iterable[str] = ()) -> None:
        self.problems = tuple(problems) or (what,)
        super().__init__(f"{what}: {'; '.join(self.problems)}" if problems else what)


def on_create(kind: Kind, manifest: Mapping[str, Any], classes: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The manifest as it is stored first; `classes` are the PriorityClasses. Raises Invalid."""
    fresh = {**manifest, "apiVersion": kind.api_version, "kind": kind.name}
    metadata.check(kind.name, fresh["metadata"], {})
    if kind.name == "Pod":
        return _new_pod(fresh, classes)
    if kind.name == "Node":
        return _new_node(fresh)
    if kind.name in CUSTOM:
        fresh.pop("status", None)
        fresh = default(fresh)
    elif kind.name in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "PodDisruptionBudget"):
        fresh.pop("status", None)
    return checked(kind, fresh, None)


def on_change(kind: Kind, manifest: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest as it replaces an older self. Raises Invalid."""
    changed = dict(manifest)
    metadata.check(kind.name, changed["metadata"], before["metadata"])
    if kind.name in CUSTOM and manifest.get("spec") != before.get("spec"):
        changed = checked(kind, default(changed), before)
    added = set(_finalizers(manifest)) - set(_finalizers(before))
    if before["metadata"].get("deletionTimestamp") and added:
        raise Invalid(f"{kind.name} {_name(manifest)}: no new finalizers can be added if the object is being deleted")
    return changed


def checked(kind: Kind, manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
    """The manifest without fields that its definition does not know.

    Refuses a custom object that breaks its definition, and any object whose shape cannot be read.
    """
    try:
        decode(kind.type, manifest)
    except msgspec.ValidationError as error:
        raise Invalid(f"{kind.name} {_name(manifest)}: {error}") from error
    body = dict(manifest)
    if kind.name not in CUSTOM:
        return body
    found = list(schema.check(kind.name, body))
    shape = [problem for problem in found if problem.rule != _UNKNOWN]
    faulty = frozenset(problem.steps for problem in shape)
    problems = shape + list(cel.check(kind.name, body, None if old is None else dict(old), faulty))
    if problems:
        raise Invalid(f"{kind.name} {_name(manifest)}: " + "; ".join(str(problem) for problem in problems))
    for problem in found:
        body = _without(body, problem.steps)
    return body


def _without(value: Any, steps: Sequence[str | int]) -> Any:
    """The same without the field at this place; what is beside the way is shared."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        return [_without(one, rest) if index == step else one for index, one in enumerate(value)]
    if rest:
        return {**value, step: _without(value[step], rest)}
    return {name: part for name, part in value.items() if name != step}


def _container(manifest: Mapping[str, Any], host_network: bool) -> dict[str, Any]:
    """Limits are requests where there are none; on the network of the node each port is a host port."""
    container = dict(manifest)
    resources = container.get("resources") or {}
    if resources.get("limits"):
        requests = {**resources["limits"], **(resources.get("requests") or {})}
        container["resources"] = {**resources, "requests": requests}
    if host_network and container.get("ports"):
        container["ports"] = [{"hostPort": port.get("containerPort"), **port} for port in container["ports"]]
    return container


def _keyed(affinity: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Affinity with matchLabelKeys and mismatchLabelKeys as part of the selectors."""
    result = dict(affinity)
    for kind in ("podAffinity", "podAntiAffinity"):
        rows = (affinity.get(kind) or {}).get(_REQUIRED)
        if rows:
            result[kind] = {**affinity[kind], _REQUIRED: [_keyed_term(row, labels) for row in rows]}
    return result


def _keyed_term(row: Mapping[str, Any], labels: Mapping[str, str]) -> Mapping[str, Any]:
    selector = row.get("labelSelector")
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in row.get(field) or ()
        if key in labels
    ]
    if selector is None or not added:
        return row
    rows = [*(selector.get("matchExpressions") or ()), *added]
    return {**row, "labelSelector": {**selector, "matchExpressions": rows}}


def _new_pod(manifest: dict[str, Any], classes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": _DEFAULT_GRACE_SECONDS,
        "schedulerName": "default-scheduler",
    }
    spec |= manifest.get("spec") or {}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_container(one, bool(spec.get("hostNetwork"))) for one in spec[kind]]
    if spec.get("affinity"):
        spec["affinity"] = _keyed(spec["affinity"], manifest["metadata"].get("labels") or {})
    if "priority" not in spec:
        spec["priority"] = _priority(spec.get("priorityClassName", ""), classes)
    tolerations = list(spec.get("tolerations") or ())
    keys = {(t.get("key"), t.get("effect") or "NoExecute") for t in tolerations}
    if (None, "NoExecute") not in keys:
        tolerations += [dict(t) for t in _PATIENCE if (t["key"], t["effect"]) not in keys]
    spec["tolerations"] = tolerations
    status: dict[str, Any] = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    return {**manifest, "spec": spec, "status": status}


def _priority(name: str, classes: Iterable[Mapping[str, Any]]) -> int:
    """The value of the class of that name, or of the default one for no name."""
    if name in _PRIORITIES:
        return _PRIORITIES[name]
    found = (one for one in classes if (one["metadata"]["name"] == name if name else one.get("globalDefault")))
    return int(next((one["value"] for one in found), 0))


def _new_node(manifest: dict[str, Any]) -> dict[str, Any]:
    """A new node is tainted until it is Ready (the admission plugin TaintNodesByCondition)."""
    spec = dict(manifest.get("spec") or {})
    taints = list(spec.get("taints") or ())
    if not any(t.get("key") == _NOT_READY["key"] and t.get("effect") == _NOT_READY["effect"] for t in taints):
        taints.append(dict(_NOT_READY))
    return {**manifest, "spec": {**spec, "taints": taints}}


def _finalizers(manifest: Mapping[str, Any]) -> list[str]:
    return list(manifest["metadata"].get("finalizers") or ())


def _name(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("name", ""))
