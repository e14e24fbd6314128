"""Network interfaces of launch templates and of RunInstances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .rule import API, LAUNCHES, Call, both, given, outside, rule

_INTERFACE: Final = f"{API}InstanceNetworkInterfaceSpecification.html"
_CREATE: Final = f"{API}CreateNetworkInterface.html"
_RUN: Final = f"{API}RunInstances.html"
_ADDRESSES: Final = (
    *("AssociatePublicIpAddress", "AssociateCarrierIpAddress", "Ipv4PrefixCount", "Ipv4Prefixes"),
    *("Ipv6AddressCount", "Ipv6Addresses", "Ipv6PrefixCount", "Ipv6Prefixes", "PrimaryIpv6"),
    *("PrivateIpAddress", "PrivateIpAddresses", "SecondaryPrivateIpAddressCount"),
)


@rule(*LAUNCHES, address=_CREATE, code="InvalidParameterCombination")
def ipv6_of_interface(call: Call) -> Iterator[str]:
    """An interface has IPv6 addresses, a count of them, IPv6 prefixes, or a count of them: one of the four."""
    for one in call.interfaces:
        yield from both(one, "Ipv6Addresses", "Ipv6AddressCount", "Ipv6Prefixes", "Ipv6PrefixCount")


@rule(*LAUNCHES, address=_CREATE, code="InvalidParameterCombination")
def ipv4_of_interface(call: Call) -> Iterator[str]:
    """An interface has private IPv4 addresses, a count of them, IPv4 prefixes, or a count of them: one of the four."""
    for one in call.interfaces:
        yield from both(one, "PrivateIpAddresses", "SecondaryPrivateIpAddressCount", "Ipv4Prefixes", "Ipv4PrefixCount")


@rule(*LAUNCHES, address="https://github.com/aws/karpenter-provider-aws/pull/7391", code="InvalidParameterCombination")
def primary_ipv6_of_prefixes(call: Call) -> Iterator[str]:
    """EC2 does not support a primary IPv6 address on an interface with IPv6 prefixes."""
    for one in call.interfaces:
        if one.get("PrimaryIpv6") and given(one, "Ipv6Prefixes", "Ipv6PrefixCount"):
            yield "PrimaryIpv6 with IPv6 prefixes"


@rule(*LAUNCHES, address=_INTERFACE, code="InvalidParameterCombination")
def public_ip_of_several(call: Call) -> Iterator[str]:
    """A public IPv4 address cannot be assigned when the request has more than one network interface."""
    if len(call.interfaces) > 1 and any(one.get("AssociatePublicIpAddress") for one in call.interfaces):
        yield f"AssociatePublicIpAddress with {len(call.interfaces)} network interfaces"


@rule(*LAUNCHES, address=_INTERFACE, code="InvalidParameterCombination")
def public_ip_of_primary(call: Call) -> Iterator[str]:
    """A public IPv4 address can only be assigned to a new interface that is eth0."""
    for one in call.interfaces:
        if one.get("AssociatePublicIpAddress") and (one.get("DeviceIndex", 0) != 0 or one.get("NetworkInterfaceId")):
            yield "AssociatePublicIpAddress on an interface that is not a new eth0"


@rule(*LAUNCHES, address=_INTERFACE)
def interface_type(call: Call) -> Iterator[str]:
    """The type of an interface is interface, efa or efa-only."""
    for one in call.interfaces:
        if one.get("InterfaceType", "interface") not in ("interface", "efa", "efa-only"):
            yield f"InterfaceType {one['InterfaceType']}"


@rule(*LAUNCHES, address=_INTERFACE, code="InvalidParameterCombination")
def addresses_of_efa_only(call: Call) -> Iterator[str]:
    """An EFA-only interface has no IP addresses."""
    for one in call.interfaces:
        if one.get("InterfaceType") == "efa-only":
            yield from (f"{name} on an EFA-only interface" for name in given(one, *_ADDRESSES))


@rule(*LAUNCHES, address=_INTERFACE, code="MissingParameter")
def device_index(call: Call) -> Iterator[str]:
    """A network interface that is specified at launch has a device index."""
    for one in call.interfaces:
        if one.get("DeviceIndex") is None:
            yield "an interface without DeviceIndex"


@rule(*LAUNCHES, address=_INTERFACE)
def primary_interface(call: Call) -> Iterator[str]:
    """The primary network interface has device index 0 on network card 0."""
    if call.interfaces and not any(
        one.get("DeviceIndex") == 0 and one.get("NetworkCardIndex", 0) == 0 for one in call.interfaces
    ):
        yield "no interface with device index 0 on network card 0"


@rule(*LAUNCHES, address=f"{API}ConnectionTrackingSpecificationRequest.html")
def connection_tracking(call: Call) -> Iterator[str]:
    """Idle timeouts: TCP 60 to 432000 seconds, UDP streams 60 to 180 seconds, other UDP flows 30 to 60 seconds."""
    for one in call.interfaces:
        tracking = one.get("ConnectionTrackingSpecification") or {}
        yield from outside(tracking, "TcpEstablishedTimeout", 60, 432000)
        yield from outside(tracking, "UdpStreamTimeout", 60, 180)
        yield from outside(tracking, "UdpTimeout", 30, 60)


@rule(*LAUNCHES, address=f"{API}EnaSrdUdpSpecificationRequest.html", code="InvalidParameterCombination")
def ena_express_udp(call: Call) -> Iterator[str]:
    """ENA Express for UDP needs ENA Express."""
    for one in call.interfaces:
        express = one.get("EnaSrdSpecification") or {}
        udp = express.get("EnaSrdUdpSpecification") or {}
        if udp.get("EnaSrdUdpEnabled") and not express.get("EnaSrdEnabled"):
            yield "EnaSrdUdpEnabled without EnaSrdEnabled"


@rule(*LAUNCHES, address=f"{API}RequestLaunchTemplateData.html", code="InvalidParameterCombination")
def groups_of_interfaces(call: Call) -> Iterator[str]:
    """With network interfaces the security groups are part of the interfaces."""
    if call.interfaces:
        yield from (f"{name} beside NetworkInterfaces" for name in given(call.launch, "SecurityGroupIds"))
        yield from (f"{name} beside NetworkInterfaces" for name in given(call.launch, "SecurityGroups"))


@rule("ec2:RunInstances", address=_RUN, code="InvalidParameterCombination")
def subnet_of_interfaces(call: Call) -> Iterator[str]:
    """With network interfaces the subnet and the addresses are part of the interfaces."""
    if call.interfaces:
        names = given(call.parameters, "SubnetId", "PrivateIpAddress", "Ipv6AddressCount", "Ipv6Addresses")
        yield from (f"{name} beside NetworkInterfaces" for name in names)


@rule("ec2:RunInstances", address=_INTERFACE, code="InvalidParameterCombination")
def private_addresses_of_many(call: Call) -> Iterator[str]:
    """Private addresses cannot be named when more than one instance is launched."""
    if call.parameters.get("MaxCount", 1) > 1:
        for one in call.interfaces:
            names = given(one, "PrivateIpAddress", "PrivateIpAddresses")
            yield from (f"{name} with MaxCount {call.parameters['MaxCount']}" for name in names)


@rule(*LAUNCHES, address=f"{API}PrivateIpAddressSpecification.html")
def one_primary_address(call: Call) -> Iterator[str]:
    """Only one private IPv4 address of an interface can be primary."""
    for one in call.interfaces:
        primary = [row for row in one.get("PrivateIpAddresses") or () if row.get("Primary")]
        if len(primary) + bool(one.get("PrivateIpAddress")) > 1:
            yield "more than one primary address"
