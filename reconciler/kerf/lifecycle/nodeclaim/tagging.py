"""A registered node's instance is labelled for people: its node's name, its claim and its cluster, as EC2 tags.

The claim is annotated once the instance shows the tags, so that a call that got lost is made again.
"""

from __future__ import annotations

from kerf.lifecycle import shifted_zones
from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.model.plan import Reason, TagInstance
from kerf.model.writes import act, with_annotations
from kerf_api import labels

_DONE = {labels.TAGGED: "true", labels.CLUSTER_NAME_TAGGED: "true"}


def tag(progress: Progress) -> Progress:
    """The missing tags, or the claim annotated when none is missing. An instance that is gone is left alone."""
    claim = progress.claim
    if not claim.is_true("Registered") or _DONE.items() <= claim.metadata.annotations.items():
        return progress
    instance = progress.view.instance(claim.status.provider_id)
    if instance is None or not claim.status.node_name:
        return progress
    wanted = {
        labels.TAG_NAME: claim.status.node_name,
        labels.TAG_NODECLAIM: claim.name,
        labels.TAG_EKS_CLUSTER: progress.view.snapshot.settings.cluster_name,
    }
    missing = {key: value for key, value in wanted.items() if key not in instance.tags}
    if not missing and _at_rest(progress):
        return progress.with_claim(with_annotations(claim, _DONE))
    held = shifted_zones.held(progress.view, f"nodeclaim/{claim.name}", instance) if missing else None
    if not missing or held is not None:
        return progress if held is None else progress.also(held)
    reason = Reason("Tagging", f"node {claim.status.node_name}")
    return progress.also(act(TagInstance(reason=reason, instance_id=instance.id, tags=missing)))


def _at_rest(progress: Progress) -> bool:
    """Initialized was written before: the note, a write of its own, holds up nothing that pods wait for."""
    return progress.view.snapshot.node_claims[progress.claim.name].is_true("Initialized")
