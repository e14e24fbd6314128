"""The settings of a kubelet in an instance's user data: labels, taints, settings. The other end of what launch
templates say.

Each image family says it in its own way: nodeadm's YAML (AL2023), Bottlerocket's TOML, command line flags (AL2,
Windows). Whatever says nothing gets what a custom image must set by itself: the unregistered taint.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email import message_from_string
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from kerf_api import labels
from kerf_api.v1.meta import Taint

_UNREGISTERED = Taint(key=labels.UNREGISTERED_TAINT, effect="NoExecute")
_FLAG = re.compile(r"(?<![a-z-])--(?P<name>[a-z-]+)[= ](?P<quote>[\"']?)(?P<value>[^\"'\s]*)(?P=quote)")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How a kubelet registers. `family` is the image family; `kubelet` has the names of KubeletConfiguration."""

    family: str = "Custom"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = (_UNREGISTERED,)
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    raid0: bool = False


@lru_cache(maxsize=256)
def read(text: str) -> NodeSettings:
    """The settings of an instance with this user data. Many instances have the same, and YAML is slow to read."""
    configs = list(_node_configs(text))
    if configs:
        return _of_node_configs(configs)
    if "settings.kubernetes" in text and (table := _toml(text)) is not None:
        return _of_bottlerocket(table)
    flags = {found["name"]: found["value"] for found in _FLAG.finditer(text.replace("\\\n", " "))}
    if "node-labels" in flags or "register-with-taints" in flags:
        return _of_flags("Windows2022" if "<powershell>" in text else "AL2", flags)
    return NodeSettings()


def _node_configs(text: str) -> Iterator[Mapping[str, Any]]:
    """The NodeConfig documents of a MIME archive, or of plain YAML."""
    parts = [text]
    if text.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        archive = message_from_string(text.lstrip())
        parts = [str(p.get_payload()) for p in archive.walk() if p.get_content_type() == "application/node.eks.aws"]
    for part in parts:
        if "node.eks.aws" in part:
            try:
                found = YAML(typ="safe").load(part)
            except YAMLError:
                continue
            if isinstance(found, dict) and found.get("kind") == "NodeConfig":
                yield found


def _of_node_configs(configs: Iterable[Mapping[str, Any]]) -> NodeSettings:
    """Later documents win over earlier ones, field by field."""
    kubelet: dict[str, Any] = {}
    flags: dict[str, str] = {}
    raid0 = False
    for config in configs:
        spec = config.get("spec") or {}
        own = spec.get("kubelet") or {}
        kubelet |= own.get("config") or {}
        for flag in own.get("flags") or ():
            flags |= {found["name"]: found["value"] for found in _FLAG.finditer(str(flag))}
        raid0 = raid0 or ((spec.get("instance") or {}).get("localStorage") or {}).get("strategy") == "RAID0"
    taints = tuple(
        Taint(key=row["key"], effect=row.get("effect", ""), value=row.get("value") or "")
        for row in kubelet.pop("registerWithTaints", None) or ()
    )
    return NodeSettings("AL2023", _pairs(flags.get("node-labels", "")), taints, kubelet, raid0)


def _of_flags(family: str, flags: Mapping[str, str]) -> NodeSettings:
    kubelet: dict[str, Any] = {}
    if flags.get("max-pods", "").isdigit():
        kubelet["maxPods"] = int(flags["max-pods"])
    for flag, name in (("kube-reserved", "kubeReserved"), ("system-reserved", "systemReserved")):
        if flags.get(flag):
            kubelet[name] = _pairs(flags[flag])
    taints = tuple(_taint(text) for text in flags.get("register-with-taints", "").split(",") if text)
    return NodeSettings(family, _pairs(flags.get("node-labels", "")), taints, kubelet)


def _of_bottlerocket(table: Mapping[str, Any]) -> NodeSettings:
    own = table["settings"]["kubernetes"]
    taints = tuple(
        Taint(key=key, value=str(entry).partition(":")[0], effect=str(entry).partition(":")[2])
        for key, entries in (own.get("node-taints") or {}).items()
        for entry in ([entries] if isinstance(entries, str) else entries)
    )
    kubelet = {"maxPods": own["max-pods"]} if "max-pods" in own else {}
    for key, name in (("kube-reserved", "kubeReserved"), ("system-reserved", "systemReserved")):
        if key in own:
            kubelet[name] = dict(own[key])
    return NodeSettings("Bottlerocket", dict(own.get("node-labels") or {}), taints, kubelet)


def _toml(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _pairs(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (part.partition("=") for part in text.split(",")) if key}


def _taint(text: str) -> Taint:
    """`key=value:Effect`, the value optional."""
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return Taint(key=key, value=value, effect=effect)
