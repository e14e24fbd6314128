"""The planted bugs: mistakes of a careless change to the controller, to `kerf` or to the manifests, as edits.

A piece must occur exactly once in its definition. `test_mutations.py` fails as soon as a change of the source removes
or repeats it; then the bug needs another edit.
"""

from __future__ import annotations

from tests.mutations import (
    planted_at_night,
    planted_in_adoption,
    planted_in_annotations,
    planted_in_approval,
    planted_in_argocd,
    planted_in_aws,
    planted_in_bounds,
    planted_in_canary,
    planted_in_changes,
    planted_in_consolidation,
    planted_in_conversion,
    planted_in_deletions,
    planted_in_disruption,
    planted_in_early_orders,
    planted_in_facts,
    planted_in_flux,
    planted_in_lifecycle,
    planted_in_metrics,
    planted_in_mismatches,
    planted_in_monitoring,
    planted_in_runtime,
    planted_in_scheduling,
    planted_in_trust,
    planted_in_work,
)

BUGS = (
    *planted_in_lifecycle.BUGS,
    *planted_in_disruption.BUGS,
    *planted_in_deletions.BUGS,
    *planted_in_annotations.BUGS,
    *planted_in_consolidation.BUGS,
    *planted_in_scheduling.BUGS,
    *planted_in_trust.BUGS,
    *planted_in_facts.BUGS,
    *planted_in_runtime.BUGS,
    *planted_at_night.BUGS,
    *planted_in_metrics.BUGS,
    *planted_in_mismatches.BUGS,
    *planted_in_aws.BUGS,
    *planted_in_bounds.BUGS,
    *planted_in_conversion.BUGS,
    *planted_in_argocd.BUGS,
    *planted_in_changes.BUGS,
    *planted_in_flux.BUGS,
    *planted_in_monitoring.BUGS,
    *planted_in_adoption.BUGS,
    *planted_in_work.BUGS,
    *planted_in_approval.BUGS,
    *planted_in_canary.BUGS,
    *planted_in_early_orders.BUGS,
)
