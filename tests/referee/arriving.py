"""Pods of daemon sets that are still missing on nodes that are there: each comes if the kube-scheduler can bind it now.

One that cannot run there beside the pods that do takes nothing of its node, and is no company.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from tests.referee import company, spread, standing
from tests.referee.answers import Violation
from tests.referee.census import Census
from tests.referee.daemons import Daemons, Share
from tests.referee.kinds import Kinds
from tests.referee.places import Place
from tests.referee.selecting import matches


def settle(snapshot: Snapshot, daemons: Daemons, kinds: Kinds, places: Sequence[Place]) -> None:
    """Give each launched node the pods that come there, node by node; they come before the pods of the answer."""
    for place in places:
        if place.launched:
            for pod, share in daemons.missing(place.taints, place.outcomes[0], [*place.staying, *place.leaving]):
                if not any(_problems(snapshot, kinds, places, place, pod)):
                    _add(place, pod, share)


def _add(place: Place, pod: Pod, share: Share) -> None:
    place.awaited.append(pod)
    place.daemon_ports |= share.ports
    place.rooms = {name: room - share.requests for name, room in place.rooms.items()}


def _problems(snapshot: Snapshot, kinds: Kinds, places: Sequence[Place], there: Place, pod: Pod) -> Iterator[Violation]:
    """The rules that keep the pod from this node; the pods of the answer are nowhere yet."""
    yield from standing.problems(snapshot, kinds, [replace(there, coming=[pod])])
    if _is_related(kinds, places, pod):
        bare = [replace(place, coming=[pod] if place is there else []) for place in places]
        census = Census(snapshot, kinds, bare)
        yield from spread.problems(census)
        yield from company.problems(census)


def _is_related(kinds: Kinds, places: Sequence[Place], pod: Pod) -> bool:
    """Whether it has a rule about other pods, or one of those that run may have one about it."""
    own = kinds.of(pod)
    others = (kinds.of(other) for place in places for other in (*place.staying, *place.leaving, *place.awaited))
    return bool(own.near or own.far or pod.spec.topology_spread_constraints) or any(
        matches(term.label_selector, pod.metadata.labels) for other in others for term in other.far
    )
