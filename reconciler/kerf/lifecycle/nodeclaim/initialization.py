"""A registered Node becomes usable: ready, without start-up taints, and with every resource that was asked for.

Devices that pods claim are among these: while claims count, the drivers that the NodeClaim names have to publish them.

Until then the scheduler plans with what the claim promises. Initialization never reverts, and its label stays; only a
Node that joins again has to earn it again.
"""

from __future__ import annotations

from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.lifecycle.nodeclaim.registration import joined_anew
from kerf.model.kubernetes.objects import Node
from kerf.model.snapshot import Snapshot
from kerf.model.writes import with_metadata
from kerf.scheduling.devices.pools import published
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.conditions import TRUE, UNKNOWN
from kerf_api.v1.nodeclaim import NodeClaim


def initialize(progress: Progress) -> Progress:
    """The next step towards Initialized: the label on the Node first, the condition when the Node shows it."""
    claim, node = progress.claim, progress.node
    if not claim.is_true("Registered"):
        return progress
    if claim.is_true("Initialized"):
        return _relabelled(progress).condition("Initialized", TRUE)
    if node is None:
        return progress.condition(
            "Initialized", UNKNOWN, "NodeNotFound", "the node is not there (or there are several)"
        )
    lacking = _lacking(progress, node)
    if lacking is not None:
        return progress.condition("Initialized", UNKNOWN, *lacking)
    if not node.initialized:
        return progress.with_node(with_metadata(node, labels={**node.metadata.labels, labels.INITIALIZED: "true"}))
    return progress.condition("Initialized", TRUE)


def _relabelled(progress: Progress) -> Progress:
    """Our two labels are put back when another client removed them: a Node without them counts as not usable for ever.

    One that has joined again gets them when it is usable.
    """
    node = progress.node
    if node is None or node.metadata.deleting or (node.registered and node.initialized):
        return progress
    if joined_anew(progress) and _lacking(progress, node) is not None:
        return progress
    own = {**node.metadata.labels, labels.REGISTERED: "true", labels.INITIALIZED: "true"}
    return progress.with_node(with_metadata(node, labels=own))


def _lacking(progress: Progress, node: Node) -> tuple[str, str] | None:
    """(reason, message) of the first thing that is missing; None when nothing is."""
    claim = progress.claim
    if not node.ready:
        return "NodeNotReady", "the node is not ready yet"
    for taint in claim.spec.startup_taints:
        if any(taint.matches(other) for other in node.spec.taints):
            return "StartupTaintsExist", f"start-up taint {taint} is still there"
    for taint in node.spec.taints:
        if labels.is_ephemeral_taint(taint.key, taint.effect):
            return "KnownEphemeralTaintsExist", f"taint {taint} is still there"
    allocatable = Resources.parse(node.status.allocatable)
    missing = sorted(name for name, value in claim.requests().items() if value and not allocatable[name])
    if missing:
        return "ResourceNotRegistered", f"the node does not offer {', '.join(missing)} yet"
    drivers = _silent_drivers(progress.view.snapshot, claim, node)
    if drivers:
        return "DRADriverPoolsNotPublished", f"no complete pool of devices is published yet by {', '.join(drivers)}"
    return None


def _silent_drivers(snapshot: Snapshot, claim: NodeClaim, node: Node) -> list[str]:
    """Drivers that pods wait for, and that have not published all of a pool of the node's devices yet."""
    wanted = claim.metadata.annotations.get(labels.REQUESTED_DRIVERS, "")
    if not wanted or snapshot.settings.ignore_dra_requests:
        return []
    own = published(found.spec for found in snapshot.slices_by_node.get(node.name, ()))
    return sorted({driver.strip() for driver in wanted.split(",")} - own - {""})
