"""The planted bugs of canaries: a change goes on before its canary has passed, or one that passed waits."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_CANDIDATES = "reconciler/kerf/disruption/candidates"
_DRIFT = "reconciler/kerf/disruption/drift"
_UNIT = "tests/unit/disruption/test_canary.py"
_SCENARIOS = "tests/scenarios/test_scenarios.py::test_scenario[canary/{}]"

BUGS = (
    Bug(
        "canary of another change",
        "The canary of one change lets the nodes of the next change go.",
        (
            Edit(
                f"{_CANDIDATES}:_trial",
                "canary.plan != digest or canary.started < gate.since",
                "canary.started < gate.since",
            ),
        ),
        (f"{_UNIT}::test_only_the_state_of_this_change_counts",),
    ),
    Bug(
        "several canaries",
        "While the canary is replaced, other nodes begin to leave.",
        (Edit(f"{_CANDIDATES}:_chosen", "begun(view, pool, trial_of(view, pool)) is not None", "False"),),
        (f"{_UNIT}::test_one_node_begins_and_is_noted_with_the_controllers_of_its_pods",),
    ),
    Bug(
        "pods that fail everywhere",
        "A failing release of a workload stops a change of nodes.",
        (Edit(f"{_DRIFT}:_failing", "_controller(pod) in well", "True"),),
        (f"{_UNIT}::test_other_failures_stop_no_change",),
    ),
    Bug(
        "restarts are no failure",
        "A pod that crashes again and again, and is ready at times, stops no change.",
        (Edit(f"{_DRIFT}:_restarting", "one.restart_count >= _RESTARTS", "False"),),
        (f"{_UNIT}::test_a_pod_that_fails_on_the_canary_alone_stops_the_change",),
    ),
    Bug(
        "no time to start",
        "A pod that is still starting stops the change.",
        (Edit(f"{_DRIFT}:_failing", "_restarting(pod) or end <= now", "True"),),
        (f"{_UNIT}::test_a_pod_that_may_still_start_delays_the_verdict",),
    ),
    Bug(
        "no soak time",
        "The other nodes follow as soon as the canary is gone.",
        (Edit(f"{_DRIFT}:_judged", "until is not None and until > now", "False"),),
        (f"{_UNIT}::test_the_soak_time_has_to_be_over",),
    ),
    Bug(
        "consolidation before the canary",
        "Consolidation replaces drifted nodes before the canary has passed.",
        (Edit(f"{_CANDIDATES}:consolidation_blocker", "trial.waits and drifted", "False"),),
        (_SCENARIOS.format("consolidation-waits"),),
    ),
)
