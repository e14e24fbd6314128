"""Whether an EC2NodeClass can be launched from: a dry run is asked for when there is none, and its answer is believed
for a while.

The answer is memory. What was said of the class stands in its condition, and stays there until something else is known.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.ec2.nodeclass import validation
from kerf.ec2.nodeclass.validation import Verdict
from kerf.lifecycle.view import View
from kerf.model.plan import NOTHING, Plan, Reason, ValidateClass
from kerf.model.writes import act
from kerf_api.kubelet.rules import formulas
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus


class Trial:
    """Of one class, within one look. `plan` is what is to be done about it, once `verdict` was asked."""

    def __init__(self, view: View, node_class: EC2NodeClass) -> None:
        self._snapshot, self._node_class = view.snapshot, node_class
        self.plan: Plan = NOTHING

    def verdict(self, status: EC2NodeClassStatus) -> Verdict | None:
        """What the condition says of the class with this status; None while that is unknown."""
        snapshot, of = self._snapshot, replace(self._node_class, status=status)
        if formulas(of.spec.kubelet) and snapshot.catalogues.get(of.name) is None:
            return None  # no type is known yet on which they could fail
        if snapshot.settings.disable_dry_run:
            return validation.SUCCEEDED
        known = snapshot.dry_runs.get(of.name)
        if known is None or known.identity != validation.identity(of):
            return self._ask(of)
        until = known.at + validation.holds(of, known)
        if known.at <= snapshot.now < until:
            self.plan = Plan(next_due=until)
        else:
            self._ask(of)
        return validation.verdict(of, known)

    def _ask(self, of: EC2NodeClass) -> Verdict | None:
        """A class of which nothing boots in its zones has nothing to be tried, and no launch to be refused."""
        snapshot = self._snapshot
        catalogue = snapshot.catalogues.get(of.name)
        if catalogue is None or snapshot.cluster is None:
            return None
        linked = [pool for pool in snapshot.node_pools.values() if pool.managed and pool.class_name == of.name]
        request = validation.request(
            of, catalogue=catalogue, pools=linked, cluster=snapshot.cluster, settings=snapshot.settings
        )
        if request is None:
            return validation.SUCCEEDED
        reason = Reason("Validation", f"whether nodes can be launched from EC2NodeClass {of.name}")
        self.plan = act(ValidateClass(reason=reason, class_name=of.name, request=request))
        return None
