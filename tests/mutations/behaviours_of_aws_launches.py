"""Behaviours 1 to 30 of the AWS catalogue, broken: from a claim to its instance. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    1: (
        "A class of which nobody knows yet whether it is ready costs a claim its life.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_class_gate",
                (
                    "_wait(view, claim, 'NodeClassReadinessUnknown', f'EC2NodeClass {node_class.name}: readiness is "
                    "unknown')"
                ),
                "_not_ready(claim, f'EC2NodeClass {node_class.name}: readiness is unknown')",
            ),
        ),
    ),
    2: (
        "The words of a class that is not ready are not told.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_class_gate",
                "ready.message or ready.reason",
                "ready.reason",
            ),
        ),
    ),
    3: (
        "Only tags of clusters are ours to set.",
        (
            Edit(
                "reconciler/kerf/ec2:restricted",
                "key in _RESTRICTED or _CLUSTER_TAG.fullmatch(key)",
                "_CLUSTER_TAG.fullmatch(key)",
            ),
        ),
    ),
    4: (
        "A readiness of any generation will do.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_class_gate",
                "ready is not None and ready.observed_generation == node_class.metadata.generation",
                "ready is not None",
            ),
        ),
    ),
    5: (
        "That no type fits is taken for a class that is not ready.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_new_group",
                "_no_capacity",
                "_not_ready",
            ),
        ),
    ),
    6: (
        "The image of the instance is not told.",
        (
            Edit(
                "reconciler/kerf/ec2:claim_status",
                "instance.image_id or claim.status.image_id",
                "claim.status.image_id",
            ),
        ),
    ),
    7: (
        "The zone ID is that of any subnet.",
        (Edit("reconciler/kerf/ec2:_zone_id", "subnet.zone == instance.zone and subnet.zone_id", "subnet.zone_id"),),
    ),
    8: (
        "A claim does not say with which instance profile it was launched.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_with_labels",
                "(*stamps, labels.INSTANCE_PROFILE)",
                "stamps",
            ),
        ),
    ),
    9: (
        "The CA bundle does not count for the hash.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_stamps",
                "view.snapshot.cluster.ca_bundle",
                "''",
            ),
        ),
    ),
    10: (
        "The context of a class goes nowhere.",
        (Edit("reconciler/kerf/ec2:plan", "'' if relaxed else node_class.spec.context or ''", "''"),),
    ),
    11: (
        "The context stays although minValues were relaxed.",
        (
            Edit(
                "reconciler/kerf/ec2:plan",
                "'' if relaxed else node_class.spec.context or ''",
                "node_class.spec.context or ''",
            ),
        ),
    ),
    12: (
        "No context is an empty one.",
        (
            Edit(
                "reconciler/kerf/aws:parameters",
                "if request.context:\n    call['Context'] = request.context",
                "call['Context'] = request.context",
            ),
        ),
    ),
    13: (
        "A claim lists no more than one type.",
        (
            Edit(
                "reconciler/kerf/scheduling:claim_entries",
                "snapshot.settings.max_instance_types",
                "1",
            ),
        ),
    ),
    14: (
        "Claims name types of the cheapest family only.",
        (
            Edit(
                "reconciler/kerf/ec2:_choose",
                "missing = candidates.missing_min_values(found, wanted)",
                (
                    "first = found[0].type.name.partition('.')[0]\n"
                    "found = [one for one in found if one.type.name.partition('.')[0] == first]\n"
                    "missing = candidates.missing_min_values(found, wanted)"
                ),
            ),
        ),
    ),
    15: (
        "Only the first key of minValues counts.",
        (
            Edit(
                "reconciler/kerf/scheduling:_covering",
                (
                    "for place in types:\n"
                    "    if len(seen) >= count:\n"
                    "        break\n"
                    "    values = template.values_at(key, int(place))\n"
                    "    if values - seen:\n"
                    "        seen |= values\n"
                    "        covering[int(place)] = None"
                ),
                (
                    "for place in types:\n"
                    "    if len(seen) >= count:\n"
                    "        break\n"
                    "    values = template.values_at(key, int(place))\n"
                    "    if values - seen:\n"
                    "        seen |= values\n"
                    "        covering[int(place)] = None\n"
                    "break"
                ),
            ),
            Edit(
                "reconciler/kerf/scheduling:listing",
                "set(covering) | set(rest[:most - len(covering)])",
                "set(covering)",
            ),
        ),
    ),
    16: (
        "The priority of an override is its price in millionths.",
        (Edit("reconciler/kerf/aws:_config", "one.price / MICRO", "one.price"),),
    ),
    17: (
        "The subnet with fewest addresses is named.",
        (
            Edit(
                "reconciler/kerf/ec2:subnets",
                "-subnet.free_addresses",
                "subnet.free_addresses",
            ),
        ),
    ),
    18: (
        "What a call will take counts for nothing in the same look.",
        (
            Edit(
                "reconciler/kerf/lifecycle:SubnetRoom.planned",
                "for free, pods in self._known.values():\n    addresses.take(free, call, pods)",
                "",
            ),
        ),
    ),
    19: (
        "A call that has failed keeps its addresses.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_calls",
                "room = Room(SubnetRoom(view, requests.values()), PoolLimits(view, requests.values(), used))",
                (
                    "every = (request_of(view, claim) for claim in view.snapshot.node_claims.values())\n"
                    "room = Room(SubnetRoom(view, filter(None, every)), PoolLimits(view, requests.values(), used))"
                ),
            ),
        ),
    ),
    20: (
        "The subnets of one class are remembered for the next.",
        (
            Edit(
                "reconciler/kerf/ec2:_subnets",
                (
                    "def _subnets(node_class: EC2NodeClass, full: Collection[str], free: Mapping[str, int]) -> "
                    "dict[str, str]:"
                ),
                (
                    "def _subnets(node_class: EC2NodeClass, full: Collection[str], free: Mapping[str, int], "
                    "roomiest={}) -> dict[str, str]:"
                ),
            ),
            Edit("reconciler/kerf/ec2:_subnets", "roomiest: dict[str, str] = {}", ""),
        ),
    ),
    21: (
        "Claims of a class that selects nothing stay.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_class_gate",
                "_not_ready(claim, ready.message or ready.reason)",
                "_wait(view, claim, 'NodeClassNotReady', ready.message or ready.reason)",
            ),
        ),
    ),
    22: (
        "Only interfaces that have no addresses are counted.",
        (Edit("reconciler/kerf/aws:_made", "one.interface_type in (EFA, EFA_ONLY)", "one.interface_type == EFA_ONLY"),),
    ),
    23: (
        "Interfaces are promised because the type could have them.",
        (Edit("reconciler/kerf/ec2:_texts", "value and (name != EFA_RESOURCE or instance.efa)", "value"),),
    ),
    24: (
        "Interfaces without addresses are not counted.",
        (Edit("reconciler/kerf/aws:_made", "one.interface_type in (EFA, EFA_ONLY)", "one.interface_type == EFA"),),
    ),
    25: (
        "Ordinary interfaces count, too.",
        (
            Edit(
                "reconciler/kerf/ec2:_efa",
                "sum((one.interface_type == EFA_ONLY for one in sizing.interfaces))",
                "len(sizing.interfaces)",
            ),
        ),
    ),
    26: (
        "What was launched when EC2 was asked does not count.",
        (Edit("reconciler/kerf/scheduling:_taken", "instance.launched >= asked - _LAG", "instance.launched > asked"),),
    ),
    27: (
        "What was taken once stays taken.",
        (
            Edit(
                "reconciler/kerf/scheduling:machines_left",
                ("def machines_left(snapshot: Snapshot, offered: Iterable[Mapping[str, int]]) -> dict[str, int]:"),
                ("def machines_left(snapshot: Snapshot, offered, taken=Counter()) -> dict[str, int]:"),
            ),
            Edit(
                "reconciler/kerf/scheduling:machines_left",
                "taken = Counter((id_ for claim in snapshot.node_claims.values() for id_ in _taken(snapshot, claim)))",
                "taken.update((id_ for claim in snapshot.node_claims.values() for id_ in _taken(snapshot, claim)))",
            ),
        ),
    ),
    28: (
        "Nobody is told why a claim is given up.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_no_capacity",
                "_ended(claim, Reason('InsufficientCapacity', message), warning(claim, NO_CAPACITY, message))",
                "_ended(claim, Reason('InsufficientCapacity', message))",
            ),
        ),
    ),
    29: (
        "No reservation is interruptible.",
        (
            Edit(
                "reconciler/kerf/ec2:claim_labels",
                "held.interruptible",
                "False",
            ),
        ),
    ),
    30: (
        "What has no class has drifted.",
        (
            Edit(
                "reconciler/kerf/disruption:_provider_reason",
                "return ''",
                "return ec2_drift.NODE_CLASS_DRIFT",
            ),
        ),
    ),
}
