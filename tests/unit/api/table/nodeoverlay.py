"""The rows of NodeOverlay."""

from __future__ import annotations

from typing import Any, Final

from ..manifests import ABSENT
from .rows import BOUND, ENUM, PATTERN, REQUIRED, SIZE, TYPE, UNKNOWN, Row, requirement

NO: Final = "NodeOverlay"
R: Final = "spec.requirements[0]"


def spec(**fields: Any) -> dict[str, Any]:
    """A spec for every type, with these fields."""
    return {"requirements": [], **fields}


ACCEPTED: Final = (
    Row(NO, "metadata.namespace", ("default", "Not a namespace!", "", None)),
    Row(NO, "spec.capacity.x", (2**63 - 1, -(2**63), "9" * 30, 2.0)),
    Row(NO, "spec.requirements", ([], [requirement()] * 100, [requirement("a"), requirement("a", "Exists", None)])),
    Row(NO, R, (requirement(operator="NotIn"), requirement(operator="NotIn", values=("x", "y")))),
    Row(NO, R, (requirement(operator="Exists", values=("x",)), requirement(operator="DoesNotExist", values=None))),
    Row(NO, R, (requirement(operator="Gt", values=("0",)), requirement(operator="Gte", values=("007",)))),
    Row(
        NO, R, (requirement(operator="Lt", values=("5",)), requirement(operator="Lte", values=("9223372036854775807",)))
    ),
    Row(
        NO,
        R,
        (requirement("karpenter.sh/nodepool", values=("default",)), requirement("karpenter.sh/nodepool", "Exists")),
    ),
    Row(NO, R, (requirement("karpenter.sh/capacity-type", values=("spot", "Spot")),)),
    Row(NO, R, (requirement("karpenter.sh/capacity-type", "NotIn", ("host",)),)),
    Row(NO, f"{R}.key", ("a/b", "A_b.c-d", "topology.kubernetes.io/zone", "topology.k8s.aws/zone-id", "a" * 63)),
    Row(NO, f"{R}.key", ("a" * 252 + "/" + "b" * 63,)),
    Row(NO, f"{R}.key", ("node.kubernetes.io/instance-type", "beta.kubernetes.io/arch", "kubernetes.io/custom")),
    Row(NO, f"{R}.key", ("karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/nitro-sandbox")),
    Row(NO, f"{R}.key", ("karpenter.shx/a", "karpenter.k8s.awsx/a", "karpenter.sh.example.com/a")),
    Row(NO, f"{R}.values", ([""], ["a" * 63], ["m7i", "m7i"])),
    Row(NO, "spec", tuple(spec(price=price) for price in ("0", "0.05", "100", "007", "1.50", "9" * 30))),
    Row(NO, "spec.priceAdjustment", ("+5", "-0.5", "+.5", "-.5", "+0", "-1000", "+007")),
    Row(NO, "spec.priceAdjustment", ("+10%", "+.5%", "+1000%", "-15%", "-0%", "-99.99%", "-100%", ABSENT)),
    Row(NO, "spec.capacity", ({}, {"nvidia.com/gpu": 1}, {"amd.com/gpu": "2"}, {"smarter-devices/fuse": "1k"})),
    Row(NO, "spec.capacity", ({"example.com/x": ".5"}, {"hugepages-2Mi": "1Gi"}, {"x": "-1"}, None)),
    Row(NO, "spec.weight", (1, 10000, 10.0, None)),
    # advised against, and not refused
    Row(NO, "spec", tuple(spec(priceAdjustment=part) for part in ("-100%", "-1000", "+0%", "-0", "+0.0"))),
    Row(NO, "spec.requirements", ([requirement(), requirement(values=("y",))], [requirement(), requirement()])),
    Row(NO, R, (requirement("topology.kubernetes.io/zone", values=("us-east-1",)),)),
    Row(NO, R, (requirement("karpenter.k8s.aws/instance-family", values=("m99",)),)),
    Row(NO, "spec", (spec(), spec(weight=1))),
    Row(NO, "metadata.name", ("a" * 64, "a.b")),
    Row(NO, "status", ({}, {"conditions": []})),
)

REFUSED: Final = (
    Row(NO, "spec.capacity.x", (2**63, -(2**63) - 1, 1e20), BOUND),
    Row(NO, "spec", (ABSENT,), REQUIRED),
    Row(NO, "spec.requirements", (ABSENT, None), REQUIRED),
    Row(NO, "spec.requirements", ([requirement()] * 101,), SIZE),
    Row(NO, "spec.requirements", ({}, "x"), TYPE),
    Row(NO, f"{R}.operator", ("in", "Equals", ""), ENUM),
    Row(NO, f"{R}.operator", (ABSENT,), REQUIRED),
    Row(NO, f"{R}.key", (ABSENT,), REQUIRED),
    Row(NO, f"{R}.key", ("", "a b", "-a", "A.b/c", "a/b/c", "a\n", "ä"), PATTERN),
    Row(NO, f"{R}.key", ("a" * 317,), SIZE),
    Row(NO, f"{R}.key", ("a" * 64, "example.com/" + "a" * 64), "KERF-NO-101"),
    Row(
        NO,
        f"{R}.key",
        ("karpenter.sh/registered", "foo.karpenter.sh/x", "foo-karpenter.sh/x", "karpenter.sh"),
        "KERF-NO-006",
    ),
    Row(NO, f"{R}.key", ("kubernetes.io/hostname",), "KERF-NO-007"),
    Row(
        NO, f"{R}.key", ("karpenter.k8s.aws/instance-pods", "x.karpenter.k8s.aws/y", "karpenter.k8s.aws"), "KERF-NO-008"
    ),
    Row(NO, f"{R}.key", ("karpenter.k8s.aws/instance-tenancy", "karpenter.k8s.aws/placement-group-id"), "KERF-NO-008"),
    Row(
        NO,
        f"{R}.key",
        (
            "karpenter.k8s.aws/placement-group-partition",
            "karpenter.k8s.aws/capacity-reservation-id",
            "karpenter.k8s.aws/capacity-reservation-type",
            "karpenter.k8s.aws/capacity-reservation-interruptible",
        ),
        "KERF-NO-008",
    ),
    Row(NO, f"{R}.key", ("karpenter.k8s.aws/ec2nodeclass",), "KERF-NO-102"),
    Row(NO, f"{R}.minValues", (1,), UNKNOWN),
    Row(NO, f"{R}.values", ("x",), TYPE),
    Row(NO, f"{R}.values", ([1], [None], [True]), TYPE, f"{R}.values[0]"),
    Row(NO, R, (requirement(values=()), requirement(values=None)), "KERF-NO-003"),
    Row(NO, R, (requirement(operator="Gt", values=("1", "2")), requirement(operator="Lt", values=None)), "KERF-NO-004"),
    Row(
        NO, R, (requirement(operator="Gte", values=("-1",)), requirement(operator="Lte", values=("x",))), "KERF-NO-004"
    ),
    Row(NO, R, (requirement(operator="Gt", values=("1.0",)), requirement(operator="Lt", values=())), "KERF-NO-004"),
    Row(NO, R, (requirement(operator="Lte", values=("9223372036854775808",)),), "KERF-NO-004"),
    Row(NO, R, (requirement(operator="NotIn", values=()), requirement(operator="NotIn", values=None)), "KERF-NO-005"),
    Row(NO, f"{R}.values", (["a b"], ["-a"], ["a" * 64], ["ä"]), "KERF-NO-103", f"{R}.values[0]"),
    Row(NO, R, (requirement("karpenter.sh/capacity-type", values=("Spot",)),), "KERF-NO-104", f"{R}.values[0]"),
    # price and capacity
    Row(NO, "spec.price", ("0.05",), "KERF-NO-001", "spec.priceAdjustment"),
    Row(NO, "spec.price", ("", "-1", "+1", "1.", ".5", "1e3", "$1", "0.05 ", "1\n", "0,05", "1.2.3", "٣"), PATTERN),
    Row(NO, "spec.price", (0.05, 5, True, ["1"]), TYPE),
    Row(NO, "spec.priceAdjustment", ("", "5", "10%", "+", "-%", "++5", "+5.", "+10%%", "+5 ", "+1e3", "+1\n"), PATTERN),
    Row(NO, "spec.priceAdjustment", ("-.5%", "-100.0%", "-101%", "-1000%", "\u22125%"), PATTERN),
    Row(NO, "spec.priceAdjustment", (-5, 0.5, True), TYPE),
    Row(NO, "spec.capacity", ([], "x"), TYPE),
    Row(NO, "spec.capacity.cpu", ("1",), "KERF-NO-002"),
    Row(NO, "spec.capacity.memory", ("1Gi",), "KERF-NO-002"),
    Row(NO, "spec.capacity.ephemeral-storage", ("1Gi",), "KERF-NO-002"),
    Row(NO, "spec.capacity.pods", (110,), "KERF-NO-002"),
    Row(NO, "spec.capacity[vpc.amazonaws.com/pod-eni]", (9,), "KERF-NO-105"),
    Row(NO, "spec.capacity[vpc.amazonaws.com/efa]", (1,), "KERF-NO-105"),
    Row(NO, "spec.capacity[aws.amazon.com/neuron]", (1,), "KERF-NO-105"),
    Row(NO, "spec.capacity[aws.amazon.com/neuroncore]", (1,), "KERF-NO-105"),
    Row(NO, "spec.capacity[habana.ai/gaudi]", (8,), "KERF-NO-105"),
    Row(NO, "spec.capacity.x", ("1GB", "", "1 ", "abc"), PATTERN),
    Row(NO, "spec.capacity.x", (1.5, True, {}), TYPE),
    Row(NO, "spec.capacity.x", ("1e1.5",), "KERF-NO-106"),
    Row(NO, "spec.weight", (0, 10001, -1), BOUND),
    Row(NO, "spec.weight", ("10", 1.5, True), TYPE),
    Row(NO, "spec.prize", ("1",), UNKNOWN),
    Row(NO, "spec.limits", ({},), UNKNOWN),
    Row(NO, "metadata.name", ("Default", "a_b", "a" * 254), "KERF-META-102"),
    Row(NO, "metadata.name", (ABSENT,), "KERF-META-101"),
    Row(NO, "apiVersion", ("karpenter.sh/v1",), "KERF-SCHEMA-VERSION"),
    Row(NO, "kind", ("Nodeoverlay",), "KERF-SCHEMA-KIND"),
)
