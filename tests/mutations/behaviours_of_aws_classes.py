"""Behaviours 159 to 199 of the AWS catalogue, broken: images and EC2NodeClasses. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_CLASS, _IMAGES, _LISTED = "reconciler/ec2/nodeclass.py", "reconciler/aws/images.py", "reconciler/ec2/images.py"
_CLASSES, _PROFILES = "reconciler/lifecycle/node_classes.py", "reconciler/aws/profiles.py"
_VALIDATION, _DRY_RUNS = "reconciler/ec2/validation.py", "reconciler/aws/dry_runs.py"
_IDENTITY = "(cluster.region, node_class.name, node_class.metadata.uid, role)"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    159: (
        "AL2 has images for the first version without any.",
        (Edit(_IMAGES, "    if _minor(version) >= 33:", "    if _minor(version) > 33:"),),
    ),
    160: (
        "When one image is missing all are.",
        (
            Edit(
                _IMAGES,
                "_by_id(wanted)}] if wanted else []",
                "_by_id(wanted)}] if len(named) == len(parameters) else []",
            ),
        ),
    ),
    161: (
        "Bottlerocket's standard image does not do for accelerators.",
        (
            Edit(
                _IMAGES,
                '(STANDARD, NEURON)),\n        Source(path(plain, "arm64"))',
                '),\n        Source(path(plain, "arm64"))',
            ),
        ),
    ),
    162: (
        "Deprecated images come first.",
        (
            Edit(
                _LISTED,
                "    return (not image.deprecated, image.created, image.name, image.id)",
                "    return (image.deprecated, image.created, image.name, image.id)",
            ),
        ),
    ),
    163: (
        "An image is deprecated a moment too late.",
        (Edit(_IMAGES, "bool(until) and until <= stamp", "bool(until) and until < stamp"),),
    ),
    164: (
        "By name only our own images are looked for.",
        (Edit(_IMAGES, '["self", "amazon"] if term.name', '["self"] if term.name'),),
    ),
    165: (
        "One tag of several is enough.",
        (Edit(_IMAGES, "    filters = tag_filters(term.tags)\n", "    filters = tag_filters(term.tags)[:1]\n"),),
    ),
    166: (
        "A tag of an image says for which Windows it is.",
        (
            Edit(
                _IMAGES,
                '        created=row.get("CreationDate", ""),\n',
                '        created=row.get("CreationDate", ""),\n'
                '        windows_build="".join(t["Value"] for t in row.get("Tags", ()) if "karpenter" in t["Key"]),\n',
            ),
        ),
    ),
    167: (
        "Any error about a parameter means that there is none.",
        (Edit(_IMAGES, "        except (AlreadyGone, Invalid):", "        except Exception:"),),
    ),
    168: (
        "What a pinned version is is asked each time.",
        (
            Edit(
                _IMAGES,
                '        seconds = self._latest_seconds if alias.partition("@")[2] == LATEST else FOR_EVER\n',
                "        seconds = self._latest_seconds\n",
            ),
        ),
    ),
    169: (
        "Images that are selected no more stay.",
        (
            Edit(
                _CLASS,
                "amis=images.listed(facts.images),",
                "amis=images.listed(facts.images) or node_class.status.amis,",
            ),
        ),
    ),
    170: (
        "Subnets are listed by ID.",
        (
            Edit(
                _CLASS,
                "key=lambda subnet: (-subnet.free_addresses, subnet.id)",
                "key=lambda subnet: subnet.id",
            ),
        ),
    ),
    171: (
        "Tags of one term are alternatives.",
        (
            Edit(
                "reconciler/aws/networks.py",
                "    return asked + [tag_filters(term.tags) for term in by_tags]",
                "    return asked + [[one] for term in by_tags for one in tag_filters(term.tags)]",
            ),
        ),
    ),
    172: (
        "A profile has none of the user's tags.",
        (
            Edit(
                "reconciler/ec2/tags.py",
                "labels.REGION: region,\n    }\n    return dict(sorted({**node_class.spec.tags, **own}.items()))",
                "labels.REGION: region,\n    }\n    return dict(sorted(own.items()))",
            ),
        ),
    ),
    173: (
        "A profile will do whatever role it carries.",
        (
            Edit(
                _PROFILES,
                " for row in _list(iam, path) if _roles(row) == [wanted]]",
                " for row in _list(iam, path)]",
            ),
        ),
    ),
    174: (
        "A profile that is there is made once more.",
        (
            Edit(
                _CLASSES,
                "    if facts.instance_profile or profile_verdicts.CONDITION in facts.problems",
                "    if profile_verdicts.CONDITION in facts.problems",
            ),
        ),
    ),
    175: (
        "The profile that a class had before is not needed any more.",
        (
            Edit(
                "reconciler/runtime/inventories.py",
                "            self.use(PROFILE, names, now)",
                "            self.use(PROFILE, names[1:], now)",
            ),
        ),
    ),
    176: (
        "Classes with one role share a profile.",
        (Edit(_CLASS, _IDENTITY, "(cluster.region, role)"),),
    ),
    177: (
        "A class that is made anew has the profile of the old one.",
        (Edit(_CLASS, _IDENTITY, "(cluster.region, node_class.name, role)"),),
    ),
    178: (
        "A profile whose role could not be attached is left behind.",
        (Edit(_PROFILES, "    except PortError:\n        if new:", "    except PortError:\n        if not new:"),),
    ),
    179: (
        "A role that IAM does not know is asked for each time.",
        (Edit(_PROFILES, "            self._unknown[wanted] = self._elapsed() + UNKNOWN_SECONDS, str(error)\n", ""),),
    ),
    180: (
        "A profile with a role that was given with its path is not found.",
        (Edit(_PROFILES, "    wanted = role_name(role)\n\n    def names()", "    wanted = role\n\n    def names()"),),
    ),
    181: (
        "Profiles are looked for although the class names its own.",
        (
            Edit(
                _CLASSES,
                "    managed = node_class.spec.role and not snapshot.settings.isolated_vpc",
                "    managed = not snapshot.settings.isolated_vpc",
            ),
        ),
    ),
    182: (
        "The profile from before they had paths stays.",
        (
            Edit(
                "reconciler/aws/cloud.py",
                "profiles.delete_named(iam, profiles.legacy_name(self._clients.region, self._known.name, class_name))",
                "pass",
            ),
        ),
    ),
    183: (
        "Nobody is told that a template could not be deleted.",
        (
            Edit(
                "reconciler/aws/launch_templates.py",
                "        with suppress(AlreadyGone, TemplateMissing), translated",
                "        with suppress(Exception), translated",
            ),
        ),
    ),
    184: (
        "IAM is asked for a name that it cannot have.",
        (Edit(_PROFILES, "    if not _NAME.fullmatch(name):\n        return\n", ""),),
    ),
    185: (
        "A permissions boundary is not told from other policies.",
        (
            Edit(
                "reconciler/ec2/errors.py",
                '"Unauthorized", "A permissions boundary denies the action"',
                '"Unauthorized", "A service control policy denies the action"',
            ),
        ),
    ),
    186: (
        "An instance has to be possible in every subnet.",
        (
            Edit(
                _DRY_RUNS,
                "        if error is None:\n            return None\n        errors.append(error)",
                "        if error is not None:\n            errors.append(error)",
            ),
        ),
    ),
    187: (
        "A profile that was just made is taken for one that is not there.",
        (
            Edit(
                _VALIDATION,
                "        return None  # it was made a moment ago",
                "        return FALSE, reason, message",
            ),
        ),
    ),
    188: (
        "The smallest type is tried, be it one with accelerators.",
        (
            Edit(
                _VALIDATION,
                '    return candidates.exotic(type_), type_.capacity["cpu"]',
                '    return False, type_.capacity["cpu"]',
            ),
        ),
    ),
    189: (
        "Dedicated hardware is tried when all NodePools allow it.",
        (Edit(_VALIDATION, "    named = any(", "    named = all("),),
    ),
    190: (
        "An annotation has nothing tried again.",
        (
            Edit(
                _VALIDATION,
                "        sorted((key, text) for key, text in meta.annotations.items() if not _ours(key)),\n",
                "",
            ),
        ),
    ),
    191: (
        "All malformed user data are too large.",
        (Edit(_DRY_RUNS, "    if _USER_DATA in text and _TOO_LARGE in text:", "    if _USER_DATA in text:"),),
    ),
    192: (
        "An expression is good for as long as no type is known.",
        (
            Edit(
                "reconciler/lifecycle/class_validation.py",
                "            return None  # no type is known yet on which they could fail",
                "            return validation.SUCCEEDED",
            ),
        ),
    ),
    193: (
        "All families take several name servers.",
        (
            Edit(
                "api/kubelet/rules.py",
                '    if len(map_.get("clusterDNS") or ()) > 1:',
                '    if len(map_.get("clusterDNS") or ()) > 2:',
            ),
        ),
    ),
    194: (
        "The CA bundle does not count for the hash of a class.",
        (Edit("api/v1/hashes.py", "        _string(ca_bundle),\n", ""),),
    ),
    195: (
        "A claim that has drifted is hashed anew, too.",
        (
            Edit(
                "reconciler/lifecycle/node_pools.py",
                '    new = {key: value for key, value in current.items() if key.endswith("-version") or not drifted}',
                "    new = dict(current)",
            ),
        ),
    ),
    196: (
        "Every reservation expires before it ends.",
        (
            Edit(
                "reconciler/aws/reservations.py",
                '        expiring=kind == "capacity-block" and ends is not None',
                "        expiring=ends is not None",
            ),
        ),
    ),
    197: (
        "Reservations are listed without the gate.",
        (
            Edit(
                _CLASS,
                "    new = new if reserved_capacity else replace(new, capacity_reservations=())\n",
                "",
            ),
        ),
    ),
    198: (
        "Of a placement group that is not there nobody knows.",
        (
            Edit(
                _CLASS,
                "    return (\n        FALSE,\n        *facts.problems.get(",
                "    return (\n        UNKNOWN,\n        *facts.problems.get(",
            ),
        ),
    ),
    199: (
        "The profile of a running instance goes.",
        (
            Edit(
                "reconciler/lifecycle/unused.py",
                "name in names or name in claimed or name in running",
                "name in names or name in claimed",
            ),
        ),
    ),
}
