"""What every family's user data is made from, and the two families that take it as a command line: AL2 and Windows.

Source: AWS provider reference §5.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from kerf.model.aws.cloud import ClusterFacts
from kerf_api.kubelet import reading as kubelets
from kerf_api.userdata import cloud_init, mime
from kerf_api.v1.meta import Taint


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What user data is made from. `custom` is the user's own user data, `max_pods` is resolved for the type,
    `image_version` matters to Bottlerocket only."""

    cluster: ClusterFacts
    custom: str | None
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    kubelet: Mapping[str, Any] | None
    max_pods: int | None
    raid0: bool
    image_version: str = ""


def cluster_dns(inputs: Bootstrap) -> list[str]:
    """The user's name servers, else the cluster's; empty when neither is known."""
    given = (inputs.kubelet or {}).get("clusterDNS")
    if isinstance(given, list | tuple) and given:
        return [str(address) for address in given]
    return [inputs.cluster.dns_ip] if inputs.cluster.dns_ip else []


def node_labels(inputs: Bootstrap) -> str:
    """`k=v,…` sorted by key."""
    return ",".join(f"{key}={inputs.labels[key]}" for key in sorted(inputs.labels))


def is_ipv6(address: str) -> bool:
    """Whether an address is an IPv6 one; a text that is no address is not."""
    try:
        return ip_address(address).version == 6
    except ValueError:
        return False


def kubelet_args(inputs: Bootstrap) -> str:
    """Kubelet's flags in one line."""
    return " ".join(_kubelet_args(inputs))


def _kubelet_args(inputs: Bootstrap) -> Iterator[str]:
    if inputs.labels:
        yield f'--node-labels="{node_labels(inputs)}"'
    if inputs.taints:
        yield f'--register-with-taints="{",".join(f"{t.key}={t.value}:{t.effect}" for t in inputs.taints)}"'
    if inputs.max_pods is not None:
        yield f"--max-pods={inputs.max_pods}"
    if kubelets.count(inputs.kubelet, "podsPerCore"):
        yield f"--pods-per-core={kubelets.count(inputs.kubelet, 'podsPerCore')}"
    for flag, field, sign in (
        ("system-reserved", "systemReserved", "="),
        ("kube-reserved", "kubeReserved", "="),
        ("eviction-hard", "evictionHard", "<"),
        ("eviction-soft", "evictionSoft", "<"),
        ("eviction-soft-grace-period", "evictionSoftGracePeriod", "="),
    ):
        pairs = kubelets.texts(inputs.kubelet, field)
        if pairs:
            yield f'--{flag}="{",".join(f"{key}{sign}{value}" for key, value in pairs.items())}"'
    for flag, field in (
        ("eviction-max-pod-grace-period", "evictionMaxPodGracePeriod"),
        ("image-gc-high-threshold", "imageGCHighThresholdPercent"),
        ("image-gc-low-threshold", "imageGCLowThresholdPercent"),
    ):
        number = kubelets.count(inputs.kubelet, field)
        if number is not None:
            yield f"--{flag}={number}"
    quota = (inputs.kubelet or {}).get("cpuCFSQuota")
    if isinstance(quota, bool):
        yield f"--cpu-cfs-quota={'true' if quota else 'false'}"


def al2(inputs: Bootstrap) -> str:
    """AL2: bootstrap.sh in a MIME part. Raises ValueError when the custom part is malformed MIME."""
    own = mime.Part.of(mime.SHELL, _bootstrap_script(inputs))
    return mime.join([*cloud_init.parts(inputs.custom or "", nodeadm=False), own])


def _bootstrap_script(inputs: Bootstrap) -> str:
    cluster, dns = inputs.cluster, cluster_dns(inputs)
    command = f"/etc/eks/bootstrap.sh '{cluster.name}' --apiserver-endpoint '{cluster.endpoint}'"
    if cluster.ca_bundle:
        command += f" --b64-cluster-ca '{cluster.ca_bundle}'"
    options = [command]
    if dns and is_ipv6(dns[0]):
        options.append("--ip-family ipv6")
    if dns:
        options.append(f"--dns-cluster-ip '{dns[0]}'")
    if inputs.max_pods is not None:
        options.append("--use-max-pods false")
    arguments = kubelet_args(inputs)
    if arguments:
        options.append(f"--kubelet-extra-args '{arguments}'")
    if inputs.raid0:
        options.append("--local-disks raid0")
    tee = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"
    return "\n".join(["#!/bin/bash -xe", tee, " \\\n".join(options), ""])


def windows(inputs: Bootstrap) -> str:
    """Windows: a PowerShell block around the EKS bootstrap script."""
    cluster, dns = inputs.cluster, cluster_dns(inputs)
    command = (
        f"& $EKSBootstrapScriptFile -EKSClusterName '{cluster.name}' -APIServerEndpoint '{cluster.endpoint}'"
        + (f" -Base64ClusterCA '{cluster.ca_bundle}'" if cluster.ca_bundle else "")
        + f" -KubeletExtraArgs '{kubelet_args(inputs)}'"
        + (f" -DNSClusterIP '{dns[0]}'" if dns else "")
    )
    script = '[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"'
    custom = [inputs.custom] if inputs.custom else []
    return "\n".join(["<powershell>", *custom, script, command, "</powershell>"])
