"""Host ports: two pods cannot have the same one on a node. Source: the kube-scheduler's plugin NodePorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.objects import ContainerPort, Pod

#: Address, port, protocol.
HostPort = tuple[str, int, str]
_ANY = "0.0.0.0"


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of a pod's containers and sidecars, sorted; an empty address means every address.

    On the host's network each port is a host port: the API server fills that in for pods, but not for templates.
    """
    return tuple(
        sorted(
            {
                (port.host_ip or _ANY, number, port.protocol or "TCP")
                for port in _ports(pod)
                if (number := _number(pod, port)) > 0
            }
        )
    )


def _number(pod: Pod, port: ContainerPort) -> int:
    """The port of the host; 0 when the container keeps its port to itself."""
    return port.host_port or (port.container_port if pod.spec.host_network else 0)


def _ports(pod: Pod) -> Iterator[ContainerPort]:
    """An init container that ends before the others start keeps no port."""
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            yield from container.ports
    for container in pod.spec.containers:
        yield from container.ports


def clash(one: Iterable[HostPort], two: Iterable[HostPort]) -> bool:
    """Whether some port of one conflicts with some port of the other; `::` is an address like others."""
    held = list(two)
    return any(a[1:] == b[1:] and (a[0] == b[0] or _ANY in (a[0], b[0])) for a in one for b in held)
