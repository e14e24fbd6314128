"""Launches to come: what they need and takes a while to make is made while their pods still wait for their batch.

These are the launch templates. One that is made in vain, since other pods came, is collected like any that is unused.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from kerf.ec2.launch.fleet import equal_launch
from kerf.lifecycle.nodeclaim.calls import planned
from kerf.lifecycle.nodeclaim.subnet_room import SubnetRoom
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate
from kerf.model.plan import NOTHING, EnsureTemplate, Plan, Reason
from kerf.model.snapshot import Snapshot
from kerf.model.writes import act
from kerf_api.v1.nodeclaim import NodeClaim

#: For so many calls at most. Machines of many kinds share few templates, and no launch is to wait for this.
CALLS: Final = 20


def prepare(snapshot: Snapshot, claims: Sequence[NodeClaim]) -> Plan:
    """Make the templates of the calls that these claims will ask for, as far as they are known."""
    if not claims:
        return NOTHING
    view, templates = View(snapshot), dict[str, LaunchTemplate]()
    room, alike = SubnetRoom(view, ()), dict[Hashable, NodeClaim]()
    for claim in claims:
        alike.setdefault(equal_launch(claim), claim)
    for claim in list(alike.values())[:CALLS]:
        request = planned(view, (claim,), 0, room, view.types_of(claim))
        if isinstance(request, FleetRequest):
            templates |= {template.name: template for template in request.templates}
    reason = Reason("Launch", f"for {len(claims)} planned node claims")
    return act(*(EnsureTemplate(reason=reason, template=template) for _, template in sorted(templates.items())))
