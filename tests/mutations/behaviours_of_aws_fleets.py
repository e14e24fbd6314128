"""Behaviours 31 to 63 of the AWS catalogue, broken: what EC2 answers, what is out of stock, ends. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_FLEET, _CALL, _ERRORS = "reconciler/ec2/fleet.py", "reconciler/aws/fleets.py", "reconciler/ec2/errors.py"
_KNOWN, _CATALOGUE = "reconciler/runtime/fleet.py", "reconciler/ec2/catalogue.py"
_MARKETS, _END = "reconciler/telemetry/markets.py", "reconciler/lifecycle/instance_end.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    31: (
        "minValues are looked at before the types are made fewer.",
        (
            Edit(
                _FLEET,
                "    found = candidates.cheapest(found, settings.max_instance_types)\n"
                "    missing = candidates.missing_min_values(found, wanted)\n",
                "    missing = candidates.missing_min_values(found, wanted)\n"
                "    found = candidates.cheapest(found, settings.max_instance_types)\n",
            ),
        ),
    ),
    32: (
        "BestEffort is as strict as Strict.",
        (
            Edit(
                _FLEET,
                '    if missing is not None and settings.min_values_policy == "Strict":',
                "    if missing is not None:",
            ),
        ),
    ),
    33: (
        "A type that is out of stock in one zone is so in all.",
        (
            Edit(
                _ERRORS,
                "    return [key if request.capacity_type == RESERVED else in_group(key, group)]",
                "    named = (o for o in request.overrides if o.instance_type == error.instance_type)\n"
                "    return [request.sold(o.instance_type, o.zone) for o in named]",
            ),
        ),
    ),
    34: (
        "Spot is asked for although none is left.",
        (Edit(_FLEET, "if kind in there and allowed.has(kind))", "if allowed.has(kind))"),),
    ),
    35: (
        "Without leave for the role of spot what is on demand is closed.",
        (
            Edit(
                "reconciler/runtime/results.py",
                "state.catalogues.offered(labels.SPOT)",
                "state.catalogues.offered(labels.ON_DEMAND)",
            ),
        ),
    ),
    36: (
        "A quota of fleets is no lack of capacity.",
        (Edit(_ERRORS, '        "MaxFleetCountExceeded",\n', ""),),
    ),
    37: (
        "A reservation that is full is no lack of capacity.",
        (Edit(_ERRORS, '        "ReservationCapacityExceeded",\n', ""),),
    ),
    38: (
        "Too many requests are taken for a lack of capacity.",
        (
            Edit(
                _ERRORS,
                '        "ReservationCapacityExceeded",\n',
                '        "ReservationCapacityExceeded",\n        "RequestLimitExceeded",\n',
            ),
        ),
    ),
    39: (
        "Errors are told apart by their words alone.",
        (Edit(_MARKETS, 'errors.classify(f"{failure.code}: {failure.message}")', "errors.classify(failure.message)"),),
    ),
    40: (
        "A zone whose ID is not known has its name for one.",
        (Edit(_MARKETS, 'zone_ids.get(failure.zone, "")', "zone_ids.get(failure.zone, failure.zone)"),),
    ),
    41: (
        "What happens to be in a reservation is reserved.",
        (
            Edit(
                "reconciler/aws/instances.py",
                '    if row.get("CapacityReservationId") and preference == ONLY_RESERVED:',
                '    if row.get("CapacityReservationId"):',
            ),
        ),
    ),
    42: (
        "A subnet without addresses closes the offering for all classes.",
        (
            Edit(
                _KNOWN,
                "if error.capacity and error.instance_type and error.zone and not full_subnet(error):",
                "if error.capacity and error.instance_type and error.zone:",
            ),
        ),
    ),
    43: (
        "One subnet without addresses closes its zone.",
        (
            Edit(
                _CATALOGUE,
                "    return (frozenset(subnet.zone for subnet in facts.subnets) - roomy) | _shifted(facts)",
                "    full = (subnet.zone for subnet in facts.subnets if subnet.id in facts.full_subnets)\n"
                "    return frozenset(full) | _shifted(facts)",
            ),
        ),
    ),
    44: (
        "A zone stays open although no subnet has an address left.",
        (
            Edit(
                _CATALOGUE,
                "    return (frozenset(subnet.zone for subnet in facts.subnets) - roomy) | _shifted(facts)",
                "    return _shifted(facts)",
            ),
        ),
    ),
    45: (
        "A subnet without addresses is named again.",
        (Edit(_FLEET, "if subnet.id not in full and (best is None or", "if (best is None or"),),
    ),
    46: (
        "Errors beside an instance are forgotten.",
        (
            Edit(
                _KNOWN,
                "        for error in result.errors:",
                "        for error in () if result.instances else result.errors:",
            ),
        ),
    ),
    47: (
        "One stock-out among refusals is enough to give up.",
        (Edit(_ERRORS, "    return bool(errors) and all(", "    return any("),),
    ),
    48: (
        "Too few instances without a reason are a lack of capacity.",
        (
            Edit(
                _CALL,
                "        errors = (FleetError(code=TOO_FEW, message=text),)",
                "        errors = (FleetError(code=TOO_FEW, message=text, capacity=True),)",
            ),
        ),
    ),
    49: (
        "On demand EC2 goes by its own prices.",
        (Edit(_CALL, '"prioritized" if request.prioritized else "lowest-price"', '"lowest-price"'),),
    ),
    50: (
        "On spot EC2 goes by its own prices.",
        (
            Edit(
                _CALL,
                '"capacity-optimized-prioritized" if request.prioritized else "price-capacity-optimized"',
                '"price-capacity-optimized"',
            ),
        ),
    ),
    51: (
        "A template that has vanished is believed to be there.",
        (Edit(_CALL, "        templates.forget(request.templates)\n", ""),),
    ),
    52: (
        "A template that vanishes is made again and again.",
        (
            Edit(
                _CALL,
                "        templates.ensure(request.templates)\n        return _call(clients, request, may_act)",
                "        return create_fleet(clients, templates, request, may_act)",
            ),
        ),
    ),
    53: (
        "Of a spread group that is full only the type that was named is closed.",
        (
            Edit(
                _ERRORS,
                "        kinds = sorted({o.instance_type for o in request.overrides if o.zone == error.zone})",
                "        kinds = [error.instance_type]",
            ),
        ),
    ),
    54: (
        "What is out of stock in a group is so everywhere.",
        (
            Edit(
                _ERRORS,
                "    return [key if request.capacity_type == RESERVED else in_group(key, group)]",
                "    return [key]",
            ),
        ),
    ),
    55: (
        "Instances of no NodePool are listed.",
        (
            Edit(
                "reconciler/aws/instances.py",
                '        {"Name": "tag-key", "Values": [labels.TAG_NODEPOOL]},\n',
                "",
            ),
        ),
    ),
    56: (
        "What is not shown is gone, wherever it was.",
        (
            Edit(
                _KNOWN,
                "for id_, one in before.items() if self._believed(one) and kept(one)}",
                "for id_, one in before.items() if self._believed(one) and False}",
            ),
        ),
    ),
    57: (
        "Instances are ended in a zone shifted away.",
        (Edit(_END, "    held = claim_held(view, claim, instance)\n", "    held = None\n"),),
    ),
    58: (
        "Nobody waits for what ARC says first.",
        (
            Edit(
                "reconciler/lifecycle/shifted_zones.py",
                "    return not view.snapshot.settings.zonal_shift or Source.ZONAL_SHIFTS in view.snapshot.fresh_at",
                "    return True",
            ),
        ),
    ),
    59: (
        "Instances are tagged in a zone shifted away.",
        (
            Edit(
                "reconciler/lifecycle/tagging.py",
                "    if not missing or held is not None:\n        return progress if held",
                "    if not missing:\n        return progress if held",
            ),
        ),
    ),
    60: (
        "An end that failed is counted nowhere in particular.",
        (Edit(_MARKETS, '("", "") if known is None else (known.zone, known.zone_id)', '("", "")'),),
    ),
    61: (
        "A zone is known by its ID only.",
        (
            Edit(
                "reconciler/runtime/shifts.py",
                "    return instance.zone in shifted or instance.zone_id in shifted",
                "    return instance.zone_id in shifted",
            ),
        ),
    ),
    62: (
        "An instance that ends already is asked to.",
        (
            Edit(
                _END,
                "    if instance is not None and not instance.live:  # it ends already",
                "    if instance is not None and begun and not instance.live:  # it ends already",
            ),
        ),
    ),
    63: (
        "The end of an instance that nobody knows has come off.",
        (
            Edit(
                "reconciler/aws/terminations.py",
                "        except PortError as error:\n            return error\n        return None",
                "        except PortError as error:\n            return None if type(error) is AlreadyGone else error\n"
                "        return None",
            ),
            Edit(
                "reconciler/aws/terminations.py",
                "from reconciler.ports import PortError, Throttled, Unavailable",
                "from reconciler.ports import AlreadyGone, PortError, Throttled, Unavailable",
            ),
        ),
    ),
}
