"""Values of `spec.kubelet` that have the right type, and with which a kubelet stops at its start.

Such a node never joins. Addresses that a kubelet passes over are here, too: pods of such a node find no services. The
bounds are those of a kubelet with its default feature gates. Source: Kubernetes 1.36, packages apis/config/validation,
eviction and cm of the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Final

from kerf_api import durations, quantity

from . import reading

Steps = tuple[str | int, ...]
#: The image garbage collection's thresholds where only one is written.
_DEFAULT_HIGH, _DEFAULT_LOW = 85, 80
_PORTS: Final = (0, 65535)
_BITS: Final = (0, 31)
_BOUNDS: Final[Mapping[str, tuple[int, int | None]]] = {
    **dict.fromkeys(
        ("eventBurst", "eventRecordQPS", "kubeAPIBurst", "kubeAPIQPS", "maxOpenFiles", "registryBurst"), (0, None)
    ),
    **dict.fromkeys(("nodeLeaseDurationSeconds", "registryPullQPS"), (0, None)),
    **dict.fromkeys(("healthzPort", "port", "readOnlyPort"), _PORTS),
    **dict.fromkeys(("iptablesDropBit", "iptablesMasqueradeBit"), _BITS),
    "containerLogMaxFiles": (2, None),
    "containerLogMaxWorkers": (1, None),
    "maxParallelImagePulls": (1, None),
    "nodeStatusMaxImages": (-1, None),
    "oomScoreAdj": (-1000, 1000),
}
#: An empty text stands for the default.
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpuManagerPolicy": ("none", "static"),
    "hairpinMode": ("promiscuous-bridge", "hairpin-veth", "none"),
    "memoryManagerPolicy": ("None", "Static"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
    "topologyManagerScope": ("container", "pod"),
}
_SHUTDOWN, _CRITICAL = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"


def check(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield the place and the fault of each value with which a kubelet stops. The map has the right types."""
    yield from _eviction(map_)
    yield from _image_garbage(map_)
    yield from _numbers(map_)
    yield from _words(map_)
    yield from _shutdown(map_)
    yield from _node(map_)
    yield from _addresses(map_)


def _eviction(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """A quantity of 0 is no threshold; only the texts 0% and 100% turn a signal off."""
    for field in ("evictionHard", "evictionSoft"):
        for signal, text in reading.texts(map_, field).items():
            if reading.is_quantity(text) and quantity.parse(text) == 0:
                yield (field, signal), f"{field}.{signal}: {text!r} must be greater than 0; 0% turns the signal off"
    for signal, text in reading.texts(map_, "evictionMinimumReclaim").items():
        if text.endswith("%") and reading.percentage(text) == 0:
            words = f"evictionMinimumReclaim.{signal}: {text!r} must be greater than 0%; remove it"
            yield ("evictionMinimumReclaim", signal), words


def _image_garbage(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """One threshold against the other's default."""
    high, low = map_.get("imageGCHighThresholdPercent"), map_.get("imageGCLowThresholdPercent")
    if low is None and high is not None and 0 <= high <= _DEFAULT_LOW:
        words = "must be greater than imageGCLowThresholdPercent"
        yield (("imageGCHighThresholdPercent",), f"imageGCHighThresholdPercent {words}, by default {_DEFAULT_LOW}")
    if high is None and low is not None and _DEFAULT_HIGH <= low <= 100:
        words = "must be less than imageGCHighThresholdPercent"
        yield (("imageGCLowThresholdPercent",), f"imageGCLowThresholdPercent {words}, by default {_DEFAULT_HIGH}")


def _numbers(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    for field, (least, most) in _BOUNDS.items():
        value = map_.get(field)
        if value is None or (least <= value and (most is None or value <= most)):
            continue
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        yield (field,), f"{field} must be {bounds}"
    if map_.get("serializeImagePulls") is True and (map_.get("maxParallelImagePulls") or 0) > 1:
        yield ("maxParallelImagePulls",), "maxParallelImagePulls above 1 needs serializeImagePulls: false"


def _words(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    for field, choices in _CHOICES.items():
        if map_.get(field) and map_[field] not in choices:
            yield (field,), f"{field} must be one of {', '.join(choices)}"
    size = map_.get("containerLogMaxSize")
    if size and not reading.is_quantity(size):
        yield ("containerLogMaxSize",), "containerLogMaxSize must be a quantity such as 10Mi"


def _shutdown(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """The grace period of critical pods is a part of that of all pods."""
    both = [(field, map_[field]) for field in (_SHUTDOWN, _CRITICAL) if field in map_]
    for field, text in both:
        value = durations.parse_go(text)
        if text.startswith("-") or (value is not None and value < timedelta(seconds=1)):
            yield (field,), f"{field} must be 0s, or 1s or more"
    spans = [durations.parse_go(text) or timedelta(0) for _, text in both]
    if len(spans) > 1 and spans[1] > spans[0]:
        yield (_CRITICAL,), f"{_CRITICAL} must not be longer than {_SHUTDOWN}"


def _node(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Fields with which a kubelet starts, and its Node never belongs to a NodeClaim."""
    if map_.get("registerNode") is False:
        yield ("registerNode",), "registerNode must not be false: the node does not join the cluster"
    if map_.get("providerID"):
        yield ("providerID",), "providerID must not be set: each node has the provider ID of its own instance"


def _addresses(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Names and addresses with a zone, which a kubelet passes over; where no address is left, pods have no DNS."""
    given = map_.get("clusterDNS") or ()
    for index, address in enumerate(() if any(map(_is_address, given)) else given):
        yield ("clusterDNS", index), f"clusterDNS[{index}] must be an IP address, not {address[:80]!r}"


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text)) and "%" not in text
    except ValueError:
        return False
