"""Behaviours 64 to 88 and 104 of the AWS catalogue, broken: which types and offerings may be named. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    64: (
        "What is out of stock is named again.",
        (
            Edit(
                "reconciler/kerf/ec2:available",
                "o.available and stocked_out.isdisjoint(o.keys) and suits(o)",
                "o.available and suits(o)",
            ),
        ),
    ),
    65: (
        "Only what the type itself has counts.",
        (
            Edit(
                "reconciler/kerf/ec2:available",
                "type_.holding(requests).offerings",
                "type_.offerings if requests.fits(type_.allocatable) else ()",
            ),
        ),
    ),
    66: (
        "Of several capacities of a type's offerings only the first counts.",
        (
            Edit(
                "reconciler/kerf/model:InstanceType.holding",
                "self.groups()",
                "self.groups()[:2]",
            ),
        ),
    ),
    67: (
        "What is reserved is passed over.",
        (Edit("reconciler/kerf/ec2:_capacity_type", "(labels.RESERVED, labels.SPOT)", "(labels.SPOT,)"),),
    ),
    68: (
        "At one price capacity blocks come first.",
        (
            Edit(
                "reconciler/kerf/ec2:_KINDS",
                "(('default', False), _BLOCK, ('default', True))",
                "(_BLOCK, ('default', False), ('default', True))",
            ),
        ),
    ),
    69: (
        "A reservation counts although it is not to be had.",
        (Edit("reconciler/kerf/ec2:available", "o.available", "o.available or o.reservation"),),
    ),
    70: (
        "Of capacity blocks the dearest is taken.",
        (
            Edit(
                "reconciler/kerf/ec2:reserved_first",
                "min(((c, o) for c in found for o in c.offerings), key=lambda pair: (_order(pair[1]), pair[1].key))",
                "max(((c, o) for c in found for o in c.offerings), key=lambda pair: (_order(pair[1]), pair[1].key))",
            ),
        ),
    ),
    71: (
        "Reservations are used by who does not allow them.",
        (Edit("reconciler/kerf/ec2:available", "suits(o)", "o.reservation or suits(o)"),),
    ),
    72: (
        "Of a zone's reservations that with fewest machines left is taken.",
        (Edit("reconciler/kerf/ec2:_roomiest", "-offering.reservation.left", "offering.reservation.left"),),
    ),
    73: (
        "A reservation without a machine left is taken for one.",
        (
            Edit(
                "reconciler/kerf/ec2:_reserved",
                "possible and one.left > 0 and (not one.expiring)",
                "possible and (not one.expiring)",
            ),
        ),
    ),
    74: (
        "Bare metal is as good as any.",
        (
            Edit(
                "reconciler/kerf/ec2:exotic",
                "'metal' in type_.name.partition('.')[2] or any((type_.capacity[name] for name in ACCELERATORS))",
                "any((type_.capacity[name] for name in ACCELERATORS))",
            ),
        ),
    ),
    75: (
        "Spot may cost what the dearest on demand does.",
        (Edit("reconciler/kerf/ec2:without_dear_spot", "min", "max"),),
    ),
    76: (
        "Dear spot is left out although minValues ask for it.",
        (
            Edit(
                "reconciler/kerf/ec2:_choose",
                (
                    "if not candidates.has_min_values(wanted):\n"
                    "    found = candidates.without_exotic(found)\n"
                    "    found = candidates.without_dear_spot(found)"
                ),
                (
                    "if not candidates.has_min_values(wanted):\n"
                    "    found = candidates.without_exotic(found)\n"
                    "found = candidates.without_dear_spot(found)"
                ),
            ),
        ),
    ),
    77: (
        "The sixty first types by name are named.",
        (Edit("reconciler/kerf/ec2:cheapest", "(c.price, c.type.name)", "c.type.name"),),
    ),
    78: (
        "Bare metal is not had even by name.",
        (Edit("reconciler/kerf/ec2:without_exotic", "plain or candidates", "plain"),),
    ),
    79: (
        "t3 machines have branch interfaces.",
        (
            Edit(
                "reconciler/kerf/ec2:_UNSUPPORTED_FAMILIES",
                "{'t3', 't3a', 't4g', 'hpc6a', 'hpc6id', 'hpc7a', 'hpc8a', 'trn2', 'trn2u'}",
                "{'t3a', 't4g', 'hpc6a', 'hpc6id', 'hpc7a', 'hpc8a', 'trn2', 'trn2u'}",
            ),
        ),
    ),
    80: (
        "Flex types are looked for by their size.",
        (Edit("reconciler/kerf/ec2:_values", "'-flex' in family", "'-flex' in size"),),
    ),
    81: (
        "Linux nodes have the addresses of Windows nodes.",
        (Edit("reconciler/kerf/ec2:capacity", "sizing.family.windows", "info.ipv4_per_interface"),),
    ),
    82: (
        "A maker of GPUs is known by small letters only.",
        (Edit("reconciler/kerf/ec2:_gpus", "gpu.manufacturer.lower()", "gpu.manufacturer"),),
    ),
    83: (
        "Disks are counted in another unit.",
        (
            Edit(
                "reconciler/kerf/ec2:_ephemeral_storage",
                "GB",
                "GIB",
            ),
        ),
    ),
    84: (
        "Nothing of the disk is kept from eviction.",
        (Edit("reconciler/kerf/ec2:overhead", "ceil(Fraction(disk, 10)) if files is None else files", "files or 0"),),
    ),
    85: (
        "It does not matter which volume is the root.",
        (Edit("reconciler/kerf/ec2:_ephemeral_storage", "if root:\n    return root", ""),),
    ),
    86: (
        "A volume without a size is taken for a small one.",
        (Edit("reconciler/kerf/ec2:_DEFAULT_VOLUME", "20", "8"),),
    ),
    87: (
        "Every node takes 110 pods.",
        (
            Edit(
                "reconciler/kerf/ec2:pods",
                "_eni_pods(info, sizing, sizing.reserved_enis) if sizing.family.eni_pods else 110",
                "110",
            ),
        ),
    ),
    88: (
        "Zones are those that are named like the region.",
        (
            Edit(
                "reconciler/kerf/ec2:_offerings",
                "usable and zone in offered and (zone in zone_ids) and (zone not in shut)",
                (
                    "usable and zone[:-1] == region.name and (zone in offered) and (zone in zone_ids) and (zone not "
                    "in shut)"
                ),
            ),
        ),
    ),
    104: (
        "Who does not say how to buy may get spot.",
        (
            Edit(
                "reconciler/kerf/ec2:wanted",
                "rows & (requirement(labels.CAPACITY_TYPE, IN, (labels.ON_DEMAND,)),)",
                "rows",
            ),
        ),
    ),
}
