"""Behaviours 110 to 135 of the disruption catalogue, broken: drift, forceful ends, the health of claims. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    110: (
        "A condition that is not True counts.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                '    drifted, gate = claim.is_true("Drifted"),',
                '    drifted, gate = claim.condition("Drifted") is not None,',
            ),
        ),
    ),
    111: (
        "The first whose pods have no place holds up all others.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "            plans.append(refused(found.state, outcome.blocker, soon(view)))\n            continue",
                "            plans.append(refused(found.state, outcome.blocker, soon(view)))\n            break",
            ),
        ),
    ),
    112: (
        "Pods that may not go are bought a node.",
        (
            Edit(
                "reconciler/disruption/simulation.py",
                "    return pods.reschedulable(pod) and not held and not view",
                "    return pods.reschedulable(pod) and not view",
            ),
        ),
    ),
    113: (
        "The first new node is enough.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "    if waiting:\n",
                "    if len(waiting) == len(command.replacements) > 0:\n",
            ),
        ),
    ),
    114: (
        "Drifted nodes go by name.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    return since or view.snapshot.now, key",
                "    return view.snapshot.now, key",
            ),
        ),
    ),
    115: (
        "Members of static pools drift like all others.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    return _Wish(empty and not held, drifted and not pool.static,",
                "    return _Wish(empty and not held, drifted,",
            ),
        ),
    ),
    116: (
        "Requirements come before the hash.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                "    if _hash_differs(claim, pool):\n        return _TEMPLATE\n",
                "",
            ),
            Edit(
                "reconciler/disruption/drift.py",
                "        return _REQUIREMENTS\n",
                "        return _REQUIREMENTS\n    if _hash_differs(claim, pool):\n        return _TEMPLATE\n",
            ),
        ),
    ),
    117: (
        "Of what is not launched nobody can tell.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                '    if not claim.is_true("Launched"):\n        return ""',
                '    if not claim.is_true("Launched"):\n        return None',
            ),
        ),
    ),
    118: (
        "Start-up taints are not hashed.",
        (Edit("api/v1/hashes.py", '        ("StartupTaints", _set(map(_taint, spec.startup_taints))),\n', ""),),
    ),
    119: (
        "Hashes without a version are compared.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                "    if version is None or version != theirs",
                "    if version != theirs",
            ),
        ),
    ),
    120: (
        "Who has drifted is re-hashed too.",
        (
            Edit(
                "reconciler/lifecycle/node_pools.py",
                '    drifted = claim.condition("Drifted") is not None',
                "    drifted = False",
            ),
        ),
    ),
    121: (
        "The type is looked up when the claim is older than an hour.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                "view.snapshot.now - created < _TYPE_CHECK_AGE",
                "view.snapshot.now - created <= _TYPE_CHECK_AGE",
            ),
        ),
    ),
    122: (
        "What is reserved has to stay so.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                "    accepted = _DEMOTABLE if capacity_type == labels.RESERVED else (capacity_type,)",
                "    accepted = (capacity_type,)",
            ),
        ),
    ),
    123: (
        "A label that must not be there has to be there.",
        (
            Edit(
                "reconciler/disruption/drift_detail.py",
                "row.operator not in (NOT_IN, DOES_NOT_EXIST)",
                "row.operator != NOT_IN",
            ),
        ),
    ),
    124: (
        "Static drift asks the budget whether, and not how many.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "min(len(ready), ledger.remaining(pool.name, DRIFTED))",
                "len(ready)",
            ),
        ),
    ),
    125: (
        "A static pool may have one more than its limit.",
        (Edit("reconciler/model/replicas.py", 'limits["nodes"] - there))', 'limits["nodes"] - there + 1))'),),
    ),
    126: (
        "What is too much is replaced.",
        (
            Edit(
                "reconciler/model/replicas.py",
                "    return replicas is not None and len(own.active) + len(own.disrupted) <= replicas",
                "    return replicas is not None",
            ),
        ),
    ),
    127: (
        "A claim goes after its time.",
        (Edit("reconciler/disruption/expiration.py", "end.latest > snapshot.now:", "end.latest >= snapshot.now:"),),
    ),
    128: (
        "A sickness is borne an instant too long.",
        (
            Edit(
                "reconciler/disruption/repair.py",
                "    if snapshot.now < sickness.until:",
                "    if snapshot.now <= sickness.until:",
            ),
        ),
    ),
    129: (
        "A drain that has time left keeps it.",
        (
            Edit(
                "reconciler/disruption/writes.py",
                "    if known is not None and known <= snapshot.now:",
                "    if known is not None:",
            ),
        ),
    ),
    130: (
        "A fifth is rounded down.",
        (
            Edit(
                "reconciler/disruption/repair.py",
                "    if sick <= -(-nodes // _ONE_OF) or",
                "    if sick <= nodes // _ONE_OF or",
            ),
        ),
    ),
    131: (
        "A claim goes though its node is ready.",
        (Edit("reconciler/lifecycle/garbage.py", " is None and not any(node.ready for node in nodes):", " is None:"),),
    ),
    132: (
        "An instance is ended before its claim could show.",
        (
            Edit(
                "reconciler/lifecycle/garbage.py",
                "    return instance.launched + view.snapshot.settings.adoption_time",
                "    return instance.launched",
            ),
        ),
    ),
    133: (
        "A fifth may be missing.",
        (Edit("reconciler/lifecycle/consistency.py", "_PERCENT = 90", "_PERCENT = 80"),),
    ),
    134: (
        "What daemons do is an event.",
        (
            Edit(
                "reconciler/lifecycle/pod_events.py",
                "for pod in found if not pods.of_daemon_set(pod) for time",
                "for pod in found for time",
            ),
        ),
    ),
    135: (
        "Events of pods do not count.",
        (
            Edit(
                "reconciler/disruption/conditions.py",
                "    event = claim.status.last_pod_event_time",
                "    event = None",
            ),
        ),
    ),
}
