"""ARC zonal shift: what lies in a zone that traffic is shifted away from is left as it is, and NodePools get an event.

What EC2 answers about an impaired zone cannot be relied on. So nothing there is ended or tagged; that waits until the
shift is over. An annotation of the NodePool lists the reported shifts, so that each is reported once. Source: AWS
provider reference §2.11 and §9.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerf.lifecycle.view import View
from kerf.model.aws.cloud import Instance
from kerf.model.instants import rfc3339
from kerf.model.plan import Event, Plan, Reason, Refusal, Source
from kerf.model.writes import normal, warning
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool


def known(view: View) -> bool:
    """Whether ARC has been asked, if it is to be."""
    return not view.snapshot.settings.zonal_shift or Source.ZONAL_SHIFTS in view.snapshot.fresh_at


def held(view: View, subject: str, instance: Instance) -> Plan | None:
    """Why nothing may be done with an instance now; None when something may."""
    return _held(view, subject, instance.zone, instance.zone_id)


def claim_held(view: View, claim: NodeClaim, instance: Instance | None) -> Plan | None:
    """The same of a claim's instance. One that is not known is looked up first: its claim may name another zone."""
    subject, own = f"nodeclaim/{claim.name}", claim.metadata.labels
    if instance is not None:
        return held(view, subject, instance)
    if view.snapshot.settings.zonal_shift and not view.snapshot.fresh(Source.INSTANCES):
        text = "its instance has to be listed before its termination: its zone may be shifted away"
        return _wait(subject, "ZonalShiftUnknown", text)
    return _held(view, subject, own.get(labels.ZONE, ""), own.get(labels.ZONE_ID, ""))


def _held(view: View, subject: str, zone: str, zone_id: str) -> Plan | None:
    if not known(view):
        return _wait(subject, "ZonalShiftUnknown", "ARC has not returned the shifted zones yet")
    until = view.snapshot.shifted_until(zone, zone_id)
    if until is None:
        return None
    text = f"zone {zone or zone_id} is shifted away until {rfc3339(until)}: Kerf terminates and tags no instance there"
    return Plan(refusals=(Refusal(subject, Reason("ZonalShift", text)),), next_due=until)


def _wait(subject: str, code: str, text: str) -> Plan:
    """Until there is an update: a list that is read wakes every loop that rests on it."""
    return Plan(refusals=(Refusal(subject, Reason(code, text)),))


# --- NodePools --------------------------------------------------------------------------------------------------
def told(view: View, pool: NodePool) -> tuple[str, tuple[Event, ...]]:
    """What the pool's annotation is to say (zone IDs, by comma), and what is new since it said so last."""
    before = pool.metadata.annotations.get(labels.ZONAL_SHIFT, "")
    facts = view.snapshot.class_facts.get(pool.class_name)
    if not known(view) or facts is None or not (before or facts.shifted):
        return before, ()
    now = ",".join(sorted(_usable(view, pool)))
    return now, tuple(_events(view, pool, frozenset(before.split(",")), frozenset(now.split(","))))


def _usable(view: View, pool: NodePool) -> Iterator[str]:
    """The zones (IDs) that are shifted away and that nodes of the pool could be in."""
    facts = view.snapshot.class_facts[pool.class_name]
    try:
        wanted = pool.requirements()
    except ValueError:
        wanted = Requirements(())
    zones = {subnet.zone_id: subnet.zone for subnet in facts.subnets if subnet.zone_id in facts.shifted}
    for zone_id, zone in zones.items():
        if wanted.allowed(labels.ZONE).has(zone) and wanted.allowed(labels.ZONE_ID).has(zone_id):
            yield zone_id


def _events(view: View, pool: NodePool, before: frozenset[str], now: frozenset[str]) -> Iterator[Event]:
    for zone_id in sorted(now - before - {""}):
        until = view.snapshot.shifted_until("", zone_id)
        text = f"no instance is launched or terminated in zone {zone_id}: a zonal shift moves traffic away from it"
        text = f"{text} until {rfc3339(until)}" if until is not None else text
        yield replace(warning(pool, "ZonalShiftActive", text), dedupe=zone_id)
    for zone_id in sorted(before - now - {""}):
        if view.snapshot.shifted_until("", zone_id) is None:
            event = normal(pool, "ZonalShiftCleared", f"zone {zone_id} is not shifted away any more")
            yield replace(event, dedupe=zone_id)
