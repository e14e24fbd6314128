"""The rows of NodePool."""

from __future__ import annotations

from typing import Final

from ..manifests import ABSENT
from .rows import BOUND, ENUM, FORMAT, PATTERN, REQUIRED, SIZE, TYPE, UNIQUE, UNKNOWN, Row, requirement, window

NP: Final = "NodePool"
SAVING: Final = "kerf.sh/consolidation-minimum-saving"
PAYBACK: Final = "kerf.sh/consolidation-payback-time"
OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "pools", "uid": "u"}

ACCEPTED: Final = (
    # advised against, and not refused
    Row(NP, "spec.template.metadata.annotations", ({"a b": "c"}, {"karpenter.sh/do-not-disrupt": "1h"}, {"A/b": ""})),
    Row(NP, "metadata.namespace", ("default", "Not a namespace!", "", None)),
    Row(NP, "metadata.labels", (None, {}, {"a": None}, {"example.com/A": "", "b": "A.b-c_d"})),
    Row(NP, f"metadata.annotations[{SAVING}]", ("5%", "0", "100%", "0.02")),
    Row(NP, f"metadata.annotations[{PAYBACK}]", ("0s", "1h30m")),
    Row(NP, "metadata.annotations", (None, {"a": None}, {"Example.COM/A": "any thing, at all"})),
    Row(NP, "metadata", ({"name": "default", "generateName": None, "finalizers": None, "uid": None},)),
    Row(NP, "metadata.annotations", ({"a": "x" * (2**18 - 1)},)),
    Row(NP, "metadata.ownerReferences", ([], None, [OWNER], [OWNER, {**OWNER, "uid": "v", "controller": True}])),
    Row(NP, "metadata.finalizers", ([], ["a"], ["example.com/A_b.c"], ["orphan"])),
    Row(NP, "metadata.creationTimestamp", ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123+02:00")),
    Row(NP, "spec.limits.cpu", (2**63 - 1, -(2**63), "9" * 30, 2.0)),
    Row(NP, "spec.weight", (1, 100, 10.0, None)),
    Row(NP, "spec.replicas", (0, 5, 2**31 - 1)),
    Row(
        NP, "spec.limits", ({}, {"cpu": 1}, {"cpu": "1k", "memory": "1.5Gi"}, {"nodes": "5"}, {"x": ".5"}, {"x": "-1"})
    ),
    Row(NP, "spec.limits", ({"cpu": "1e3"}, {"cpu": "5E+2"}, {"memory": "12Ei"}, {"example.com/x": "3."})),
    Row(NP, "T.expireAfter", ("Never", "0s", "1h30m5s", "720h", "1s1s", "2562047h", None)),
    Row(NP, "T.terminationGracePeriod", ("0s", "48h", "90m")),
    Row(NP, "T.requirements", ([], [requirement()] * 100, [requirement("a"), requirement("a", "Exists", None)])),
    Row(NP, "R", (requirement(operator="NotIn", values=()), requirement(operator="NotIn", values=None))),
    Row(NP, "R", (requirement(operator="Exists", values=("x",)), requirement(operator="DoesNotExist", values=None))),
    Row(NP, "R", (requirement(operator="Gt", values=("0",)), requirement(operator="Gte", values=("007",)))),
    Row(NP, "R", (requirement(operator="Lt", values=("5",)), requirement(operator="Lte", values=("99",)))),
    Row(NP, "R", (requirement(values=("x", "x"), minValues=2), requirement(operator="Exists", minValues=50))),
    Row(NP, "R.key", ("a/b", "topology.kubernetes.io/zone", "node.kubernetes.io/x")),
    Row(NP, "R.key", ("karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/nitro-sandbox", "A_b.c-d", "x.y/Z")),
    Row(NP, "R.key", ("kubernetes.io/os", "beta.kubernetes.io/arch", "kubernetes.io/custom", "karpenter.shx/a")),
    Row(NP, "R", (requirement("karpenter.sh/capacity-type", values=("spot", "reserved"), minValues=2),)),
    Row(NP, "L", ({"a": ""}, {"example.com/a": "b"}, {"karpenter.sh/capacity-type": "spot"}, {"k8s.io/x": "y"})),
    Row(NP, "L", ({"karpenter.k8s.aws/instance-family": "m7i"}, {f"k{n}": "v" for n in range(100)})),
    Row(NP, "T.taints[0].value", ("true", "example.com/x", "a.b_c-d")),
    Row(NP, "T.taints[0].effect", ("NoExecute", "PreferNoSchedule")),
    Row(NP, "T.taints[0].timeAdded", ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123+02:00")),
    Row(NP, "T.startupTaints", ([], [{"key": "example.com/batch", "effect": "NoExecute"}])),
    Row(NP, "spec.disruption", ({}, {"budgets": []}, None, {"consolidateAfter": "Never"})),
    Row(NP, "D.consolidationPolicy", ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")),
    Row(NP, "B.nodes", ("0", "0%", "100%", "99%", "5", "007", None)),
    Row(NP, "B.reasons", (["Underutilized", "Empty", "Drifted"], [], ["Empty"])),
    Row(NP, "B", (window("@daily"), window("@hourly", "90m"), window("@yearly"), window("0 9 * * mon-fri"))),
    Row(NP, "B", (window("*/15 8-17 ? JAN-dec 0,6"), window("5/10 * 1,15 * *", "1h30m"), window("0 0 1 1 *", "10h0s"))),
    Row(NP, "T.nodeClassRef.name", ("x", "Any thing")),
    Row(NP, "T.nodeClassRef.group", ("example.com",)),
    Row(NP, "spec.template.metadata.annotations", ({"any thing": "goes"}, {})),
    Row(NP, "status", ({}, {"nodes": 3, "resources": {"cpu": "12"}}, {"conditions": []})),
)

REFUSED: Final = (
    Row(NP, "spec.limits.cpu", (2**63, -(2**63) - 1, 1e20), BOUND),
    # structure
    Row(NP, "spec.weight", (0, 101, -1), BOUND),
    Row(NP, "spec.weight", ("10", 1.5, True, []), TYPE),
    Row(NP, "spec.replicas", (-1,), BOUND),
    Row(NP, "spec.replicas", (2**63,), BOUND),
    Row(NP, "spec.replicas", (2**31,), "KERF-NP-124"),
    Row(NP, "spec.limits.cpu", ("1GB", "", "1 ", "abc", "1\n"), PATTERN),
    Row(NP, "spec.limits.cpu", (1.5, True, {}), TYPE),
    Row(NP, "spec.limits", ([], "x"), TYPE),
    Row(NP, "spec.limits.cpu", ("1e1.5", "1e999"), "KERF-NP-122"),
    Row(NP, "spec", (ABSENT,), REQUIRED),
    Row(NP, "spec.template", (ABSENT, None), REQUIRED),
    Row(NP, "spec.template.spec", (ABSENT,), REQUIRED),
    Row(NP, "T.requirements", (ABSENT, None), REQUIRED),
    Row(NP, "T.requirements", ([requirement()] * 101,), SIZE),
    Row(NP, "T.nodeClassRef", (ABSENT,), REQUIRED),
    Row(NP, "T.nodeClassRef.kind", (ABSENT,), REQUIRED),
    Row(NP, "T.nodeClassRef.group", ("karpenter.k8s.aws/v1",), PATTERN),
    Row(NP, "T.nodeClassRef.group", ("",), "KERF-NP-009"),
    Row(NP, "T.nodeClassRef.kind", ("",), "KERF-NP-010"),
    Row(NP, "T.nodeClassRef.name", ("",), "KERF-NP-011"),
    Row(NP, "T.nodeClassRef.apiVersion", ("v1",), UNKNOWN),
    Row(NP, "T.expireAfter", ("1d", "1.5h", "-1h", "never", "", "100ms", "1h\n", "Never1h"), PATTERN),
    Row(NP, "T.expireAfter", (720, 0), TYPE),
    Row(NP, "T.expireAfter", ("2562048h", "99999999999999999999s"), "KERF-NP-121"),
    Row(NP, "T.terminationGracePeriod", ("Never", "1d", ""), PATTERN),
    Row(NP, "T.terminationGracePeriod", ("9999999h",), "KERF-NP-121"),
    Row(NP, "T.kubelet", ({},), UNKNOWN),
    Row(NP, "spec.template.metadata.name", ("x",), UNKNOWN),
    # disruption
    Row(NP, "D.consolidationPolicy", ("whenempty", "WhenUnderutilized", ""), ENUM),
    Row(NP, "D.consolidateAfter", ("30", "1d", "0"), PATTERN),
    Row(NP, "D.consolidateAfter", ("2562048h",), "KERF-NP-121"),
    Row(NP, "D.budgets", ([{"nodes": "1"}] * 51,), SIZE),
    Row(NP, "B.nodes", (5, 0.1), TYPE),
    Row(NP, "B.nodes", ("101%", "-1", "1.5%", "5 ", "%", "", "1000%"), PATTERN),
    Row(NP, "B.nodes", ("9" * 30,), "KERF-NP-123"),
    Row(NP, "B.nodes", (10**400,), TYPE),
    Row(NP, "B.nodes", ("1" + " " * 30_000 + "x",), PATTERN),
    Row(NP, "B.reasons", (["Drift"], ["empty"], [""]), ENUM, "B.reasons[0]"),
    Row(NP, "B.reasons", (["Empty", "Empty"],), UNIQUE),
    Row(NP, "B.duration", ("8h",), "KERF-NP-004", "B"),
    Row(NP, "B.schedule", ("@daily",), "KERF-NP-004", "B"),
    Row(
        NP, "B", (window("@daily", "1d"), window("@daily", "30s"), window("@daily", "1h30m30s")), PATTERN, "B.duration"
    ),
    Row(NP, "B", (window("* * * *"), window("@every 1h"), window("daily"), window("")), PATTERN, "B.schedule"),
    Row(NP, "B", (window("0 25 * * *"), window("0 0 * * 7"), window("0 0 L * *")), "KERF-NP-120", "B.schedule"),
    Row(NP, "B", (window("a b c d e"), window("* * * * * *"), window("@dailyX")), "KERF-NP-120", "B.schedule"),
    Row(NP, "B", (window("0 0 31-1 * *"), window("*/0 * * * *")), "KERF-NP-120", "B.schedule"),
    # requirements
    Row(NP, "R.operator", ("in", "Equals", ""), ENUM),
    Row(NP, "R.operator", (ABSENT,), REQUIRED),
    Row(NP, "R.key", (ABSENT,), REQUIRED),
    Row(NP, "R.key", ("", "a b", "-a", "A.b/c", "a/b/c", "a\n", "ä"), PATTERN),
    Row(NP, "R.key", ("a" * 317,), SIZE),
    Row(NP, "R.key", ("a" * 64,), "KERF-NP-106"),
    Row(
        NP,
        "R.key",
        ("karpenter.sh/registered", "foo.karpenter.sh/x", "foo-karpenter.sh/x", "karpenter.sh"),
        "KERF-NP-017",
    ),
    Row(NP, "R.key", ("karpenter.sh/nodepool",), "KERF-NP-018"),
    Row(NP, "R.key", ("kubernetes.io/hostname",), "KERF-NP-019"),
    Row(NP, "R.key", ("karpenter.k8s.aws/instance-pods", "x.karpenter.k8s.aws/y"), "KERF-NP-020"),
    Row(NP, "R.key", ("karpenter.k8s.aws/ec2nodeclass",), "KERF-NP-107"),
    Row(NP, "R.minValues", (0, 51), BOUND),
    Row(NP, "R.values", ("x",), TYPE),
    Row(NP, "R.values", ([1], [None], [True]), TYPE, "R.values[0]"),
    Row(NP, "R", (requirement(values=()), requirement(values=None)), "KERF-NP-014"),
    Row(
        NP, "R", (requirement(operator="Gt", values=("1", "2")), requirement(operator="Lt", values=None)), "KERF-NP-015"
    ),
    Row(
        NP,
        "R",
        (requirement(operator="Gte", values=("-1",)), requirement(operator="Lte", values=("x",))),
        "KERF-NP-015",
    ),
    Row(
        NP,
        "R",
        (requirement(operator="Gt", values=("1.0",)), requirement(operator="Gt", values=("9" * 20,))),
        "KERF-NP-015",
    ),
    Row(NP, "R", (requirement(values=("x",), minValues=2),), "KERF-NP-016"),
    Row(NP, "R.values", (["a b"], ["-a"], ["a" * 64], ["ä"]), "KERF-NP-108", "R.values[0]"),
    Row(NP, "R", (requirement("karpenter.sh/capacity-type", values=("Spot",)),), "KERF-NP-109", "R.values[0]"),
    Row(NP, "R", (requirement("karpenter.k8s.aws/instance-tenancy", values=("host",)),), "KERF-NP-109", "R.values[0]"),
    Row(
        NP,
        "R",
        (requirement("karpenter.sh/capacity-type", values=("spot", "x"), minValues=2),),
        "KERF-NP-110",
        "R.minValues",
    ),
    # labels and taints
    Row(NP, "L", ({f"k{n}": "v" for n in range(101)},), SIZE),
    Row(NP, "L.a", ("a b", "-", "a."), PATTERN),
    Row(NP, "L.a", ("a" * 64,), SIZE),
    Row(NP, "L.a", (1, True, {}), TYPE),
    Row(NP, "L[karpenter.sh/x]", ("y",), "KERF-NP-005"),
    Row(NP, "L[karpenter.sh/nodepool]", ("y",), "KERF-NP-006"),
    Row(NP, "L[kubernetes.io/hostname]", ("y",), "KERF-NP-007"),
    Row(NP, "L[karpenter.k8s.aws/x]", ("y",), "KERF-NP-008"),
    Row(NP, "L[karpenter.k8s.aws/ec2nodeclass]", ("y",), "KERF-NP-102"),
    Row(NP, "L[a b]", ("y",), "KERF-NP-101"),
    Row(NP, "L[Example.com/a]", ("y",), "KERF-NP-101"),
    Row(NP, "T.taints[0].effect", ("noschedule", ""), ENUM),
    Row(NP, "T.taints[0].effect", (ABSENT,), REQUIRED),
    Row(NP, "T.taints[0].value", ("", "a b"), PATTERN),
    Row(NP, "T.taints[0].value", ("a" * 64,), "KERF-NP-104"),
    Row(NP, "T.taints[0].key", ("a" * 64,), "KERF-NP-103"),
    Row(NP, "T.taints[0].key", ("a b",), PATTERN),
    Row(NP, "T.taints[0].timeAdded", ("yesterday", "2026-02-30T00:00:00Z", "2026-01-01"), FORMAT),
    Row(
        NP,
        "T.startupTaints",
        ([{"key": "example.com/batch", "effect": "NoSchedule"}],),
        "KERF-NP-105",
        "T.startupTaints[0]",
    ),
    # static capacity and unknown fields
    Row(
        NP,
        "spec",
        (
            {
                **(
                    _STATIC := {
                        "replicas": 1,
                        "template": {
                            "spec": {
                                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"},
                                "requirements": [],
                            }
                        },
                    }
                ),
                "limits": {"cpu": "1"},
            },
            {**_STATIC, "limits": {"cpu": "1", "nodes": "1"}},
        ),
        "KERF-NP-002",
        "spec.limits",
    ),
    Row(NP, "spec", ({**_STATIC, "weight": 1},), "KERF-NP-003", "spec.weight"),
    Row(NP, "spec.weigth", (1,), UNKNOWN),
    Row(NP, "metadata.label", ({},), UNKNOWN),
    Row(NP, "metadata.name", ("Default", "a_b", "-a", "a" * 254), "KERF-META-102"),
    Row(NP, "metadata.name", (ABSENT, None, ""), "KERF-META-101"),
    Row(NP, "metadata", ({"generateName": "My_"}, {"generateName": "-"}), "KERF-META-102", "metadata.generateName"),
    Row(NP, "metadata.labels[a b]", ("c",), "KERF-META-103"),
    Row(NP, "metadata.labels[Example.com/a]", ("c",), "KERF-META-103"),
    Row(NP, "metadata.labels.a", ("b c", "x" * 64), "KERF-META-103"),
    Row(NP, "metadata.labels.a", (1, True), TYPE),
    Row(NP, "metadata.annotations[a b]", ("c",), "KERF-META-103"),
    Row(NP, "metadata.annotations", ({"a": "x" * 2**18}, {"a": "ä" * 2**17}), "KERF-META-106"),
    *(
        Row(
            NP,
            "metadata.ownerReferences",
            ([{**OWNER, field: ""}], [{key: value for key, value in OWNER.items() if key != field}]),
            "KERF-META-104",
            f"metadata.ownerReferences[0].{field}",
        )
        for field in OWNER
    ),
    Row(NP, "metadata.finalizers", (["keep it"],), "KERF-META-105", "metadata.finalizers[0]"),
    Row(NP, "metadata.finalizers", (["a.b/c", "a/b/c"],), "KERF-META-105", "metadata.finalizers[1]"),
    Row(NP, "metadata.creationTimestamp", ("yesterday", "2026-02-30T00:00:00Z", "2026-01-31"), "KERF-META-107"),
    Row(NP, f"metadata.annotations[{SAVING}]", ("5 %", "five", "101%", "-1", "$1", ""), "KERF-NP-125"),
    Row(NP, f"metadata.annotations[{PAYBACK}]", ("1d", "90", "Never", "2562048h"), "KERF-NP-125"),
    Row(NP, "spec.template.metadata.annotations[kerf.sh/launch-request]", ("", "{}"), "KERF-NP-126"),
    Row(NP, "spec.template.metadata.annotations[karpenter.sh/nodepool-hash]", ("1",), "KERF-NP-126"),
    Row(NP, "metadata.finalizers", ("x",), TYPE),
    Row(NP, "apiVersion", ("karpenter.sh/v1beta1", "v1"), "KERF-SCHEMA-VERSION"),
    Row(NP, "kind", ("Nodepool", "Provisioner"), "KERF-SCHEMA-KIND"),
)
