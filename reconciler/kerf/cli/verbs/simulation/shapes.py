"""The fields of manifests as the API server checks them: names, types, amounts.

Kinds of Karpenter are checked by the rules of `kerf validate`, built-in kinds by the types of the Kubernetes client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from kubernetes.client import models

from kerf.cli.verbs.simulation import pod_rules
from kerf.model import kinds
from kerf.sandbox.api.kinds import CUSTOM, PRIORITY_CLASS
from kerf.simulating.reading import missing
from kerf.simulating.scenario import Workload
from kerf.simulating.workloads import containers, requests
from kerf_api import labels, lint
from kerf_api.defaulting import default
from kerf_api.lint.problem import shown
from kerf_api.lint.reading.reading import label_value_fault, mapping, part, qualified_name_fault
from kerf_api.lint.reading.stored import stored
from kerf_api.lint.rules import pod_annotations
from kerf_api.quantity import amount

Steps = tuple[str | int, ...]
Fault = tuple[Steps, str]

_KARPENTER: Final = "karpenter.sh/"
POD_SPEC: Final = "V1PodSpec"
BUDGET_SPEC: Final = "V1PodDisruptionBudgetSpec"
#: Kinds whose objects only a cluster makes.
_MADE: Final = (kinds.NODE_CLAIM, kinds.NODE, kinds.CSI_NODE, kinds.VOLUME_ATTACHMENT)
#: The kinds that a simulation uses, by name, with their API versions.
USED: Final[Mapping[str, str]] = {
    kind.name: kind.api_version for kind in (*kinds.KNOWN, PRIORITY_CLASS) if kind not in _MADE
}
#: Groups of which all kinds are known, to Kerf or to the client.
_GROUPS: Final = frozenset(
    {kind.group for kind in (kinds.NODE_POOL, kinds.NODE_CLASS, kinds.POD, kinds.DEPLOYMENT, kinds.PDB)}
    | {kind.group for kind in (kinds.STORAGE_CLASS, PRIORITY_CLASS)}
)
#: Groups that once had built-in kinds of workloads.
_FORMER: Final = frozenset({"extensions"})
#: The client's types of lists and maps, before and after the type of their items.
_LIST: Final = re.compile(r"[Ll]ist\[")
_MAP: Final = re.compile(r"[Dd]ict[\[(]str, ")
#: Python types of the client's scalars, and their names in messages.
_SCALARS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "str": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "datetime": ((str,), "a time"),
}
#: Fields with amounts of resources by name.
_AMOUNTS: Final = frozenset({"requests", "limits", "overhead", "capacity", "allocatedResources"})
#: Fields with one amount, which the client types as texts.
_QUANTITIES: Final = frozenset(
    {
        ("V1EmptyDirVolumeSource", "sizeLimit"),
        ("V1ResourceFieldSelector", "divisor"),
        ("V1Counter", "value"),
        ("V1DeviceCapacity", "value"),
    }
)
#: Amounts without a domain in their name.
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "storage")
_SHARE: Final = re.compile(r"(100|[0-9]{1,2})%")
#: A Deployment may have more than twice its pods during a roll-out.
_SURGE: Final = re.compile(r"[0-9]{1,9}%")
_NAME: Final = re.compile(r"[a-z0-9]+(?:[.-]+[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
_SHARES: Final = frozenset({"minAvailable", "maxUnavailable", "maxSurge"})
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
#: The values of fields, by type and field. Source: the Kubernetes API reference.
_VALUES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("V1TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("V1TopologySpreadConstraint", "nodeAffinityPolicy"): ("Honor", "Ignore"),
    ("V1TopologySpreadConstraint", "nodeTaintsPolicy"): ("Honor", "Ignore"),
    ("V1Toleration", "operator"): ("Equal", "Exists", "Lt", "Gt"),
    ("V1Toleration", "effect"): _EFFECTS,
    ("V1LabelSelectorRequirement", "operator"): _OPERATORS,
    ("V1NodeSelectorRequirement", "operator"): (*_OPERATORS, "Gt", "Lt"),
    (BUDGET_SPEC, "unhealthyPodEvictionPolicy"): ("IfHealthyBudget", "AlwaysAllow"),
    (POD_SPEC, "restartPolicy"): ("Always", "OnFailure", "Never"),
    (POD_SPEC, "preemptionPolicy"): ("PreemptLowerPriority", "Never"),
    (POD_SPEC, "dnsPolicy"): ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    ("V1Container", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("V1ContainerPort", "protocol"): ("TCP", "UDP", "SCTP"),
    ("V1DeploymentStrategy", "type"): ("Recreate", "RollingUpdate"),
    ("V1StatefulSetSpec", "podManagementPolicy"): ("OrderedReady", "Parallel"),
    ("V1StatefulSetUpdateStrategy", "type"): ("RollingUpdate", "OnDelete"),
    ("V1DaemonSetUpdateStrategy", "type"): ("RollingUpdate", "OnDelete"),
}


#: Fields without which the API server refuses a value of a type.
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("V1Deployment", "V1StatefulSet", "V1DaemonSet", "V1ReplicaSet", "V1Pod"), ("spec",)),
    **dict.fromkeys(("V1DeploymentSpec", "V1StatefulSetSpec", "V1DaemonSetSpec"), ("selector", "template")),
    "V1ReplicaSetSpec": ("selector", "template"),
    "V1PodTemplateSpec": ("spec",),
    POD_SPEC: ("containers",),
    "V1Container": ("name",),
    "V1ContainerPort": ("containerPort",),
    "V1PodSchedulingGate": ("name",),
    "V1Volume": ("name",),
    "V1VolumeMount": ("mountPath", "name"),
    "V1PriorityClass": ("value",),
    "V1TopologySpreadConstraint": ("maxSkew", "topologyKey", "whenUnsatisfiable"),
    "V1PodAffinityTerm": ("topologyKey",),
    "V1WeightedPodAffinityTerm": ("podAffinityTerm", "weight"),
    "V1PreferredSchedulingTerm": ("preference", "weight"),
    "V1NodeSelector": ("nodeSelectorTerms",),
    "V1NodeSelectorRequirement": ("key", "operator"),
    "V1LabelSelectorRequirement": ("key", "operator"),
}
#: Types whose names are DNS-1123 labels.
_LABELLED: Final = ("V1Container", "V1Volume")
#: Fields of a workload's pods with which no pod of a simulation can run, or that the API server sets.
_UNUSABLE: Final = {
    "priority": "the API server sets it from priorityClassName; write that",
}
#: Fields that the API server accepts and a simulation does not have.
_NOT_SIMULATED: Final = frozenset({"nodeName", "schedulerName"})
#: The least and the highest values of fields.
_LEAST: Final[Mapping[str | int, int]] = {
    **dict.fromkeys(("replicas", "terminationGracePeriodSeconds", "minReadySeconds"), 0),
    **dict.fromkeys(("maxSkew", "minDomains", "containerPort", "weight"), 1),
    "hostPort": 0,
}
_MOST: Final[Mapping[str | int, int]] = {"weight": 100, **dict.fromkeys(("containerPort", "hostPort"), 65535)}


def faults(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of an object of a kind in `USED`, each with its place in the object."""
    kind = manifest["kind"]
    version, meta = manifest.get("apiVersion"), mapping(manifest, "metadata")
    if version != USED[kind]:
        hint = "; `kerf convert` does it" if kind in CUSTOM else ""
        yield ("apiVersion",), f"{shown(version)} of {kind} is not served here; write {USED[kind]}{hint}"
        return
    name, space = meta.get("name", meta.get("generateName")), meta.get("namespace")
    if isinstance(space, str) and not _is_label(space):
        yield (
            ("metadata", "namespace"),
            f"{shown(space)} is no name of a Namespace; write lower case letters, digits and -",
        )
    if not isinstance(name, str) or not name:
        yield ("metadata", "name"), f"{kind}: metadata.name is missing; add it"
    elif not _NAME.fullmatch(name if "name" in meta else name.rstrip("-")) or len(name) > _LONGEST_NAME:
        yield ("metadata", "name"), f"{shown(name)} is no name; write lower case letters, digits, - and ."
    if kind in CUSTOM:
        found = lint.validate(default(dict(manifest)))
        yield from ((one.steps, str(replace(one, path=""))) for one in found if one.severity == "error")
    else:
        yield from of(f"V1{kind}", manifest)
        yield from pod_rules.faults(manifest)


def refused(steps: Sequence[str | int], named: str) -> str:
    """Return the start of the message for a fault of an object at this place."""
    if steps and steps[-1] in _NOT_SIMULATED:
        return f"kerf simulate cannot run {named}"
    return f"the API server refuses {named}"


def workload_faults(workload: Workload) -> Iterator[Fault]:
    """The faults of a workload's `pod`, `podDisruptionBudget` and `annotations`, by their places in the workload."""
    pod, notes, budget = stored(workload.pod), workload.annotations, stored(workload.pod_disruption_budget)
    template = {"metadata": {"annotations": notes}, "spec": {"containers": [{"name": workload.name}], **pod}}
    for steps, words in chain(of("V1PodTemplateSpec", template), _between(workload, template)):
        yield (("pod", *steps[1:]) if steps[:1] == ("spec",) else steps[1:]), words
    yield from _requests(workload)
    yield from ((("podDisruptionBudget", *steps), words) for steps, words in of(BUDGET_SPEC, budget))
    if "selector" in budget:
        yield ("podDisruptionBudget", "selector"), "the selector is that of the workload; remove it"
    if pod.get("restartPolicy", "Always") != "Always":
        yield ("pod", "restartPolicy"), "the pods of a Deployment have Always; remove it"
    yield from ((("pod", field), words) for field, words in _UNUSABLE.items() if field in pod)
    for one in pod_annotations.check({"kind": "Deployment", "spec": {"template": template}}):
        yield ("annotations", one.steps[-1]), f"{one.message}; {one.hint}"
    for key in notes:
        if key.startswith(_KARPENTER) and key != labels.DO_NOT_DISRUPT:
            yield ("annotations", key), missing("annotation", key, [labels.DO_NOT_DISRUPT])


def _between(workload: Workload, template: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults between the parts of a workload's pod, whose first container has the requests of the workload."""
    spec = template["spec"]
    rows = spec["containers"] if isinstance(spec["containers"], list) else []
    if rows and isinstance(rows[0], Mapping) and (own := requests(workload)):
        resources = mapping(dict(rows[0]), "resources")
        first = {**rows[0], "resources": {**resources, "requests": {**mapping(resources, "requests"), **own}}}
        spec = {**spec, "containers": [first, *rows[1:]]}
    yield from pod_rules.faults({"kind": "Pod", **template, "spec": spec})


def _requests(workload: Workload) -> Iterator[Fault]:
    """The faults of a workload's `cpu` and `memory` beside the requests and limits of its first container."""
    first = next(iter(workload.pod.get("containers") or ()), None)
    if not isinstance(first, Mapping):
        return
    for resource in requests(workload):
        if (own := part(first, "resources", "requests", resource)) is not None:
            yield (resource,), f"pod.containers[0] requests {own} of it already; remove one of the two"
    yield from (((steps[-1],), words) for steps, words in of("V1Container", containers(workload)[0]))


def is_unknown(manifest: Mapping[str, Any]) -> bool:
    """Whether the kind is misspelt: its group is one of Karpenter's or a built-in one, and has no such kind."""
    kind, group = str(manifest.get("kind", "")), str(manifest.get("apiVersion", "")).rpartition("/")[0]
    if kind in {*USED, *(one.name for one in _MADE)}:
        return False
    return not kind or (group in _GROUPS and not _is_built_in(kind))


def is_foreign(manifest: Mapping[str, Any]) -> bool:
    """Whether the kind only shares its name with one of a simulation, such as `Service` of Knative."""
    group, slash, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    return bool(slash) and group not in _GROUPS | _FORMER | {one.rpartition("/")[0] for one in USED.values()}


def _is_built_in(kind: str) -> bool:
    return kind == "List" or any(hasattr(models, f"{version}{kind}") for version in ("V1", "V2", "V1beta1", "V1alpha1"))


def of(kind: str, value: Any, steps: Steps = ()) -> Iterator[Fault]:
    """The faults of a value of a type of the Kubernetes client, such as `V1PodSpec` or `list[V1Container]`."""
    if value is None or kind == "object":
        return
    if found := _LIST.match(kind):
        if not isinstance(value, list):
            yield steps, f"{shown(value)} is not a list"
            return
        for number, one in enumerate(value):
            if one is None:
                yield (*steps, number), "the entry is empty; write a value, or remove the entry"
            yield from of(kind[found.end() : -1], one, (*steps, number))
    elif found := _MAP.match(kind):
        yield from _entries(kind[found.end() : -1], value, steps)
    elif kind in _SCALARS:
        yield from _scalar(kind, value, steps)
    elif (model := getattr(models, kind, None)) is not None:
        yield from _fields(kind, model, value, steps)


def _scalar(kind: str, value: Any, steps: Steps) -> Iterator[Fault]:
    types, words = _SCALARS[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
        yield steps, f"{shown(value)} is not {words}"
    elif isinstance(value, int):
        field = steps[-1] if steps else ""
        if value < (least := _LEAST.get(field, value)):
            yield steps, f"{value} is less than {least}, the least allowed"
        if value > (most := _MOST.get(field, value)):
            yield steps, f"{value} is more than {most}, the most allowed"


def _entries(kind: str, value: Any, steps: Steps) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield steps, f"{shown(value)} is not a map"
        return
    if kind == "str" and steps and steps[-1] in _AMOUNTS:
        yield from _amounts(value, steps)
        return
    check = _CHECKS.get(steps[-1] if steps else "")
    for name, one in value.items():
        yield from of(kind, one, (*steps, name))
        if check is not None and isinstance(one, str) and (fault := check(name, one)):
            yield (*steps, name), fault


def _amounts(value: Mapping[str, Any], steps: Steps) -> Iterator[Fault]:
    """The faults of amounts by resource."""
    for resource, one in value.items():
        if "/" not in resource and resource not in _RESOURCES and not resource.startswith("hugepages-"):
            yield (*steps, resource), missing("resource", resource, _RESOURCES)
        if isinstance(one, bool) or not isinstance(one, (str, int, float)):
            yield (*steps, resource), f"{shown(one)} is not a quantity; write one such as 500m or 2Gi"
            continue
        try:
            if amount(resource, one) < 0:
                yield (*steps, resource), f"{shown(one)} is below 0; write a quantity such as 500m or 2Gi"
        except ValueError as error:
            yield (*steps, resource), str(error)


def _fields(kind: str, model: Any, value: Any, steps: Steps) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield steps, f"{shown(value)} is not a map of fields"
        return
    types = {model.attribute_map[own]: of_field for own, of_field in model.openapi_types.items()}
    for name, one in value.items():
        yield from _field((kind, name), types, one, (*steps, name))
    for name in _REQUIRED.get(kind, ()):
        if value.get(name) in (None, [], ""):
            yield steps, f"the field {name} is missing; add it"
    if (rules := pod_rules.OF_PARTS.get(kind)) is not None:
        yield from rules(value, steps)
    if kind == BUDGET_SPEC and "minAvailable" in value and "maxUnavailable" in value:
        yield steps, "minAvailable and maxUnavailable exclude each other; remove one"


def _field(of_type: tuple[str, str], types: Mapping[str, str], value: Any, place: Steps) -> Iterator[Fault]:
    """The faults of a field: its type and name, the types of the fields there, and its value."""
    kind, name = of_type
    if name not in types:
        yield place, missing("field", name, types)
    elif name in _SHARES and types[name] == "object":
        yield from _share(
            value, place, _SURGE if kind == "V1RollingUpdateDeployment" and name == "maxSurge" else _SHARE
        )
    elif of_type in _QUANTITIES:
        yield from _quantity(value, place)
    elif (known := _VALUES.get(of_type)) and isinstance(value, str) and value not in known:
        yield place, missing("value", value, known)
    elif name == "name" and kind in _LABELLED and isinstance(value, str) and value and not _is_label(value):
        yield place, f"{shown(value)} is no name of at most 63 characters: write lower case letters, digits and -"
    else:
        yield from of(types[name], value, place)


def _is_label(name: str) -> bool:
    """Whether a name is a DNS-1123 label, as those of Namespaces and containers must be."""
    return "." not in name and len(name) <= _LONGEST_LABEL and bool(_NAME.fullmatch(name))


def _quantity(value: Any, place: Steps) -> Iterator[Fault]:
    """The fault of one amount."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        yield place, f"{shown(value)} is not a quantity; write one such as 500m or 2Gi"
        return
    try:
        amount("memory", value)
    except ValueError as error:
        yield place, str(error)


def _share(value: Any, place: Steps, form: re.Pattern[str]) -> Iterator[Fault]:
    """The fault of a number of pods or a percentage."""
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not number and not (isinstance(value, str) and form.fullmatch(value)):
        yield place, f"{shown(value)} is neither a number from 0 nor a percentage; write 1 or 25%"


def _label(name: str, value: str) -> str:
    return (qualified_name_fault(name) or label_value_fault(value)) or ""


_CHECKS: Final[Mapping[str | int, Callable[[str, str], str]]] = {
    **dict.fromkeys(("labels", "matchLabels", "nodeSelector"), _label),
    "annotations": lambda name, _: qualified_name_fault(name.lower()) or "",
}
