"""User data of AL2023 and AL2: reviewed texts, and what becomes of MIME archives and YAML."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from kerf.ec2.userdata import nodeadm, userdata
from kerf.model.aws.cloud import ClusterFacts
from tests.unit.ec2.ec2_facts import claim
from tests.unit.ec2.rendered import parts, render


def node_config(text: str) -> dict[str, Any]:
    """The last part, as nodeadm reads it."""
    kind, body = parts(text)[-1]
    assert kind == "application/node.eks.aws"
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(body)
    return found


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
