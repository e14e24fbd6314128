"""Shapes of pods of which each alone is dear to place: node affinity, resources, taints, volumes, sheer size.

A shape makes `number` manifests of pods. Who may create pods can make each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, Final

import msgspec

from benchmarks.scheduling import REFUSED
from benchmarks.workloads import pod
from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from kerf_api.v1.meta import decode

Json = dict[str, Any]
Shape = Callable[[int], list[Json]]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
KEY: Final = "example.com/x"
FAMILY: Final = "karpenter.k8s.aws/instance-family"
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


def made(number: int, each: Callable[[int], Json], cpu_millis: int = 100) -> list[Json]:
    """So many pods `p0`, `p1` …, with the part of the spec that `each` gives."""
    return [pod(f"p{i}", {"app": f"a{i}"}, cpu_millis, 64, **each(i)) for i in range(number)]


def decoded(manifests: Iterable[Json], namespace: str = "") -> list[Pod]:
    """Pending pods that the kube-scheduler has refused."""
    found = []
    for manifest in manifests:
        meta = manifest["metadata"]
        meta |= {"namespace": namespace or meta["namespace"], "uid": f"{namespace}-{meta['name']}"}
        found.append(msgspec.structs.replace(decode(Pod, manifest), status=REFUSED))
    return found


def terms(*rows: list[Json]) -> Json:
    """Required node affinity: one of these terms, each a list of expressions."""
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": r} for r in rows]}}}}


def row(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def not_in(number: int) -> list[Json]:
    return made(number, lambda i: terms([row(KEY, "NotIn", f"v{i}")]))


def not_in_many_keys(number: int) -> list[Json]:
    return made(number, lambda i: terms([row(f"example.com/k{i}", "NotIn", "v")]))


def not_in_types(number: int) -> list[Json]:
    return made(number, lambda i: terms([row(labels.INSTANCE_TYPE, "NotIn", f"c5.{i}xlarge", "c5.large")]))


def not_in_long(number: int) -> list[Json]:
    return made(number, lambda i: terms([row(KEY, "NotIn", *(f"v{i}-{j}" for j in range(100)))]))


def does_not_exist(number: int) -> list[Json]:
    return made(number, lambda i: terms([row(f"example.com/k{i}", "DoesNotExist")]))


def in_subsets(number: int) -> list[Json]:
    """Each may have another subset of the families."""
    families = ["c5", "c6i", "c7i", "m5", "m6i", "m7i", "r5", "r6i", "r7i", "c6g", "m6g", "r6g"]
    subsets = [s for size in range(1, len(families) + 1) for s in combinations(families, size)]
    return made(number, lambda i: terms([row(FAMILY, "In", *subsets[i % len(subsets)])]))


def in_zones_and_types(number: int) -> list[Json]:
    types = [f"{f}.{s}" for f in ("c5", "m5", "r5", "c6i", "m6i", "r6i") for s in ("large", "xlarge", "2xlarge")]

    def each(i: int) -> Json:
        few = [types[(i * 7 + j * (i + 1)) % len(types)] for j in range(5)]
        return terms([row(labels.INSTANCE_TYPE, "In", *few), row(labels.ZONE, "In", ZONES[i % 3], ZONES[(i + 1) % 3])])

    return made(number, each)


def greater_than(number: int) -> list[Json]:
    return made(number, lambda i: terms([row("karpenter.k8s.aws/instance-memory", "Gt", str(i * 7))]))


def less_than(number: int) -> list[Json]:
    return made(number, lambda i: terms([row("karpenter.k8s.aws/instance-memory", "Lt", str(10**6 + i))]))


def or_terms(number: int) -> list[Json]:
    """200 alternatives each, of which only the last is possible."""
    return made(
        number,
        lambda i: terms(*([row(KEY, "In", f"v{i}-{j}")] for j in range(199)), [row(labels.ZONE, "In", ZONES[i % 3])]),
    )


def or_terms_possible(number: int) -> list[Json]:
    return made(number, lambda i: terms(*([row(KEY, "NotIn", f"v{i}-{j}")] for j in range(200))))


def preferred_terms(number: int) -> list[Json]:
    """100 preferences each, none of which can be met."""

    def each(i: int) -> Json:
        rows = [
            {"weight": 1 + j % 100, "preference": {"matchExpressions": [row(KEY, "In", f"v{i}-{j}")]}}
            for j in range(100)
        ]
        return {"affinity": {"nodeAffinity": {PREFERRED: rows}}}

    return made(number, each)


def preferred_pod_terms(number: int) -> list[Json]:
    """50 preferences about other pods each."""

    def each(i: int) -> Json:
        rows = [
            {"weight": 1 + j, "podAffinityTerm": {"topologyKey": labels.HOSTNAME, "labelSelector": of_app(i + j)}}
            for j in range(50)
        ]
        return {"affinity": {"podAntiAffinity": {PREFERRED: rows}}}

    return made(number, each)


def of_app(number: int) -> Json:
    """The label selector of the pod of this number."""
    return {"matchLabels": {"app": f"a{number}"}}


def selectors(number: int) -> list[Json]:
    """Labels that no NodePool has."""
    return made(number, lambda i: {"nodeSelector": {f"example.com/k{j}": f"v{i}" for j in range(50)}})


def tolerations(number: int) -> list[Json]:
    return made(number, lambda i: {"tolerations": [{"key": f"k{i}-{j}", "operator": "Exists"} for j in range(100)]})


def sizes(number: int) -> list[Json]:
    return [pod(f"p{i}", {"app": f"a{i}"}, 10 + i, 16 + i % 97) for i in range(number)]


def extended(number: int) -> list[Json]:
    """Resources that no instance type has, other ones for each pod."""
    return _with_requests(number, lambda i: {f"example.com/r{i}": "1"})


def enormous(number: int) -> list[Json]:
    return _with_requests(number, lambda i: {"cpu": str(10**6 + i)})


def _with_requests(number: int, each: Callable[[int], Json]) -> list[Json]:
    found = made(number, lambda i: {})
    for i, one in enumerate(found):
        one["spec"]["containers"][0]["resources"]["requests"] |= each(i)
    return found


def containers(number: int) -> list[Json]:
    found = made(number, lambda i: {})
    for one in found:
        first = one["spec"]["containers"][0]
        one["spec"]["containers"] = [{**first, "name": f"c{j}"} for j in range(100)]
        one["spec"]["initContainers"] = [{**first, "name": f"i{j}", "restartPolicy": "Always"} for j in range(100)]
    return found


def volumes(number: int) -> list[Json]:
    """PersistentVolumeClaims that do not exist."""
    return made(
        number,
        lambda i: {
            "volumes": [{"name": f"v{j}", "persistentVolumeClaim": {"claimName": f"c{i}-{j}"}} for j in range(50)]
        },
    )


def priorities(number: int) -> list[Json]:
    return made(number, lambda i: {"priority": i, **terms([row(KEY, "NotIn", f"v{i}")])})


def long_labels(number: int) -> list[Json]:
    found = made(number, lambda i: {})
    for i, one in enumerate(found):
        one["metadata"]["labels"] |= {f"example.com/l{j}": f"{i}-{j}" for j in range(200)}
    return found


SHAPES: Final[dict[str, Shape]] = {
    "NotIn, one value each": not_in,
    "NotIn, one key each": not_in_many_keys,
    "NotIn of instance types": not_in_types,
    "NotIn, 100 values each": not_in_long,
    "DoesNotExist, one key each": does_not_exist,
    "In, subsets of families": in_subsets,
    "In, types and zones": in_zones_and_types,
    "Gt, one bound each": greater_than,
    "Lt, one bound each": less_than,
    "200 terms, the last possible": or_terms,
    "200 terms, all possible": or_terms_possible,
    "100 preferred node terms": preferred_terms,
    "50 preferred pod terms": preferred_pod_terms,
    "50 labels that no pool has": selectors,
    "100 tolerations": tolerations,
    "one size each": sizes,
    "unknown resources": extended,
    "larger than any type": enormous,
    "200 containers": containers,
    "50 missing volume claims": volumes,
    "one priority each": priorities,
    "200 labels": long_labels,
}
