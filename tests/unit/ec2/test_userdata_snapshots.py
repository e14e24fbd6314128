"""What machines of each family are told, kept as files for people to read (`user_data/FAMILY-CASE.txt`), and read back.

`python -m tests.unit.ec2.test_userdata_snapshots` writes the files anew; what changed in them is to be reviewed.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster.node_user_data import read_user_data
from tests.unit.ec2.ec2_facts import CLUSTER
from tests.unit.ec2.rendered import LABELS, TAINTS, parts, render

HERE = Path(__file__).parent / "user_data"
IPV6 = replace(CLUSTER, dns_ip="fd00:10:100::a", service_cidr="fd00:10:100::/108")
#: A kubelet with something of every sort: a number, a boolean, pairs, a threshold.
KUBELET = {
    "podsPerCore": 8,
    "cpuCFSQuota": False,
    "systemReserved": {"cpu": "100m", "memory": "200Mi"},
    "kubeReserved": {"cpu": "90m", "memory": "1Gi"},
    "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
    "evictionSoft": {"memory.available": "500Mi"},
    "evictionSoftGracePeriod": {"memory.available": "1m"},
    "evictionMaxPodGracePeriod": 30,
    "imageGCHighThresholdPercent": 80,
    "imageGCLowThresholdPercent": 70,
}
SHELL = "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n"
NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      shutdownGracePeriod: 30s
"""
ARCHIVE = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="OWN"

--OWN
Content-Type: text/x-shellscript; charset="us-ascii"

{SHELL}
--OWN
Content-Type: application/node.eks.aws

{NODE_CONFIG}
--OWN--
"""
SETTINGS = """[settings.host-containers.admin]
enabled = true
[settings.kubernetes]
allowed-unsafe-sysctls = ["net.core.somaxconn"]
max-pods = 5
[settings.kubernetes.node-labels]
mine = "1"
"""
WINDOWS = ("Windows2019", "Windows2022", "Windows2025")
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{family}-plain": (family, {}) for family in ("AL2", "AL2023", "Bottlerocket", *WINDOWS)},
    "AL2-own": ("AL2", {"custom": SHELL, "kubelet": KUBELET, "raid0": True}),
    "AL2-ipv6": ("AL2", {"cluster": IPV6}),
    "AL2023-own": ("AL2023", {"custom": ARCHIVE, "kubelet": KUBELET, "raid0": True}),
    "AL2023-ipv6": ("AL2023", {"cluster": IPV6, "custom": NODE_CONFIG}),
    "Bottlerocket-own": (
        "Bottlerocket",
        {"custom": SETTINGS, "kubelet": KUBELET, "raid0": True, "image_version": "v1.46.0"},
    ),
    "Bottlerocket-ipv6": ("Bottlerocket", {"cluster": IPV6}),
    **{f"{family}-own": (family, {"custom": "Write-Host hi", "kubelet": KUBELET}) for family in WINDOWS},
    "Custom-own": ("Custom", {"custom": SHELL, "kubelet": KUBELET}),
}
TOLD = [case for case, (family, _) in CASES.items() if family != "Custom"]


def rendered(case: str) -> str:
    family, changes = CASES[case]
    return render(family, **changes)


def kept(case: str) -> str:
    """With the line ends that it was written with."""
    return (HERE / f"{case}.txt").read_bytes().decode()


def test_there_is_a_file_for_each_and_no_other() -> None:
    assert {path.stem for path in HERE.iterdir()} == CASES.keys()


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_was_reviewed(case: str) -> None:
    assert rendered(case) == kept(case)


@pytest.mark.parametrize("case", TOLD)
def test_a_kubelet_that_reads_it_has_the_labels_taints_and_pods(case: str) -> None:
    read = read_user_data(kept(case))
    mine = {"mine": "1"} if case == "Bottlerocket-own" else {}
    assert read.labels == LABELS | mine
    found = {(taint["key"], taint.get("value", ""), taint["effect"]) for taint in read.taints}
    assert found == {(taint.key, taint.value, taint.effect) for taint in TAINTS}
    assert read.max_pods == 29
    if case.endswith("-own"):
        assert (read.kube_reserved, read.system_reserved) == (KUBELET["kubeReserved"], KUBELET["systemReserved"])


@pytest.mark.parametrize("case", ["AL2023-plain", "AL2023-own", "AL2023-ipv6"])
def test_nodeadm_finds_the_cluster(case: str) -> None:
    configs = [YAML(typ="safe", pure=True).load(text) for kind, text in parts(kept(case)) if "node.eks.aws" in kind]
    cluster = IPV6 if case.endswith("ipv6") else CLUSTER
    assert configs[-1]["spec"]["cluster"] == {
        "name": cluster.name,
        "apiServerEndpoint": cluster.endpoint,
        "certificateAuthority": cluster.ca_bundle,
        "cidr": cluster.service_cidr,
    }
    own = [config["spec"]["kubelet"]["config"].get("shutdownGracePeriod") for config in configs[:-1]]
    assert own == ([] if case.endswith("plain") else ["30s"])


@pytest.mark.parametrize("case", ["Bottlerocket-plain", "Bottlerocket-own", "Bottlerocket-ipv6"])
def test_bottlerocket_finds_the_cluster(case: str) -> None:
    own = tomllib.loads(kept(case))["settings"]["kubernetes"]
    cluster = IPV6 if case.endswith("ipv6") else CLUSTER
    told = own["cluster-name"], own["api-server"], own["cluster-certificate"], own["cluster-dns-ip"]
    assert told == (cluster.name, cluster.endpoint, cluster.ca_bundle, cluster.dns_ip)


@pytest.mark.parametrize("case", ["AL2-plain", "AL2-own", "AL2-ipv6"])
def test_the_user_s_script_comes_before_that_of_the_cluster(case: str) -> None:
    found = [text for kind, text in parts(kept(case)) if kind == "text/x-shellscript"]
    assert found[-1].splitlines()[2].startswith("/etc/eks/bootstrap.sh 'demo'")
    assert [text.strip() for text in found[:-1]] == ([SHELL.strip()] if case.endswith("own") else [])


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name in CASES:
        (HERE / f"{name}.txt").write_bytes(rendered(name).encode())
