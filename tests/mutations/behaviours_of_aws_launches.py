"""Behaviours 1 to 30 of the AWS catalogue, broken: from a claim to its instance. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_LAUNCH, _FLEET, _CALL = "reconciler/lifecycle/launch.py", "reconciler/ec2/fleet.py", "reconciler/aws/fleets.py"
_INSTANCES, _RESERVATIONS = "reconciler/ec2/instances.py", "reconciler/scheduling/reservations.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    1: (
        "A class of which nobody knows yet whether it is ready costs a claim its life.",
        (
            Edit(
                _LAUNCH,
                '_wait(view, claim, "NodeClassReadinessUnknown", f"node class {node_class.name} is not known',
                '_not_ready(claim, f"node class {node_class.name} is not known',
            ),
        ),
    ),
    2: (
        "The words of a class that is not ready are not told.",
        (
            Edit(
                _LAUNCH,
                "_not_ready(claim, ready.message or ready.reason)",
                "_not_ready(claim, ready.reason)",
            ),
        ),
    ),
    3: (
        "Only tags of clusters are ours to set.",
        (
            Edit(
                "reconciler/ec2/tags.py",
                "if key in _RESTRICTED or _CLUSTER_TAG.fullmatch(key))",
                "if _CLUSTER_TAG.fullmatch(key))",
            ),
        ),
    ),
    4: (
        "A readiness of any generation will do.",
        (
            Edit(
                _LAUNCH,
                "    current = ready is not None and ready.observed_generation == node_class.metadata.generation",
                "    current = ready is not None",
            ),
        ),
    ),
    5: (
        "That no type fits is taken for a class that is not ready.",
        (
            Edit(
                _LAUNCH,
                "        return joined(_no_capacity(claim, request.message) for claim in members)",
                "        return joined(_not_ready(claim, request.message) for claim in members)",
            ),
        ),
    ),
    6: (
        "The image of the instance is not told.",
        (Edit(_INSTANCES, "instance.image_id or claim.status.image_id", "claim.status.image_id"),),
    ),
    7: (
        "The zone ID is that of any subnet.",
        (Edit(_INSTANCES, "if subnet.zone == instance.zone and subnet.zone_id)", "if subnet.zone_id)"),),
    ),
    8: (
        "A claim does not say with which instance profile it was launched.",
        (
            Edit(
                "reconciler/lifecycle/assignment.py",
                "for key in (*stamps, labels.INSTANCE_PROFILE) if known.get(key)",
                "for key in stamps if known.get(key)",
            ),
        ),
    ),
    9: (
        "The CA bundle does not count for the hash.",
        (
            Edit(
                "reconciler/lifecycle/node_classes.py",
                "hashes.nodeclass_hash(node_class, view.snapshot.cluster.ca_bundle)",
                'hashes.nodeclass_hash(node_class, "")',
            ),
        ),
    ),
    10: (
        "The context of a class goes nowhere.",
        (Edit(_FLEET, 'context="" if relaxed else node_class.spec.context or ""', 'context=""'),),
    ),
    11: (
        "The context stays although minValues were relaxed.",
        (Edit(_FLEET, 'context="" if relaxed else node_class.spec.context', "context=node_class.spec.context"),),
    ),
    12: (
        "No context is an empty one.",
        (
            Edit(
                _CALL,
                '    if request.context:\n        call["Context"] = request.context',
                '    call["Context"] = request.context',
            ),
        ),
    ),
    13: (
        "A claim lists no more than one type.",
        (
            Edit(
                "reconciler/scheduling/claims.py",
                "    types = node.instance_types[: snapshot.settings.max_instance_types]",
                "    types = node.instance_types[:1]",
            ),
        ),
    ),
    14: (
        "Claims name types of the cheapest family only.",
        (
            Edit(
                _FLEET,
                "    found = candidates.cheapest(found, settings.max_instance_types)",
                "    found = candidates.cheapest(found, settings.max_instance_types)\n"
                '    first = found[0].type.name.partition(".")[0]\n'
                '    found = [one for one in found if one.type.name.partition(".")[0] == first]',
            ),
        ),
    ),
    15: (
        "Only the first key of minValues counts.",
        (
            Edit(
                "reconciler/scheduling/listing.py",
                "    return list(covering)",
                "        break\n    return list(covering)",
            ),
            Edit(
                "reconciler/scheduling/listing.py",
                "    chosen = set(covering) | set(rest[: most - len(covering)])",
                "    chosen = set(covering)",
            ),
        ),
    ),
    16: (
        "The priority of an override is its price in millionths.",
        (Edit(_CALL, '"Priority": one.price / MICRO,', '"Priority": one.price,'),),
    ),
    17: (
        "The subnet with fewest addresses is named.",
        (
            Edit(
                "reconciler/ec2/nodeclass.py",
                "key=lambda subnet: (-subnet.free_addresses, subnet.id)",
                "key=lambda subnet: (subnet.free_addresses, subnet.id)",
            ),
        ),
    ),
    18: (
        "What a call will take counts for nothing in the same look.",
        (
            Edit(
                "reconciler/lifecycle/subnet_room.py",
                "        for free, pods in self._known.values():\n            addresses.take(free, call, pods)\n",
                "",
            ),
        ),
    ),
    19: (
        "A call that has failed keeps its addresses.",
        (
            Edit(
                _LAUNCH,
                "    room = Room(SubnetRoom(view, requests.values()), ",
                "    every = (request_of(view, claim) for claim in view.snapshot.node_claims.values())\n"
                "    room = Room(SubnetRoom(view, filter(None, every)), ",
            ),
        ),
    ),
    20: (
        "The subnets of one class are remembered for the next.",
        (
            Edit(
                _FLEET,
                "full: Collection[str], free: Mapping[str, int]) -> dict[str, str]:",
                "full: Collection[str], free: Mapping[str, int], roomiest={}) -> dict[str, str]:",
            ),
            Edit(_FLEET, "    roomiest: dict[str, str] = {}\n", ""),
        ),
    ),
    21: (
        "Claims of a class that selects nothing stay.",
        (
            Edit(
                _LAUNCH,
                "        return _not_ready(claim, ready.message or ready.reason)",
                '        return _wait(view, claim, "NodeClassNotReady", ready.message or ready.reason)',
            ),
        ),
    ),
    22: (
        "Only interfaces that have no addresses are counted.",
        (Edit(_CALL, "one.interface_type in (EFA, EFA_ONLY)", "one.interface_type == EFA_ONLY"),),
    ),
    23: (
        "Interfaces are promised because the type could have them.",
        (Edit(_INSTANCES, "if value and (name != EFA_RESOURCE or instance.efa)}", "if value}"),),
    ),
    24: (
        "Interfaces without addresses are not counted.",
        (Edit(_CALL, "one.interface_type in (EFA, EFA_ONLY)", "one.interface_type == EFA"),),
    ),
    25: (
        "Ordinary interfaces count, too.",
        (
            Edit(
                "reconciler/ec2/capacity.py",
                "        return sum(one.interface_type == EFA_ONLY for one in sizing.interfaces)",
                "        return len(sizing.interfaces)",
            ),
        ),
    ),
    26: (
        "What was launched when EC2 was asked does not count.",
        (Edit(_RESERVATIONS, "instance.launched >= asked - _LAG", "instance.launched > asked"),),
    ),
    27: (
        "What was taken once stays taken.",
        (
            Edit(
                _RESERVATIONS,
                "offered: Iterable[Mapping[str, int]]) -> dict[str, int]:",
                "offered, taken=Counter()) -> dict[str, int]:",
            ),
            Edit(
                _RESERVATIONS,
                "        taken = Counter(id_ for claim",
                "        taken.update(id_ for claim",
            ),
        ),
    ),
    28: (
        "Nobody is told why a claim is given up.",
        (
            Edit(
                _LAUNCH,
                'Reason("InsufficientCapacity", message), warning(claim, "InsufficientCapacityError", message))',
                'Reason("InsufficientCapacity", message))',
            ),
        ),
    ),
    29: (
        "No reservation is interruptible.",
        (
            Edit(
                _INSTANCES,
                "labels.of_reservation(held.id, held.type, held.interruptible)",
                "labels.of_reservation(held.id, held.type, False)",
            ),
        ),
    ),
    30: (
        "What has no class has drifted.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                '.metadata.deleting:\n        return ""\n    instance',
                ".metadata.deleting:\n        return ec2_drift.NODE_CLASS_DRIFT\n    instance",
            ),
        ),
    ),
}
