"""A NodeOverlay's own state: whether it is applied, or why it is applied nowhere.

What overlays do is worked out with the snapshot; here it is only said. With the feature gate closed nothing is.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.lifecycle.view import View
from kerf.model.plan import NOTHING, Plan, Reason, Refusal
from kerf.model.writes import changed, unreadable
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeoverlay import NodeOverlay

_VALID = "ValidationSucceeded"


def reconcile(view: View, overlay: NodeOverlay) -> Plan:
    """The overlay's next write; one that is applied nowhere is refused as well."""
    if not view.snapshot.settings.gates.node_overlay or overlay.metadata.deleting:
        return NOTHING
    if overlay.metadata.unreadable:
        return unreadable(overlay)
    after = replace(overlay, status=replace(overlay.status, conditions=_conditions(view, overlay)))
    reason = Reason("OverlayStatus", f"node overlay {overlay.name}")
    fault = view.snapshot.overlay_faults.get(overlay.name)
    refusals = () if fault is None else (Refusal(f"nodeoverlay/{overlay.name}", fault),)
    return Plan(actions=changed(overlay, after, "UpdateOverlay", reason), refusals=refusals)


def _conditions(view: View, overlay: NodeOverlay) -> tuple[Condition, ...]:
    """Faults are reported at once. Their absence only when there are types that it could be about: until
    then, as after a restart, what was found before stays."""
    generation, now, dependents = overlay.metadata.generation, view.now, conditions.NODEOVERLAY_DEPENDENTS
    known = conditions.initial(overlay.status.conditions, dependents, overlay.metadata.creation_timestamp)
    fault = view.snapshot.overlay_faults.get(overlay.name)
    if fault is not None:
        known = conditions.put(known, _VALID, FALSE, fault.code, generation=generation, now=now, message=fault.text)
    elif view.snapshot.catalogues or not view.snapshot.node_pools:
        known = conditions.put(known, _VALID, TRUE, _VALID, generation=generation, now=now)
    return conditions.with_root(known, dependents, generation=generation, now=now)
