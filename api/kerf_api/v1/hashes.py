"""Drift hashes of a NodePool and an EC2NodeClass, to the bit as Karpenter computes them.

A node drifts when the hash of what it was made from no longer equals the hash of its NodePool or node class. Because
the numbers are the same, a cluster can change controllers without replacing a node. The algorithm is 64-bit FNV-1 over
a small structural encoding; lists count as sets. Source: API reference, "Drift hashing".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from kerf_api import durations, quantity
from kerf_api.v1.ec2nodeclass import (
    BlockDeviceMapping,
    ConnectionTracking,
    CPUOptions,
    EC2NodeClass,
    EC2NodeClassSpec,
    MetadataOptions,
    NetworkInterface,
    PlacementGroupSelector,
)
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodepool import NodePool

NODEPOOL_HASH_VERSION = "v3"
NODECLASS_HASH_VERSION = "v6"

_START, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1


def nodepool_hash(pool: NodePool) -> str:
    """The decimal text of a NodePool's hash: the template without its requirements. Raises ValueError on durations."""
    template, spec = pool.spec.template, pool.spec.template.spec
    meta = [("Labels", _map(template.metadata.labels)), ("Annotations", _map(template.metadata.annotations))]
    ref = spec.node_class_ref
    grace = spec.termination_grace_period
    expire = durations.parse_nillable(spec.expire_after)
    named = [("Kind", _text(ref.kind)), ("Name", _text(ref.name)), ("Group", _text(ref.group))]
    fields = [
        ("Taints", _set(map(_taint, spec.taints))),
        ("StartupTaints", _set(map(_taint, spec.startup_taints))),
        ("NodeClassRef", _struct("NodeClassReference", named)),
        ("TerminationGracePeriod", None if grace is None else _duration("Duration", durations.parse(grace))),
        ("ExpireAfter", None if expire is None else _duration("NillableDuration", expire)),
    ]
    shown = _struct("ObjectMeta", meta) if any(value is not None for _, value in meta) else None
    return str(
        _struct("NodeClaimTemplate", [("ObjectMeta", shown), ("Spec", _struct("NodeClaimTemplateSpec", fields))])
    )


def nodeclass_hash(node_class: EC2NodeClass, ca_bundle: str) -> str:
    """The decimal text of an EC2NodeClass's hash: its static fields, effective family, CA bundle and kubelet text."""
    parts = (
        _class_spec(node_class.spec),
        _string(node_class.family),
        _string(ca_bundle),
        _string(_kubelet_text(node_class.spec.kubelet)),
    )
    return str(_xor(parts))


def text_hash(text: str) -> str:
    """The decimal text of the hash of one text."""
    return str(_string(text))


def _class_spec(spec: EC2NodeClassSpec) -> int:
    fields = [
        ("PlacementGroupSelector", _placement_group(spec.placement_group_selector)),
        ("AssociatePublicIPAddress", _flag(spec.associate_public_ip_address)),
        ("UserData", _pointer(spec.user_data)),
        ("Role", _text(spec.role)),
        ("InstanceProfile", _pointer(spec.instance_profile)),
        ("Tags", _map(spec.tags)),
        ("BlockDeviceMappings", _set(map(_mapping, spec.block_device_mappings))),
        ("InstanceStorePolicy", _pointer(spec.instance_store_policy)),
        ("NetworkInterfaces", _set(map(_interface, spec.network_interfaces or ()))),
        ("DetailedMonitoring", _flag(spec.detailed_monitoring)),
        ("MetadataOptions", _metadata(spec.metadata_options)),
        ("ConnectionTracking", _tracking(spec.connection_tracking)),
        ("Context", _pointer(spec.context)),
        ("CPUOptions", _cpu(spec.cpu_options)),
    ]
    return _struct("EC2NodeClassSpec", fields)


def _placement_group(group: PlacementGroupSelector | None) -> int | None:
    if group is None:
        return None
    return _struct("PlacementGroupSelector", [("Name", _text(group.name)), ("ID", _text(group.id))])


def _interface(card: NetworkInterface) -> int:
    fields = [
        ("NetworkCardIndex", _int32(card.network_card_index or None)),
        ("DeviceIndex", _int32(card.device_index or None)),
        ("InterfaceType", _text(card.interface_type)),
    ]
    return _struct("NetworkInterface", fields)


def _metadata(options: MetadataOptions) -> int:
    fields = [
        ("HTTPEndpoint", _pointer(options.http_endpoint)),
        ("HTTPProtocolIPv6", _pointer(options.http_protocol_ipv6)),
        ("HTTPPutResponseHopLimit", _int64(options.http_put_response_hop_limit)),
        ("HTTPTokens", _pointer(options.http_tokens)),
    ]
    return _struct("MetadataOptions", fields)


def _tracking(tracking: ConnectionTracking | None) -> int | None:
    if tracking is None:
        return None
    fields = [
        ("TCPEstablishedTimeout", _int32(tracking.tcp_established_timeout)),
        ("UDPStreamTimeout", _int32(tracking.udp_stream_timeout)),
        ("UDPTimeout", _int32(tracking.udp_timeout)),
    ]
    return _struct("ConnectionTracking", fields)


def _cpu(cpu: CPUOptions | None) -> int | None:
    return (
        None if cpu is None else _struct("CPUOptions", [("NestedVirtualization", _pointer(cpu.nested_virtualization))])
    )


def _mapping(mapping: BlockDeviceMapping) -> int:
    ebs = mapping.ebs
    device = (
        None
        if ebs is None
        else _struct(
            "BlockDevice",
            [
                ("DeleteOnTermination", _flag(ebs.delete_on_termination)),
                ("Encrypted", _flag(ebs.encrypted)),
                ("IOPS", _int64(ebs.iops)),
                ("KMSKeyID", _pointer(ebs.kms_key_id)),
                ("SnapshotID", _pointer(ebs.snapshot_id)),
                ("Throughput", _int64(ebs.throughput)),
                ("VolumeInitializationRate", _int32(ebs.volume_initialization_rate)),
                ("VolumeSize", _text(_canonical(ebs.volume_size))),
                ("VolumeType", _pointer(ebs.volume_type)),
            ],
        )
    )
    root = _flag(True) if mapping.root_volume else None
    return _struct(
        "BlockDeviceMapping", [("DeviceName", _pointer(mapping.device_name)), ("EBS", device), ("RootVolume", root)]
    )


def _taint(taint: Taint) -> int:
    return _struct(
        "Taint",
        [
            ("Key", _text(taint.key)),
            ("Value", _text(taint.value)),
            ("Effect", _text(taint.effect)),
        ],
    )


def _duration(type_name: str, value: timedelta) -> int:
    """A grace period of 0 counts as absent; in NillableDuration the number is a pointer, so there 0 does not."""
    nanoseconds = (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    absent = nanoseconds == 0 and type_name == "Duration"
    return _struct(type_name, [("Duration", None if absent else _int64(nanoseconds))])


def _kubelet_text(kubelet: Mapping[str, Any] | None) -> str:
    """Compact JSON with sorted top-level keys, escaped as Go's encoder does; `null` when there is nothing."""
    if not kubelet:
        return "null"
    text = json.dumps({key: kubelet[key] for key in sorted(kubelet)}, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _canonical(size: str | None) -> str | None:
    """A volume size as Kubernetes prints it back: `1024Gi` is `1Ti`, `2000G` is `2T`."""
    if not size:
        return size
    value = quantity.parse(size)
    units, step = (
        (("", "Ki", "Mi", "Gi", "Ti", "Pi"), 1024) if size.endswith("i") else (("", "k", "M", "G", "T", "P"), 1000)
    )
    for power in range(len(units) - 1, -1, -1):
        if value % step**power == 0:
            return f"{value // step**power}{units[power]}"
    return size


# --- the structural encoding ------------------------------------------------------------------------------------
@lru_cache(maxsize=65536)
def _fnv(data: bytes) -> int:
    hashed = _START
    for byte in data:
        hashed = (hashed * _PRIME & _MASK) ^ byte
    return hashed


def _string(value: str) -> int:
    return _fnv(value.encode())


def _text(value: str | None) -> int | None:
    """A Go string: the empty one counts as absent."""
    return _string(value) if value else None


def _pointer(value: str | None) -> int | None:
    """A pointer to a Go string: only nil is absent."""
    return None if value is None else _string(value)


def _flag(value: bool | None) -> int | None:
    return None if value is None else _fnv(bytes([value]))


def _int32(value: int | None) -> int | None:
    return None if value is None else _fnv((value & 0xFFFFFFFF).to_bytes(4, "little"))


def _int64(value: int | None) -> int | None:
    return None if value is None else _fnv((value & _MASK).to_bytes(8, "little"))


def _pair(one: int, two: int) -> int:
    return _fnv(one.to_bytes(8, "little") + two.to_bytes(8, "little"))


def _finish(value: int) -> int:
    return _fnv(value.to_bytes(8, "little"))


def _xor(hashes: Iterable[int]) -> int:
    total = 0
    for value in hashes:
        total ^= value
    return total


def _set(hashes: Iterable[int]) -> int | None:
    listed = list(hashes)
    return _xor(listed) if listed else None


def _map(pairs: Mapping[str, str]) -> int | None:
    return _finish(_xor(_pair(_string(key), _string(value)) for key, value in pairs.items())) if pairs else None


def _struct(type_name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    hashed = _string(type_name)
    for name, value in fields:
        if value is not None:
            hashed = _finish(hashed ^ _pair(_string(name), value))
    return hashed
