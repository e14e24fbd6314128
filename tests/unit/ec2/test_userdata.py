"""User data of every family: reviewed texts, read back by the parsers their readers use."""

from __future__ import annotations

import tomllib
from email import message_from_string
from typing import Any

import pytest
from ruamel.yaml import YAML

from api.v1.meta import Taint
from reconciler.ec2 import bottlerocket, nodeadm, userdata
from reconciler.model.cloud import ClusterFacts
from tests.unit.ec2.ec2_facts import CLUSTER, claim, node_class

LABELS = {"team": "platform", "karpenter.sh/nodepool": "default"}
TAINTS = (Taint(key="dedicated", value="db", effect="NoSchedule"), userdata.UNREGISTERED)


def render(family: str, custom: str | None = None, **changes: Any) -> str:
    given: dict[str, Any] = {
        "cluster": CLUSTER,
        "custom": custom,
        "labels": LABELS,
        "taints": TAINTS,
        "kubelet": None,
        "max_pods": 29,
        "raid0": False,
        **changes,
    }
    return userdata.render(family, **given)


def parts(text: str) -> list[tuple[str, str]]:
    """Content type and text of each part, as cloud-init sees them."""
    message = message_from_string(text)
    assert message.get_content_type() == "multipart/mixed"
    return [(part.get_content_type(), part.get_payload()) for part in message.get_payload()]


def node_config(text: str) -> dict[str, Any]:
    """The last part, as nodeadm reads it."""
    kind, body = parts(text)[-1]
    assert kind == "application/node.eks.aws"
    return YAML(typ="safe", pure=True).load(body)


# --- AL2023 -----------------------------------------------------------------------------------------------------
RECORDED = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

# Karpenter Generated NodeConfig
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {}
spec:
  cluster:
    apiServerEndpoint: https://ADOPTION.example.internal
    certificateAuthority: YWRvcHRpb24gdGVzdCBjYSBidW5kbGU=
    cidr: 172.20.0.0/16
    name: adoption
  containerd: {}
  instance:
    localStorage: {}
  kubelet:
    config:
      clusterDNS:
      - 172.20.0.10
      maxPods: 58
      registerWithTaints:
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="karpenter.k8s.aws/ec2nodeclass=default,karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=platform"

--//--
"""  # noqa: E501


def test_al2023_is_what_karpenter_wrote_in_a_recorded_cluster() -> None:
    cluster = ClusterFacts(
        name="adoption",
        endpoint="https://ADOPTION.example.internal",
        ca_bundle="YWRvcHRpb24gdGVzdCBjYSBidW5kbGU=",
        dns_ip="172.20.0.10",
        service_cidr="172.20.0.0/16",
    )
    labels = userdata.claim_labels(claim(labels={"team": "platform"}), "AL2023", "on-demand")
    taints = userdata.claim_taints(claim())
    assert render("AL2023", cluster=cluster, labels=labels, taints=taints, max_pods=58) == RECORDED


def test_al2023_hands_every_kubelet_field_on_and_resolves_two() -> None:
    kubelet = {
        "maxPods": "vcpus * 2",
        "cpuManagerPolicy": "static",
        "kubeReserved": {"cpu": "100m"},
        "cpuCFSQuota": True,
    }
    config = node_config(render("AL2023", kubelet=kubelet, raid0=True))
    assert config["spec"]["kubelet"]["config"] == {
        "clusterDNS": ["10.0.100.10"],
        "cpuCFSQuota": True,
        "cpuManagerPolicy": "static",
        "kubeReserved": {"cpu": "100m"},
        "maxPods": 29,
        "registerWithTaints": [
            {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ],
    }
    assert config["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}
    assert config["spec"]["cluster"]["cidr"] == "10.0.0.0/16"


def test_the_users_name_servers_win() -> None:
    config = node_config(render("AL2023", kubelet={"clusterDNS": ["10.9.9.9", "10.9.9.8"]}))
    assert config["spec"]["kubelet"]["config"]["clusterDNS"] == ["10.9.9.9", "10.9.9.8"]


NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"


@pytest.mark.parametrize(
    ("custom", "kind", "body"),
    [
        ("#!/bin/bash\necho hi: there\n", "text/x-shellscript", "#!/bin/bash\necho hi: there\n"),
        ("echo hello", "text/x-shellscript", "echo hello"),
        ("#!/bin/bash\r\necho hi\r\n", "text/x-shellscript", "#!/bin/bash\necho hi\n"),
        (NODE_CONFIG, "application/node.eks.aws", NODE_CONFIG),
        ('{"kind": "NodeConfig"}', "application/node.eks.aws", '{"kind": "NodeConfig"}'),
    ],
)
def test_al2023_puts_the_users_part_first(custom: str, kind: str, body: str) -> None:
    found = parts(render("AL2023", custom))
    assert found[0] == (kind, body)
    assert [k for k, _ in found[1:]] == ["application/node.eks.aws"]


ARCHIVE = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUND"

--BOUND
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo one

--BOUND
Content-Type: application/node.eks.aws

kind: NodeConfig

--BOUND--
"""


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
@pytest.mark.parametrize(
    "archive",
    [ARCHIVE, "\n" + ARCHIVE, "\n".join([*ARCHIVE.splitlines()[1::-1], *ARCHIVE.splitlines()[2:], ""])],
)
def test_a_mime_archive_keeps_its_parts(family: str, archive: str) -> None:
    found = parts(render(family, archive))
    assert found[0] == ("text/x-shellscript", "#!/bin/bash\necho one\n")
    assert found[1] == ("application/node.eks.aws", "kind: NodeConfig\n")
    assert len(found) == 3


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
@pytest.mark.parametrize(
    "custom",
    [
        "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--x\n\nhello\n--x--\n",
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\nno parts here\n',
        'MIME-Version: 1.0\nContent-Type multipart/mixed; boundary="x"\n\n--x\n\nhello\n--x--\n',
    ],
)
def test_malformed_mime_is_an_error(family: str, custom: str) -> None:
    with pytest.raises(ValueError, match="MIME"):
        render(family, custom)
    reason, _ = userdata.fault(family, custom) or ("", "")
    assert reason == "InvalidUserData"


@pytest.mark.parametrize(
    "value",
    ["yes", "No", "1:30", "0x10", "1e3", "null", "~", "", "a: b", "- x", "2001-01-01", "#x", "x #y", "é", '"q"', "-1"],
)
def test_yaml_texts_stay_texts(value: str) -> None:
    written = nodeadm.to_yaml({"a": value, "list": [value, {"b": value}]})
    for version in ((1, 1), (1, 2)):
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        assert yaml.load(written) == {"a": value, "list": [value, {"b": value}]}


# --- AL2 --------------------------------------------------------------------------------------------------------
AL2 = """#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://demo.example.internal' --b64-cluster-ca 'Y2EtYnVuZGxl' \\
--dns-cluster-ip '10.0.100.10' \\
--use-max-pods false \\
--kubelet-extra-args '--node-labels="karpenter.sh/nodepool=default,team=platform" --register-with-taints="dedicated=db:NoSchedule,karpenter.sh/unregistered=:NoExecute" --max-pods=29'
"""  # noqa: E501


def test_al2_runs_the_bootstrap_script() -> None:
    assert parts(render("AL2")) == [("text/x-shellscript", AL2)]
    assert parts(render("NoSuchFamily")) == [("text/x-shellscript", AL2)]


def test_al2_kubelet_arguments_in_order() -> None:
    kubelet = {
        "cpuCFSQuota": False,
        "imageGCLowThresholdPercent": 50,
        "imageGCHighThresholdPercent": 60,
        "evictionMaxPodGracePeriod": 30,
        "evictionSoftGracePeriod": {"memory.available": "1m"},
        "evictionSoft": {"memory.available": "5%"},
        "evictionHard": {"nodefs.available": "10%", "memory.available": "1Gi"},
        "kubeReserved": {"memory": "1Gi", "cpu": "100m"},
        "systemReserved": {"cpu": "50m"},
        "podsPerCore": 4,
        "clusterDNS": ["fd00::10"],
        "cpuManagerPolicy": "static",
    }
    body = parts(render("AL2", kubelet=kubelet, labels={}, taints=(), raid0=True))[0][1]
    assert body.splitlines()[3:] == [
        "--ip-family ipv6 \\",
        "--dns-cluster-ip 'fd00::10' \\",
        "--use-max-pods false \\",
        '--kubelet-extra-args \'--max-pods=29 --pods-per-core=4 --system-reserved="cpu=50m"'
        ' --kube-reserved="cpu=100m,memory=1Gi" --eviction-hard="memory.available<1Gi,nodefs.available<10%"'
        ' --eviction-soft="memory.available<5%" --eviction-soft-grace-period="memory.available=1m"'
        " --eviction-max-pod-grace-period=30 --image-gc-high-threshold=60 --image-gc-low-threshold=50"
        " --cpu-cfs-quota=false' \\",
        "--local-disks raid0",
    ]


# --- Bottlerocket -----------------------------------------------------------------------------------------------
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


# --- the others -------------------------------------------------------------------------------------------------
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
