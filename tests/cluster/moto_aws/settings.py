"""What a test may choose about its AWS, and the names both sides agree on."""

from __future__ import annotations

from typing import Final

import msgspec

ACCOUNT: Final = "123456789012"  # the account of moto's default credentials
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
ROLE: Final = "KarpenterNodeRole"
SPOT_ROLE: Final = "AWSServiceRoleForEC2Spot"
CONTROL: Final = "/kerf/"
ZONES: Final = ("a", "b", "c")
PINNED: Final = {"al2023": "v20251001", "al2": "v20251001", "bottlerocket": "1.48.0"}
AL2_VERSION: Final = "1.32"  # the last Kubernetes version with Amazon Linux 2 images

#: Enough of EC2 for most tests: general families of several makers and generations, and a few with accelerators.
FAMILIES: Final = (
    *("c5", "c5a", "c6a", "c6g", "c6i", "c7a", "c7g", "c7i"),
    *("m5", "m5a", "m5d", "m6a", "m6g", "m6i", "m7a", "m7g", "m7i"),
    *("r5", "r5a", "r6a", "r6g", "r6i", "r7a", "r7g", "r7i"),
    *("t3", "t3a", "t4g", "g4dn", "g5", "inf2"),
)


class MotoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`families` narrows the instance types (empty: all); times are in seconds.

    A new instance is not described for `describe_delay`, is pending for `pending`, and one that is terminated is
    `shutting-down` for a while. `endpoint` is what EKS says of the cluster; the queue has the cluster's name.
    """

    cluster_name: str = "kerf-test"
    region: str = "us-west-2"
    kubernetes_version: str = "1.36"
    ca_bundle: str = "dGVzdCBjYSBidW5kbGU="
    endpoint: str = "https://cluster.example.internal"
    service_cidr: str = "10.96.0.0/16"
    families: tuple[str, ...] = FAMILIES
    describe_delay: float = 0.0
    pending: float = 0.3
    shutting_down: float = 0.5
