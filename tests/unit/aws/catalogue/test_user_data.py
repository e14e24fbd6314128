"""User data, read as a node reads it: MIME, YAML and TOML are parsed (131 to 145)."""

from __future__ import annotations

import base64
import re
import tomllib
from dataclasses import replace as changed
from typing import Any

import pytest
from ruamel.yaml import YAML

from kerf.aws.launch.launch_templates import template_data
from kerf.ec2.launch import fleet
from kerf.ec2.userdata import userdata
from kerf_api import labels
from tests.unit.ec2.ec2_facts import CLUSTER, catalogue, claim, node_class, ready
from tests.unit.ec2.fleet_requests import problem, request, typed
from tests.unit.ec2.rendered import parts, render

IPV6 = changed(CLUSTER, dns_ip="fd00::10")


def launched(family: str, **spec: Any) -> str:
    """The user data of a launch, as EC2 stores it, decoded."""
    of = ready(node_class(family, **spec))
    found = request(claim("a", typed("m5.large")), types=catalogue("m5.large", of=of), node_class=of)
    stored = template_data(found.templates[0], "us-west-2")["UserData"]
    return base64.b64decode(stored, validate=True).decode()


def node_config(text: str) -> dict[str, Any]:
    """The last part, as nodeadm reads it."""
    kind, body = parts(text)[-1]
    assert kind == "application/node.eks.aws"
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(body)
    return found


def script(text: str) -> str:
    """AL2's call of bootstrap.sh, in one line."""
    kind, body = parts(text)[-1]
    assert kind == "text/x-shellscript"
    return body.replace(" \\\n", " ")


# --- all families -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022"])
def test_131_labels_that_kubelets_may_not_set_are_left_out(family: str) -> None:
    barred = {
        "node.kubernetes.io/x": "1",
        "kubernetes.io/x": "1",
        "deep.sub.kubernetes.io/x": "1",
        "k8s.io/x": "1",
        "sub.k8s.io/x": "1",
        "node-restriction.kubernetes.io/x": "1",
    }
    found = request(claim("a", typed("m5.large"), labels={**barred, "team": "x"}), node_class=ready(node_class(family)))
    text = found.templates[0].user_data
    assert "team" in text
    assert not [key for key in barred if key in text]


# --- AL2 --------------------------------------------------------------------------------------------------------
def test_132_al2_gets_the_number_of_pods() -> None:
    found = script(launched("AL2"))
    assert "--use-max-pods false" in found
    assert re.findall(r"--max-pods=(\d+)", found) == ["29"]


def test_133_al2_gets_the_clusters_dns() -> None:
    four, six = script(render("AL2")), script(render("AL2", cluster=IPV6))
    assert "--dns-cluster-ip '10.0.100.10'" in four
    assert "--ip-family" not in four
    assert "--ip-family ipv6" in six
    assert "--dns-cluster-ip 'fd00::10'" in six


def test_134_what_al2_cannot_carry_is_not_in_it() -> None:
    kubelet = {"cpuManagerPolicy": "static", "podsPerCore": 4}
    assert "static" not in render("AL2", kubelet=kubelet)
    assert "--pods-per-core=4" in render("AL2", kubelet=kubelet)


def test_135_instance_stores_become_one_volume() -> None:
    assert "--local-disks raid0" in script(launched("AL2", instanceStorePolicy="RAID0"))
    config = node_config(launched("AL2023", instanceStorePolicy="RAID0"))
    assert config["spec"]["instance"]["localStorage"] == {"strategy": "RAID0"}
    mounts = tomllib.loads(launched("Bottlerocket", instanceStorePolicy="RAID0"))["settings"]["bootstrap-commands"]
    assert list(mounts) == ["000-mount-instance-storage"]
    for family in ("AL2", "AL2023", "Bottlerocket"):
        text = launched(family).lower()
        assert "raid0" not in text
        assert "mount" not in text


# --- Bottlerocket -----------------------------------------------------------------------------------------------
DIRECTORIES = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]


@pytest.mark.parametrize(
    ("version", "named"),
    [
        *((text, True) for text in ("v1.45.0", "nightly", "1.46", "")),
        *((text, False) for text in ("v1.46.0", "2.0.0", "latest")),
    ],
)
def test_136_older_bottlerocket_gets_the_directories_to_move(version: str, named: bool) -> None:
    found = tomllib.loads(render("Bottlerocket", raid0=True, image_version=version))["settings"]
    init, bind = found["bootstrap-commands"]["000-mount-instance-storage"]["commands"]
    assert init == ["apiclient", "ephemeral-storage", "init"]
    assert bind == ["apiclient", "ephemeral-storage", "bind", *(DIRECTORIES if named else ())]


def test_136_the_version_is_that_of_the_classs_alias() -> None:
    old = launched("Bottlerocket", instanceStorePolicy="RAID0", amiSelectorTerms=[{"alias": "bottlerocket@v1.45.0"}])
    new = launched("Bottlerocket", instanceStorePolicy="RAID0", amiSelectorTerms=[{"alias": "bottlerocket@latest"}])
    assert ("--dirs" in old, "--dirs" in new) == (True, False)


def test_137_the_users_own_bootstrap_commands_stay() -> None:
    own = '[settings.bootstrap-commands.mine]\ncommands = [["apiclient", "set", "a=b"]]\nmode = "once"\n'
    found = tomllib.loads(launched("Bottlerocket", instanceStorePolicy="RAID0", userData=own))["settings"]
    assert set(found["bootstrap-commands"]) == {"000-mount-instance-storage", "mine"}
    assert found["bootstrap-commands"]["mine"] == {"commands": [["apiclient", "set", "a=b"]], "mode": "once"}


def test_138_what_is_no_toml_makes_no_node_and_nothing_at_all_will_do() -> None:
    broken = ready(node_class("Bottlerocket", userData="not toml ["))
    assert problem(claim("a", typed("m5.large")), node_class=broken).kind == fleet.NOT_READY
    with pytest.raises(ValueError, match="user data"):
        render("Bottlerocket", "not toml [")
    for nothing in (None, ""):
        found = tomllib.loads(render("Bottlerocket", nothing))["settings"]["kubernetes"]
        assert (found["cluster-name"], found["max-pods"]) == ("demo", 29)


def test_139_what_the_class_says_of_kubelet_wins_over_the_users_toml() -> None:
    own = """
[settings.kubernetes]
max-pods = 3
image-gc-high-threshold-percent = "11"
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kubernetes.eviction-hard]
"memory.available" = "1%"
[settings.kubernetes.system-reserved]
cpu = "1m"
[settings.kubernetes.node-labels]
mine = "x"
"""
    kubelet = {
        "maxPods": 20,
        "imageGCHighThresholdPercent": 90,
        "evictionHard": {"memory.available": "12%"},
        "systemReserved": {"cpu": "100m"},
    }
    found = tomllib.loads(launched("Bottlerocket", userData=own, kubelet=kubelet))["settings"]["kubernetes"]
    assert found["max-pods"] == 20
    assert found["image-gc-high-threshold-percent"] == "90"
    assert found["eviction-hard"] == {"memory.available": "12%"}
    assert found["system-reserved"] == {"cpu": "100m"}
    assert found["allowed-unsafe-sysctls"] == ["net.core.somaxconn"]
    assert found["node-labels"].get("mine") == "x"


# --- AL2023 -----------------------------------------------------------------------------------------------------
SHELL, CONFIG = "text/x-shellscript", "application/node.eks.aws"
YAML_TEXT = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"
ARCHIVE = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: {SHELL}; charset="us-ascii"

echo one

--B
Content-Type: {CONFIG}

{YAML_TEXT}
--B--
"""


@pytest.mark.parametrize(
    ("custom", "kinds"),
    [
        (None, []),
        ("", []),
        ("#!/bin/bash\necho one\n", [SHELL]),
        (YAML_TEXT, [CONFIG]),
        (ARCHIVE, [SHELL, CONFIG]),
    ],
)
def test_140_what_the_user_says_comes_before_the_node_config(custom: str | None, kinds: list[str]) -> None:
    found = parts(launched("AL2023", userData=custom))
    assert [kind for kind, _ in found] == [*kinds, CONFIG]
    assert found[-1][1].startswith("# Karpenter Generated NodeConfig\n")
    assert all(text.strip() in (custom or "") for _, text in found[:-1])


def test_141_the_order_of_an_archives_headers_does_not_matter_but_their_form_does() -> None:
    first, second, *rest = ARCHIVE.splitlines()
    turned = "\n".join([second, first, *rest])
    assert parts(render("AL2023", turned)) == parts(render("AL2023", ARCHIVE))
    broken = ARCHIVE.replace("Content-Type: multipart", "Content-Type multipart", 1)
    with pytest.raises(ValueError, match="MIME"):
        render("AL2023", broken)


def test_142_al2023_gets_taints_and_every_kubelet_field_as_configuration_and_labels_as_flags() -> None:
    kubelet = {
        "cpuManagerPolicy": "static",
        "featureGates": {"A": True},
        "kubeReserved": {"cpu": "1"},
        "maxPods": "vcpus * 2",
        "shutdownGracePeriod": "30s",
    }
    found = node_config(render("AL2023", kubelet=kubelet))["spec"]["kubelet"]
    assert found["config"] == {
        **kubelet,
        "maxPods": 29,
        "clusterDNS": ["10.0.100.10"],
        "registerWithTaints": [
            {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ],
    }
    assert found.get("flags") == ['--node-labels="karpenter.sh/nodepool=default,team=platform"']


# --- Custom, Windows --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("custom", ["#!/bin/bash\r\nexit 0\r\n", "<powershell>héllo</powershell>", "MIME-Version: x"])
def test_145_custom_user_data_are_what_the_user_wrote_to_the_byte(custom: str) -> None:
    assert launched("Custom", userData=custom) == custom


def test_121_nodes_of_custom_images_get_no_taints_in_user_data() -> None:
    assert labels.DO_NOT_SYNC_TAINTS not in userdata.claim_labels(claim(), "Custom", "spot")
    for family in ("AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"):
        assert userdata.claim_labels(claim(), family, "spot")[labels.DO_NOT_SYNC_TAINTS] == "true"


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022"])
def test_a_null_in_the_kubelet_configuration_is_an_absent_field(family: str) -> None:
    own = {"kubeReserved": {"cpu": "100m"}}
    nulls = {
        "maxPods": None,
        "clusterDNS": None,
        "evictionHard": None,
        "cpuCFSQuota": None,
        "systemReserved": {"memory": None},
        "kubeReserved": {"cpu": "100m", "pid": None},
    }
    assert launched(family, kubelet=nulls) == launched(family, kubelet=own)
