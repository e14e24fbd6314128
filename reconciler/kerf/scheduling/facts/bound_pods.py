"""Who runs where: the pods of all known nodes that have not ended, who keeps others away, and each daemon set's newest
pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kerf.model.kubernetes.objects import Namespace, Node, Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.facts.nodes import Entry, Residents, newest


@dataclass(frozen=True, eq=False)
class BoundPods:
    """`residents` are by node name, in an order that depends on nothing else; `inverse` are those with required
    anti-affinity, `terminating` those that terminate."""

    residents: Mapping[str, Residents]
    inverse: tuple[Entry, ...]
    terminating: tuple[Entry, ...]
    newest_daemon_pod: Mapping[str, Pod]
    nodes: Mapping[str, Node]
    namespaces: Mapping[str, Namespace]

    @cached_property
    def pods(self) -> tuple[Entry, ...]:
        """All of them with their keys."""
        return tuple(entry for one in self.residents.values() for entry in one.pods)


def take(snapshot: Snapshot, residents: Mapping[str, Residents]) -> BoundPods:
    """Put together what is known of each node's pods."""
    daemons: dict[str, Entry] = {}
    for one in residents.values():
        for entry in one.daemons:
            daemons[entry[0]] = newest(daemons.get(entry[0]), entry)
    return BoundPods(
        residents,
        tuple(sorted((e for one in residents.values() for e in one.inverse), key=lambda entry: entry[0])),
        tuple(sorted((e for one in residents.values() for e in one.terminating), key=lambda entry: entry[0])),
        {name: pod for name, (_, pod) in daemons.items()},
        snapshot.nodes,
        snapshot.namespaces,
    )
