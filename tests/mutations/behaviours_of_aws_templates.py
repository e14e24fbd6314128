"""Behaviours 121 to 158 of the AWS catalogue, broken: launch templates and user data. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    121: (
        "Only nodes of one family are told about taints.",
        (
            Edit(
                "reconciler/kerf/ec2:claim_labels",
                "families.of(family) is not families.CUSTOM",
                "families.of(family) is families.AL2023",
            ),
        ),
    ),
    122: (
        "What a launch makes does not say of which class it is.",
        (
            Edit(
                "reconciler/kerf/ec2:launch",
                (
                    "{labels.cluster_tag(cluster_name): 'owned', labels.TAG_NODEPOOL: pool_name, "
                    "labels.TAG_EKS_CLUSTER: cluster_name, labels.TAG_NODECLASS: node_class.name}"
                ),
                (
                    "{labels.cluster_tag(cluster_name): 'owned', labels.TAG_NODEPOOL: pool_name, "
                    "labels.TAG_EKS_CLUSTER: cluster_name}"
                ),
            ),
        ),
    ),
    123: (
        "Machines are launched without a profile.",
        (Edit("reconciler/kerf/ec2:_incomplete", "not status.instance_profile", "status.instance_profile is None"),),
    ),
    124: (
        "A profile that AWS shows comes before the one that is named.",
        (
            Edit(
                "reconciler/kerf/ec2:_resolved",
                "node_class.spec.instance_profile or facts.instance_profile",
                "facts.instance_profile or node_class.spec.instance_profile",
            ),
        ),
    ),
    125: (
        "Labels are told in the order in which they were written.",
        (
            Edit("reconciler/kerf/ec2:claim_labels", "sorted(wanted)", "wanted"),
            Edit("reconciler/kerf/ec2:node_labels", "sorted(inputs.labels)", "inputs.labels"),
        ),
    ),
    126: (
        "Monitoring makes no other template.",
        (
            Edit(
                "reconciler/kerf/ec2:_name",
                "msgspec.json.encode(template, order='deterministic')",
                "msgspec.json.encode(replace(template, detailed_monitoring=False), order='deterministic')",
            ),
        ),
    ),
    127: (
        "Requests for spot have no tags.",
        (
            Edit(
                "reconciler/kerf/aws:_tagged_kinds",
                "('network-interface', 'spot-instances-request')",
                "('network-interface',)",
            ),
        ),
    ),
    128: (
        "The name of a machine is that of its NodePool.",
        (
            Edit(
                "reconciler/kerf/ec2:launch",
                (
                    "{labels.cluster_tag(cluster_name): 'owned', labels.TAG_NODEPOOL: pool_name, "
                    "labels.TAG_EKS_CLUSTER: cluster_name, labels.TAG_NODECLASS: node_class.name}"
                ),
                (
                    "{labels.cluster_tag(cluster_name): 'owned', labels.TAG_NODEPOOL: pool_name, labels.TAG_NAME: "
                    "pool_name, labels.TAG_EKS_CLUSTER: cluster_name, labels.TAG_NODECLASS: node_class.name}"
                ),
            ),
        ),
    ),
    129: (
        "Volumes are not encrypted.",
        (
            Edit(
                "reconciler/kerf/ec2:_volume",
                "BlockDevice(encrypted=True, volume_type='gp3', volume_size=size)",
                "BlockDevice(volume_type='gp3', volume_size=size)",
            ),
        ),
    ),
    130: (
        "Sizes are rounded down.",
        (
            Edit(
                "reconciler/kerf/aws:gibibytes",
                "-(-quantity.parse(size) // 2 ** 30)",
                "quantity.parse(size) // 2 ** 30",
            ),
        ),
    ),
    131: (
        "Kubelets are told to set labels that they may not.",
        (Edit("reconciler/kerf/ec2:_forbidden", "domain == d or domain.endswith(f'.{d}')", "domain == d"),),
    ),
    132: (
        "AL2 reckons by itself how many pods it takes.",
        (Edit("reconciler/kerf/ec2:_bootstrap_script", "'--use-max-pods false'", "'--use-max-pods true'"),),
    ),
    133: (
        "AL2 is not told that the cluster has IPv6.",
        (Edit("reconciler/kerf/ec2:_bootstrap_script", "is_ipv6(dns[0])", "not is_ipv6(dns[0])"),),
    ),
    134: (
        "AL2's kubelet gets a flag that it does not know.",
        (
            Edit(
                "reconciler/kerf/ec2:_kubelet_args",
                "quota = (inputs.kubelet or {}).get('cpuCFSQuota')",
                (
                    "quota, policy = ((inputs.kubelet or {}).get(key) for key in ('cpuCFSQuota', "
                    "'cpuManagerPolicy'))\n"
                    "if policy:\n"
                    "    yield f'--cpu-manager-policy={policy}'"
                ),
            ),
        ),
    ),
    135: (
        "AL2023 makes one volume of its disks unasked.",
        (
            Edit(
                "reconciler/kerf/ec2:_node_config",
                "{'strategy': 'RAID0'} if inputs.raid0 else {}",
                "{'strategy': 'RAID0'}",
            ),
        ),
    ),
    136: (
        "The first version that knows the directories is told them.",
        (Edit("reconciler/kerf/ec2:_mount_command", "parts >= _BINDS_ALL", "parts > _BINDS_ALL"),),
    ),
    137: (
        "The user's bootstrap commands are lost.",
        (
            Edit(
                "reconciler/kerf/ec2:render",
                "table(own, 'bootstrap-commands')[_MOUNT] = _mount_command(inputs.image_version)",
                "own['bootstrap-commands'] = {_MOUNT: _mount_command(inputs.image_version)}",
            ),
        ),
    ),
    138: (
        "What is no TOML counts as nothing.",
        (
            Edit(
                "api/kerf_api/userdata:settings",
                "raise ValueError(f'user data is not valid TOML: {error}') from error",
                "tree = {}",
            ),
        ),
    ),
    139: (
        "The user's TOML wins over the class.",
        (
            Edit(
                "reconciler/kerf/ec2:render",
                "own['kubernetes'].update(_kubernetes(inputs, own['kubernetes']))",
                "own['kubernetes'] = {**_kubernetes(inputs, own['kubernetes']), **own['kubernetes']}",
            ),
        ),
    ),
    140: (
        "What makes the node join comes before the user's part.",
        (
            Edit(
                "reconciler/kerf/ec2:render",
                "[*cloud_init.parts(inputs.custom or '', nodeadm=True), mime.Part.of(mime.NODE_CONFIG, own)]",
                "[mime.Part.of(mime.NODE_CONFIG, own), *cloud_init.parts(inputs.custom or '', nodeadm=True)]",
            ),
        ),
    ),
    141: (
        "An archive has to begin with its MIME version.",
        (Edit("api/kerf_api/userdata:is_archive", "('MIME-Version:', 'Content-Type:')", "'MIME-Version:'"),),
    ),
    142: (
        "An expression for the number of pods reaches the node.",
        (
            Edit(
                "reconciler/kerf/ec2:_kubelet_config",
                "config['maxPods'] = inputs.max_pods",
                "config.setdefault('maxPods', inputs.max_pods)",
            ),
        ),
    ),
    143: (
        "AL2023 is launched without the cluster's addresses.",
        (
            Edit(
                "reconciler/kerf/ec2:_validation",
                "not cluster.service_cidr",
                "cluster.service_cidr is None",
            ),
        ),
    ),
    144: (
        "A kubelet configuration that cannot be read is passed over.",
        (
            Edit(
                "reconciler/kerf/ec2:_validation",
                "kubelet is not None",
                "kubelet is not None and kubelet[0] != 'InvalidKubeletConfiguration'",
            ),
        ),
    ),
    145: (
        "Ends of lines are tidied up.",
        (
            Edit(
                "reconciler/kerf/ec2:render",
                "return inputs.custom or ''",
                "return (inputs.custom or '').replace('\\r', '')",
            ),
        ),
    ),
    146: (
        "Of equal images the oldest is used.",
        (
            Edit(
                "reconciler/kerf/ec2:listed",
                "best[_entries(image)] = image",
                "best.setdefault(_entries(image), image)",
            ),
        ),
    ),
    147: (
        "A type that boots no image is to be had.",
        (
            Edit(
                "reconciler/kerf/ec2:_instance_type",
                "_compatible(info, common.node_class, sizing, group) and image is not None",
                "_compatible(info, common.node_class, sizing, group)",
            ),
        ),
    ),
    148: (
        "That there is no public address is not said.",
        (
            Edit(
                "reconciler/kerf/aws:_addresses",
                "template.associate_public_ip_address is not None",
                "template.associate_public_ip_address",
            ),
        ),
    ),
    149: (
        "Interfaces for computing alone have addresses.",
        (
            Edit(
                "reconciler/kerf/aws:interfaces",
                "{**_place(one), 'Groups': groups, **({} if one.interface_type == EFA_ONLY else addresses)}",
                "{**_place(one), 'Groups': groups, **addresses}",
            ),
        ),
    ),
    150: (
        "Instances are monitored in detail unless that is forbidden.",
        (Edit("reconciler/kerf/ec2:build", "bool(spec.detailed_monitoring)", "spec.detailed_monitoring is not False"),),
    ),
    151: (
        "Enclaves are known by their newer name only.",
        (
            Edit(
                "reconciler/kerf/ec2:ENCLAVES",
                "('eks.amazonaws.com/nitro-sandbox', 'eks.amazonaws.com/nip-slots')",
                "('eks.amazonaws.com/nitro-sandbox',)",
            ),
        ),
    ),
    152: (
        "A partition without the field is asked for it.",
        (
            Edit(
                "reconciler/kerf/aws:NO_METADATA_IPV6", "('us-iso-', 'us-isob-', 'us-isof-')", "('us-iso-', 'us-isob-')"
            ),
        ),
    ),
    153: (
        "Interfaces have an IPv6 address in every cluster.",
        (
            Edit(
                "reconciler/kerf/aws:_addresses",
                "template.ipv6",
                "template.tags",
            ),
        ),
    ),
    154: (
        "One time-out is taken for another.",
        (Edit("reconciler/kerf/aws:_tracking", "tracking.udp_timeout", "tracking.udp_stream_timeout"),),
    ),
    155: (
        "Interfaces that pods ask for replace those that the class lists.",
        (
            Edit(
                "reconciler/kerf/ec2:build",
                "spec.network_interfaces or _efa(variant.efa)",
                "_efa(variant.efa) or spec.network_interfaces",
            ),
        ),
    ),
    156: (
        "An option that is switched off is not passed on.",
        (
            Edit(
                "reconciler/kerf/ec2:_nested",
                "spec.cpu_options.nested_virtualization or ''",
                "'enabled' if spec.cpu_options.nested_virtualization == 'enabled' else ''",
            ),
        ),
    ),
    157: (
        "Reservations share a template.",
        (Edit("reconciler/kerf/ec2:_overrides", "held.id", "held.type"),),
    ),
    158: (
        "A template goes while a launch with it is under way.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_launches",
                "view.snapshot.under_way",
                "()",
            ),
        ),
    ),
}
