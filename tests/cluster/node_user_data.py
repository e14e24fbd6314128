"""Reads user data as a booting node would: which labels and taints its kubelet registers with, and its reservations.

Understands the MIME archives of AL2023 (nodeadm's NodeConfig) and AL2 (bootstrap.sh), Bottlerocket's TOML and Windows'
PowerShell. Source: nodeadm, "NodeConfig API"; amazon-eks-ami, `bootstrap.sh`, `Start-EKSBootstrap.ps1`; Bottlerocket,
"settings.kubernetes"; kubelet, command line.
"""

from __future__ import annotations

import email
import email.message
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

NODE_CONFIG: Final = "application/node.eks.aws"
LABELS, TAINTS, MAX_PODS = "--node-labels", "--register-with-taints", "--max-pods"
_EXTRA_ARGS: Final = ("--kubelet-extra-args ", "-KubeletExtraArgs ")
RESERVATIONS: Final = {"--kube-reserved": "kube_reserved", "--system-reserved": "system_reserved"}


@dataclass
class KubeletSettings:
    """What a kubelet would be started with. `max_pods` is None when nothing says it."""

    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    max_pods: int | None = None
    kube_reserved: dict[str, str] = field(default_factory=dict)
    system_reserved: dict[str, str] = field(default_factory=dict)


def read_user_data(text: str) -> KubeletSettings:
    """The settings in user data (plain text, not base64). Unknown parts are skipped, as cloud-init would run them."""
    settings = KubeletSettings()
    if text.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        for kind, part in _parts(email.message_from_string(text.lstrip())):
            if kind == NODE_CONFIG:
                _node_config(settings, yaml.safe_load(part))
            else:
                _script(settings, part)
    elif "[settings" in text:
        _bottlerocket(settings, tomllib.loads(text)["settings"].get("kubernetes", {}))
    else:
        _script(settings, text)
    return settings


def _parts(message: email.message.Message) -> Iterator[tuple[str, str]]:
    for part in message.walk():
        payload = part.get_payload()
        if isinstance(payload, str):
            yield part.get_content_type(), payload


def _node_config(settings: KubeletSettings, document: Mapping[str, Any]) -> None:
    kubelet = document.get("spec", {}).get("kubelet") or {}
    config = kubelet.get("config") or {}
    settings.taints += [dict(taint) for taint in config.get("registerWithTaints") or ()]
    settings.max_pods = config.get("maxPods", settings.max_pods)
    settings.kube_reserved.update(config.get("kubeReserved") or {})
    settings.system_reserved.update(config.get("systemReserved") or {})
    for flag in kubelet.get("flags") or ():
        for word in shlex.split(flag):
            _flag(settings, word)


def _script(settings: KubeletSettings, script: str) -> None:
    """Looks for the kubelet's flags: the words after `--kubelet-extra-args` (bootstrap.sh) or `-KubeletExtraArgs`
    (Start-EKSBootstrap.ps1), in single quotes."""
    for option in _EXTRA_ARGS:
        _, found, rest = script.partition(option)
        if found:
            for word in shlex.split(shlex.split(rest, comments=False)[0]):
                _flag(settings, word)


def _flag(settings: KubeletSettings, word: str) -> None:
    name, _, value = word.partition("=")
    if name == LABELS:
        settings.labels.update(_pairs(value))
    elif name == TAINTS:
        settings.taints += [_taint(text) for text in value.split(",") if text]
    elif name == MAX_PODS:
        settings.max_pods = int(value)
    elif name in RESERVATIONS:
        getattr(settings, RESERVATIONS[name]).update(_pairs(value))


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.strip('"').split(",") if "=" in pair)


def _taint(text: str) -> dict[str, str]:
    """`key=value:Effect` or `key:Effect`."""
    key_value, _, effect = text.strip('"').rpartition(":")
    key, _, value = key_value.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _bottlerocket(settings: KubeletSettings, kubernetes: Mapping[str, Any]) -> None:
    settings.labels.update(kubernetes.get("node-labels") or {})
    for key, texts in (kubernetes.get("node-taints") or {}).items():
        for text in texts if isinstance(texts, list) else [texts]:
            value, _, effect = text.rpartition(":")
            settings.taints.append({"key": key, "value": value, "effect": effect})
    settings.max_pods = kubernetes.get("max-pods", settings.max_pods)
    settings.kube_reserved.update(kubernetes.get("kube-reserved") or {})
    settings.system_reserved.update(kubernetes.get("system-reserved") or {})
