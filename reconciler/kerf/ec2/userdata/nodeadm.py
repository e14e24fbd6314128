"""AL2023: the NodeConfig document that nodeadm reads, and the user's own parts in front of it.

The YAML is written here and not by a library: kubelet's readers take YAML 1.1 for granted (where `yes` and `1:30` are
no strings), so every text that is not plainly a word is quoted. Source: AWS provider reference §5.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kerf.ec2.userdata.bootstrap import Bootstrap, cluster_dns, node_labels
from kerf_api.userdata import cloud_init, mime

_PLAIN = re.compile(
    r"(?:[A-Za-z/]|--)[A-Za-z0-9_./:=,\"%@+-]++(?<=[A-Za-z0-9_/=\"%])|[0-9]+(?:\.[0-9]+){3}(?:/[0-9]+)?"
)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def render(inputs: Bootstrap) -> str:
    """The user data of a node. Raises ValueError when the custom part is malformed MIME."""
    own = "# Karpenter Generated NodeConfig\n" + to_yaml(_node_config(inputs))
    return mime.join([*cloud_init.parts(inputs.custom or "", nodeadm=True), mime.Part.of(mime.NODE_CONFIG, own)])


def _node_config(inputs: Bootstrap) -> dict[str, Any]:
    cluster = inputs.cluster
    flags = [f'--node-labels="{node_labels(inputs)}"'] if inputs.labels else []
    kubelet: dict[str, Any] = {"config": _kubelet_config(inputs)}
    if flags:
        kubelet["flags"] = flags
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": {
                "name": cluster.name,
                "apiServerEndpoint": cluster.endpoint,
                "certificateAuthority": cluster.ca_bundle,
                "cidr": cluster.service_cidr,
            },
            "containerd": {},
            "instance": {"localStorage": {"strategy": "RAID0"} if inputs.raid0 else {}},
            "kubelet": kubelet,
        },
    }


def _kubelet_config(inputs: Bootstrap) -> dict[str, Any]:
    config = dict(inputs.kubelet or {})
    if inputs.max_pods is not None:
        config["maxPods"] = inputs.max_pods
    if cluster_dns(inputs):
        config["clusterDNS"] = cluster_dns(inputs)
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in inputs.taints]
    config["registerWithTaints"] = [{name: text for name, text in taint.items() if text} for taint in taints]
    return {name: value for name, value in config.items() if value not in ({}, [])}


def to_yaml(value: Mapping[str, Any]) -> str:
    """Plain data as block YAML, keys sorted."""
    return "\n".join(_mapping(value, "")) + "\n"


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key in sorted(value):
        yield from _entry(f"{indent}{_scalar(key)}:", value[key], indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, indent + "  ")
    elif isinstance(value, list | tuple) and value:
        yield head
        for item in value:
            yield from _item(item, indent)
    else:
        yield f"{head} {_scalar(value)}"


def _item(item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        lines = list(_mapping(item, indent + "  "))
        yield f"{indent}- {lines[0].lstrip()}"
        yield from lines[1:]
    else:
        yield f"{indent}- {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    text = json.dumps(value, ensure_ascii=False)  # a JSON text is a YAML one, but for characters YAML cannot hold
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
