"""AWSNodeTemplate (v1alpha1), `provider` of a Provisioner, and EC2NodeClass (v1beta1) as EC2NodeClass.

The two old versions chose images by a family where no selector was given; v1 says that by an alias. What a class left
to the controller's settings, its instance profile, v1 wants to see in the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kerf_api import crds, labels, old_names
from kerf_api.lint import Steps
from kerf_api.lint.problem import shown
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES

from .header import drop_if_emptied, header
from .selectors import terms
from .work import (
    DIFFERENT,
    DROPPED,
    NO_EQUIVALENT,
    NO_IMAGE,
    NO_PROFILE,
    SPELLED_OUT,
    Table,
    Work,
    malformed,
    read,
    to,
    written_by_others,
)

_SPEC: Final = ("spec",)
_FAMILY, _IMAGES = ("spec", "amiFamily"), ("spec", "amiSelectorTerms")
_DISKS, _OPTIONS = ("spec", "blockDeviceMappings"), ("spec", "metadataOptions")
#: By default a container could reach the instance's metadata; v1's default keeps it from that.
_OLD_HOPS: Final = 2
_UBUNTU_DISK: Final[Mapping[str, Any]] = {
    "deviceName": "/dev/sda1",
    "rootVolume": True,
    "ebs": {"encrypted": True, "volumeType": "gp3", "volumeSize": "20Gi"},
}
#: Tags that the controller sets itself; v1 refuses them.
_RESERVED_TAGS: Final = frozenset(
    {
        labels.NODEPOOL,
        labels.NODECLASS,
        labels.TAG_NODECLAIM,
        labels.TAG_EKS_CLUSTER,
        old_names.PROVISIONER_NAME,
        f"{labels.GROUP}/managed-by",
    }
)


def template(work: Work) -> None:
    """An EC2NodeClass of an AWSNodeTemplate."""
    read(work, {**header("EC2NodeClass"), "spec": lambda work, steps, _: read(work, _TEMPLATE, steps)})
    _finish(work, _SPEC)


def class_of_provider(work: Work, steps: Steps, name: Any) -> None:
    """An EC2NodeClass of what a Provisioner has at `provider`."""
    work.add(("apiVersion",), crds.api_version("EC2NodeClass"))
    work.add(("kind",), "EC2NodeClass")
    work.add(("metadata", "name"), name)
    work.add(_SPEC, {}, steps)
    read(work, _TEMPLATE, steps)
    _finish(work, steps)


def node_class(work: Work) -> None:
    """An EC2NodeClass of one of v1beta1."""
    read(work, {**header("EC2NodeClass"), "spec": lambda work, steps, _: read(work, _NODE_CLASS, steps)})
    _finish(work, _SPEC)


def _finish(work: Work, steps: Steps) -> None:
    """What follows from fields that were left out, or from several."""
    spec = _map(work.old, steps)
    _images(work, steps, spec)
    options = spec.get("metadataOptions")
    if not isinstance(options, dict) or options.get("httpPutResponseHopLimit") is None:
        _hops(work, steps, options)
    if isinstance(options, dict) and options and options.get("httpTokens") is None:
        _tokens(work, steps)
    if work.draft.get("spec", "role") is None and work.draft.get("spec", "instanceProfile") is None:
        _profile(work, steps)


def _images(work: Work, steps: Steps, spec: Mapping[str, Any]) -> None:
    """An alias for a family without a selector; the images of Ubuntu have none."""
    given = spec.get("amiFamily")
    family = given if isinstance(given, str) else "Custom" if work.old.get("kind") == "EC2NodeClass" else "AL2"
    place = (*steps, "amiFamily") if given is not None else steps
    if spec.get("amiSelectorTerms") or spec.get("amiSelector"):
        if family == "Ubuntu":
            _ubuntu(work, place)
        elif given is None:
            work.add(_FAMILY, family)
            work.tell(SPELLED_OUT, place, f"amiFamily was {family} by default in older versions; now it is explicit")
    elif family in ALIAS_FAMILIES.values():
        if work.draft.get(*_IMAGES) is not None:
            work.draft.remove(_IMAGES)
        if given is not None:
            work.draft.rename(_FAMILY, _IMAGES[-1])
        work.add(_IMAGES, [{"alias": f"{family.lower()}@latest"}], *([place] if given is not None else []))
        work.draft.trace((*_IMAGES, 0))
        _end_of_al2(work, place, family)
    else:
        hint = "select images by amiSelectorTerms with amiFamily AL2; Canonical names them in SSM parameters"
        message = f"no alias names the images of {shown(family)}, and nothing selects them"
        work.tell(NO_IMAGE, place, message, hint if family == "Ubuntu" else "add amiSelectorTerms", given)


def _end_of_al2(work: Work, place: Steps, family: str) -> None:
    if family == "AL2":
        message = "the images are those of al2@latest as before; from Kubernetes 1.33 on there are none"
        work.tell(SPELLED_OUT, place, message, "write al2023@latest when you upgrade; user data may have to change")


def _ubuntu(work: Work, place: Steps) -> None:
    """v1 knows no Ubuntu; AL2 is the family whose user data its images understand."""
    work.add(_FAMILY, "AL2", place)
    message = "v1 has no family Ubuntu; AL2 writes the user data that its images understand"
    work.tell(DIFFERENT, place, message, "try a node before you rely on it", "Ubuntu")
    if not work.draft.get(*_DISKS):
        work.add(_DISKS, [_UBUNTU_DISK])


def _hops(work: Work, steps: Steps, options: Any) -> None:
    place = (*steps, "metadataOptions")
    if options is not None and not isinstance(options, dict):
        malformed(work, place, options, "a map")
        return
    if isinstance(options, dict) and options and work.old.get("kind") != "EC2NodeClass":
        return
    work.add((*_OPTIONS, "httpPutResponseHopLimit"), _OLD_HOPS)
    message = f"httpPutResponseHopLimit was {_OLD_HOPS} by default in older versions; now it is explicit"
    hint = "1, v1's default, blocks the access of containers to the metadata of their instance"
    work.tell(SPELLED_OUT, place if isinstance(options, dict) else steps, message, hint)


def _tokens(work: Work, steps: Steps) -> None:
    """An AWSNodeTemplate with some options left the others to EC2; those of an EC2NodeClass had defaults."""
    if work.old.get("kind") != "EC2NodeClass":
        message = "EC2 decided whether tokens are needed; v1 requires them where httpTokens is left out"
        hint = "write httpTokens: optional if a program still sends requests without a token"
        work.tell(DIFFERENT, (*steps, "metadataOptions"), message, hint)


def _profile(work: Work, steps: Steps) -> None:
    if work.wish.role:
        work.add(("spec", "role"), work.wish.role)
    elif work.wish.instance_profile:
        work.add(("spec", "instanceProfile"), work.wish.instance_profile)
    else:
        message = "the instance profile was the controller's default; an EC2NodeClass of v1 names its own"
        hint = "add instanceProfile, or convert with --instance-profile NAME or --role NAME"
        work.tell(NO_PROFILE, steps, message, hint)


def _launch_template(work: Work, steps: Steps, value: Any) -> None:
    message = "v1 creates its launch templates itself and has no field for one"
    hint = "set in the EC2NodeClass what the template sets: images, security groups, disks, user data"
    work.tell(NO_EQUIVALENT, steps, message, hint, value)


def _selector(field: str) -> Any:
    return lambda work, steps, value: terms(work, steps, value, ("spec", field))


def _tags(work: Work, steps: Steps, value: Any) -> None:
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    work.keep(("spec", "tags"), steps, {})
    for key, text in value.items():
        if key in _RESERVED_TAGS or str(key).startswith("kubernetes.io/cluster"):
            message = f"the tag {shown(key)} is the controller's own, and v1 refuses it; removed"
            work.tell(DROPPED, (*steps, key), message, "", text)
        else:
            work.keep(("spec", "tags", key), (*steps, key), text)
    drop_if_emptied(work, ("spec", "tags"), value)


def _no_family_yet(work: Work, steps: Steps, value: Any) -> None:
    """Kept in its place until it is known whether an alias says it."""
    work.keep(_FAMILY, steps, value)


def _map(manifest: Any, steps: Steps) -> Mapping[str, Any]:
    for step in steps:
        manifest = manifest.get(step) if isinstance(manifest, dict) else None
    return manifest if isinstance(manifest, dict) else {}


_SAME: Final = (
    "instanceProfile",
    "context",
    "userData",
    "detailedMonitoring",
    "metadataOptions",
    "blockDeviceMappings",
)
_TEMPLATE: Final[Table] = {
    **{name: to("spec", name) for name in _SAME},
    "amiFamily": _no_family_yet,
    "amiSelector": _selector("amiSelectorTerms"),
    "subnetSelector": _selector("subnetSelectorTerms"),
    "securityGroupSelector": _selector("securityGroupSelectorTerms"),
    "launchTemplate": _launch_template,
    "tags": _tags,
    **dict.fromkeys(("apiVersion", "kind"), written_by_others("an EC2NodeClass of v1 has no version inside its spec")),
}
_NODE_CLASS: Final[Table] = {
    **{name: to("spec", name) for name in _SAME},
    "amiFamily": _no_family_yet,
    **{
        name: to("spec", name)
        for name in (
            "subnetSelectorTerms",
            "securityGroupSelectorTerms",
            "amiSelectorTerms",
            "role",
            "instanceStorePolicy",
            "associatePublicIPAddress",
        )
    },
    "tags": _tags,
}
