"""What a scenario may expect of its world, read from the world itself: every `see_…` answers one word of `expect`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from kerf.disruption.candidates.costs import price
from kerf.model import kinds
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.kubernetes.pods import of_daemon_set
from kerf.model.snapshot import Snapshot
from kerf.sandbox.api.kinds import EVENT
from kerf.sandbox.world import World
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from tests.referee.cost import lp_bound
from tests.scenarios.player import Player
from tests.simulation.arithmetic import at_work
from tests.simulation.trouble import lives


class Sights:
    """`remembered` holds names of claims under names of the scenario's own."""

    def __init__(self, world: World, player: Player) -> None:
        self._world, self._player = world, player
        self.remembered: dict[str, set[str]] = {}

    def unmet(self, wanted: Mapping[str, Any]) -> dict[str, str]:
        """Which expectations do not hold, and what is there instead."""
        found = {what: (value, getattr(self, f"see_{what}")(value)) for what, value in wanted.items()}
        return {what: f"wanted {want}, found {got}" for what, (want, got) in found.items() if not meets(got, want)}

    # --- pods -----------------------------------------------------------------------------------------------------
    def see_running(self, wanted: Mapping[str, int]) -> dict[str, int]:
        count = Counter(_app(pod) for pod in self._pods() if at_work(pod) and pod.status.phase == "Running")
        return {app: count[app] for app in wanted}

    def see_leaving(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Pods that have been told to end."""
        count = Counter(_app(pod) for pod in self._pods() if pod.metadata.deleting)
        return {app: count[app] for app in wanted}

    def see_pods_per_node(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """The most pods of an app on one node."""
        nodes = {app: Counter(p.spec.node_name for p in self._pods() if _app(p) == app) for app in wanted}
        return {app: max(count.values(), default=0) for app, count in nodes.items()}

    def see_evicted(self, _: object) -> int:
        """Pods that the controller has made to leave so far."""
        return self._player.evictions.count

    def see_attached(self, _: object) -> int:
        return sum(1 for _ in self._world.server.records(kinds.VOLUME_ATTACHMENT))

    # --- nodes, claims, instances ---------------------------------------------------------------------------------
    def see_nodes(self, _: object) -> int:
        return sum(not node.metadata.deleting for node in self._nodes())

    def see_cost_by_bound(self, _: object) -> int:
        """What the nodes cost, in per cent of the least that nodes for their pods must cost."""
        snapshot = self._player.snapshot()
        return _percent(cost(snapshot), lp_bound(snapshot, [free(pod) for pod in _ours(snapshot)]))

    def see_cost_by_plan(self, _: object) -> int:
        """The same, in per cent of the nodes that would be bought for these pods if there were none; what whole pods,
        topology and NodePools rule out is no part of the bound."""
        snapshot = self._player.snapshot()
        found = solve(
            snapshot,
            _ours(snapshot),
            SolveOptions(exclude=frozenset(snapshot.state_nodes), improve=timedelta(seconds=1)),
        )
        return _percent(cost(snapshot), sum(new.price for new in found.new_nodes))

    def see_claims(self, _: object) -> int:
        return len(self.claims())

    def see_instances(self, _: object) -> int:
        return sum(lives(machine) for machine in self._world.ec2.instances.values())

    def see_launched(self, _: object) -> int:
        return len(self._world.ec2.instances)

    def see_pools(self, wanted: Mapping[str, int]) -> dict[str, int]:
        return self._by_label(labels.NODEPOOL, wanted)

    def see_types(self, wanted: Mapping[str, int]) -> dict[str, int]:
        return self._by_label(labels.INSTANCE_TYPE, wanted)

    def see_zones(self, _: object) -> int:
        return len({node.metadata.labels[labels.ZONE] for node in self._nodes()})

    def see_capacity(self, _: object) -> list[str]:
        return sorted({node.metadata.labels[labels.CAPACITY_TYPE] for node in self._nodes()})

    def see_labelled(self, wanted: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """The values that a label has on nodes."""
        nodes = list(self._nodes())
        return {key: sorted({n.metadata.labels[key] for n in nodes if key in n.metadata.labels}) for key in wanted}

    def see_taints(self, _: object) -> list[str]:
        return sorted({taint.key for node in self._nodes() for taint in node.spec.taints})

    def see_tainted(self, _: object) -> int:
        return sum(any(t.key == labels.DISRUPTED_TAINT for t in node.spec.taints) for node in self._nodes())

    def see_none_of(self, name: str) -> list[str]:
        return sorted(self.claims() & self.remembered[name])

    def see_all_of(self, name: str) -> list[str]:
        return sorted(self.remembered[name] - self.claims())

    def see_gone(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """How many of the remembered claims are no more."""
        return {name: len(self.remembered[name] - self.claims()) for name in wanted}

    # --- what is said ---------------------------------------------------------------------------------------------
    def see_refused(self, wanted: Mapping[str, str]) -> dict[str, str]:
        refusals = sorted(self._player.refusals.items())
        return {prefix: " | ".join(text for name, text in refusals if name.startswith(prefix)) for prefix in wanted}

    def see_conditions(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """`Kind name Type` to `Status Reason: message`; the name `*` stands for each of the kind."""
        return {key: " | ".join(self._conditions(*key.split())) or "^ $" for key in wanted}

    def _conditions(self, kind: str, name: str, type_: str) -> Iterator[str]:
        for record in self._world.server.select(self._world.server.kinds[kind], "", "", ""):
            if name not in ("*", record.key[1]):
                continue
            found = next((c for c in record.value.status.conditions if c.type == type_), None)
            if found is not None:
                yield f"{found.status} {found.reason}{f': {found.message}' if found.message else ''}"
            elif name != "*":
                yield " "

    def see_events(self, wanted: list[str]) -> list[str]:
        have = {record.value.reason for record in self._world.server.records(EVENT)}
        return [reason for reason in wanted if reason in have]

    def see_told(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """By reason, the messages of the events."""
        events = [record.value for record in self._world.server.records(EVENT)]
        return {reason: " | ".join(e.message for e in events if e.reason == reason) for reason in wanted}

    # --- aids -----------------------------------------------------------------------------------------------------
    def claims(self) -> set[str]:
        return {record.key[1] for record in self._world.server.records(kinds.NODE_CLAIM)}

    def picture(self) -> str:
        """Nodes and refusals, for a failure's text."""
        nodes = [f"{node.name} {dict(node.metadata.labels)}" for node in self._nodes()]
        pods = [f"{pod.key} {pod.status.phase} on {pod.spec.node_name or 'nothing'}" for pod in self._pods()]
        return "\n".join([*nodes, *pods, *sorted(f"{s}: {r}" for s, r in self._player.refusals.items())])

    def _by_label(self, key: str, wanted: Mapping[str, int]) -> dict[str, int]:
        count = Counter(node.metadata.labels.get(key) for node in self._nodes())
        return {value: count[value] for value in wanted}

    def _nodes(self) -> Iterator[Node]:
        return (record.value for record in self._world.server.records(kinds.NODE))

    def _pods(self) -> Iterator[Pod]:
        return (record.value for record in self._world.server.records(kinds.POD))


def meets(found: Any, wanted: Any) -> bool:
    """Equal; or, where the wanted is text over a number, a bound such as `<= 3`; over text, a regular expression."""
    if isinstance(wanted, Mapping):
        return all(meets(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, str) and isinstance(found, int):
        operator, _, bound = wanted.partition(" ")
        return {"<=": found <= int(bound), ">=": found >= int(bound)}[operator]
    if isinstance(wanted, str) and isinstance(found, str):
        return re.search(wanted, found) is not None
    if isinstance(wanted, str) and isinstance(found, list):
        return not found  # none_of, all_of: nothing left over
    return bool(found == wanted)


def cost(snapshot: Snapshot) -> int:
    """Of all nodes, in millionths of a dollar per hour."""
    known = {type_.name: type_ for types in snapshot.catalogues.values() for type_ in types}
    rows = (node.metadata.labels for node in snapshot.nodes.values())
    return sum(price(known[row[labels.INSTANCE_TYPE]], row) for row in rows)


def _percent(cost: int, least: float) -> int:
    """Rounded up; 100 of nothing."""
    return int(-(-100 * cost // least)) if least else 100


def _ours(snapshot: Snapshot) -> list[Pod]:
    return [pod for pod in snapshot.pods.values() if not of_daemon_set(pod)]


def free(pod: Pod) -> Pod:
    """The pod before it was bound."""
    return replace(pod, spec=replace(pod.spec, node_name=""))


def _app(pod: Pod) -> str | None:
    return pod.metadata.labels.get("app")
