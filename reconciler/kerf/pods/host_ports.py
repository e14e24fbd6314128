"""Host ports: two pods cannot have the same one on a node. Source: the kube-scheduler's plugin NodePorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerf.model.kubernetes.objects import ContainerPort, Pod

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


class HeldPorts:
    """The host ports that are taken on a node, found by port and protocol: to ask costs what is asked about."""

    __slots__ = ("_addresses",)

    def __init__(self, ports: Iterable[HostPort] = ()) -> None:
        self._addresses: dict[tuple[int, str], tuple[str, ...]] = {}
        self.take(ports)

    def __iter__(self) -> Iterator[HostPort]:
        """By port, in the order in which these were first taken."""
        return ((address, *key) for key, addresses in self._addresses.items() for address in addresses)

    def take(self, ports: Iterable[HostPort]) -> None:
        for address, number, protocol in ports:
            key = number, protocol
            self._addresses[key] = (*self._addresses.get(key, ()), address)

    def clash(self, ports: Iterable[HostPort]) -> bool:
        """Whether some of these ports conflicts with one that is taken; `::` is an address like others."""
        for address, number, protocol in ports:
            held = self._addresses.get((number, protocol))
            if held is not None and (address == _ANY or _ANY in held or address in held):
                return True
        return False

    def copy(self) -> HeldPorts:
        made = HeldPorts()
        made._addresses = dict(self._addresses)
        return made


def clash(one: Iterable[HostPort], two: Iterable[HostPort]) -> bool:
    """Whether some port of one conflicts with some port of the other."""
    return HeldPorts(two).clash(one)
