"""Behaviours 110 to 135 of the disruption catalogue, broken: drift, forceful ends, the health of claims. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    110: (
        "A condition that is not True counts.",
        (
            Edit(
                "reconciler/kerf/disruption:_wish",
                "claim.is_true('Drifted')",
                "claim.condition('Drifted') is not None",
            ),
        ),
    ),
    111: (
        "The first whose pods have no place holds up all others.",
        (
            Edit(
                "reconciler/kerf/disruption:replaced",
                ("if blocker is not None:\n    plans.append(refused(found.state, blocker, soon(view)))\n    continue"),
                ("if blocker is not None:\n    plans.append(refused(found.state, blocker, soon(view)))\n    break"),
            ),
        ),
    ),
    112: (
        "Pods that may not go are bought a node.",
        (
            Edit(
                "reconciler/kerf/disruption:_leaves",
                "pods.reschedulable(pod) and (not held) and (not view.pdbs.forbids(pod, now))",
                "pods.reschedulable(pod) and (not view.pdbs.forbids(pod, now))",
            ),
        ),
    ),
    113: (
        "The first new node is enough.",
        (
            Edit(
                "reconciler/kerf/disruption:_advance",
                (
                    "if waiting:\n"
                    "    return Plan(events=tuple((e for claim in waiting for e in _told_of(claim))), next_due=due)"
                ),
                (
                    "if len(waiting) == len(command.replacements) > 0:\n"
                    "    return Plan(events=tuple((e for claim in waiting for e in _told_of(claim))), next_due=due)"
                ),
            ),
        ),
    ),
    114: (
        "Drifted nodes go by name.",
        (
            Edit(
                "reconciler/kerf/disruption:_drift_order",
                "since or view.snapshot.now",
                "view.snapshot.now",
            ),
        ),
    ),
    115: (
        "Members of static pools drift like all others.",
        (
            Edit(
                "reconciler/kerf/disruption:_wish",
                "drifted and (not pool.static)",
                "drifted",
            ),
        ),
    ),
    116: (
        "Requirements come before the hash.",
        (
            Edit(
                "reconciler/kerf/disruption:drift_reason",
                "if differs(claim, pool, labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION):\n    return _TEMPLATE",
                "",
            ),
            Edit(
                "reconciler/kerf/disruption:drift_reason",
                "if _type_is_gone(view, claim, pool):\n    return _TYPE",
                (
                    "if differs(claim, pool, labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION):\n"
                    "    return _TEMPLATE\n"
                    "if _type_is_gone(view, claim, pool):\n"
                    "    return _TYPE"
                ),
            ),
        ),
    ),
    117: (
        "Of what is not launched nobody can tell.",
        (
            Edit(
                "reconciler/kerf/disruption:drift_reason",
                "''",
                "None",
            ),
        ),
    ),
    118: (
        "Start-up taints are not hashed.",
        (
            Edit(
                "api/kerf_api/v1:nodepool_hash",
                (
                    "[('Taints', _set(map(_taint, spec.taints))), ('StartupTaints', _set(map(_taint, "
                    "spec.startup_taints))), ('NodeClassRef', _struct('NodeClassReference', named)), "
                    "('TerminationGracePeriod', None if grace is None else _duration('Duration', "
                    "durations.parse(grace))), ('ExpireAfter', None if expire is None else "
                    "_duration('NillableDuration', expire))]"
                ),
                (
                    "[('Taints', _set(map(_taint, spec.taints))), ('NodeClassRef', _struct('NodeClassReference', "
                    "named)), ('TerminationGracePeriod', None if grace is None else _duration('Duration', "
                    "durations.parse(grace))), ('ExpireAfter', None if expire is None else "
                    "_duration('NillableDuration', expire))]"
                ),
            ),
        ),
    ),
    119: (
        "Hashes without a version are compared.",
        (
            Edit(
                "reconciler/kerf/model:differs",
                "mine.get(version) is None or mine.get(version) != theirs.get(version)",
                "mine.get(version) != theirs.get(version)",
            ),
        ),
    ),
    120: (
        "Who has drifted is re-hashed too.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_rehash",
                "claim.condition('Drifted') is not None",
                "False",
            ),
        ),
    ),
    121: (
        "The type is looked up when the claim is older than an hour.",
        (
            Edit(
                "reconciler/kerf/disruption:_type_is_gone",
                "view.snapshot.now - created < _TYPE_CHECK_AGE",
                "view.snapshot.now - created <= _TYPE_CHECK_AGE",
            ),
        ),
    ),
    122: (
        "What is reserved has to stay so.",
        (
            Edit(
                "reconciler/kerf/disruption:_offered",
                "_DEMOTABLE if capacity_type == labels.RESERVED else (capacity_type,)",
                "(capacity_type,)",
            ),
        ),
    ),
    123: (
        "A label that must not be there has to be there.",
        (
            Edit(
                "reconciler/kerf/disruption:violations",
                "row.operator not in (NOT_IN, DOES_NOT_EXIST)",
                "row.operator != NOT_IN",
            ),
        ),
    ),
    124: (
        "Static drift asks the budget whether, and not how many.",
        (
            Edit(
                "reconciler/kerf/disruption:_renewed",
                "min(len(ready), ledger.remaining(pool.name, DRIFTED))",
                "len(ready)",
            ),
        ),
    ),
    125: (
        "A static pool may have one more than its limit.",
        (Edit("reconciler/kerf/model:room", "limits['nodes'] - there", "limits['nodes'] - there + 1"),),
    ),
    126: (
        "What is too much is replaced.",
        (
            Edit(
                "reconciler/kerf/model:may_renew",
                "replicas is not None and len(own.active) + len(own.disrupted) <= replicas",
                "replicas is not None",
            ),
        ),
    ),
    127: (
        "A claim goes after its time.",
        (Edit("reconciler/kerf/disruption:_one", "end.latest > snapshot.now", "end.latest >= snapshot.now"),),
    ),
    128: (
        "A sickness is borne an instant too long.",
        (
            Edit(
                "reconciler/kerf/disruption:_one",
                "snapshot.now < sickness.until",
                "snapshot.now <= sickness.until",
            ),
        ),
    ),
    129: (
        "A drain that has time left keeps it.",
        (
            Edit(
                "reconciler/kerf/disruption:over_at_once",
                "known is not None and known <= snapshot.now",
                "known is not None",
            ),
        ),
    ),
    130: (
        "A fifth is rounded down.",
        (
            Edit(
                "reconciler/kerf/disruption:_too_many",
                "-(-nodes // _ONE_OF)",
                "nodes // _ONE_OF",
            ),
        ),
    ),
    131: (
        "A claim goes though its node is ready.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_lost_now",
                "view.instance(claim.status.provider_id) is None and (not any((node.ready for node in nodes)))",
                "view.instance(claim.status.provider_id) is None",
            ),
        ),
    ),
    132: (
        "An instance is ended before its claim could show.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_adopted_by",
                "instance.launched + view.snapshot.settings.adoption_time",
                "instance.launched",
            ),
        ),
    ),
    133: (
        "A fifth may be missing.",
        (Edit("reconciler/kerf/lifecycle:_PERCENT", "90", "80"),),
    ),
    134: (
        "What daemons do is an event.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_newest",
                "[time for pod in found if not pods.of_daemon_set(pod) for time in _times(pod)]",
                "[time for pod in found for time in _times(pod)]",
            ),
        ),
    ),
    135: (
        "Events of pods do not count.",
        (
            Edit(
                "reconciler/kerf/disruption:consolidation_window",
                "claim.status.last_pod_event_time",
                "None",
            ),
        ),
    ),
}
