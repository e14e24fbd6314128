"""What a pod takes of its node: resources and ports of the host.

Source: Kubernetes, "Resource sharing within containers" and "Pod-level resources".
"""

from __future__ import annotations

from kerf.model.kubernetes.objects import Container, Pod, Quantities
from kerf_api.resources import Resources

#: Address, port, protocol.
HostPort = tuple[str, int, str]
_EVERY_ADDRESS = "0.0.0.0"


def requests(pod: Pod) -> Resources:
    """What the node must have for the pod: the larger of its start and its run, its overhead, and a place (`pods`).

    While the n-th init container starts, the sidecars before it run; afterwards all sidecars and containers do. The
    status of a pod on a node counts beside its spec, and instead of it when the node refuses the resize for good.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for one in pod.spec.init_containers:
        sidecar = one.restart_policy == "Always"
        own = _of_container(pod, one) if sidecar else _wanted(one)
        for name, amount in own.items():
            peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
        if sidecar:
            _add(running, own)
    for one in pod.spec.containers:
        _add(running, _of_container(pod, one))
    needed = {name: max(running.get(name, 0), peak.get(name, 0)) for name in {*running, *peak}}
    if pod.spec.resources is not None:
        needed.update(_of_whole(pod, needed))
    _add(needed, dict(Resources.parse(pod.spec.overhead)))
    _add(needed, {"pods": 1})
    return Resources(needed)


def _of_container(pod: Pod, one: Container) -> dict[str, int]:
    """Of a container that runs as long as the pod."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.name == one.name and status.resources is not None and pod.spec.node_name:
            return _most(pod, _wanted(one), status.resources.requests, status.allocated_resources)
    return _wanted(one)


def _of_whole(pod: Pod, containers: dict[str, int]) -> dict[str, int]:
    """Of the pod's own requests; a limit alone is one where no container asks for any."""
    assert pod.spec.resources is not None
    wanted = dict(Resources.parse(pod.spec.resources.requests))
    for name, amount in Resources.parse(pod.spec.resources.limits).items():
        if name not in wanted and (name.startswith("hugepages-") or not containers.get(name)):
            wanted[name] = amount
    if pod.status.resources is None or not pod.spec.node_name:
        return wanted
    found = _most(pod, wanted, pod.status.resources.requests, pod.status.allocated_resources)
    return {name: found.get(name, 0) for name in wanted}


def _most(pod: Pod, wanted: dict[str, int], *told: Quantities) -> dict[str, int]:
    first = [c.reason for c in pod.status.conditions if c.type == "PodResizePending"][:1]
    refused = first == ["Infeasible"]
    bags = [dict(Resources.parse(one)) for one in told] + ([] if refused else [wanted])
    return {name: max(bag.get(name, 0) for bag in bags) for name in {n for bag in bags for n in bag}}


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
