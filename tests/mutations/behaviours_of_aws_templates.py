"""Behaviours 121 to 158 of the AWS catalogue, broken: launch templates and user data. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

_TEMPLATES, _WRITTEN = "reconciler/ec2/templates.py", "reconciler/aws/launch_templates.py"
_USERDATA, _BOOTSTRAP = "reconciler/ec2/userdata.py", "reconciler/ec2/bootstrap.py"
_BOTTLEROCKET, _NODEADM = "reconciler/ec2/bottlerocket.py", "reconciler/ec2/nodeadm.py"
_TAGS, _CLASS, _FLEET = "reconciler/ec2/tags.py", "reconciler/ec2/nodeclass.py", "reconciler/ec2/fleet.py"

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    121: (
        "Only nodes of one family are told about taints.",
        (
            Edit(
                _USERDATA,
                "    if families.of(family) is not families.CUSTOM:",
                "    if families.of(family) is families.AL2023:",
            ),
        ),
    ),
    122: (
        "What a launch makes does not say of which class it is.",
        (
            Edit(
                _TAGS,
                "labels.TAG_EKS_CLUSTER: cluster_name,\n        labels.TAG_NODECLASS: node_class.name,\n    }\n",
                "labels.TAG_EKS_CLUSTER: cluster_name,\n    }\n",
            ),
        ),
    ),
    123: (
        "Machines are launched without a profile.",
        (Edit(_FLEET, "    if not status.instance_profile:\n", "    if status.instance_profile is None:\n"),),
    ),
    124: (
        "A profile that AWS shows comes before the one that is named.",
        (
            Edit(
                _CLASS,
                "node_class.spec.instance_profile or profile_name or facts.instance_profile",
                "profile_name or facts.instance_profile or node_class.spec.instance_profile",
            ),
        ),
    ),
    125: (
        "Labels are told in the order in which they were written.",
        (
            Edit(_USERDATA, "for key in sorted(wanted) if", "for key in wanted if"),
            Edit(_BOOTSTRAP, "for key in sorted(inputs.labels))", "for key in inputs.labels)"),
        ),
    ),
    126: (
        "Monitoring makes no other template.",
        (
            Edit(
                _TEMPLATES,
                'msgspec.json.encode(template, order="deterministic")',
                'msgspec.json.encode(replace(template, detailed_monitoring=False), order="deterministic")',
            ),
        ),
    ),
    127: (
        "Requests for spot have no tags.",
        (Edit(_WRITTEN, '("network-interface", "spot-instances-request")', '("network-interface",)'),),
    ),
    128: (
        "The name of a machine is that of its NodePool.",
        (
            Edit(
                _TAGS,
                "        labels.TAG_NODEPOOL: pool_name,\n",
                "        labels.TAG_NODEPOOL: pool_name,\n        labels.TAG_NAME: pool_name,\n",
            ),
        ),
    ),
    129: (
        "Volumes are not encrypted.",
        (Edit("reconciler/ec2/families.py", "BlockDevice(encrypted=True, ", "BlockDevice("),),
    ),
    130: (
        "Sizes are rounded down.",
        (Edit(_WRITTEN, "int(-(-quantity.parse(size) // 2**30))", "int(quantity.parse(size) // 2**30)"),),
    ),
    131: (
        "Kubelets are told to set labels that they may not.",
        (Edit(_USERDATA, 'any(domain == d or domain.endswith(f".{d}") for', "any(domain == d for"),),
    ),
    132: (
        "AL2 reckons by itself how many pods it takes.",
        (Edit(_BOOTSTRAP, '"--use-max-pods false"', '"--use-max-pods true"'),),
    ),
    133: (
        "AL2 is not told that the cluster has IPv6.",
        (Edit(_BOOTSTRAP, "    if dns and is_ipv6(dns[0]):", "    if dns and not is_ipv6(dns[0]):"),),
    ),
    134: (
        "AL2's kubelet gets a flag that it does not know.",
        (
            Edit(
                _BOOTSTRAP,
                '    quota = (inputs.kubelet or {}).get("cpuCFSQuota")\n',
                '    quota, policy = ((inputs.kubelet or {}).get(key) for key in ("cpuCFSQuota", "cpuManagerPolicy"))\n'
                '    if policy:\n        yield f"--cpu-manager-policy={policy}"\n',
            ),
        ),
    ),
    135: (
        "AL2023 makes one volume of its disks unasked.",
        (Edit(_NODEADM, '{"strategy": "RAID0"} if inputs.raid0 else {}', '{"strategy": "RAID0"}'),),
    ),
    136: (
        "The first version that knows the directories is told them.",
        (Edit(_BOTTLEROCKET, "parts >= _BINDS_ALL", "parts > _BINDS_ALL"),),
    ),
    137: (
        "The user's bootstrap commands are lost.",
        (
            Edit(
                _BOTTLEROCKET,
                '        table(own, "bootstrap-commands")[_MOUNT] = _mount_command(inputs.image_version)',
                '        own["bootstrap-commands"] = {_MOUNT: _mount_command(inputs.image_version)}',
            ),
        ),
    ),
    138: (
        "What is no TOML counts as nothing.",
        (
            Edit(
                "api/userdata/bottlerocket.py",
                '        raise ValueError(f"user data is not valid TOML: {error}") from error',
                "        tree = {}",
            ),
        ),
    ),
    139: (
        "The user's TOML wins over the class.",
        (
            Edit(
                _BOTTLEROCKET,
                '    own["kubernetes"].update(_kubernetes(inputs, own["kubernetes"]))',
                '    own["kubernetes"] = {**_kubernetes(inputs, own["kubernetes"]), **own["kubernetes"]}',
            ),
        ),
    ),
    140: (
        "What makes the node join comes before the user's part.",
        (
            Edit(
                _NODEADM,
                '[*cloud_init.parts(inputs.custom or "", nodeadm=True), mime.Part.of(mime.NODE_CONFIG, own)]',
                '[mime.Part.of(mime.NODE_CONFIG, own), *cloud_init.parts(inputs.custom or "", nodeadm=True)]',
            ),
        ),
    ),
    141: (
        "An archive has to begin with its MIME version.",
        (Edit("api/userdata/mime.py", '("MIME-Version:", "Content-Type:")', '"MIME-Version:"'),),
    ),
    142: (
        "An expression for the number of pods reaches the node.",
        (
            Edit(
                _NODEADM,
                '        config["maxPods"] = inputs.max_pods',
                '        config.setdefault("maxPods", inputs.max_pods)',
            ),
        ),
    ),
    143: (
        "AL2023 is launched without the cluster's addresses.",
        (
            Edit(
                _CLASS,
                "if family is families.AL2023 and not cluster.service_cidr:",
                "if family is families.AL2023 and cluster.service_cidr is None:",
            ),
        ),
    ),
    144: (
        "A kubelet configuration that cannot be read is passed over.",
        (
            Edit(
                _CLASS,
                "    if kubelet is not None:\n",
                '    if kubelet is not None and kubelet[0] != "InvalidKubeletConfiguration":\n',
            ),
        ),
    ),
    145: (
        "Ends of lines are tidied up.",
        (Edit(_USERDATA, '        return custom or ""', '        return (custom or "").replace("\\r", "")'),),
    ),
    146: (
        "Of equal images the oldest is used.",
        (
            Edit(
                "reconciler/ec2/images.py",
                "            best[_entries(image)] = image",
                "            best.setdefault(_entries(image), image)",
            ),
        ),
    ),
    147: (
        "A type that boots no image is to be had.",
        (
            Edit(
                "reconciler/ec2/catalogue.py",
                "    usable = _compatible(info, node_class, sizing, group) and image is not None",
                "    usable = _compatible(info, node_class, sizing, group)",
            ),
        ),
    ),
    148: (
        "That there is no public address is not said.",
        (
            Edit(
                _WRITTEN,
                "    if template.associate_public_ip_address is not None:",
                "    if template.associate_public_ip_address:",
            ),
        ),
    ),
    149: (
        "Interfaces for computing alone have addresses.",
        (Edit(_WRITTEN, "**({} if one.interface_type == EFA_ONLY else addresses)}", "**addresses}"),),
    ),
    150: (
        "Instances are monitored in detail unless that is forbidden.",
        (Edit(_TEMPLATES, "bool(spec.detailed_monitoring)", "spec.detailed_monitoring is not False"),),
    ),
    151: (
        "Enclaves are known by their newer name only.",
        (
            Edit(
                _TEMPLATES,
                'ENCLAVES = ("eks.amazonaws.com/nitro-sandbox", "eks.amazonaws.com/nip-slots")',
                'ENCLAVES = ("eks.amazonaws.com/nitro-sandbox",)',
            ),
        ),
    ),
    152: (
        "A partition without the field is asked for it.",
        (Edit(_WRITTEN, '("us-iso-", "us-isob-", "us-isof-")', '("us-iso-", "us-isob-")'),),
    ),
    153: (
        "Interfaces have an IPv6 address in every cluster.",
        (
            Edit(
                _WRITTEN,
                "    if template.ipv6:\n        data |= _ipv6(",
                "    if template.tags:\n        data |= _ipv6(",
            ),
        ),
    ),
    154: (
        "One time-out is taken for another.",
        (Edit(_WRITTEN, '"UdpTimeout": tracking.udp_timeout,', '"UdpTimeout": tracking.udp_stream_timeout,'),),
    ),
    155: (
        "Interfaces that pods ask for replace those that the class lists.",
        (Edit(_TEMPLATES, "spec.network_interfaces or _efa(efa)", "_efa(efa) or spec.network_interfaces"),),
    ),
    156: (
        "An option that is switched off is not passed on.",
        (
            Edit(
                _TEMPLATES,
                'nested_virtualization=nested or "",',
                'nested_virtualization=nested if nested == "enabled" else "",',
            ),
        ),
    ),
    157: (
        "Reservations share a template.",
        (Edit(_FLEET, 'held.id if held is not None else "")', 'held.type if held is not None else "")'),),
    ),
    158: (
        "A template goes while a launch with it is under way.",
        (
            Edit(
                "reconciler/lifecycle/unused.py",
                "for action in view.snapshot.under_way if isinstance(action, LaunchInstances))",
                "for action in () if isinstance(action, LaunchInstances))",
            ),
        ),
    ),
}
