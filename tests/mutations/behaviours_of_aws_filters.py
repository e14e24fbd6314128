"""Behaviours 64 to 88 and 104 of the AWS catalogue, broken: which types and offerings may be named. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_CANDIDATES, _CAPACITY = "reconciler/ec2/candidates.py", "reconciler/ec2/capacity.py"
_CATALOGUE, _FLEET = "reconciler/ec2/catalogue.py", "reconciler/ec2/fleet.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    64: (
        "What is out of stock is named again.",
        (Edit(_CANDIDATES, " and stocked_out.isdisjoint(o.keys) and", " and"),),
    ),
    65: (
        "Only what the type itself has counts.",
        (
            Edit(
                _CANDIDATES,
                "            roomy = type_.holding(requests).offerings",
                "            roomy = type_.offerings if requests.fits(type_.allocatable) else ()",
            ),
        ),
    ),
    66: (
        "Of several capacities of a type's offerings only the first counts.",
        (
            Edit(
                "reconciler/model/instance_type.py",
                "        rooms = [group for group in self.groups() if requests.fits(group.allocatable)]",
                "        rooms = [group for group in self.groups()[:2] if requests.fits(group.allocatable)]",
            ),
        ),
    ),
    67: (
        "What is reserved is passed over.",
        (Edit(_FLEET, "for kind in (labels.RESERVED, labels.SPOT) if", "for kind in (labels.SPOT,) if"),),
    ),
    68: (
        "At one price capacity blocks come first.",
        (
            Edit(
                _CANDIDATES,
                '_KINDS = (("default", False), _BLOCK, ("default", True))',
                '_KINDS = (_BLOCK, ("default", False), ("default", True))',
            ),
        ),
    ),
    69: (
        "A reservation counts although it is not to be had.",
        (
            Edit(
                _CANDIDATES, "for o in roomy if o.available and", "for o in roomy if (o.available or o.reservation) and"
            ),
        ),
    ),
    70: (
        "Of capacity blocks the dearest is taken.",
        (Edit(_CANDIDATES, "        first = min(((c, o)", "        first = max(((c, o)"),),
    ),
    71: (
        "Reservations are used by who does not allow them.",
        (Edit(_CANDIDATES, "and o.suits(wanted))", "and (o.reservation or o.suits(wanted)))"),),
    ),
    72: (
        "Of a zone's reservations that with fewest machines left is taken.",
        (Edit(_CANDIDATES, "rank = (-offering.reservation.left,", "rank = (offering.reservation.left,"),),
    ),
    73: (
        "A reservation without a machine left is taken for one.",
        (Edit(_CATALOGUE, "available=possible and one.left > 0 and", "available=possible and"),),
    ),
    74: (
        "Bare metal is as good as any.",
        (Edit(_CANDIDATES, '    if "metal" in type_.name.partition(".")[2] or any(', "    if any("),),
    ),
    75: (
        "Spot may cost what the dearest on demand does.",
        (Edit(_CANDIDATES, "    ceiling = min(", "    ceiling = max("),),
    ),
    76: (
        "Dear spot is left out although minValues ask for it.",
        (
            Edit(
                _FLEET,
                "        found = candidates.without_dear_spot(found)",
                "    found = candidates.without_dear_spot(found)",
            ),
        ),
    ),
    77: (
        "The sixty first types by name are named.",
        (Edit(_CANDIDATES, "key=lambda c: (c.price, c.type.name))[:limit]", "key=lambda c: c.type.name)[:limit]"),),
    ),
    78: (
        "Bare metal is not had even by name.",
        (Edit(_CANDIDATES, "    return plain or candidates", "    return plain"),),
    ),
    79: (
        "t3 machines have branch interfaces.",
        (Edit("reconciler/ec2/branch_interfaces.py", '{"t3", "t3a"', '{"t3a"'),),
    ),
    80: (
        "Flex types are looked for by their size.",
        (Edit("reconciler/ec2/type_labels.py", '_flag("-flex" in family)', '_flag("-flex" in size)'),),
    ),
    81: (
        "Linux nodes have the addresses of Windows nodes.",
        (Edit(_CAPACITY, "    if sizing.family.windows:\n", "    if info.ipv4_per_interface:\n"),),
    ),
    82: (
        "A maker of GPUs is known by small letters only.",
        (Edit(_CAPACITY, "if gpu.manufacturer.lower() == maker", "if gpu.manufacturer == maker"),),
    ),
    83: (
        "Disks are counted in another unit.",
        (
            Edit(
                _CAPACITY,
                "        return info.instance_storage_gb * GB",
                "        return info.instance_storage_gb * GIB",
            ),
        ),
    ),
    84: (
        "Nothing of the disk is kept from eviction.",
        (Edit(_CAPACITY, "ceil(Fraction(disk, 10)) if files is None else files", "files or 0"),),
    ),
    85: (
        "It does not matter which volume is the root.",
        (Edit(_CAPACITY, "    if root:\n        return root\n", ""),),
    ),
    86: (
        "A volume without a size is taken for a small one.",
        (Edit(_CAPACITY, "_DEFAULT_VOLUME = 20 * GIB", "_DEFAULT_VOLUME = 8 * GIB"),),
    ),
    87: (
        "Every node takes 110 pods.",
        (
            Edit(
                _CAPACITY,
                "limit = _eni_pods(info, sizing, sizing.reserved_enis) if sizing.family.eni_pods else 110",
                "limit = 110",
            ),
        ),
    ),
    88: (
        "Zones are those that are named like the region.",
        (
            Edit(
                _CATALOGUE,
                "            possible = usable and zone in offered and",
                "            possible = usable and zone[:-1] == region.name and zone in offered and",
            ),
        ),
    ),
    104: (
        "Who does not say how to buy may get spot.",
        (
            Edit(
                _FLEET,
                "    return rows & (requirement(labels.CAPACITY_TYPE, IN, (labels.ON_DEMAND,)),)",
                "    return rows",
            ),
        ),
    ),
}
