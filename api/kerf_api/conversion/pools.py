"""Provisioner (v1alpha5) and NodePool (v1beta1) as NodePool; Machine (v1alpha5) and NodeClaim (v1beta1) as NodeClaim.

Fields that were left out meant something else in the old versions than they do now. What they meant is written out, so
that the nodes of a cluster are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kerf_api import durations, labels, old_names
from kerf_api.lint import Steps
from kerf_api.lint.problem import shown

from .classes import class_of_provider
from .draft import Draft
from .header import header, keep_annotations, keep_labels
from .work import (
    DIFFERENT,
    DROPPED,
    MALFORMED,
    SPELLED_OUT,
    UNKNOWN,
    WRITTEN_BY_OTHERS,
    Table,
    Work,
    malformed,
    read,
    to,
)

_TEMPLATE: Final = ("spec", "template", "spec")
_POLICY, _AFTER = ("spec", "disruption", "consolidationPolicy"), ("spec", "disruption", "consolidateAfter")
_REQUIREMENTS: Final = (*_TEMPLATE, "requirements")
_EMPTY, _UNDERUTILIZED = "WhenEmpty", "WhenEmptyOrUnderutilized"
_OLD_UNDERUTILIZED: Final = "WhenUnderutilized"
_INSTANCE: Final = frozenset(
    {labels.INSTANCE_TYPE} | {f"{labels.AWS_GROUP}/instance-{name}" for name in ("family", "category", "generation")}
)
#: What the webhook of v1alpha5 added to a Provisioner that had no requirement of that key.
_ASSUMED: Final[Mapping[str, list[str]]] = {
    labels.OS: ["linux"],
    labels.ARCH: ["amd64"],
    labels.CAPACITY_TYPE: [labels.ON_DEMAND],
}
#: What it added when nothing was said of instance types.
_ASSUMED_TYPES: Final[tuple[Mapping[str, Any], ...]] = (
    {"key": f"{labels.AWS_GROUP}/instance-category", "operator": "In", "values": ["c", "m", "r"]},
    {"key": f"{labels.AWS_GROUP}/instance-generation", "operator": "Gt", "values": ["2"]},
)


def duration(seconds: int) -> str:
    """Seconds in the largest unit that needs no fraction: `720h`, `90m`, `30s`."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def provisioner(work: Work) -> None:
    """A NodePool of a Provisioner, and the class of its `provider`, if it has one."""
    read(work, _PROVISIONER)
    spec = work.old.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if bool(spec.get("provider")) == bool(spec.get("providerRef")):
        both = bool(spec.get("provider"))
        message = f"a Provisioner has {'either' if both else 'one of'} provider {'or' if both else 'and'} providerRef"
        hint = "remove one of the two" if both else "name the AWSNodeTemplate in providerRef.name"
        work.tell(MALFORMED, ("spec",), message, hint)
    if work.draft.get(*_REQUIREMENTS) is None:
        _assumed_requirements(work, ("spec",), [])
    if work.draft.get(*_POLICY) is None:
        _consolidation(work, ("spec",), None)
    if work.draft.get(*_TEMPLATE, "expireAfter") is None:
        work.add((*_TEMPLATE, "expireAfter"), durations.NEVER)
        message = f"nodes of a Provisioner without ttlSecondsUntilExpired never expired; {durations.NEVER} says so"
        work.tell(SPELLED_OUT, ("spec",), message, "720h would be the default of a NodePool")


def node_pool(work: Work) -> None:
    """A NodePool of one of v1beta1."""
    read(work, _NODE_POOL)
    if isinstance(work.draft.get("spec", "disruption"), dict):
        _disruption(work)


def _disruption(work: Work) -> None:
    """Policies by their names of today, and after how long: in v1beta1 left out, that was another time for each."""
    old = work.draft.get(*_POLICY)
    after = work.draft.get(*_AFTER)
    if old == _OLD_UNDERUTILIZED:
        work.add(_POLICY, _UNDERUTILIZED, _POLICY)
    if after is None:
        work.add(_AFTER, durations.NEVER if old == _EMPTY else "0s", *([_POLICY] if old else []))
        if old == _EMPTY:
            message = "empty nodes stayed where consolidateAfter was left out; Never says so"
            work.tell(SPELLED_OUT, _POLICY, message, "write 30s, for example, to have them removed")


def claim(work: Work) -> None:
    """A NodeClaim of one of v1beta1."""
    read(work, _NODE_CLAIM)


def machine(work: Work) -> None:
    """A NodeClaim of a Machine."""
    read(work, _MACHINE)


def class_reference(*path: str) -> Callable[[Work, Steps, Any], None]:
    """Refer to the class by group, kind and name at this path of the new object."""

    def refer(work: Work, steps: Steps, value: Any) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            malformed(work, steps, value, "a reference with a name")
            return
        work.keep(path, steps, {})
        group = str(value.get("apiVersion") or "").partition("/")[0]
        kind = value.get("kind") or "EC2NodeClass"
        for name, text in (
            ("group", group or labels.AWS_GROUP),
            ("kind", old_names.KINDS.get(str(kind), kind)),
            ("name", value["name"]),
        ):
            source = (*steps, "apiVersion" if name == "group" else name)
            work.add((*path, name), text, *([source] if source[-1] in value else []))
        for name in value.keys() - {"apiVersion", "kind", "name", "group"}:
            work.tell(
                UNKNOWN, (*steps, name), f"a reference to an EC2NodeClass has no field {shown(name)}", "remove it"
            )

    return refer


def _requirements(work: Work, steps: Steps, value: Any) -> None:
    """A Provisioner's requirements, and those that were assumed where it had none."""
    _kept_requirements(work, steps, value)
    kept = work.draft.get(*_REQUIREMENTS)
    if isinstance(kept, list):
        _assumed_requirements(work, steps, kept)


def _kept_requirements(work: Work, steps: Steps, value: Any, path: Steps = _REQUIREMENTS) -> None:
    if not isinstance(value, list):
        malformed(work, steps, value, "a list")
        return
    kept: list[tuple[int, Any]] = []
    for index, entry in enumerate(value):
        key = entry.get("key") if isinstance(entry, dict) else None
        if key in (old_names.PROVISIONER_NAME, old_names.INSTANCE_PODS):
            message = f"no node has the label {key} any more, so nothing could meet the requirement; removed"
            hint = "check whether it needs a replacement"
            work.tell(DROPPED, (*steps, index, "key"), message, hint, key)
        else:
            kept.append((index, entry))
    work.keep(path, steps, [entry for _, entry in kept])
    if len(kept) < len(value):
        for index, (was, _) in enumerate(kept):
            work.draft.trace((*path, index), work.origin((*steps, was)))


def _assumed_requirements(work: Work, steps: Steps, kept: list[Any]) -> None:
    keys = {str(entry.get("key")) for entry in kept if isinstance(entry, dict)}
    keys = {labels.ALIASES.get(key, key) for key in keys}
    added: list[Mapping[str, Any]] = [
        {"key": key, "operator": "In", "values": values} for key, values in _ASSUMED.items() if key not in keys
    ]
    added += [*_ASSUMED_TYPES] if keys.isdisjoint(_INSTANCE) else []
    if not kept and work.draft.get(*_REQUIREMENTS) is None:
        work.add(_REQUIREMENTS, [])
    for requirement in added:
        work.draft.append(_REQUIREMENTS, requirement)
    if added:
        names = ", ".join(str(requirement["key"]) for requirement in added)
        message = f"the webhook of v1alpha5 added requirements of {names}; written out"
        work.tell(SPELLED_OUT, steps, message, "without them Kerf could launch nodes that v1alpha5 excluded")


def _consolidation(work: Work, steps: Steps, _: Any) -> None:
    """One policy of `consolidation` and `ttlSecondsAfterEmpty`; with neither, nothing was ever removed."""
    if work.draft.get(*_POLICY) is not None:
        return
    spec = work.old.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    asked, ttl = spec.get("consolidation"), spec.get("ttlSecondsAfterEmpty")
    enabled = isinstance(asked, dict) and asked.get("enabled") is True
    both = ("consolidation", "ttlSecondsAfterEmpty")
    places: list[Steps] = [("spec", name) for name in both if spec.get(name) is not None]
    if isinstance(asked, dict) and asked.get("enabled") is not None:
        places.insert(1, ("spec", "consolidation", "enabled"))
    after = "0s" if enabled else durations.NEVER
    if isinstance(asked, dict) and not isinstance(asked.get("enabled"), bool | None):
        malformed(work, ("spec", "consolidation", "enabled"), asked["enabled"], "true or false")
    if ttl is not None and not _is_seconds(ttl):
        malformed(work, ("spec", "ttlSecondsAfterEmpty"), ttl, "a number of seconds")
    elif ttl is not None and enabled:
        message = "with consolidation, empty nodes are removed at once; ttlSecondsAfterEmpty was refused beside it"
        hint = f"write consolidateAfter: {duration(ttl)} to wait that long"
        work.tell(DIFFERENT, ("spec", "ttlSecondsAfterEmpty"), message, hint, ttl)
    elif ttl is not None:
        after = duration(ttl)
    elif not enabled:
        message = f"nothing was consolidated here; {_EMPTY} with consolidateAfter {durations.NEVER} says so"
        work.tell(SPELLED_OUT, steps, message, f"{_UNDERUTILIZED} after 0s would be the default of a NodePool")
    work.add(_POLICY, _UNDERUTILIZED if enabled else _EMPTY, *([p for p in places if "consolidation" in p]))
    work.add(_AFTER, after, *[p for p in places if "ttlSecondsAfterEmpty" in p])


def _expiry(work: Work, steps: Steps, value: Any) -> None:
    if _is_seconds(value):
        work.add((*_TEMPLATE, "expireAfter"), duration(value), steps)
    else:
        malformed(work, steps, value, "a number of seconds")


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= durations.LONGEST_SECONDS


def _limits(work: Work, steps: Steps, value: Any) -> None:
    work.add(("spec", "limits"), value, steps[:-1], steps)


def _kubelet(work: Work, steps: Steps, value: Any) -> None:
    """The kubelet's configuration has to move to the class; its container runtime is containerd everywhere."""
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    runtime = value.get("containerRuntime")
    if runtime is not None:
        place, gone = (*steps, "containerRuntime"), "nodes of EKS have containerd and nothing else; removed"
        if runtime == "containerd":
            work.tell(WRITTEN_BY_OTHERS, place, gone)
        else:
            work.tell(DROPPED, place, gone, f"check that no workload depends on {shown(runtime)}", runtime)
    rest = {key: _as_texts(key, entry) for key, entry in value.items() if key != "containerRuntime"}
    if rest:
        work.kubelet = steps, rest


def _as_texts(key: str, value: Any) -> Any:
    """Amounts that the old versions took as numbers as well; v1 has texts alone."""
    if key not in ("systemReserved", "kubeReserved") or not isinstance(value, dict):
        return value
    return {name: str(amount) if type(amount) in (int, float) else amount for name, amount in value.items()}


def _labels(work: Work, steps: Steps, value: Any) -> None:
    keep_labels(work, steps, value, ("spec", "template", "metadata", "labels"))


def _annotations(work: Work, steps: Steps, value: Any) -> None:
    keep_annotations(work, steps, value, ("spec", "template", "metadata", "annotations"))


def _provider(work: Work, steps: Steps, value: Any) -> None:
    """A class of the Provisioner's name, and a reference to it."""
    name = work.old["metadata"].get("name") if isinstance(work.old.get("metadata"), dict) else None
    for key, text in (("group", labels.AWS_GROUP), ("kind", "EC2NodeClass"), ("name", name)):
        work.add((*_TEMPLATE, "nodeClassRef", key), text)
    pool, work.draft = work.draft, Draft()
    class_of_provider(work, steps, name)
    work.extra, work.draft = work.draft, pool


def _resources(work: Work, steps: Steps, _: Any) -> None:
    work.tell(DROPPED, steps, "resources of a template never had an effect; removed", "")


_HOST: Final[Table] = {
    "taints": to(*_TEMPLATE, "taints"),
    "startupTaints": to(*_TEMPLATE, "startupTaints"),
}
_PROVISIONER: Final[Table] = {
    **header("NodePool"),
    **{f"spec.{name}": handler for name, handler in _HOST.items()},
    "spec.annotations": _annotations,
    "spec.labels": _labels,
    "spec.requirements": _requirements,
    "spec.kubeletConfiguration": _kubelet,
    "spec.provider": _provider,
    "spec.providerRef": class_reference(*_TEMPLATE, "nodeClassRef"),
    "spec.ttlSecondsAfterEmpty": _consolidation,
    "spec.consolidation.enabled": _consolidation,
    "spec.ttlSecondsUntilExpired": _expiry,
    "spec.limits.resources": _limits,
    "spec.weight": to("spec", "weight"),
}
_NODE_POOL: Final[Table] = {
    **header("NodePool"),
    **{f"spec.template.spec.{name}": handler for name, handler in _HOST.items()},
    "spec.template.metadata.labels": _labels,
    "spec.template.metadata.annotations": _annotations,
    "spec.template.spec.requirements": _kept_requirements,
    "spec.template.spec.kubelet": _kubelet,
    "spec.template.spec.nodeClassRef": class_reference(*_TEMPLATE, "nodeClassRef"),
    "spec.template.spec.resources": _resources,
    **{old: to(*new.split(".")) for old, new in old_names.MOVED_FIELDS["NodePool"].items()},
    **{
        f"spec.disruption.{name}": to("spec", "disruption", name)
        for name in ("consolidationPolicy", "consolidateAfter", "budgets")
    },
    "spec.limits": to("spec", "limits"),
    "spec.weight": to("spec", "weight"),
}


def _claim_requirements(work: Work, steps: Steps, value: Any) -> None:
    _kept_requirements(work, steps, value, ("spec", "requirements"))


def _claim(kubelet: str, reference: str) -> Table:
    return {
        **header("NodeClaim"),
        **{f"spec.{name}": to("spec", name) for name in ("taints", "startupTaints", "resources")},
        "spec.requirements": _claim_requirements,
        f"spec.{kubelet}": _kubelet,
        f"spec.{reference}": class_reference("spec", "nodeClassRef"),
    }


_NODE_CLAIM: Final[Table] = _claim("kubelet", "nodeClassRef")
_MACHINE: Final[Table] = _claim("kubelet", "machineTemplateRef")
