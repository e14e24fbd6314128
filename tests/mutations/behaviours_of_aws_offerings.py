"""Behaviours 89 to 120 of the AWS catalogue, broken: what a node will hold, and what is to be had. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_CAPACITY, _CATALOGUE, _FLEET = "reconciler/ec2/capacity.py", "reconciler/ec2/catalogue.py", "reconciler/ec2/fleet.py"
_KNOWN, _KEPT = "reconciler/runtime/fleet.py", "reconciler/runtime/catalogues.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    89: (
        "Less is kept of the third and fourth core.",
        (Edit(_CAPACITY, "(1000, 1), (500, 2), (250, None))", "(1000, 1), (250, 2), (250, None))"),),
    ),
    90: (
        "Bottlerocket keeps memory for as many pods as it has addresses.",
        (
            Edit(
                "reconciler/ec2/families.py",
                '_volume("/dev/xvdb", "20Gi")),\n    eni_memory=False,\n',
                '_volume("/dev/xvdb", "20Gi")),\n',
            ),
        ),
    ),
    91: (
        "What the user reserves for kubelet is passed over.",
        (Edit(_CAPACITY, '        **kubelet.reserved(sizing.kubelet, "kubeReserved"),\n', ""),),
    ),
    92: (
        "A threshold that is switched off is the usual one.",
        (Edit(_CAPACITY, "_EVICTION_MEMORY if memory is None else memory", "memory or _EVICTION_MEMORY"),),
    ),
    93: (
        "Soft thresholds count like hard ones.",
        (
            Edit(
                "api/kubelet/reading.py",
                '    text = texts(kubelet, "evictionHard").get(signal)',
                '    text = {**texts(kubelet, "evictionHard"), **texts(kubelet, "evictionSoft")}.get(signal)',
            ),
        ),
    ),
    94: (
        "Kubelet's memory follows the number of pods on every family.",
        (
            Edit(
                _CAPACITY,
                "    return _eni_pods(info, sizing, 0) if sizing.family.eni_memory else pods(info, sizing)",
                "    return pods(info, sizing)",
            ),
        ),
    ),
    95: (
        "Interfaces that are reserved are for pods, too.",
        (Edit(_CAPACITY, "_eni_pods(info, sizing, sizing.reserved_enis)", "_eni_pods(info, sizing, 0)"),),
    ),
    96: (
        "More interfaces may be taken than there are.",
        (Edit(_CAPACITY, "max(info.max_interfaces - reserved - taken, 0)", "info.max_interfaces - reserved - taken"),),
    ),
    97: (
        "podsPerCore may make the pods more.",
        (Edit(_CAPACITY, "return min(per_core * info.vcpus, limit) if", "return per_core * info.vcpus if"),),
    ),
    98: (
        "arm64 machines have all of their memory.",
        (Edit(_CAPACITY, "_ARM_MIB = 64", "_ARM_MIB = 0"),),
    ),
    99: (
        "An interface for computing alone takes the place of one for pods on any card.",
        (
            Edit(
                _CAPACITY,
                "one.interface_type == EFA_ONLY and not one.network_card_index for",
                "one.interface_type == EFA_ONLY for",
            ),
        ),
    ),
    100: (
        "A type that is out of stock somewhere is named nowhere.",
        (
            Edit(
                "reconciler/ec2/candidates.py",
                " and stocked_out.isdisjoint(o.keys) and",
                " and o.instance_type not in {key[0] for key in stocked_out} and",
            ),
        ),
    ),
    101: (
        "What is out of stock is so for good.",
        (
            Edit(
                _KNOWN,
                "        for key in [key for key, until in self._out_of_stock.items() if until <= now]:\n"
                "            del self._out_of_stock[key]\n",
                "",
            ),
        ),
    ),
    102: (
        "Where no spot is left nothing is bought.",
        (Edit(_FLEET, "    return next(first, labels.ON_DEMAND)", "    return next(first, labels.SPOT)"),),
    ),
    103: (
        "A type of which nothing is to be had is not listed.",
        (
            Edit(
                _CATALOGUE,
                "    return tuple(_noted(type_, group, _shifted(facts)) for type_ in types)",
                "    sold = (type_ for type_ in types if any(o.available for o in type_.offerings))\n"
                "    return tuple(_noted(type_, group, _shifted(facts)) for type_ in sold)",
            ),
        ),
    ),
    105: (
        "What a zone offers is there twice.",
        (Edit(_CATALOGUE, "sorted({*region.zones, *offered})", "sorted([*region.zones, *offered])"),),
    ),
    106: (
        "Types are worked out with every answer, be it the same.",
        (Edit(_KEPT, "before.facts == facts:", "before.facts is facts:"),),
    ),
    107: (
        "What is out of stock on demand is so on spot.",
        (
            Edit(
                "reconciler/ec2/errors.py",
                "    return [key if request.capacity_type == RESERVED else in_group(key, group)]",
                '    return [(*key[:2], kind) for kind in ("on-demand", "spot")]',
            ),
        ),
    ),
    108: (
        "Hardware of one's own comes first.",
        (Edit(_FLEET, "(kind for kind in TENANCIES if", "(kind for kind in reversed(TENANCIES) if"),),
    ),
    109: (
        "Machines are launched into capacity blocks until half an hour before their end.",
        (Edit("reconciler/aws/reservations.py", "timedelta(minutes=40)", "timedelta(minutes=30)"),),
    ),
    110: (
        "Machines are launched into a zone shifted away.",
        (
            Edit(
                _CATALOGUE,
                "    return (frozenset(subnet.zone for subnet in facts.subnets) - roomy) | _shifted(facts)",
                "    return frozenset(subnet.zone for subnet in facts.subnets) - roomy",
            ),
        ),
    ),
    111: (
        "a1 machines run nothing.",
        (
            Edit(
                _CATALOGUE,
                'if sizing.family is families.AL2023 and info.name.startswith("a1."):',
                'if info.name.startswith("a1."):',
            ),
        ),
    ),
    112: (
        "A network card may have one interface more than it has.",
        (Edit(_CATALOGUE, "one.device_index < info.cards[", "one.device_index <= info.cards["),),
    ),
    113: (
        "What has no price cannot be given one.",
        (Edit(_CATALOGUE, "unpriced=possible and price is None", "unpriced=False"),),
    ),
    114: (
        "Every machine of the newer kind can have enclaves.",
        (Edit("reconciler/ec2/type_labels.py", "_flag(info.nitro_enclaves)", '_flag(info.hypervisor == "nitro")'),),
    ),
    115: (
        "A configuration that cannot be decoded has types all the same.",
        (Edit(_CATALOGUE, "    formulas.decodable(node_class.spec.kubelet)\n", ""),),
    ),
    116: (
        "There may be fewer pods than none.",
        (
            Edit(
                "reconciler/ec2/formulas.py",
                "    if found < 0 or (len(steps) == 1 and found > _MOST_PODS):",
                "    if len(steps) == 1 and found > _MOST_PODS:",
            ),
        ),
    ),
    117: (
        "What is reserved follows the pods that there would be without maxPods.",
        (
            Edit(
                "reconciler/ec2/formulas.py",
                '            known["max_pods"] = capacity.pods(info, sizing)\n',
                "",
            ),
        ),
    ),
    118: (
        "Virtual machines within machines are asked for as soon as there are processor options.",
        (
            Edit(
                _CATALOGUE,
                '    nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"',
                "    nested = spec.cpu_options is not None",
            ),
        ),
    ),
    119: (
        "The most memory that a node has shown counts.",
        (Edit("reconciler/runtime/learned.py", "memory <= known[0])", "memory >= known[0])"),),
    ),
    120: (
        "A region may have no types.",
        (
            Edit(
                "reconciler/aws/types.py",
                "    if not raw:\n        raise Unavailable",
                "    if raw is None:\n        raise Unavailable",
            ),
        ),
    ),
}
