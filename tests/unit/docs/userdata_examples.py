"""Generated parts of docs/userdata.md, by the code that merges; `python -m tests.unit.docs.userdata_examples`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.document import rewrite
from kerf.ec2 import families
from kerf.ec2.instance_types import capacity
from kerf_api.kubelet.rules import ANY_FIELD
from kerf_api.userdata import rules
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from tests.sources import ROOT
from tests.unit.docs.field_pages import BASES, merged
from tests.unit.ec2 import ec2_facts
from tests.unit.ec2.rendered import render

PAGE: Final = ROOT / "docs/userdata.md"
#: The type that the tables measure.
TYPE: Final = "m5.xlarge"
KUBELET: Final[Mapping[str, Any]] = {"kubeReserved": {"cpu": "100m", "memory": "600Mi"}}
_SHELL: Final = "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n"
_NODE_CONFIG: Final = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      shutdownGracePeriod: 30s
"""
_ARCHIVE: Final = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="OWN"

--OWN
Content-Type: text/x-shellscript; charset="us-ascii"

{_SHELL}
--OWN
Content-Type: application/node.eks.aws

{_NODE_CONFIG}
--OWN--
"""
_SETTINGS: Final = """\
[settings.kernel.sysctl]
"vm.max_map_count" = "262144"
[settings.kubernetes]
allowed-unsafe-sysctls = ["net.core.somaxconn"]
max-pods = 5
[settings.kubernetes.node-labels]
"example.com/mine" = "1"
"""
#: By name: the family, the language of the page's blocks, and the user's part.
EXAMPLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "al2023-script": ("AL2023", "text", _SHELL),
    "al2023-nodeconfig": ("AL2023", "text", _NODE_CONFIG),
    "al2023-archive": ("AL2023", "text", _ARCHIVE),
    "al2": ("AL2", "text", _SHELL),
    "bottlerocket": ("Bottlerocket", "toml", _SETTINGS),
    "windows": ("Windows2022", "powershell", 'Write-Host "node starts"'),
    "custom": ("Custom", "bash", _SHELL),
}


def parts() -> dict[str, str]:
    """Everything on the page that is generated, by the name of its marker."""
    return {**{name: example(name) for name in EXAMPLES}, "disks": disks(), "kubelet": kubelet()}


def example(name: str) -> str:
    """`spec.userData`, and the user data of an instance."""
    family, language, own = EXAMPLES[name]
    result = render(family, own, kubelet=KUBELET, raid0=family == "Bottlerocket", image_version="1.46.0")
    return f"`spec.userData`:\n\n{_block(language, own)}\n\nUser data of the instance:\n\n{_block(language, result)}"


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def disks() -> str:
    rows = [("image family", "disks", "ephemeral storage is on", "`instanceStorePolicy: RAID0`")]
    for family in families.BY_NAME.values():
        volumes = [
            f"`{one.device_name}` {one.ebs.volume_size} {one.ebs.volume_type}, encrypted"
            for one in family.volumes
            if one.ebs is not None and one.ebs.encrypted
        ]
        device = f"`{family.ephemeral_device}`" if family.ephemeral_device else "last entry of `blockDeviceMappings`"
        joins = "no" if family is families.CUSTOM or family.windows else "yes"
        rows.append((family.name, ", ".join(volumes) or "those of the image", device, joins))
    return _table(rows)


def kubelet() -> str:
    figures = (f"{head} of {TYPE}" for head in ("pods", "kube-reserved cpu", "kube-reserved memory"))
    rows = [("image family", *figures, "fields of `spec.kubelet` on the node")]
    for family in families.BY_NAME.values():
        sizing = capacity.Sizing.of(node_class(family.name), ec2_facts.SETTINGS)
        info = ec2_facts.info(TYPE)
        full = capacity.capacity(info, sizing)
        kept = capacity.overhead(info, sizing, full)
        memory = (kept["memory"] - capacity.overhead(info, _without_kube(family.name), full)["memory"]) >> 20
        rows.append((family.name, str(full["pods"]), f"{kept['cpu']}m", f"{memory}Mi", _carried(family)))
    return _table(rows)


def _carried(family: families.Family) -> str:
    """The fields of `spec.kubelet` that reach the nodes."""
    if family.name in rules.AS_IT_IS:
        return "none; they count for planning"
    if family.name in ANY_FIELD:
        return "every field"
    return f"those in [kubelet](nodeclasses.md#kubelet){'' if family.pods_per_core else ' but `podsPerCore`'}"


def node_class(family: str, **spec: Any) -> EC2NodeClass:
    own = {"spec": {"amiFamily": family, "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}], **spec}}
    return decode(EC2NodeClass, merged(BASES["EC2NodeClass"], own))


def _without_kube(family: str) -> capacity.Sizing:
    nothing = {"kubeReserved": {"memory": "0"}}
    return capacity.Sizing.of(node_class(family, kubelet=nothing), ec2_facts.SETTINGS)


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    head, *rest = rows
    lines = [head, ("---",) * len(head), *rest]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def main() -> int:
    rewrite(PAGE, parts())
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
