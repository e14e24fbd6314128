"""User data of Bottlerocket: settings in TOML, read back by a parser."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from kerf.ec2.userdata import bottlerocket
from tests.unit.ec2.ec2_facts import node_class
from tests.unit.ec2.rendered import render

BOTTLEROCKET = """[settings.kubernetes]
api-server = "https://demo.example.internal"
cluster-certificate = "Y2EtYnVuZGxl"
cluster-dns-ip = "10.0.100.10"
cluster-name = "demo"
max-pods = 29
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"
team = "platform"
[settings.kubernetes.node-taints]
dedicated = ["db:NoSchedule"]
"karpenter.sh/unregistered" = [":NoExecute"]
"""


def test_bottlerocket() -> None:
    assert render("Bottlerocket") == BOTTLEROCKET
    assert tomllib.loads(render("Bottlerocket", ""))["settings"]["kubernetes"]["max-pods"] == 29


def test_bottlerocket_keeps_the_users_settings_and_overrides_what_must_be_ours() -> None:
    custom = """
[settings.host-containers.admin]
enabled = true
[settings.kubernetes]
max-pods = 3
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kubernetes.node-labels]
team = "theirs"
mine = "1"
[settings.kubernetes.node-taints]
other = ["x:NoSchedule"]
[settings.bootstrap-commands.custom]
commands = [["apiclient", "set"]]
"""
    kubelet = {
        "evictionHard": {"memory.available": "5%"},
        "imageGCHighThresholdPercent": 80,
        "cpuCFSQuota": False,
        "evictionMaxPodGracePeriod": 9,
    }
    found = tomllib.loads(render("Bottlerocket", custom, kubelet=kubelet, raid0=True))["settings"]
    assert found["host-containers"] == {"admin": {"enabled": True}}
    own = found["kubernetes"]
    assert own["max-pods"] == 29
    assert own["allowed-unsafe-sysctls"] == ["net.core.somaxconn"]
    assert own["node-labels"] == {"team": "platform", "mine": "1", "karpenter.sh/nodepool": "default"}
    assert own["node-taints"] == {"dedicated": ["db:NoSchedule"], "karpenter.sh/unregistered": [":NoExecute"]}
    assert own["eviction-hard"] == {"memory.available": "5%"}
    assert own["image-gc-high-threshold-percent"] == "80"
    assert own["cpu-cfs-quota-enforced"] is False
    assert own["eviction-max-pod-grace-period"] == 9
    assert set(found["bootstrap-commands"]) == {"custom", "000-mount-instance-storage"}


@pytest.mark.parametrize(
    ("version", "plain"),
    [
        *((text, True) for text in ("latest", "v1.46.0", "1.46.0", "2.0.0", "v1.46.1-abcdef12")),
        *((text, False) for text in ("v1.45.0", "1.46", "", "nightly")),
    ],
)
def test_bottlerocket_instance_storage(version: str, plain: bool) -> None:
    found = tomllib.loads(render("Bottlerocket", raid0=True, image_version=version))
    mount = found["settings"]["bootstrap-commands"]["000-mount-instance-storage"]
    assert mount["mode"] == "always"
    assert mount["essential"] is True
    init, bind = mount["commands"]
    assert init == ["apiclient", "ephemeral-storage", "init"]
    directories = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
    assert bind == ["apiclient", "ephemeral-storage", "bind", *([] if plain else directories)]


@pytest.mark.parametrize(
    ("terms", "amis", "expected"),
    [
        ([{"alias": "bottlerocket@latest"}], [], "latest"),
        ([{"alias": "bottlerocket@v1.20.4"}], [], "v1.20.4"),
        ([{"name": "bottlerocket-aws-k8s-1.36-x86_64-v1.47.0-abc"}], [], "1.47.0"),
        ([{"id": "ami-1"}], [{"id": "ami-1", "name": "bottlerocket-aws-k8s-1.36-x86_64-v1.48.0-abc"}], "1.48.0"),
        ([{"id": "ami-1"}], [{"id": "ami-1", "name": "mine-v1.48.0-abc"}], ""),
    ],
)
def test_the_image_version_is_read_where_it_is_told(terms: list[Any], amis: list[Any], expected: str) -> None:
    found = node_class("Bottlerocket", amiSelectorTerms=terms, status={"amis": amis})
    assert bottlerocket.version(found) == expected


@pytest.mark.parametrize("custom", ["not toml", "settings = 3", "[settings]\nkubernetes = 1"])
def test_bottlerocket_refuses_what_is_no_settings(custom: str) -> None:
    with pytest.raises(ValueError, match="user data"):
        render("Bottlerocket", custom)
