"""The page docs/reference/instance-types.md: the families of instance types in the catalogue that is part of Kerf."""

from __future__ import annotations

from typing import Final

from kerf_api import labels
from kerf_api.lint import catalogue

_HEAD: Final = """\
# Instance types

Rendered by `make manifests` from the instance types of us-east-1, by family (`karpenter.k8s.aws/instance-family`).
Kerf reads the types and the prices of your region from EC2: `kerf catalogue --region REGION` prints them with every
[label](labels.md), and `kubectl get nodes -L node.kubernetes.io/instance-type` shows those in use.

- Memory is that of the type. A node has less: see [memory](../aws.md#memory) and [kubelet
  defaults](../userdata.md#kubelet-defaults).
- A family with one architecture starts only images of that architecture: [Graviton](../tasks/graviton.md).
- Types with GPUs or accelerators are used only for pods that request them, unless a NodePool has no others:
  [GPUs](../tasks/gpus.md).

```yaml
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: current-generations
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      terminationGracePeriod: 24h
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gte, values: ["6"]}
        - {key: karpenter.k8s.aws/instance-size, operator: NotIn, values: [metal]}
  limits:
    cpu: "1000"
```

| family | architecture | types | vCPUs | memory, GiB | GPU or accelerator | local NVMe |
|---|---|---|---|---|---|---|
"""
_FAMILY: Final = f"{labels.AWS_GROUP}/instance-family"
_MIB_PER_GIB: Final = 1024


def families_page() -> str:
    """The whole page."""
    families = catalogue.shipped().values(_FAMILY)
    return _HEAD + "".join(_row(family, families[family]) for family in sorted(families))


def _row(family: str, types: int) -> str:
    cpus = _span(_numbers("instance-cpu", types))
    memory = _span([mib / _MIB_PER_GIB for mib in _numbers("instance-memory", types)])
    devices = [*_texts(f"{labels.AWS_GROUP}/instance-gpu-name", types)]
    devices += _texts(f"{labels.AWS_GROUP}/instance-accelerator-name", types)
    disks = "yes" if _numbers("instance-local-nvme", types) else ""
    arch = ", ".join(_texts(labels.ARCH, types))
    return f"| `{family}` | {arch} | {types.bit_count()} | {cpus} | {memory} | {', '.join(devices)} | {disks} |\n"


def _texts(key: str, types: int) -> list[str]:
    """The values of a label among some types."""
    return sorted(value for value, having in catalogue.shipped().values(key).items() if having & types and value)


def _numbers(suffix: str, types: int) -> list[int]:
    return sorted(int(value) for value in _texts(f"{labels.AWS_GROUP}/{suffix}", types))


def _span(numbers: list[int] | list[float]) -> str:
    """`2 to 96`, or one number."""
    least, most = (f"{number:g}" for number in (numbers[0], numbers[-1]))
    return least if least == most else f"{least} to {most}"
