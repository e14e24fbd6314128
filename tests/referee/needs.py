"""What a pod takes of its node: resources and ports of the host.

Source: Kubernetes, "Resource sharing within containers" and "Pod-level resources".
"""

from __future__ import annotations

from api.resources import Resources
from reconciler.model.objects import Container, Pod

#: Address, port, protocol.
HostPort = tuple[str, int, str]
_EVERY_ADDRESS = "0.0.0.0"


def requests(pod: Pod) -> Resources:
    """What the node must have for the pod: the larger of its start and its run, its overhead, and a place (`pods`).

    While the n-th init container starts, the sidecars before it run; afterwards all sidecars and containers do.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for one in pod.spec.init_containers:
        own = _wanted(one)
        for name, amount in own.items():
            peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
        if one.restart_policy == "Always":
            _add(running, own)
    for one in pod.spec.containers:
        _add(running, _wanted(one))
    needed = {name: max(running.get(name, 0), peak.get(name, 0)) for name in {*running, *peak}}
    if pod.spec.resources is not None:
        needed.update(Resources.parse(pod.spec.resources.requests))
    _add(needed, dict(Resources.parse(pod.spec.overhead)))
    _add(needed, {"pods": 1})
    return Resources(needed)


def _wanted(one: Container) -> dict[str, int]:
    """Its requests; where it has only a limit, that."""
    return {**Resources.parse(one.resources.limits), **Resources.parse(one.resources.requests)}


def _add(amounts: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def claims_devices(pod: Pod) -> bool:
    """Whether it asks for devices by claim: itself, a container, or an init container."""
    named = [one.resources.claims for one in pod.spec.containers] + [
        one.resources.claims for one in pod.spec.init_containers
    ]
    return len(pod.spec.resource_claims) > 0 or any(named)


def host_ports(pod: Pod) -> frozenset[HostPort]:
    """Those of the containers that run as long as the pod does; no address means every address.

    A container on the host's network has its ports on the host, whether they are named so or not.
    """
    found = set()
    lasting = [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.restart_policy == "Always")]
    for port in (port for container in lasting for port in container.ports):
        number = port.host_port
        if number == 0 and pod.spec.host_network:
            number = port.container_port
        if number:
            found.add((port.host_ip or _EVERY_ADDRESS, number, port.protocol or "TCP"))
    return frozenset(found)


def clash(a: HostPort, b: HostPort) -> bool:
    """Whether two ports are one: the same number and protocol, on one address or on every address of IPv4."""
    return a[1:] == b[1:] and (a[0] == b[0] or a[0] == _EVERY_ADDRESS or b[0] == _EVERY_ADDRESS)
