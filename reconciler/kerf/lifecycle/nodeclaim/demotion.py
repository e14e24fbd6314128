"""A machine whose capacity reservation has ended runs on, and is paid for as one on demand: its labels say so.

It never goes the other way: what is on demand is not called reserved because it happens to be in a reservation.
"""

from __future__ import annotations

from collections.abc import Mapping

from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.model.writes import with_metadata
from kerf_api import labels


def demote(progress: Progress) -> Progress:
    """The claim and its Node without the labels of a reservation, once EC2 says that the instance is in none."""
    instance = progress.view.instance(progress.claim.status.provider_id)
    if instance is None or instance.capacity_type != labels.ON_DEMAND:
        return progress
    claim, node = progress.claim, progress.node
    if _reserved(claim.metadata.labels):
        progress = progress.with_claim(with_metadata(claim, labels=_on_demand(claim.metadata.labels)))
    if node is not None and _reserved(node.metadata.labels):
        progress = progress.with_node(with_metadata(node, labels=_on_demand(node.metadata.labels)))
    return progress


def _reserved(own: Mapping[str, str]) -> bool:
    return own.get(labels.CAPACITY_TYPE) == labels.RESERVED


def _on_demand(own: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in own.items() if key not in labels.RESERVATION_LABELS}
    return {**kept, labels.CAPACITY_TYPE: labels.ON_DEMAND}
