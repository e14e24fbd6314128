"""User data of Windows and of custom images, texts that no family takes, and the labels and taints of a claim."""

from __future__ import annotations

import pytest

from kerf.ec2.userdata import userdata
from tests.unit.ec2.ec2_facts import claim
from tests.unit.ec2.rendered import render

# --- Windows, custom images, odd texts ---------------------------------------------------------------------------
WINDOWS = """<powershell>
Write-Host hi
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://demo.example.internal' -Base64ClusterCA 'Y2EtYnVuZGxl' -KubeletExtraArgs '--node-labels="karpenter.sh/nodepool=default,team=platform" --register-with-taints="dedicated=db:NoSchedule,karpenter.sh/unregistered=:NoExecute" --max-pods=29' -DNSClusterIP '10.0.100.10'
</powershell>"""  # noqa: E501


def test_windows() -> None:
    assert render("Windows2022", "Write-Host hi") == WINDOWS
    assert render("Windows2022") == WINDOWS.replace("Write-Host hi\n", "")


@pytest.mark.parametrize("custom", ["#!/bin/bash\r\nexit 0\r\n", " MIME-Version: broken", ""])
def test_custom_is_handed_on_to_the_byte(custom: str) -> None:
    assert render("Custom", custom, raid0=True) == custom
    assert render("Custom", None) == ""


def test_user_data_beyond_ec2s_limit_is_a_fault() -> None:
    assert userdata.fault("Custom", "x" * 16384) is None
    reason, message = userdata.fault("Custom", "x" * 16385) or ("", "")
    assert reason == "UserDataSizeLimitExceeded"
    assert "16385" in message


@pytest.mark.parametrize(
    ("family", "custom"),
    [
        ("AL2023", "{a: " * 4000),
        ("AL2023", "a: 2024-13-45"),
        ("AL2023", "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 99))),
        ("AL2", "Content-Type: message/rfc822\n\n" * 500),
        ("Bottlerocket", "a = [" + "{b = 1}, " * 1000 + "]"),
    ],
)
def test_text_that_is_only_odd_is_handed_on(family: str, custom: str) -> None:
    assert userdata.fault(family, custom) is None
    assert render(family, custom)


@pytest.mark.parametrize(
    ("family", "custom"),
    [
        ("Bottlerocket", "a = " + "[" * 8000 + "]" * 8000),
        ("Bottlerocket", ".".join("a" * 2000) + " = 1"),
        ("Bottlerocket", "a = 0x" + "f" * 8000),
        ("AL2", "Content-Type: multipart/mixed; boundary*=us''%41; boundary*1=b\n\n--A\n"),
    ],
)
def test_text_that_no_reader_takes_is_a_fault_and_no_accident(family: str, custom: str) -> None:
    reason, _ = userdata.fault(family, custom) or ("", "")
    assert reason == "InvalidUserData"
    with pytest.raises(ValueError, match="user data"):
        render(family, custom)


def test_what_is_in_the_way_of_the_mount_is_a_fault_of_classes_that_mount() -> None:
    custom = "settings.bootstrap-commands = 1"
    assert userdata.fault("Bottlerocket", custom) is None
    assert userdata.fault("Bottlerocket", custom, True) is not None
    with pytest.raises(ValueError, match="bootstrap-commands is not a table"):
        render("Bottlerocket", custom, raid0=True)


# --- labels and taints of a claim -------------------------------------------------------------------------------
def test_labels_that_kubelet_may_not_set_are_left_out() -> None:
    given = {
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-west-2a",
        "x.node-restriction.kubernetes.io/a": "1",
        "example.k8s.io/a": "1",
        "k8s.io.example.com/a": "1",
        "plain": "1",
    }
    found = userdata.claim_labels(claim(labels=given), "AL2023", "spot")
    assert found == {
        "k8s.io.example.com/a": "1",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/do-not-sync-taints": "true",
        "karpenter.sh/nodepool": "default",
        "plain": "1",
    }
    assert "karpenter.sh/do-not-sync-taints" not in userdata.claim_labels(claim(), "Custom", "spot")


def test_the_unregistered_taint_is_added_once() -> None:
    startup = [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}]
    found = userdata.claim_taints(claim(taints=[{"key": "a", "effect": "NoSchedule"}], startupTaints=startup))
    assert [t.key for t in found] == ["a", "karpenter.sh/unregistered", "b"]
    assert [t.key for t in userdata.claim_taints(claim())] == ["karpenter.sh/unregistered"]
