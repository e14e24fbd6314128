"""Behaviours 89 to 120 of the AWS catalogue, broken: what a node will hold, and what is to be had. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    89: (
        "Less is kept of the third and fourth core.",
        (Edit("reconciler/kerf/ec2:_CPU_BANDS", "500", "250"),),
    ),
    90: (
        "Bottlerocket keeps memory for as many pods as it has addresses.",
        (
            Edit(
                "reconciler/kerf/ec2:BOTTLEROCKET",
                (
                    "Family('Bottlerocket', (_volume('/dev/xvda', '4Gi'), _volume('/dev/xvdb', '20Gi')), "
                    "eni_memory=False)"
                ),
                "Family('Bottlerocket', (_volume('/dev/xvda', '4Gi'), _volume('/dev/xvdb', '20Gi')))",
            ),
        ),
    ),
    91: (
        "What the user reserves for kubelet is passed over.",
        (
            Edit(
                "reconciler/kerf/ec2:overhead",
                (
                    "{'cpu': _reserved_cpu(info.vcpus), 'memory': (_BASE_PODS_MIB + _POD_MIB * _memory_pods(info, "
                    "sizing)) * MIB, 'ephemeral-storage': GIB, **kubelet.reserved(sizing.kubelet, 'kubeReserved')}"
                ),
                (
                    "{'cpu': _reserved_cpu(info.vcpus), 'memory': (_BASE_PODS_MIB + _POD_MIB * _memory_pods(info, "
                    "sizing)) * MIB, 'ephemeral-storage': GIB}"
                ),
            ),
        ),
    ),
    92: (
        "A threshold that is switched off is the usual one.",
        (
            Edit(
                "reconciler/kerf/ec2:overhead",
                "_EVICTION_MEMORY if memory is None else memory",
                "memory or _EVICTION_MEMORY",
            ),
        ),
    ),
    93: (
        "Soft thresholds count like hard ones.",
        (
            Edit(
                "api/kerf_api/kubelet:threshold",
                "texts(kubelet, 'evictionHard')",
                "{**texts(kubelet, 'evictionHard'), **texts(kubelet, 'evictionSoft')}",
            ),
        ),
    ),
    94: (
        "Kubelet's memory follows the number of pods on every family.",
        (
            Edit(
                "reconciler/kerf/ec2:_memory_pods",
                "_eni_pods(info, sizing, 0) if sizing.family.eni_memory else pods(info, sizing)",
                "pods(info, sizing)",
            ),
        ),
    ),
    95: (
        "Interfaces that are reserved are for pods, too.",
        (Edit("reconciler/kerf/ec2:pods", "sizing.reserved_enis", "0"),),
    ),
    96: (
        "More interfaces may be taken than there are.",
        (
            Edit(
                "reconciler/kerf/ec2:_eni_pods",
                "max(info.max_interfaces - reserved - taken, 0)",
                "info.max_interfaces - reserved - taken",
            ),
        ),
    ),
    97: (
        "podsPerCore may make the pods more.",
        (Edit("reconciler/kerf/ec2:pods", "min(per_core * info.vcpus, limit)", "per_core * info.vcpus"),),
    ),
    98: (
        "arm64 machines have all of their memory.",
        (Edit("reconciler/kerf/ec2:_ARM_MIB", "64", "0"),),
    ),
    99: (
        "An interface for computing alone takes the place of one for pods on any card.",
        (
            Edit(
                "reconciler/kerf/ec2:_eni_pods",
                "one.interface_type == EFA_ONLY and (not one.network_card_index)",
                "one.interface_type == EFA_ONLY",
            ),
        ),
    ),
    100: (
        "A type that is out of stock somewhere is named nowhere.",
        (
            Edit(
                "reconciler/kerf/ec2:available",
                "stocked_out.isdisjoint(o.keys)",
                "o.instance_type not in {key[0] for key in stocked_out}",
            ),
        ),
    ),
    101: (
        "What is out of stock is so for good.",
        (
            Edit(
                "reconciler/kerf/runtime:Fleet.out_of_stock",
                (
                    "for key in [key for key, until in self._out_of_stock.items() if until <= now]:\n"
                    "    del self._out_of_stock[key]"
                ),
                "",
            ),
        ),
    ),
    102: (
        "Where no spot is left nothing is bought.",
        (Edit("reconciler/kerf/ec2:_capacity_type", "labels.ON_DEMAND", "labels.SPOT"),),
    ),
    103: (
        "A type of which nothing is to be had is not listed.",
        (
            Edit(
                "reconciler/kerf/ec2:build",
                "return tuple((_noted(type_, group, _shifted(facts)) for type_ in types))",
                (
                    "sold = (type_ for type_ in types if any((o.available for o in type_.offerings)))\n"
                    "return tuple((_noted(type_, group, _shifted(facts)) for type_ in sold))"
                ),
            ),
        ),
    ),
    105: (
        "What a zone offers is there twice.",
        (Edit("reconciler/kerf/ec2:_offerings", "{*region.zones, *offered}", "[*region.zones, *offered]"),),
    ),
    106: (
        "Types are worked out with every answer, be it the same.",
        (Edit("reconciler/kerf/runtime:Catalogues.resolved", "before.facts == facts", "before.facts is facts"),),
    ),
    107: (
        "What is out of stock on demand is so on spot.",
        (
            Edit(
                "reconciler/kerf/ec2:closed",
                "[key if request.capacity_type == RESERVED else in_group(key, group)]",
                "[(*key[:2], kind) for kind in ('on-demand', 'spot')]",
            ),
        ),
    ),
    108: (
        "Hardware of one's own comes first.",
        (
            Edit(
                "reconciler/kerf/ec2:_tenancy",
                "(kind for kind in TENANCIES if wanted.allowed(TENANCY).has(kind))",
                "(kind for kind in reversed(TENANCIES) if wanted.allowed(TENANCY).has(kind))",
            ),
        ),
    ),
    109: (
        "Machines are launched into capacity blocks until half an hour before their end.",
        (Edit("reconciler/kerf/aws:LAST_CALL", "40", "30"),),
    ),
    110: (
        "Machines are launched into a zone shifted away.",
        (
            Edit(
                "reconciler/kerf/ec2:_shut",
                "frozenset((subnet.zone for subnet in facts.subnets)) - roomy | _shifted(facts)",
                "frozenset((subnet.zone for subnet in facts.subnets)) - roomy",
            ),
        ),
    ),
    111: (
        "a1 machines run nothing.",
        (
            Edit(
                "reconciler/kerf/ec2:_compatible",
                "sizing.family is families.AL2023 and info.name.startswith('a1.')",
                "info.name.startswith('a1.')",
            ),
        ),
    ),
    112: (
        "A network card may have one interface more than it has.",
        (
            Edit(
                "reconciler/kerf/ec2:_wired",
                "one.device_index < info.cards[one.network_card_index]",
                "one.device_index <= info.cards[one.network_card_index]",
            ),
        ),
    ),
    113: (
        "What has no price cannot be given one.",
        (Edit("reconciler/kerf/ec2:_offerings", "possible and price is None", "False"),),
    ),
    114: (
        "Every machine of the newer kind can have enclaves.",
        (Edit("reconciler/kerf/ec2:_values", "info.nitro_enclaves", "info.hypervisor == 'nitro'"),),
    ),
    115: (
        "A configuration that cannot be decoded has types all the same.",
        (Edit("reconciler/kerf/ec2:build", "formulas.decodable(node_class.spec.kubelet)", ""),),
    ),
    116: (
        "There may be fewer pods than none.",
        (
            Edit(
                "reconciler/kerf/ec2:_value",
                "found < 0 or (len(steps) == 1 and found > _MOST_PODS)",
                "len(steps) == 1 and found > _MOST_PODS",
            ),
        ),
    ),
    117: (
        "What is reserved follows the pods that there would be without maxPods.",
        (
            Edit(
                "reconciler/kerf/ec2:resolved",
                "known['max_pods'] = capacity.pods(info, sizing)",
                "",
            ),
        ),
    ),
    118: (
        "Virtual machines within machines are asked for as soon as there are processor options.",
        (
            Edit(
                "reconciler/kerf/ec2:_compatible",
                "spec.cpu_options is not None and spec.cpu_options.nested_virtualization == 'enabled'",
                "spec.cpu_options is not None",
            ),
        ),
    ),
    119: (
        "The most memory that a node has shown counts.",
        (Edit("reconciler/kerf/runtime:LearnedMemory.seen", "memory <= known[0]", "memory >= known[0]"),),
    ),
    120: (
        "A region may have no types.",
        (
            Edit(
                "reconciler/kerf/aws:_some",
                "not raw",
                "raw is None",
            ),
        ),
    ),
}
