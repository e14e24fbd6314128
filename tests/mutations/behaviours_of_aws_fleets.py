"""Behaviours 31 to 63 of the AWS catalogue, broken: what EC2 answers, what is out of stock, ends. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    31: (
        "minValues are looked at before the types are made fewer.",
        (
            Edit(
                "reconciler/kerf/ec2:_choose",
                (
                    "found = candidates.cheapest(found, settings.max_instance_types)\n"
                    "missing = candidates.missing_min_values(found, wanted)"
                ),
                (
                    "missing = candidates.missing_min_values(found, wanted)\n"
                    "found = candidates.cheapest(found, settings.max_instance_types)"
                ),
            ),
        ),
    ),
    32: (
        "BestEffort is as strict as Strict.",
        (
            Edit(
                "reconciler/kerf/ec2:_choose",
                "missing is not None and settings.min_values_policy == 'Strict'",
                "missing is not None",
            ),
        ),
    ),
    33: (
        "A type that is out of stock in one zone is so in all.",
        (
            Edit(
                "reconciler/kerf/ec2:closed",
                "return [key if request.capacity_type == RESERVED else in_group(key, group)]",
                (
                    "named = (o for o in request.overrides if o.instance_type == error.instance_type)\n"
                    "return [request.sold(o.instance_type, o.zone) for o in named]"
                ),
            ),
        ),
    ),
    34: (
        "Spot is asked for although none is left.",
        (Edit("reconciler/kerf/ec2:_capacity_type", "kind in there and allowed.has(kind)", "allowed.has(kind)"),),
    ),
    35: (
        "Without leave for the role of spot what is on demand is closed.",
        (
            Edit(
                "reconciler/kerf/runtime:_",
                "labels.SPOT",
                "labels.ON_DEMAND",
            ),
        ),
    ),
    36: (
        "A quota of fleets is no lack of capacity.",
        (
            Edit(
                "reconciler/kerf/ec2:CAPACITY_CODES",
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'MaxFleetCountExceeded', "
                    "'ReservationCapacityExceeded'}"
                ),
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'ReservationCapacityExceeded'}"
                ),
            ),
        ),
    ),
    37: (
        "A reservation that is full is no lack of capacity.",
        (
            Edit(
                "reconciler/kerf/ec2:CAPACITY_CODES",
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'MaxFleetCountExceeded', "
                    "'ReservationCapacityExceeded'}"
                ),
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'MaxFleetCountExceeded'}"
                ),
            ),
        ),
    ),
    38: (
        "Too many requests are taken for a lack of capacity.",
        (
            Edit(
                "reconciler/kerf/ec2:CAPACITY_CODES",
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'MaxFleetCountExceeded', "
                    "'ReservationCapacityExceeded'}"
                ),
                (
                    "{'InsufficientInstanceCapacity', 'MaxSpotInstanceCountExceeded', 'VcpuLimitExceeded', "
                    "'UnfulfillableCapacity', 'Unsupported', SUBNET_CODE, 'MaxFleetCountExceeded', "
                    "'ReservationCapacityExceeded', 'RequestLimitExceeded'}"
                ),
            ),
        ),
    ),
    39: (
        "Errors are told apart by their words alone.",
        (Edit("reconciler/kerf/telemetry:Markets.done", "f'{failure.code}: {failure.message}'", "failure.message"),),
    ),
    40: (
        "A zone whose ID is not known has its name for one.",
        (
            Edit(
                "reconciler/kerf/telemetry:Markets.done",
                "zone_ids.get(failure.zone, '')",
                "zone_ids.get(failure.zone, failure.zone)",
            ),
        ),
    ),
    41: (
        "What happens to be in a reservation is reserved.",
        (
            Edit(
                "reconciler/kerf/aws:capacity_type",
                "row.get('CapacityReservationId') and preference == ONLY_RESERVED",
                "row.get('CapacityReservationId')",
            ),
        ),
    ),
    42: (
        "A subnet without addresses closes the offering for all classes.",
        (
            Edit(
                "reconciler/kerf/runtime:Fleet.launched",
                "error.capacity and error.instance_type and error.zone and (not full_subnet(error))",
                "error.capacity and error.instance_type and error.zone",
            ),
        ),
    ),
    43: (
        "One subnet without addresses closes its zone.",
        (
            Edit(
                "reconciler/kerf/ec2:_shut",
                "return frozenset((subnet.zone for subnet in facts.subnets)) - roomy | _shifted(facts)",
                (
                    "full = (subnet.zone for subnet in facts.subnets if subnet.id in facts.full_subnets)\n"
                    "return frozenset(full) | _shifted(facts)"
                ),
            ),
        ),
    ),
    44: (
        "A zone stays open although no subnet has an address left.",
        (
            Edit(
                "reconciler/kerf/ec2:_shut",
                "frozenset((subnet.zone for subnet in facts.subnets)) - roomy | _shifted(facts)",
                "_shifted(facts)",
            ),
        ),
    ),
    45: (
        "A subnet without addresses is named again.",
        (
            Edit(
                "reconciler/kerf/ec2:_subnets",
                "subnet.id not in full and (best is None or free.get(subnet.id, 0) > free.get(best, 0))",
                "best is None or free.get(subnet.id, 0) > free.get(best, 0)",
            ),
        ),
    ),
    46: (
        "Errors beside an instance are forgotten.",
        (
            Edit(
                "reconciler/kerf/runtime:Fleet.launched",
                (
                    "for error in result.errors:\n"
                    "    if error.capacity and error.instance_type and error.zone and (not full_subnet(error)):\n"
                    "        self.close(closed(request, error), at, of_quota=of_vcpus(error))"
                ),
                (
                    "for error in () if result.instances else result.errors:\n"
                    "    if error.capacity and error.instance_type and error.zone and (not full_subnet(error)):\n"
                    "        self.close(closed(request, error), at, of_quota=of_vcpus(error))"
                ),
            ),
        ),
    ),
    47: (
        "One stock-out among refusals is enough to give up.",
        (
            Edit(
                "reconciler/kerf/ec2:is_capacity",
                "bool(errors) and all((e.capacity or lacks_capacity(e.code, e.message) for e in errors))",
                "any((e.capacity or lacks_capacity(e.code, e.message) for e in errors))",
            ),
        ),
    ),
    48: (
        "Too few instances without a reason are a lack of capacity.",
        (
            Edit(
                "reconciler/kerf/aws:result",
                "FleetError(code=TOO_FEW, message=text)",
                "FleetError(code=TOO_FEW, message=text, capacity=True)",
            ),
        ),
    ),
    49: (
        "On demand EC2 goes by its own prices.",
        (
            Edit(
                "reconciler/kerf/aws:parameters",
                "'prioritized' if request.prioritized else 'lowest-price'",
                "'lowest-price'",
            ),
        ),
    ),
    50: (
        "On spot EC2 goes by its own prices.",
        (
            Edit(
                "reconciler/kerf/aws:parameters",
                "'capacity-optimized-prioritized' if request.prioritized else 'price-capacity-optimized'",
                "'price-capacity-optimized'",
            ),
        ),
    ),
    51: (
        "A template that has vanished is believed to be there.",
        (Edit("reconciler/kerf/aws:create_fleet", "templates.forget(request.templates)", ""),),
    ),
    52: (
        "A template that vanishes is made again and again.",
        (
            Edit(
                "reconciler/kerf/aws:create_fleet",
                "templates.ensure(request.templates)\nreturn _call(clients, request, may_act)",
                "return create_fleet(clients, templates, request, may_act)",
            ),
        ),
    ),
    53: (
        "Of a spread group that is full only the type that was named is closed.",
        (
            Edit(
                "reconciler/kerf/ec2:closed",
                "sorted({o.instance_type for o in request.overrides if o.zone == error.zone})",
                "[error.instance_type]",
            ),
        ),
    ),
    54: (
        "What is out of stock in a group is so everywhere.",
        (
            Edit(
                "reconciler/kerf/ec2:closed",
                "key if request.capacity_type == RESERVED else in_group(key, group)",
                "key",
            ),
        ),
    ),
    55: (
        "Instances of no NodePool are listed.",
        (
            Edit(
                "reconciler/kerf/aws:read_instances",
                (
                    "[{'Name': 'tag-key', 'Values': [labels.TAG_NODEPOOL]}, {'Name': 'tag-key', 'Values': "
                    "[labels.TAG_NODECLASS]}, {'Name': f'tag:{labels.TAG_EKS_CLUSTER}', 'Values': [cluster_name]}, "
                    "{'Name': 'instance-state-name', 'Values': list(STATES)}]"
                ),
                (
                    "[{'Name': 'tag-key', 'Values': [labels.TAG_NODECLASS]}, {'Name': "
                    "f'tag:{labels.TAG_EKS_CLUSTER}', 'Values': [cluster_name]}, {'Name': 'instance-state-name', "
                    "'Values': list(STATES)}]"
                ),
            ),
        ),
    ),
    56: (
        "What is not shown is gone, wherever it was.",
        (
            Edit(
                "reconciler/kerf/runtime:Fleet.described",
                "kept(one)",
                "False",
            ),
        ),
    ),
    57: (
        "Instances are ended in a zone shifted away.",
        (Edit("reconciler/kerf/lifecycle:terminate", "claim_held(view, claim, instance)", "None"),),
    ),
    58: (
        "Nobody waits for what ARC says first.",
        (
            Edit(
                "reconciler/kerf/lifecycle:known",
                "not view.snapshot.settings.zonal_shift or Source.ZONAL_SHIFTS in view.snapshot.fresh_at",
                "True",
            ),
        ),
    ),
    59: (
        "Instances are tagged in a zone shifted away.",
        (
            Edit(
                "reconciler/kerf/lifecycle:tag",
                "not missing or held is not None",
                "not missing",
            ),
        ),
    ),
    60: (
        "An end that failed is counted nowhere in particular.",
        (
            Edit(
                "reconciler/kerf/telemetry:Markets.done",
                "('', '') if known is None else (known.zone, known.zone_id)",
                "('', '')",
            ),
        ),
    ),
    61: (
        "A zone is known by its ID only.",
        (
            Edit(
                "reconciler/kerf/runtime:lies_there",
                "instance.zone in shifted or instance.zone_id in shifted",
                "instance.zone_id in shifted",
            ),
        ),
    ),
    62: (
        "An instance that ends already is asked to.",
        (
            Edit(
                "reconciler/kerf/lifecycle:terminate",
                "instance is not None and (not instance.live)",
                "instance is not None and begun and (not instance.live)",
            ),
        ),
    ),
    63: (
        "The end of an instance that nobody knows has come off.",
        (
            Edit(
                "reconciler/kerf/aws:Terminations._alone",
                "error",
                "None if type(error).__name__ == 'AlreadyGone' else error",
            ),
        ),
    ),
}
