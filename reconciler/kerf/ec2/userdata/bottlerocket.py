"""Bottlerocket: settings in TOML, the user's own kept except where ours must win.

Source: AWS provider reference §5.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from kerf.ec2.userdata.bootstrap import Bootstrap, cluster_dns
from kerf_api.kubelet import reading as kubelet
from kerf_api.userdata.bottlerocket import settings as user_settings
from kerf_api.userdata.bottlerocket import table
from kerf_api.v1.ec2nodeclass import EC2NodeClass

LATEST = "latest"
_MOUNT = "000-mount-instance-storage"
_DIRECTORIES = ("--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_NAME_VERSION = re.compile(r"-v(\d+\.\d+\.\d+)(?:-|$)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
#: From this version on `bind` knows by itself which directories to move.
_BINDS_ALL = (1, 46, 0)


def render(inputs: Bootstrap) -> str:
    """The user data of a node. Raises ValueError when the custom part is no TOML, or not of a table's shape."""
    settings = user_settings(inputs.custom or "")
    own = settings["settings"]
    own["kubernetes"].update(_kubernetes(inputs, own["kubernetes"]))
    if inputs.raid0:
        table(own, "bootstrap-commands")[_MOUNT] = _mount_command(inputs.image_version)
    return to_toml(settings)


def version(node_class: EC2NodeClass) -> str:
    """The image version that a class's alias, name terms or resolved images name; empty when none does."""
    terms = node_class.spec.ami_selector_terms
    alias = next((term.alias for term in terms if term.alias), "")
    if alias.startswith("bottlerocket@"):
        return alias.partition("@")[2]
    names = [term.name for term in terms] + [ami.name for ami in node_class.status.amis if "bottlerocket" in ami.name]
    matches = (_NAME_VERSION.search(name) for name in names)
    return next((match[1] for match in matches if match is not None), "")


def _kubernetes(inputs: Bootstrap, user: Mapping[str, Any]) -> dict[str, Any]:
    cluster, map_ = inputs.cluster, inputs.kubelet
    labels = user.get("node-labels")
    taints: dict[str, list[str]] = {}
    for taint in inputs.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    settings: dict[str, Any] = {
        "cluster-name": cluster.name,
        "api-server": cluster.endpoint,
        "cluster-certificate": cluster.ca_bundle or None,
        "node-labels": {**(labels if isinstance(labels, dict) else {}), **inputs.labels},
        "node-taints": taints,
        "max-pods": inputs.max_pods,
        "cluster-dns-ip": next(iter(cluster_dns(inputs)), None),
        **{key: kubelet.texts(map_, field) or None for key, field in _MAPS},
        "eviction-max-pod-grace-period": kubelet.count(map_, "evictionMaxPodGracePeriod"),
        "image-gc-high-threshold-percent": _number_text(map_, "imageGCHighThresholdPercent"),
        "image-gc-low-threshold-percent": _number_text(map_, "imageGCLowThresholdPercent"),
        "cpu-cfs-quota-enforced": (map_ or {}).get("cpuCFSQuota"),
    }
    return {key: value for key, value in settings.items() if value is not None}


_MAPS = (
    ("system-reserved", "systemReserved"),
    ("kube-reserved", "kubeReserved"),
    ("eviction-hard", "evictionHard"),
    ("eviction-soft", "evictionSoft"),
    ("eviction-soft-grace-period", "evictionSoftGracePeriod"),
)


def _number_text(map_: kubelet.Kubelet, field: str) -> str | None:
    number = kubelet.count(map_, field)
    return None if number is None else str(number)


def _mount_command(image_version: str) -> dict[str, Any]:
    match = _VERSION.fullmatch(image_version)
    parts = tuple(int(part) for part in match.groups()) if match is not None else ()
    plain = image_version == LATEST or parts >= _BINDS_ALL
    bind = ["apiclient", "ephemeral-storage", "bind", *(() if plain else _DIRECTORIES)]
    return {"commands": [["apiclient", "ephemeral-storage", "init"], bind], "essential": True, "mode": "always"}


def to_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML, keys sorted, a table per header."""
    return "\n".join(_lines(data, ())) + "\n"


def _lines(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in data.items() if isinstance(value, Mapping)}
    plain = [key for key in sorted(data) if key not in tables]
    if path and (plain or not tables):
        yield f"[{'.'.join(map(_key, path))}]"
    for key in plain:
        yield f"{_key(key)} = {_value(data[key])}"
    for key in sorted(tables):
        yield from _lines(tables[key], (*path, key))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(value[key])}" for key in sorted(value)) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)
