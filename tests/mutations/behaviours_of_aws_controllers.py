"""Behaviours 200 to 227 of the AWS catalogue, broken: drift, interruption, upkeep, batches, settings. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_DRIFT, _MESSAGES = "reconciler/ec2/drift.py", "reconciler/ec2/interruptions.py"
_CLUSTER, _FLEET = "reconciler/aws/cluster_facts.py", "reconciler/ec2/fleet.py"
_DEALT = "reconciler/lifecycle/assignment.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    200: (
        "Of several reasons the last is told.",
        (
            Edit(
                _DRIFT,
                "for name, drifted in verdicts.items() if drifted)",
                "for name, drifted in reversed(verdicts.items()) if drifted)",
            ),
        ),
    ),
    201: (
        "A class without subnets makes its machines drift.",
        (
            Edit(
                _DRIFT,
                "    if instance is None or not wanted or not instance.subnet_id:",
                "    if instance is None or not instance.subnet_id:",
            ),
        ),
    ),
    202: (
        "Any image that the class lists will do.",
        (
            Edit(
                _DRIFT,
                "    return current != claim.status.image_id",
                "    return claim.status.image_id not in {image.id for image in node_class.status.amis}",
            ),
        ),
    ),
    203: (
        "Hashes of different versions are compared.",
        (Edit(_DRIFT, " or not known or version != theirs.get(labels.NODECLASS_HASH_VERSION):", " or not known:"),),
    ),
    204: (
        "A reservation that came to its end is taken for one that is selected no more.",
        (
            Edit(
                "reconciler/disruption/drift.py",
                "if listed is not None and asked is not None and listed > asked else None",
                "if listed is not None and asked is not None else None",
            ),
        ),
    ),
    205: (
        "States are known in small letters only.",
        (Edit(_MESSAGES, 'str(detail.get("state")).lower()', 'str(detail.get("state"))'),),
    ),
    206: (
        "An instance that runs is taken for one that stops.",
        (Edit(_MESSAGES, "_STATES = {\n", '_STATES = {\n    "running": "instance_stopped",\n'),),
    ),
    207: (
        "Reserved capacity that was taken back is launched into again.",
        (
            Edit(
                "reconciler/runtime/fleet.py",
                'frozenset({"spot_interrupted", "capacity_reservation_interrupted"})',
                'frozenset({"spot_interrupted"})',
            ),
        ),
    ),
    208: (
        "A claim that is going is deleted once more, and the message stays.",
        (
            Edit(
                "reconciler/disruption/interruption.py",
                "    living = [s for s in states if s.claim is not None and not s.claim.metadata.deleting]",
                "    living = [s for s in states if s.claim is not None]",
            ),
        ),
    ),
    209: (
        "A queue that is missing is an empty one.",
        (
            Edit(
                "reconciler/aws/interruptions.py",
                "at another address\n            raise\n",
                "at another address\n            return ()\n",
            ),
        ),
    ),
    210: (
        "A check that fails for a moment ends the node.",
        (
            Edit(
                "reconciler/disruption/impairment.py",
                "    return one.since + BORNE <= seen_at",
                "    return one.since <= seen_at",
            ),
        ),
    ),
    211: (
        "An ailment is told each time that it is seen.",
        (Edit("reconciler/runtime/ailments.py", "sorted(self._pairs() - before)", "sorted(self._pairs())"),),
    ),
    212: (
        "An instance without a claim is ended when it is half a minute old.",
        (
            Edit(
                "reconciler/lifecycle/garbage.py",
                "    return instance.launched + view.snapshot.settings.adoption_time",
                "    return instance.launched + view.snapshot.settings.adoption_time / 2",
            ),
        ),
    ),
    213: (
        "Tags that are there are overwritten.",
        (
            Edit(
                "reconciler/lifecycle/tagging.py",
                "    missing = {key: value for key, value in wanted.items() if key not in instance.tags}",
                "    missing = {key: value for key, value in wanted.items() if instance.tags.get(key) != value}",
            ),
        ),
    ),
    214: (
        "Prices that cannot be read now are forgotten.",
        (
            Edit(
                "reconciler/runtime/catalogues.py",
                "self._on_demand.update(news.on_demand)",
                "self._on_demand = dict(news.on_demand)",
            ),
        ),
    ),
    215: (
        "Spot of which no price is told costs what on-demand does.",
        (
            Edit(
                "reconciler/ec2/catalogue.py",
                "                else region.spot.get((info.name, zone))",
                "                else region.spot.get((info.name, zone), region.on_demand.get(info.name))",
            ),
        ),
    ),
    216: (
        "A Node is looked at only when its claim is stale, too.",
        (
            Edit(
                "reconciler/lifecycle/demotion.py",
                "    if node is not None and _reserved(node.metadata.labels):",
                "    if node is not None and _reserved(node.metadata.labels) and _reserved(claim.metadata.labels):",
            ),
        ),
    ),
    217: (
        "What is in a reservation goes, be it about to end or not.",
        (
            Edit(
                "reconciler/disruption/expiration.py",
                'row.id == id_ and row.state == "expiring" for',
                "row.id == id_ for",
            ),
        ),
    ),
    218: (
        "NodePools are told of zones that they do not use.",
        (
            Edit(
                "reconciler/lifecycle/shifted_zones.py",
                "        if wanted.allowed(labels.ZONE).has(zone) and wanted",
                "        if wanted",
            ),
        ),
    ),
    219: (
        "A node takes pods before its partition is known.",
        (
            Edit(
                "reconciler/lifecycle/registration.py",
                "    if placement.is_awaited(progress.claim):\n        return _partition_learnt(progress)\n",
                "",
            ),
        ),
    ),
    220: (
        "What the last class cannot have is not to be had.",
        (
            Edit(
                "reconciler/telemetry/markets.py",
                "found[market] = (before or available,",
                "found[market] = (available,",
            ),
        ),
    ),
    221: (
        "A Kubernetes that is too old is only told of.",
        (
            Edit(
                _CLUSTER,
                '        raise Invalid(f"this Kubernetes is too old: {known}")',
                '        log.error("this Kubernetes is too old", version=known)',
            ),
        ),
    ),
    222: (
        "What EKS says of the endpoint wins.",
        (
            Edit(
                _CLUSTER,
                'endpoint=known.endpoint or described.get("endpoint", "")',
                'endpoint=described.get("endpoint") or known.endpoint',
            ),
        ),
    ),
    223: (
        "Claims share a call although they ask for something else.",
        (
            Edit(
                _FLEET,
                "        tuple(sorted((e.key, e.operator, e.values, e.min_values or 0) for e in spec.requirements)),\n",
                "",
            ),
        ),
    ),
    224: (
        "Two claims get one instance.",
        (
            Edit(_DEALT, "from itertools import groupby", "from itertools import cycle, groupby"),
            Edit(
                _DEALT,
                "zip(names, view.snapshot.spare(group), strict=False)",
                "zip(names, cycle(view.snapshot.spare(group)), strict=False)",
            ),
        ),
    ),
    225: (
        "When one instance is not known each is asked for alone.",
        (
            Edit(
                "reconciler/aws/terminations.py",
                "            left = sorted(set(ids).intersection(_ID.findall(str(error)))) or sorted(ids)",
                "            left = sorted(ids)",
            ),
        ),
    ),
    226: (
        "What is out of stock already stays so for as long as before.",
        (
            Edit(
                "reconciler/runtime/fleet.py",
                "        self._out_of_stock[key] = at + OUT_OF_STOCK",
                "        self._out_of_stock.setdefault(key, at + OUT_OF_STOCK)",
            ),
        ),
    ),
    227: (
        "A variable beats a flag.",
        (
            Edit(
                "reconciler/runtime/settings.py",
                "    if flag in flags:\n        yield FLAG, flag, flags[flag]\n"
                "    if text := environment.get(env):\n        yield ENVIRONMENT, env, text\n",
                "    if text := environment.get(env):\n        yield ENVIRONMENT, env, text\n"
                "    if flag in flags:\n        yield FLAG, flag, flags[flag]\n",
            ),
        ),
    ),
}
