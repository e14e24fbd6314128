"""The page docs/reference/labels.md: the labels of nodes, with example values of the catalogue that is part of Kerf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kerf_api import labels
from kerf_api.lint import catalogue
from kerf_api.requirements import DOES_NOT_EXIST, EXISTS, GT, GTE, IN, LT, LTE, NOT_IN, requirement

_HEAD: Final = """\
# Labels

Rendered by `make manifests` from `reconciler/kerf/cli/pages/labels.py` and the instance types of us-east-1. `kerf
catalogue` prints the labels of every instance type of your region.

## Well-known labels

Kerf knows the values of these labels before a node exists. NodePools may use them in `requirements`. Pods may use them
in `nodeSelector`, node affinity and topology constraints, also when the NodePool does not mention them.

- Operators that make sense are listed; [all operators](../nodepools.md#requirements) are allowed.
- Numbers are strings: `values: ["8"]`.
- An instance type without the label never matches `In`, `Exists` and the comparisons.
- `karpenter.sh/nodepool` may be used by pods, NodeClaims and NodeOverlays, not by NodePools.

| label | meaning | example values | from | operators |
|---|---|---|---|---|
"""
_OLD: Final = """
## Old names

Kerf reads these keys as the new ones, in pods and in NodePools. Objects are not rewritten.

| old label | new label |
|---|---|
"""
_OWN: Final = """
## Labels that Kerf sets on Nodes

Read them with `kubectl get nodes -L LABEL`. Those of `karpenter.sh` and `karpenter.k8s.aws` are restricted.

| label | value | meaning |
|---|---|---|
"""
_RESTRICTED: Final = """
## Restricted labels

NodePools may not use these labels. A pod that selects one can run on existing nodes. Kerf launches no node for it.

| label | reason |
|---|---|
| `kubernetes.io/hostname` | names one node, and a NodePool describes many. As topology key of pods it is allowed |
| `karpenter.sh/*`, `*.karpenter.sh/*` except the well-known ones | reserved for the autoscaler |
| `karpenter.k8s.aws/*`, `*.karpenter.k8s.aws/*` except the well-known ones | reserved for properties of EC2 instances |

Other labels are your own. Put them in `template.metadata.labels` or `requirements` of a NodePool, or pods that select
them get no node. Kubelets may not set labels of `kubernetes.io` and `k8s.io` on their own Node. Kerf adds such labels
when the node registers.
"""
_EC2, _ZONES, _OFFER = "instance type", "subnet", "offering"
_MOST_EXAMPLES: Final = 4


@dataclass(frozen=True, slots=True)
class Label:
    """A well-known label. `values` are for labels that the catalogue does not know; `optional` that some nodes lack."""

    key: str
    meaning: str
    source: str = _EC2
    values: tuple[str, ...] = ()
    optional: bool = False


def _aws(suffix: str, meaning: str, source: str = _EC2, *values: str, optional: bool = False) -> Label:
    return Label(f"{labels.AWS_GROUP}/{suffix}", meaning, source, values, optional)


WELL_KNOWN: Final = (
    Label(labels.NODEPOOL, "name of the NodePool", "NodePool", ("general",)),
    Label(labels.CAPACITY_TYPE, "how the instance is paid for", _OFFER),
    Label(labels.ZONE, "availability zone", _ZONES, ("us-east-1a", "us-east-1b")),
    Label(labels.ZONE_ID, "ID of the zone, the same in every account", _ZONES, ("use1-az1", "use1-az2")),
    Label(labels.REGION, "region", "settings", ("us-east-1",)),
    Label(labels.INSTANCE_TYPE, "instance type", _EC2, ("m7i.xlarge", "c8g.2xlarge")),
    Label(labels.ARCH, "CPU architecture"),
    Label(labels.OS, "operating system", "image family"),
    Label(labels.WINDOWS_BUILD, "build of Windows", "image family", ("10.0.20348", "10.0.26100"), optional=True),
    _aws("instance-category", "letters before the generation"),
    _aws("instance-family", "part before the dot"),
    _aws("instance-generation", "generation"),
    _aws("instance-size", "part after the dot"),
    _aws("instance-cpu", "vCPUs"),
    _aws("instance-cpu-manufacturer", "maker of the CPU"),
    _aws("instance-cpu-sustained-clock-speed-mhz", "sustained clock speed, MHz"),
    _aws("instance-memory", "memory before overhead, MiB"),
    _aws("instance-ebs-bandwidth", "maximum EBS bandwidth, Mbps"),
    _aws("instance-network-bandwidth", "baseline network bandwidth, Mbps"),
    _aws("instance-local-nvme", "local NVMe disks, GB in total"),
    _aws("instance-hypervisor", "hypervisor; empty for metal"),
    _aws("instance-encryption-in-transit-supported", "encryption of traffic between instances"),
    _aws("nitro-sandbox", "Nitro Enclaves are supported"),
    _aws("instance-capability-flex", "flex type, with a CPU baseline"),
    _aws("instance-gpu-name", "model of the GPU, if there is one model"),
    _aws("instance-gpu-manufacturer", "maker of the GPU"),
    _aws("instance-gpu-count", "GPUs"),
    _aws("instance-gpu-memory", "memory of one GPU, MiB"),
    _aws("instance-accelerator-name", "model of the accelerator, if there is one model"),
    _aws("instance-accelerator-manufacturer", "maker of the accelerator"),
    _aws("instance-accelerator-count", "accelerators"),
    _aws("instance-tenancy", "tenancy", _OFFER, "default", "dedicated"),
    _aws("capacity-reservation-id", "capacity reservation", "EC2NodeClass", "cr-0123456789abcdef0", optional=True),
    _aws("capacity-reservation-type", "its type", "EC2NodeClass", "default", "capacity-block", optional=True),
    _aws("capacity-reservation-interruptible", "its owner may reclaim it", "EC2NodeClass", "true", optional=True),
    _aws("placement-group-id", "placement group", "EC2NodeClass", "pg-0123456789abcdef0", optional=True),
    _aws("placement-group-partition", "partition in a placement group", "EC2NodeClass", "1", "2", optional=True),
)
OWN: Final = (
    (labels.NODECLASS, "`general`", "name of the EC2NodeClass"),
    (labels.REGISTERED, "`true`", "the node has joined, and has its labels and taints"),
    (labels.INITIALIZED, "`true`", "the node is ready for pods"),
    (labels.DO_NOT_SYNC_TAINTS, "`true`", "the kubelet registers the taints itself; Kerf does not add them again"),
    (labels.EXCLUDE_BALANCERS, "`karpenter`", "the node is being removed; load balancers send no new traffic"),
)


def labels_page() -> str:
    """The whole page."""
    return "".join(
        (
            _HEAD,
            *(_row(label) for label in WELL_KNOWN),
            _OLD,
            *(f"| `{old}` | `{new}` |\n" for old, new in labels.ALIASES.items()),
            _OWN,
            *(f"| `{key}` | {value} | {meaning} |\n" for key, value, meaning in OWN),
            _RESTRICTED,
        )
    )


def _row(label: Label) -> str:
    known = catalogue.shipped()
    types_of = known.values(label.key)
    values = label.values or tuple(sorted(types_of, key=lambda value: (-types_of[value].bit_count(), value)))
    optional = label.optional or known.meeting(requirement(label.key, EXISTS)) != known.every
    shown = ", ".join(f"`{value}`" if value else '`""`' for value in _examples(values))
    operators = ", ".join(f"`{name}`" for name in _operators(values, optional))
    return f"| `{label.key}` | {label.meaning} | {shown} | {label.source} | {operators} |\n"


def _examples(values: Sequence[str]) -> Sequence[str]:
    """The most frequent texts; of numbers the least, the greatest, and some between."""
    if not _numbers(values):
        return values[:_MOST_EXAMPLES]
    ordered = sorted(values, key=int)
    if len(ordered) <= _MOST_EXAMPLES:
        return ordered
    return [ordered[(len(ordered) - 1) * i // (_MOST_EXAMPLES - 1)] for i in range(_MOST_EXAMPLES)]


def _operators(values: Sequence[str], optional: bool) -> Iterator[str]:
    if _numbers(values):
        yield from (GTE, LTE, GT, LT)
    yield IN
    if not {*values} <= {"true", "false"}:
        yield NOT_IN
    if optional:
        yield from (EXISTS, DOES_NOT_EXIST)


def _numbers(values: Sequence[str]) -> bool:
    return all(value.isdecimal() for value in values)
