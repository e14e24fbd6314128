"""Behaviours 200 to 227 of the AWS catalogue, broken: drift, interruption, upkeep, batches, settings. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    200: (
        "Of several reasons the last is told.",
        (
            Edit(
                "reconciler/kerf/ec2:reason",
                "verdicts.items()",
                "reversed(verdicts.items())",
            ),
        ),
    ),
    201: (
        "A class without subnets makes its machines drift.",
        (
            Edit(
                "reconciler/kerf/ec2:_subnet",
                "instance is None or not wanted or (not instance.subnet_id)",
                "instance is None or not instance.subnet_id",
            ),
        ),
    ),
    202: (
        "Any image that the class lists will do.",
        (
            Edit(
                "reconciler/kerf/ec2:_image",
                "current != claim.status.image_id",
                "claim.status.image_id not in {image.id for image in node_class.status.amis}",
            ),
        ),
    ),
    203: (
        "Hashes of different versions are compared.",
        (
            Edit(
                "reconciler/kerf/ec2:_static",
                "not version or not hashed or (not known) or (version != theirs.get(labels.NODECLASS_HASH_VERSION))",
                "not version or not hashed or (not known)",
            ),
        ),
    ),
    204: (
        "A reservation that came to its end is taken for one that is selected no more.",
        (
            Edit(
                "reconciler/kerf/disruption:_reservation_reason",
                "listed is not None and asked is not None and (listed > asked)",
                "listed is not None and asked is not None",
            ),
        ),
    ),
    205: (
        "States are known in small letters only.",
        (Edit("reconciler/kerf/ec2:_kind", "str(detail.get('state')).lower()", "str(detail.get('state'))"),),
    ),
    206: (
        "An instance that runs is taken for one that stops.",
        (
            Edit(
                "reconciler/kerf/ec2:_STATES",
                "'stopping'",
                "'running'",
            ),
        ),
    ),
    207: (
        "Reserved capacity that was taken back is launched into again.",
        (
            Edit(
                "reconciler/kerf/runtime:_TAKEN_BACK",
                "{InterruptionKind.SPOT_INTERRUPTED, InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED}",
                "{InterruptionKind.SPOT_INTERRUPTED}",
            ),
        ),
    ),
    208: (
        "A claim that is going is deleted once more, and the message stays.",
        (
            Edit(
                "reconciler/kerf/disruption:_one",
                "s.claim is not None and (not s.claim.metadata.deleting)",
                "s.claim is not None",
            ),
        ),
    ),
    209: (
        "A queue that is missing is an empty one.",
        (
            Edit(
                "reconciler/kerf/aws:Queue.receive",
                "raise",
                "return ()",
            ),
        ),
    ),
    210: (
        "A check that fails for a moment ends the node.",
        (
            Edit(
                "reconciler/kerf/disruption:_for_too_long",
                "one.since + BORNE",
                "one.since",
            ),
        ),
    ),
    211: (
        "An impairment is told each time that it is seen.",
        (Edit("reconciler/kerf/runtime:Impairments.examined", "self._pairs() - before", "self._pairs()"),),
    ),
    212: (
        "An instance without a claim is ended when it is half a minute old.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_adopted_by",
                "view.snapshot.settings.adoption_time",
                "view.snapshot.settings.adoption_time / 2",
            ),
        ),
    ),
    213: (
        "Tags that are there are overwritten.",
        (
            Edit(
                "reconciler/kerf/lifecycle:tag",
                "key not in instance.tags",
                "instance.tags.get(key) != value",
            ),
        ),
    ),
    214: (
        "Prices that cannot be read now are forgotten.",
        (
            Edit(
                "reconciler/kerf/runtime:Catalogues.read",
                "self._on_demand.update(news.on_demand)",
                "self._on_demand = dict(news.on_demand)",
            ),
        ),
    ),
    215: (
        "Spot of which no price is told costs what on-demand does.",
        (
            Edit(
                "reconciler/kerf/ec2:_offerings",
                "region.price(info.name, zone, spot=capacity_type == labels.SPOT)",
                "region.price(info.name, zone, spot=capacity_type == labels.SPOT) or region.on_demand.get(info.name)",
            ),
        ),
    ),
    216: (
        "A Node is looked at only when its claim is stale, too.",
        (
            Edit(
                "reconciler/kerf/lifecycle:demote",
                "node is not None and _reserved(node.metadata.labels)",
                "node is not None and _reserved(node.metadata.labels) and _reserved(claim.metadata.labels)",
            ),
        ),
    ),
    217: (
        "What is in a reservation goes, be it about to end or not.",
        (
            Edit(
                "reconciler/kerf/disruption:_ending_block",
                "row.id == id_ and row.state == 'expiring'",
                "row.id == id_",
            ),
        ),
    ),
    218: (
        "NodePools are told of zones that they do not use.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_usable",
                "wanted.allowed(labels.ZONE).has(zone) and wanted.allowed(labels.ZONE_ID).has(zone_id)",
                "wanted.allowed(labels.ZONE_ID).has(zone_id)",
            ),
        ),
    ),
    219: (
        "A node takes pods before its partition is known.",
        (
            Edit(
                "reconciler/kerf/lifecycle:register",
                "if placement.is_awaited(progress.claim):\n    return _partition_learnt(progress)",
                "",
            ),
        ),
    ),
    220: (
        "What the last class cannot have is not to be had.",
        (
            Edit(
                "reconciler/kerf/telemetry:_put",
                "before or available",
                "available",
            ),
        ),
    ),
    221: (
        "A Kubernetes that is too old is only told of.",
        (
            Edit(
                "reconciler/kerf/aws:check_version",
                "raise Invalid(f'this Kubernetes is too old: {known}')",
                "log.error('this Kubernetes is too old', version=known)",
            ),
        ),
    ),
    222: (
        "What EKS says of the endpoint wins.",
        (
            Edit(
                "reconciler/kerf/aws:merge",
                "known.endpoint or described.get('endpoint', '')",
                "described.get('endpoint') or known.endpoint",
            ),
        ),
    ),
    223: (
        "Claims share a call although they ask for something else.",
        (
            Edit(
                "reconciler/kerf/ec2:similar_launch",
                "tuple(sorted((_row(e) for e in spec.requirements if not names_types(e))))",
                "()",
            ),
        ),
    ),
    224: (
        "Two claims get one instance.",
        (
            Edit(
                "reconciler/kerf/lifecycle:pairs",
                "view.snapshot.spare(group)",
                "__import__('itertools').cycle(view.snapshot.spare(group))",
            ),
        ),
    ),
    225: (
        "When one instance is not known each is asked for alone.",
        (
            Edit(
                "reconciler/kerf/aws:Terminations._end",
                "sorted(set(ids).intersection(_ID.findall(str(error)))) or sorted(ids)",
                "sorted(ids)",
            ),
        ),
    ),
    226: (
        "What is out of stock already stays so for as long as before.",
        (
            Edit(
                "reconciler/kerf/runtime:Fleet._sold_out",
                "self._out_of_stock[key] = at + OUT_OF_STOCK",
                "self._out_of_stock.setdefault(key, at + OUT_OF_STOCK)",
            ),
        ),
    ),
    227: (
        "A variable beats a flag.",
        (
            Edit(
                "reconciler/kerf/runtime:_given",
                (
                    "if flag in flags:\n"
                    "    yield (FLAG, flag, flags[flag])\n"
                    "if (text := environment.get(env)):\n"
                    "    yield (ENVIRONMENT, env, text)"
                ),
                (
                    "if (text := environment.get(env)):\n"
                    "    yield (ENVIRONMENT, env, text)\n"
                    "if flag in flags:\n"
                    "    yield (FLAG, flag, flags[flag])"
                ),
            ),
        ),
    ),
}
