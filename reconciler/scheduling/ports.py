"""Host ports: two pods cannot hold the same one on a node."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.objects import Pod

#: Address, port, protocol.
HostPort = tuple[str, int, str]
_ANY = ("0.0.0.0", "::")


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of a pod's regular containers, sorted; an empty address means every address."""
    return tuple(
        sorted(
            {
                (port.host_ip or _ANY[0], port.host_port, port.protocol or "TCP")
                for container in pod.spec.containers
                for port in container.ports
                if port.host_port
            }
        )
    )


def clash(one: Iterable[HostPort], two: Iterable[HostPort]) -> bool:
    """Whether some port of one conflicts with some port of the other."""
    held = list(two)
    return any(a[1:] == b[1:] and (a[0] == b[0] or a[0] in _ANY or b[0] in _ANY) for a in one for b in held)
