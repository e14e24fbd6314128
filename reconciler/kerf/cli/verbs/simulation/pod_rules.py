"""Rules of the API server between the fields of pods and workloads, which their types do not have.

Source: the Kubernetes API reference, and the validation of pods and workloads that its messages show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from kerf.sandbox.api import selectors
from kerf_api import quantity
from kerf_api.lint.problem import shown
from kerf_api.lint.reading.reading import entries, label_value_fault, mapping, part, qualified_name_fault
from kerf_api.lint.reading.workloads import pod_spec

Steps = tuple[str | int, ...]
Fault = tuple[Steps, str]
Fields = Mapping[str, Any]

_CONTAINERS: Final = ("containers", "initContainers")
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_EVERY_ADDRESS: Final = "0.0.0.0"
_BUILT_IN_DOMAIN: Final = "kubernetes.io/"
_NO_PODS: Final = (0, "0", "0%")
_SELECTED: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


# --- one part -------------------------------------------------------------------------------------------------------
def _of_toleration(value: Fields, steps: Steps) -> Iterator[Fault]:
    key, operator = value.get("key") or "", value.get("operator") or "Equal"
    if isinstance(key, str) and key and (fault := qualified_name_fault(key)):
        yield (*steps, "key"), f"{shown(key)} is no taint name: {fault}"
    if not key and operator != "Exists":
        yield steps, "without a key the operator must be Exists; write both, or add the key"
    if operator == "Exists" and value.get("value"):
        yield (*steps, "value"), "the operator Exists has no value; remove it, or write operator: Equal"
    if value.get("tolerationSeconds") is not None and value.get("effect") != "NoExecute":
        yield (*steps, "tolerationSeconds"), "only the effect NoExecute has it; remove it, or write that effect"


def _of_spread(value: Fields, steps: Steps) -> Iterator[Fault]:
    yield from _of_topology_key(value, steps)
    if value.get("minDomains") is not None and value.get("whenUnsatisfiable") != "DoNotSchedule":
        yield (*steps, "minDomains"), "only whenUnsatisfiable: DoNotSchedule has it; remove it, or write that"
    if value.get("matchLabelKeys") and value.get("labelSelector") is None:
        yield (*steps, "matchLabelKeys"), "labelSelector is missing; add it"


def _of_topology_key(value: Fields, steps: Steps) -> Iterator[Fault]:
    key = value.get("topologyKey")
    if isinstance(key, str) and key and (fault := qualified_name_fault(key)):
        yield (*steps, "topologyKey"), f"{shown(key)} is no label name: {fault}"


def _of_requirement(value: Fields, steps: Steps) -> Iterator[Fault]:
    """The faults of a requirement on labels, of nodes or of pods."""
    key, operator, values = value.get("key"), value.get("operator"), value.get("values") or []
    if not isinstance(values, list):  # its type is a fault already
        return
    if isinstance(key, str) and key and (fault := qualified_name_fault(key)):
        yield (*steps, "key"), f"{shown(key)} is no label name: {fault}"
    if operator in ("In", "NotIn") and not values:
        yield (*steps, "values"), f"the operator {operator} needs at least one value; add it"
    elif operator in ("Exists", "DoesNotExist") and values:
        yield (*steps, "values"), f"the operator {operator} has no values; remove them, or write In or NotIn"
    elif operator in ("Gt", "Lt") and not (len(values) == 1 and str(values[0]).lstrip("-").isdecimal()):
        yield (*steps, "values"), f"the operator {operator} needs one whole number in quotes"
    elif operator in ("In", "NotIn"):
        for number, one in enumerate(values):
            if isinstance(one, str) and (fault := label_value_fault(one)):
                yield (*steps, "values", number), fault


def _of_resources(value: Fields, steps: Steps) -> Iterator[Fault]:
    """The faults of requests above limits, and of resources that come in whole units and are never overcommitted."""
    requests, limits = mapping(value, "requests"), mapping(value, "limits")
    for resource in dict.fromkeys((*requests, *limits)):
        asked, limit = _amount(requests.get(resource)), _amount(limits.get(resource))
        field = "requests" if resource in requests else "limits"
        place = (*steps, field, resource)
        if _is_extended(resource) and any(one is not None and one.denominator != 1 for one in (asked, limit)):
            yield place, f"{shown(value[field][resource])} of {resource} is no whole number; write 1"
        elif _is_device(resource):
            yield from _unequal(resource, asked, limit, place)
        elif asked is not None and limit is not None and asked > limit:
            yield place, f"{requests[resource]} is more than the limit {limits[resource]}; raise the limit"


def _unequal(resource: str, asked: Fraction | None, limit: Fraction | None, place: Steps) -> Iterator[Fault]:
    if asked is not None and limit is None:
        yield place, f"{resource} needs a limit; write it into limits with the same amount"
    elif asked is not None and asked != limit:
        yield place, f"the request of {resource} must be its limit; write the same amount, or remove the request"


def _amount(value: Any) -> Fraction | None:
    """A quantity as a number; None for one that cannot be read, which is a fault already."""
    try:
        return quantity.parse(value) if isinstance(value, (str, int, float)) else None
    except ValueError:
        return None


def _is_extended(resource: object) -> bool:
    return isinstance(resource, str) and "/" in resource and _BUILT_IN_DOMAIN not in resource


def _is_device(resource: object) -> bool:
    """Whether a resource is never overcommitted."""
    return _is_extended(resource) or str(resource).startswith("hugepages-")


#: The rules of a part by the name of its type.
OF_PARTS: Final[Mapping[str, Callable[[Fields, Steps], Iterator[Fault]]]] = {
    "V1Toleration": _of_toleration,
    "V1TopologySpreadConstraint": _of_spread,
    "V1PodAffinityTerm": _of_topology_key,
    "V1NodeSelectorRequirement": _of_requirement,
    "V1LabelSelectorRequirement": _of_requirement,
    "V1ResourceRequirements": _of_resources,
}


# --- a whole object -------------------------------------------------------------------------------------------------
def faults(manifest: Fields) -> Iterator[Fault]:
    """The faults between the parts of a Pod or of a workload with a template."""
    place = pod_spec(manifest)
    if place is None:
        return
    spec = part(manifest, *map(str, place))
    if manifest.get("kind") in _SELECTED:
        yield from _unselected(manifest)
        if spec.get("restartPolicy", "Always") != "Always":
            words = f"the pods of a {manifest['kind']} have Always; remove it"
            yield (*place, "restartPolicy"), words
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) != _DEFAULT_SCHEDULER:
        yield (*place, "schedulerName"), "the simulation has only the default scheduler; remove it"
    if spec.get("nodeName"):
        yield (*place, "nodeName"), "nodes get their names during the run; remove it"
    yield from _of_roll_out(manifest)
    claims = [name for _, one in entries(manifest, "spec", "volumeClaimTemplates") if (name := _name_of(one))]
    yield from (((*place, *steps), words) for steps, words in _of_pod(spec, claims))


def _of_roll_out(manifest: Fields) -> Iterator[Fault]:
    """The fault of a roll-out that can replace no pod, or of a field that its kind of roll-out does not have."""
    kind = manifest.get("kind")
    field = {"Deployment": "strategy", "DaemonSet": "updateStrategy"}.get(str(kind))
    if field is None:
        return
    rolling, place = mapping(manifest, "spec", field, "rollingUpdate"), ("spec", field, "rollingUpdate")
    if rolling and mapping(manifest, "spec", field).get("type", "RollingUpdate") != "RollingUpdate":
        yield place, "only the type RollingUpdate has it; remove it, or write that type"
        return
    surge = rolling.get("maxSurge", 0 if kind == "DaemonSet" else "25%")
    gone = rolling.get("maxUnavailable", 1 if kind == "DaemonSet" else "25%")
    if surge in _NO_PODS and gone in _NO_PODS:
        yield (*place, "maxUnavailable"), "it and maxSurge are both 0, so no pod can be replaced; write 1"
    elif kind == "DaemonSet" and surge not in _NO_PODS and gone not in _NO_PODS:
        yield (*place, "maxSurge"), "it and maxUnavailable exclude each other; write maxUnavailable: 0"


def _name_of(claim: Fields) -> str:
    name = part(dict(claim), "metadata", "name")
    return name if isinstance(name, str) else ""


def _unselected(manifest: Fields) -> Iterator[Fault]:
    """The fault of a selector that does not select the pods of its own template."""
    selector, own = mapping(manifest, "spec", "selector"), mapping(manifest, "spec", "template", "metadata", "labels")
    for name, value in mapping(selector, "matchLabels").items():
        if own.get(name) != value:
            place = ("spec", "selector", "matchLabels", name)
            yield place, f"{shown(value)} is not the label of the pod template; write the same"
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield ("spec", "selector"), "it is empty; write matchLabels with labels of the pod template"
    for steps, row in entries(selector, "matchExpressions"):
        whole = all(isinstance(row.get(name), str) for name in ("key", "operator"))
        whole = whole and isinstance(row.get("values"), list | None)
        if whole and not selectors.selects({"matchExpressions": [row]}, own):
            yield (
                ("spec", "selector", *steps),
                "it does not select the labels of the pod template; change one of the two",
            )


def _of_pod(spec: Fields, claims: Iterable[str]) -> Iterator[Fault]:
    yield from _doubled(spec, _CONTAINERS, "name", "another container has the same name; change one")
    yield from _doubled(spec, ("volumes",), "name", "another volume has the same name; change one")
    yield from _doubled(spec, ("schedulingGates",), "name", "another gate has the same name; remove one")
    for steps, gate in entries(spec, "schedulingGates"):
        if isinstance(gate.get("name"), str) and (fault := qualified_name_fault(gate["name"])):
            yield (*steps, "name"), f"{shown(gate['name'])} is no name of a gate: {fault}"
    words = "another constraint has the same topologyKey and whenUnsatisfiable; remove one of the two"
    yield from _twice(
        ((*steps, "topologyKey"), (one.get("topologyKey"), one.get("whenUnsatisfiable")), words)
        for steps, one in entries(spec, "topologySpreadConstraints")
    )
    yield from _of_ports(spec)
    yield from _of_claims(spec)
    for place, container in _containers(spec):
        amounts = {**mapping(container, "resources", "requests"), **mapping(container, "resources", "limits")}
        pages = next((name for name in amounts if str(name).startswith("hugepages-")), None)
        if pages is not None and not {"cpu", "memory"} & amounts.keys():
            yield (*place, "resources"), f"{pages} needs a request of cpu or memory beside it; add one"
    volumes = {*claims, *(one.get("name") for _, one in entries(spec, "volumes") if isinstance(one.get("name"), str))}
    for place, container in _containers(spec):
        for steps, mount in entries(container, "volumeMounts"):
            if isinstance(mount.get("name"), str) and mount["name"] not in volumes:
                yield (*place, *steps, "name"), f"there is no volume {mount['name']} in this pod; add it to volumes"


def _of_claims(spec: Fields) -> Iterator[Fault]:
    """The faults of claims of devices: each has one source and a name of its own, which containers use."""
    yield from _doubled(spec, ("resourceClaims",), "name", "another claim has the same name; change one")
    names = set[object]()
    for steps, claim in entries(spec, "resourceClaims"):
        names.add(str(claim.get("name")))
        if bool(claim.get("resourceClaimName")) == bool(claim.get("resourceClaimTemplateName")):
            yield steps, "it needs one of resourceClaimName and resourceClaimTemplateName; write exactly one"
    for place, container in _containers(spec):
        for steps, use in entries(container, "resources", "claims"):
            if isinstance(use.get("name"), str) and use["name"] not in names:
                words = f"there is no claim {use['name']} in this pod; add it to resourceClaims"
                yield (*place, *steps, "name"), words


def _of_ports(spec: Fields) -> Iterator[Fault]:
    """The faults of names and host ports that two ports share; on the network of the node each port is a host port."""
    taken = list[tuple[Steps, object, str]]()
    for place, container in _containers(spec):
        words = "another port of this container has the same name; change one"
        yield from _doubled(container, ("ports",), "name", words, place)
        for steps, port in entries(container, "ports"):
            own, host = port.get("containerPort"), port.get("hostPort")
            if spec.get("hostNetwork") and host and host != own:
                words = f"with hostNetwork it must be the containerPort {own}; write the same, or remove it"
                yield (*place, *steps, "hostPort"), words
            if number := host or (own if spec.get("hostNetwork") else None):
                key = (port.get("protocol") or "TCP", port.get("hostIP") or _EVERY_ADDRESS, number)
                field = "hostPort" if host else "containerPort"
                used = f"the host port {number} is used twice in this pod; change one"
                if place[0] == "containers" or container.get("restartPolicy") == "Always":
                    taken.append(((*place, *steps, field), key, used))
    yield from _twice(taken)


def _containers(spec: Fields) -> Iterator[tuple[Steps, dict[str, Any]]]:
    for field in _CONTAINERS:
        yield from entries(spec, field)


def _doubled(value: Fields, lists: Iterable[str], field: str, words: str, place: Steps = ()) -> Iterator[Fault]:
    """A fault for each entry of the lists whose field has the same text as one before; an empty one is none."""
    rows = ((steps, one.get(field)) for name in lists for steps, one in entries(value, name))
    yield from _twice(((*place, *steps, field), text, words) for steps, text in rows if isinstance(text, str) and text)


def _twice(rows: Iterable[tuple[Steps, object, str]]) -> Iterator[Fault]:
    """A fault for each key that was there before: rows of place, key and words."""
    seen = set[str]()
    for place, key, words in rows:
        if str(key) in seen:
            yield place, words
        seen.add(str(key))
