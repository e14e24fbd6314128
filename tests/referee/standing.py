"""The rules that one node and its pods answer alone: taints, labels, volumes, host ports, room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf_api.resources import total
from tests.referee import attaching, volumes
from tests.referee.answers import Violation
from tests.referee.kinds import Kind, Kinds
from tests.referee.needs import clash
from tests.referee.places import Place
from tests.referee.selecting import affinity_holds, selector_holds, untolerated


def problems(snapshot: Snapshot, kinds: Kinds, places: Sequence[Place]) -> Iterator[Violation]:
    """What is wrong on each node by itself; of pods that are alike one is named."""
    for words in volumes.shared(snapshot, places):
        yield Violation("volume", words)
    known: dict[tuple[Kind, int], tuple[tuple[str, str], ...]] = {}
    for place in places:
        for kind, pod in {kinds.of(pod): pod for pod in reversed(place.coming)}.items():
            look = (kind, id(place.outcomes))
            if look not in known:
                known[look] = tuple(_labels(snapshot, pod, place))
            for rule, words in known[look]:
                yield Violation(rule, f"{pod.key} may not run on {place.name}: {words}")
            for taint in untolerated(pod, (*place.taints, *place.cordon)):
                yield Violation("taint", f"{pod.key} does not tolerate {taint} of {place.name}")
        if place.coming:
            yield from _ports(kinds, place)
            yield from _room(kinds, place)
            for words in attaching.problems(snapshot, place):
                yield Violation("attach-limit", f"{place.name} would have to attach {words}")


def _labels(snapshot: Snapshot, pod: Pod, place: Place) -> Iterator[tuple[str, str]]:
    """The first outcome of the node that does not do, for each rule."""
    if not all(selector_holds(pod, outcome) for outcome in place.outcomes):
        yield "node-selector", "its node selector"
    if not all(affinity_holds(pod, place.name, outcome) for outcome in place.outcomes):
        yield "node-affinity", "its node affinity"
    if pod.spec.volumes:
        every = (why for outcome in place.outcomes for why in volumes.problems(snapshot, pod, outcome))
        first = next(every, None)
        if first is not None:
            yield "volume", first


def _ports(kinds: Kinds, place: Place) -> Iterator[Violation]:
    coming = [(pod.key, port, True) for pod in place.coming for port in kinds.of(pod).ports]
    if not coming:
        return
    there = [(pod.key, p, False) for pod in [*place.staying, *place.leaving] for p in kinds.of(pod).ports]
    daemons = [("a daemon set", port, False) for port in place.daemon_ports]
    for (one, a, new), (two, b, newer) in combinations([*coming, *there, *daemons], 2):
        if one != two and (new or newer) and clash(a, b):
            yield Violation("host-port", f"{one} and {two} want the same host port on {place.name}")


def _room(kinds: Kinds, place: Place) -> Iterator[Violation]:
    everyone = Counter(kinds.of(pod) for pod in [*place.staying, *place.leaving, *place.coming])
    used = total({r: a * n for r, a in kind.requests.items()} for kind, n in everyone.items())
    # What runs there may have too much of something; that keeps away only who wants some of it too.
    asked = {r for pod in place.coming for r, amount in kinds.of(pod).requests.items() if amount > 0}
    for name, room in place.rooms.items():
        for resource in sorted(asked):
            if (amount := used[resource]) > room[resource]:
                words = f"{place.name} (as {name}) has {room[resource]} {resource}, its pods want {amount}"
                yield Violation("room", words)
