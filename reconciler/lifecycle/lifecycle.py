"""The life of what exists, in one plan: classes and pools, then launches, then each claim and Node, then garbage.

Every object is looked at by itself: one that cannot be understood is refused, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle import garbage, launch, node_classes, node_pools, termination
from reconciler.lifecycle.consistency import check
from reconciler.lifecycle.initialization import initialize
from reconciler.lifecycle.liveness import give_up
from reconciler.lifecycle.pod_events import note_pod_events
from reconciler.lifecycle.progress import begin, finish
from reconciler.lifecycle.registration import hydrate, register
from reconciler.lifecycle.tagging import tag
from reconciler.lifecycle.view import View, managed, view
from reconciler.lifecycle.writes import guarded, joined
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot

_STEPS = (hydrate, register, initialize, check, note_pod_events, tag)


def lifecycle(snapshot: Snapshot) -> Plan:
    """Everything that the present state of classes, pools, claims and nodes asks for."""
    seen = view(snapshot)
    return joined((*_claims(seen), *_nodes(seen), *_classes(seen), *_pools(seen), garbage.collect(seen)))


def _claims(seen: View) -> Iterator[Plan]:
    """Launches first: pods wait for them. Then each claim that has launched, or is on its way out."""
    claims = [claim for _, claim in sorted(seen.snapshot.node_claims.items()) if managed(claim)]
    yield from launch.launch(seen, claims)
    for claim in claims:
        if claim.metadata.deleting:
            yield guarded(f"nodeclaim/{claim.name}", partial(termination.end_claim, seen, claim))
        elif claim.is_true("Launched"):
            yield guarded(f"nodeclaim/{claim.name}", partial(_live, seen, claim))


def _live(seen: View, claim: NodeClaim) -> Plan:
    """A launched claim's way to Initialized, and what keeps it up to date afterwards."""
    node = seen.node_of(claim)
    progress = begin(seen, claim, node).condition("Launched", "True")
    for step in _STEPS:
        progress = step(progress)
    return finish(progress.also(give_up(progress)), claim, node)


def _nodes(seen: View) -> Iterator[Plan]:
    for _, node in sorted(seen.snapshot.nodes.items()):
        if node.metadata.deleting:
            yield guarded(f"node/{node.name}", partial(termination.end_node, seen, node))


def _classes(seen: View) -> Iterator[Plan]:
    for name, node_class in sorted(seen.snapshot.node_classes.items()):
        yield guarded(f"ec2nodeclass/{name}", partial(node_classes.reconcile, seen, node_class))


def _pools(seen: View) -> Iterator[Plan]:
    for pool, nodes in node_pools.node_pools(seen):
        yield guarded(f"nodepool/{pool.name}", partial(node_pools.reconcile, seen, pool, nodes))
