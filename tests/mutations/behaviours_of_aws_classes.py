"""Behaviours 159 to 199 of the AWS catalogue, broken: images and EC2NodeClasses. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    159: (
        "AL2 has images for the first version without any.",
        (Edit("reconciler/kerf/aws:_al2", "_minor(version) >= 33", "_minor(version) > 33"),),
    ),
    160: (
        "When one image is missing all are.",
        (
            Edit(
                "reconciler/kerf/aws:ImageReader._look",
                "[{'Filters': _by_id(wanted)}] if wanted else []",
                "[{'Filters': _by_id(wanted)}] if len(named) == len(parameters) else []",
            ),
        ),
    ),
    161: (
        "Bottlerocket's standard image does not do for accelerators.",
        (
            Edit(
                "reconciler/kerf/aws:_bottlerocket",
                "Source(path(plain, 'x86_64'), (STANDARD, NEURON))",
                "Source(path(plain, 'x86_64'))",
            ),
        ),
    ),
    162: (
        "Deprecated images come first.",
        (
            Edit(
                "reconciler/kerf/ec2:_precedence",
                "not image.deprecated",
                "image.deprecated",
            ),
        ),
    ),
    163: (
        "An image is deprecated a moment too late.",
        (Edit("reconciler/kerf/aws:image", "until <= stamp", "until < stamp"),),
    ),
    164: (
        "By name only our own images are looked for.",
        (Edit("reconciler/kerf/aws:query", "['self', 'amazon']", "['self']"),),
    ),
    165: (
        "One tag of several is enough.",
        (Edit("reconciler/kerf/aws:query", "tag_filters(term.tags)", "tag_filters(term.tags)[:1]"),),
    ),
    166: (
        "A tag of an image says for which Windows it is.",
        (
            Edit(
                "reconciler/kerf/aws:image",
                (
                    "Image(id=row['ImageId'], name=row.get('Name', ''), "
                    "architecture=ARCHITECTURES.get(row.get('Architecture', ''), ''), "
                    "created=row.get('CreationDate', ''), deprecated=bool(until) and until <= stamp)"
                ),
                (
                    "Image(id=row['ImageId'], name=row.get('Name', ''), "
                    "architecture=ARCHITECTURES.get(row.get('Architecture', ''), ''), "
                    "created=row.get('CreationDate', ''), windows_build=''.join((t['Value'] for t in row.get('Tags', "
                    "()) if 'karpenter' in t['Key'])), deprecated=bool(until) and until <= stamp)"
                ),
            ),
        ),
    ),
    167: (
        "Any error about a parameter means that there is none.",
        (Edit("reconciler/kerf/aws:ImageReader._parameter", "(AlreadyGone, Invalid)", "Exception"),),
    ),
    168: (
        "What a pinned version is is asked each time.",
        (
            Edit(
                "reconciler/kerf/aws:ImageReader._by_alias",
                "self._latest_seconds if alias.partition('@')[2] == LATEST else FOR_EVER",
                "self._latest_seconds",
            ),
        ),
    ),
    169: (
        "Images that are selected no more stay.",
        (
            Edit(
                "reconciler/kerf/ec2:_resolved",
                "images.listed(facts.images)",
                "images.listed(facts.images) or node_class.status.amis",
            ),
        ),
    ),
    170: (
        "Subnets are listed by ID.",
        (
            Edit(
                "reconciler/kerf/ec2:subnets",
                "(-subnet.free_addresses, subnet.id)",
                "subnet.id",
            ),
        ),
    ),
    171: (
        "Tags of one term are alternatives.",
        (
            Edit(
                "reconciler/kerf/aws:questions",
                "[tag_filters(term.tags) for term in by_tags]",
                "[[one] for term in by_tags for one in tag_filters(term.tags)]",
            ),
        ),
    ),
    172: (
        "A profile has none of the user's tags.",
        (
            Edit(
                "reconciler/kerf/ec2:profile",
                "{**node_class.spec.tags, **own}",
                "own",
            ),
        ),
    ),
    173: (
        "A profile will do whatever role it carries.",
        (
            Edit(
                "reconciler/kerf/aws:find.names",
                "[row['InstanceProfileName'] for row in _list(iam, path) if _roles(row) == [wanted]]",
                "[row['InstanceProfileName'] for row in _list(iam, path)]",
            ),
        ),
    ),
    174: (
        "A profile that is there is made once more.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_profile",
                (
                    "facts.instance_profile or profile_verdicts.CONDITION in facts.problems or "
                    "snapshot.settings.isolated_vpc"
                ),
                "profile_verdicts.CONDITION in facts.problems or snapshot.settings.isolated_vpc",
            ),
        ),
    ),
    175: (
        "The profile that a class had before is not needed any more.",
        (
            Edit(
                "reconciler/kerf/runtime:Inventories.noticed",
                "self.use(PROFILE, names, now)",
                "self.use(PROFILE, names[1:], now)",
            ),
        ),
    ),
    176: (
        "Classes with one role share a profile.",
        (
            Edit(
                "reconciler/kerf/ec2:profile_for",
                "(cluster.region, node_class.name, node_class.metadata.uid, role)",
                "(cluster.region, role)",
            ),
        ),
    ),
    177: (
        "A class that is made anew has the profile of the old one.",
        (
            Edit(
                "reconciler/kerf/ec2:profile_for",
                "(cluster.region, node_class.name, node_class.metadata.uid, role)",
                "(cluster.region, node_class.name, role)",
            ),
        ),
    ),
    178: (
        "A profile whose role could not be attached is left behind.",
        (Edit("reconciler/kerf/aws:_ensure", "new", "not new"),),
    ),
    179: (
        "A role that IAM does not know is asked for each time.",
        (
            Edit(
                "reconciler/kerf/aws:Maker.ensure",
                "self._unknown[wanted] = (self._elapsed() + UNKNOWN_SECONDS, str(error))",
                "",
            ),
        ),
    ),
    180: (
        "A profile with a role that was given with its path is not found.",
        (Edit("reconciler/kerf/aws:find", "role_name(role)", "role"),),
    ),
    181: (
        "Profiles are looked for although the class names its own.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_end",
                "node_class.spec.role and (not snapshot.settings.isolated_vpc)",
                "not snapshot.settings.isolated_vpc",
            ),
        ),
    ),
    182: (
        "The profile from before they had paths stays.",
        (
            Edit(
                "reconciler/kerf/aws:AwsCloud.delete_class_resources",
                "profiles.delete_named(iam, profiles.legacy_name(self._clients.region, self._known.name, class_name))",
                "pass",
            ),
        ),
    ),
    183: (
        "Nobody is told that a template could not be deleted.",
        (
            Edit(
                "reconciler/kerf/aws:LaunchTemplates._delete",
                "suppress(AlreadyGone, TemplateMissing)",
                "suppress(Exception)",
            ),
        ),
    ),
    184: (
        "IAM is asked for a name that it cannot have.",
        (Edit("reconciler/kerf/aws:delete_named", "if not _NAME.fullmatch(name):\n    return", ""),),
    ),
    185: (
        "A permissions boundary is not told from other policies.",
        (
            Edit(
                "reconciler/kerf/ec2:_DENIALS",
                "'A permissions boundary denies the action'",
                "'A service control policy denies the action'",
            ),
        ),
    ),
    186: (
        "An instance has to be possible in every subnet.",
        (
            Edit(
                "reconciler/kerf/aws:_instances",
                "if error is None:\n    return None\nerrors.append(error)",
                "if error is not None:\n    errors.append(error)",
            ),
        ),
    ),
    187: (
        "A profile that was just made is taken for one that is not there.",
        (
            Edit(
                "reconciler/kerf/ec2:verdict",
                "return None",
                "return (FALSE, reason, message)",
            ),
        ),
    ),
    188: (
        "The smallest type is tried, be it one with accelerators.",
        (
            Edit(
                "reconciler/kerf/ec2:_preference",
                "candidates.exotic(type_)",
                "False",
            ),
        ),
    ),
    189: (
        "Dedicated hardware is tried when all NodePools allow it.",
        (Edit("reconciler/kerf/ec2:_tenancy", "any", "all"),),
    ),
    190: (
        "An annotation has nothing tried again.",
        (
            Edit(
                "reconciler/kerf/ec2:identity",
                (
                    "[meta.uid, meta.generation, sorted(((key, text) for key, text in meta.annotations.items() if "
                    "not _ours(key))), sorted((subnet.id for subnet in status.subnets)), sorted((group.id for group "
                    "in status.security_groups)), sorted((image.id for image in status.amis)), "
                    "status.instance_profile]"
                ),
                (
                    "[meta.uid, meta.generation, sorted((subnet.id for subnet in status.subnets)), sorted((group.id "
                    "for group in status.security_groups)), sorted((image.id for image in status.amis)), "
                    "status.instance_profile]"
                ),
            ),
        ),
    ),
    191: (
        "All malformed user data are too large.",
        (Edit("reconciler/kerf/aws:_judged", "_USER_DATA in text and _TOO_LARGE in text", "_USER_DATA in text"),),
    ),
    192: (
        "An expression is good for as long as no type is known.",
        (
            Edit(
                "reconciler/kerf/lifecycle:Trial.verdict",
                "return None",
                "return validation.SUCCEEDED",
            ),
        ),
    ),
    193: (
        "All families take several name servers.",
        (
            Edit(
                "api/kerf_api/kubelet:_unsupported",
                "1",
                "2",
            ),
        ),
    ),
    194: (
        "The CA bundle does not count for the hash of a class.",
        (
            Edit(
                "api/kerf_api/v1:nodeclass_hash",
                (
                    "(_class_spec(node_class.spec), _string(node_class.family), _string(ca_bundle), "
                    "_string(_kubelet_text(node_class.spec.kubelet)))"
                ),
                (
                    "(_class_spec(node_class.spec), _string(node_class.family), "
                    "_string(_kubelet_text(node_class.spec.kubelet)))"
                ),
            ),
        ),
    ),
    195: (
        "A claim that has drifted is hashed anew, too.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_rehash",
                "{key: value for key, value in current.items() if key.endswith('-version') or not drifted}",
                "dict(current)",
            ),
        ),
    ),
    196: (
        "Every reservation expires before it ends.",
        (
            Edit(
                "reconciler/kerf/aws:_reservation",
                "kind == 'capacity-block' and ends is not None and (ends - LAST_CALL <= now)",
                "ends is not None and ends - LAST_CALL <= now",
            ),
        ),
    ),
    197: (
        "Reservations are listed without the gate.",
        (
            Edit(
                "reconciler/kerf/ec2:status",
                "new = replace(new, capacity_reservations=())",
                "pass",
            ),
        ),
    ),
    198: (
        "Of a placement group that is not there nobody knows.",
        (
            Edit(
                "reconciler/kerf/ec2:_placement_group",
                "FALSE",
                "UNKNOWN",
            ),
        ),
    ),
    199: (
        "The profile of a running instance goes.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_profiles",
                "name in names or name in claimed or name in running",
                "name in names or name in claimed",
            ),
        ),
    ),
}
