"""What a problem suggests in place of what was written: the nearest valid value, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.lint import validate

from .manifests import changed


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec.weigth", 1, "did you mean weight?"),
        ("D.consolidationPolicy", "whenempty", "did you mean WhenEmpty?"),
        ("T.expireAfter", "30d", 'did you mean "720h"?'),
        ("T.expireAfter", "1.5h", 'did you mean "90m"?'),
        ("T.expireAfter", "never", 'did you mean "Never"?'),
        ("T.expireAfter", 720, 'put it in quotes: "12m"'),
        ("B.nodes", 5, 'put it in quotes: "5"'),
        ("B.nodes", "150%", 'did you mean "100%"?'),
        ("B.nodes", 0.2, 'put it in quotes: "20%"'),
        ("spec.limits.memory", "64GB", 'did you mean "64Gi"?'),
        ("spec.weight", 1000, "use 100"),
        ("R.key", "karpenter.k8s.aws/instance-familly", "did you mean karpenter.k8s.aws/instance-family?"),
        ("R.key", "karpenter.k8s.aws/instance-vcpu", "did you mean karpenter.k8s.aws/instance-cpu?"),
        ("R.key", "karpenter.k8s.aws/instance-type", "did you mean node.kubernetes.io/instance-type?"),
        ("R.key", "karpenter.sh/zone", "did you mean topology.kubernetes.io/zone?"),
        ("R.key", "kubernetes.io/hostname", "topology.kubernetes.io/zone"),
        ("L[my team]", "x", "did you mean my-team?"),
        ("T.nodeClassRef.kind", "EC2Nodeclass", "did you mean EC2NodeClass?"),
        (
            "T.nodeClassRef",
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "nmae": "x"},
            "is nmae meant to be it?",
        ),
        ("metadata.name", "My_Pool", "did you mean my-pool?"),
        ("kind", "NodePools", "did you mean NodePool?"),
        ("apiVersion", "karpenter.sh/v1beta1", "kerf convert"),
    ],
)
def test_suggestions_for_node_pools(path: str, value: Any, words: str) -> None:
    assert any(words in str(problem) for problem in validate(changed("NodePool", path, value)))


@pytest.mark.parametrize("zone", ["TZ=Europe/Berlin", "CRON_TZ=UTC"])
def test_a_schedule_has_no_time_zone(zone: str) -> None:
    budget = {"nodes": "0", "schedule": f"{zone} 0 9 * * *", "duration": "8h"}
    (problem,) = (one for one in validate(changed("NodePool", "B", budget)) if one.severity == "error")
    assert problem.rule == "KERF-NP-120"
    assert "schedules have no time zones" in problem.message
    assert "the hour in UTC" in problem.hint


@pytest.mark.parametrize(
    ("length", "warned"), [("0m", True), ("0h0m", True), ("00h", True), ("10m", False), ("1h0m", False)]
)
def test_a_window_without_length_never_applies(length: str, warned: bool) -> None:
    budget = {"nodes": "0", "schedule": "0 9 * * *", "duration": length}
    rules = [one.rule for one in validate(changed("NodePool", "B", budget))]
    assert ("KERF-NP-211" in rules) is warned


@pytest.mark.parametrize(
    "key", ["karpenter.k8s.aws/owner", "karpenter.k8s.aws/instance", "karpenter.sh/managed", "karpenter.k8s.aws/foo"]
)
def test_no_label_is_suggested_only_for_its_domain(key: str) -> None:
    found = [problem.hint for problem in validate(changed("NodePool", "R.key", key)) if problem.severity == "error"]
    assert found == ["use a domain of your own, such as example.com"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("topology.kubernetes.io/zone", "us-east-1", "is a region; no zone has that name"),
        ("topology.kubernetes.io/zone", "use1-az1", "is the ID of a zone"),
        ("topology.kubernetes.io/zone", "usw2-lax1-az1", "is the ID of a zone"),
        ("topology.kubernetes.io/zone", "apne1-az4", "is the ID of a zone"),
        ("topology.kubernetes.io/zone", "use1-wl1-bos-wlz1", ""),
        ("topology.kubernetes.io/zone", "us-west-2-lax-1a", ""),
        ("topology.kubernetes.io/zone", "us-gov-east-1a", ""),
        ("topology.k8s.aws/zone-id", "us-east-1a", "is the name of a zone; no zone has that ID"),
        ("topology.k8s.aws/zone-id", "us-west-2-lax-1a", "is the name of a zone"),
        ("topology.k8s.aws/zone-id", "us-gov-east-1a", "is the name of a zone"),
        ("topology.k8s.aws/zone-id", "us-east-1", "is a region; no zone has that ID"),
        ("topology.k8s.aws/zone-id", "use1-az1", ""),
        ("topology.k8s.aws/zone-id", "usgw1-az1", ""),
    ],
)
def test_zones_have_names_and_ids(key: str, value: str, message: str) -> None:
    for kind, place, rule in (("NodePool", "R", "KERF-NP-302"), ("NodeOverlay", "spec.requirements[0]", "KERF-NO-302")):
        wanted = {"key": key, "operator": "In", "values": [value]}
        found = validate(changed(kind, place, wanted))
        assert [f'"{value}" {message}' in one.message for one in found if one.rule == rule] == (
            [True] if message else []
        )
        assert not (message and any(one.rule == "KERF-NP-303" for one in found))  # one zone


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("kubernetes.io/arch", "x86_64", "did you mean amd64?"),
        ("kubernetes.io/arch", "AARCH64", "did you mean arm64?"),
        ("karpenter.k8s.aws/instance-family", "m5.large", "did you mean m5?"),
        ("karpenter.k8s.aws/instance-memory", "8", "the unit is MiB: 8 GiB is 8192"),
        ("karpenter.k8s.aws/instance-memory", "16Gi", "the unit is MiB: 16 GiB is 16384"),
        ("karpenter.k8s.aws/instance-memory", "8193", "did you mean 8192?"),
        ("karpenter.k8s.aws/instance-memory", "lots", ""),
        ("karpenter.k8s.aws/instance-cpu", "5", "did you mean 4?"),
    ],
)
def test_suggestions_for_values_that_no_type_has(key: str, value: str, hint: str) -> None:
    wanted = {"key": key, "operator": "In", "values": [value]}
    assert [one.hint for one in validate(changed("NodePool", "R", wanted)) if one.rule == "KERF-NP-301"] == [hint]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("E.volumeSize", "100GB", 'did you mean "100G"?'),
        ("E.volumeSize", "18Ti", 'did you mean "18432Gi"?'),
        ("E.volumeSize", 100, 'put it in quotes: "100Gi"'),
        ("spec.amiSelectorTerms[0].alias", "AL2023@latest", "did you mean al2023@latest?"),
        ("spec.amiSelectorTerms[0].alias", "windows2022@v1", "did you mean windows2022@latest?"),
        ("spec.amiFamily", "al2023", "did you mean AL2023?"),
    ],
)
def test_suggestions_for_node_classes(path: str, value: Any, words: str) -> None:
    assert any(words in str(problem) for problem in validate(changed("EC2NodeClass", path, value)))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec.price", 0.05, 'put it in quotes: "0.05"'),
        ("spec.price", "$1,50", 'did you mean "1.50"?'),
        ("spec.price", ".5", 'did you mean "0.5"?'),
        ("spec.priceAdjustment", 5, 'put it in quotes: "+5"'),
        ("spec.priceAdjustment", -0.5, 'put it in quotes: "-0.5"'),
        ("spec.priceAdjustment", "10%", 'did you mean "+10%"?'),
        ("spec.priceAdjustment", "-.5%", 'did you mean "-0.5%"?'),
        ("spec.priceAdjustment", "-150%", 'did you mean "-100%"?'),
        ("spec.requirements[0].key", "karpenter.sh/nodepol", "did you mean karpenter.sh/nodepool?"),
        ("spec.requirements[0].key", "karpenter.k8s.aws/instance-tenancy", "remove it"),
        ("spec.requirements[0].key", "karpenter.k8s.aws/ec2nodeclass", "is reserved"),
        ("spec.capacity", {"memory": "64Gi"}, "remove it"),
        ("spec.capacity.x", "64GB", 'did you mean "64Gi"?'),
        ("kind", "NodeOverlays", "did you mean NodeOverlay?"),
        ("apiVersion", "karpenter.sh/v1", "write karpenter.sh/v1alpha1"),
    ],
)
def test_suggestions_for_overlays(path: str, value: Any, words: str) -> None:
    assert any(words in str(problem) for problem in validate(changed("NodeOverlay", path, value)))


@pytest.mark.parametrize("value", ["x", "", "-1", "1.2.3", "1" * 100, "+", None])
def test_a_price_without_a_likely_meaning_gets_no_guess(value: Any) -> None:
    assert not any("did you mean" in str(p) for p in validate(changed("NodeOverlay", "spec.price", value)))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec.scalableRef.kind", "deployment", "did you mean Deployment?"),
        ("spec.scalableRef.kind", "Rollout", "use podTemplateRef"),
        ("spec.scalableRef.apiGroup", "apps/v1", "write apps, without a version"),
        ("spec.scalableRef.name", "My_Shop", "did you mean my-shop?"),
        ("spec.scalableref", {}, "did you mean scalableRef?"),
        ("spec.provisioningStrategy", "active-capacity", "did you mean buffer.x-k8s.io/active-capacity?"),
        ("spec", {"podTemplateRef": {"name": "web"}}, "add replicas"),
        ("spec", {"replicas": 1}, "add podTemplateRef or scalableRef"),
        ("apiVersion", "autoscaling.x-k8s.io/v1alpha1", "write autoscaling.x-k8s.io/v1beta1"),
    ],
)
def test_suggestions_for_buffers(path: str, value: Any, words: str) -> None:
    assert any(words in str(problem) for problem in validate(changed("CapacityBuffer", path, value)))
