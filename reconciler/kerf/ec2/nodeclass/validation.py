"""Whether nodes can be launched from an EC2NodeClass at all, found out before anybody needs one: what is tried, and
what comes of it.

A launch is tried dry, of one plain type, with the class's own template, into a subnet of each zone. What was tried last
holds for a while; something else is tried as soon as the class, or what it selects, has changed. Source: AWS provider
reference §6.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from kerf.ec2 import families, images
from kerf.ec2.errors import classify
from kerf.ec2.instance_types.type_labels import TENANCIES, TENANCY
from kerf.ec2.launch import candidates, templates
from kerf.ec2.launch.templates import Place, Variant
from kerf.model.aws.cloud import ClusterFacts, DryRun, FleetRequest, Override
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.conditions import FALSE, TRUE, UNKNOWN
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import NodeClassRef, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec
from kerf_api.v1.nodepool import NodePool

Verdict = tuple[str, str, str]
CONDITION = "ValidationSucceeded"
SUCCEEDED: Verdict = (TRUE, CONDITION, "")

#: By call, what its denial is called, and in words.
DENIALS: Mapping[str, tuple[str, str]] = {
    "ec2:CreateLaunchTemplate": ("CreateLaunchTemplateAuthCheckFailed", "A launch template may not be created"),
    "ec2:CreateFleet": ("CreateFleetAuthCheckFailed", "A fleet may not be created"),
    "ec2:RunInstances": ("RunInstancesAuthCheckFailed", "Instances may not be run"),
}
USER_DATA_TOO_LARGE = "UserDataSizeLimitExceeded"
PROFILE_NOT_FOUND = "InstanceProfileNotFound"
#: AWS has something else against the request. It is unknown whether a launch would fare the same.
UNEXPECTED = "ValidationFailed"
#: A launch from such a class cannot come off.
_FINAL = frozenset({*(reason for reason, _ in DENIALS.values()), USER_DATA_TOO_LARGE})
#: Everything that a dry run may say in the condition.
TOLD = frozenset({CONDITION, *_FINAL, PROFILE_NOT_FOUND, UNEXPECTED})

#: How long an answer holds: one without fault, one that a person must do something about, and any other.
HOLDS, DENIED_HOLDS, UNSURE_HOLDS = timedelta(minutes=30), timedelta(minutes=3), timedelta(minutes=1)
#: EC2 sees a new instance profile some seconds after IAM has made it: it is tried this often, and for so long.
_PROFILE_SEEN, _PROFILE_NEW = timedelta(seconds=5), timedelta(minutes=1)
_SHARED, _DEDICATED = TENANCIES
#: Types that are tried where NodePools leave no choice.
_USUAL = ("m5.large", "m6g.large")
#: AWS adds a long cipher to a denial that is another one each time.
_CIPHER = "Encoded authorization failure message"


# --- what AWS says ----------------------------------------------------------------------------------------------
def denial(call: str, text: str) -> tuple[str, str]:
    """Reason and message for a call that a policy denies; `text` is what AWS says."""
    reason, words = DENIALS[call]
    return reason, f"{words}: {classify(text)[1]}: {text.partition(_CIPHER)[0].strip()}"


def verdict(node_class: EC2NodeClass, found: DryRun) -> Verdict | None:
    """What the class's condition says of a dry run; None when it says nothing about the class."""
    if found.problem is None:
        return SUCCEEDED
    reason, message = found.problem
    if _profile_is_new(node_class, found):
        return None  # it was made a moment ago
    return (FALSE if reason in _FINAL or reason == PROFILE_NOT_FOUND else UNKNOWN, reason, message)


def holds(node_class: EC2NodeClass, found: DryRun) -> timedelta:
    """How long a dry run's answer is good for."""
    if found.problem is None:
        return HOLDS
    reason = found.problem[0]
    if _profile_is_new(node_class, found):
        return _PROFILE_SEEN
    return DENIED_HOLDS if reason in _FINAL else UNSURE_HOLDS


def dated(found: DryRun, before: DryRun | None) -> DryRun:
    """Return the answer with the time of the first one of the same identity and reason."""
    if before is None or before.problem is None or found.problem is None or before.identity != found.identity:
        return found
    if before.problem[0] != found.problem[0]:
        return found
    return dataclasses.replace(found, since=before.since or before.at)


def _profile_is_new(node_class: EC2NodeClass, found: DryRun) -> bool:
    """Whether EC2 may not see yet the instance profile that Kerf has made for a role."""
    if found.problem is None or found.problem[0] != PROFILE_NOT_FOUND or node_class.spec.instance_profile:
        return False
    return found.at - (found.since or found.at) < _PROFILE_NEW


# --- what is tried ----------------------------------------------------------------------------------------------
def identity(node_class: EC2NodeClass) -> str:
    """Another one when there is something else to try: 32 hexadecimal digits. The class's status has to be the new one.

    A user who wants another check of an EC2NodeClass sets an annotation; those of controllers do not count.
    """
    meta, status = node_class.metadata, node_class.status
    parts = [
        meta.uid,
        meta.generation,
        sorted((key, text) for key, text in meta.annotations.items() if not _ours(key)),
        sorted(subnet.id for subnet in status.subnets),
        sorted(group.id for group in status.security_groups),
        sorted(image.id for image in status.amis),
        status.instance_profile,
    ]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def _ours(annotation: str) -> bool:
    own = (labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION)
    return annotation in own or annotation.startswith(f"{labels.KERF}/")


def request(
    node_class: EC2NodeClass,
    *,
    catalogue: Catalogue,
    pools: Iterable[NodePool],
    cluster: ClusterFacts,
    settings: Settings,
) -> FleetRequest | None:
    """The launch to be tried, of a class with its new status; None when no type can boot its images in its zones.

    `pools` are those that refer to the class. Raises ValueError when the class's user data is malformed.
    """
    linked = sorted(pools, key=lambda pool: pool.name)
    wanted = [rows for pool in linked if (rows := _requirements(pool)) is not None]
    type_ = _type(node_class, catalogue, wanted)
    if type_ is None:
        return None
    image_id = images.pick(type_.requirements, images.table(node_class.status.amis)) or ""
    template = templates.build(
        _claim(node_class, linked[0].name if linked else node_class.name),
        node_class,
        cluster,
        Variant(image_id, type_.capacity["pods"], type_.reserved),
        capacity_type=labels.ON_DEMAND,
        reserved_capacity=settings.gates.reserved_capacity,
        place=Place(_tenancy(wanted)),
    )
    # a name that no launch gives: only the dry run's own template is deleted after it
    template = replace(template, name=template.name.replace(templates.PREFIX, f"{templates.PREFIX}validation-"))
    overrides = tuple(_overrides(node_class, type_, template.image_id, template.name))
    return FleetRequest(
        group=identity(node_class),
        capacity_type=labels.ON_DEMAND,
        members=(node_class.name,),
        templates=(template,),
        overrides=overrides,
        tags=template.tags,
        context=node_class.spec.context or "",
    )


def _requirements(pool: NodePool) -> Requirements | None:
    """What a NodePool asks of types; None when that cannot be read, which is reported elsewhere."""
    try:
        return pool.requirements()
    except ValueError:
        return None


def _claim(node_class: EC2NodeClass, pool_name: str) -> NodeClaim:
    """The claim that would be launched; it is never made."""
    ref = NodeClassRef(group=labels.AWS_GROUP, kind="EC2NodeClass", name=node_class.name)
    meta = ObjectMeta(name=node_class.name, labels={labels.NODEPOOL: pool_name, labels.NODECLASS: node_class.name})
    return NodeClaim(metadata=meta, spec=NodeClaimSpec(node_class_ref=ref))


def _tenancy(wanted: Iterable[Requirements]) -> str:
    """On hardware of one's own as soon as a NodePool names it: who may do that may do the usual, too."""
    named = any(TENANCY in rows and rows[TENANCY].has(_DEDICATED) for rows in wanted)
    return _DEDICATED if named else _SHARED


def _type(node_class: EC2NodeClass, catalogue: Catalogue, wanted: list[Requirements]) -> InstanceType | None:
    """The smallest plain type that a NodePool can have; else a usual one, else any that boots."""
    table = images.table(node_class.status.amis)
    zones = {subnet.zone for subnet in node_class.status.subnets}

    def boots(type_: InstanceType) -> bool:
        reachable = any(offering.zone in zones for offering in type_.offerings)
        return reachable and images.pick(type_.requirements, table) is not None

    def suits(type_: InstanceType) -> bool:
        to_be_had = any(offering.available for offering in type_.offerings)
        return to_be_had and any(type_.requirements.conflict(rows) is None for rows in wanted)

    ordered = sorted(catalogue, key=_preference)
    if not families.of(node_class.family).windows:
        found = next((type_ for type_ in ordered if suits(type_) and boots(type_)), None)
        if found is not None:
            return found
    usual = sorted((t for t in ordered if t.name in _USUAL), key=lambda t: _USUAL.index(t.name))
    return next((type_ for type_ in (*usual, *ordered) if boots(type_)), None)


def _preference(type_: InstanceType) -> tuple[bool, int, int, str]:
    return candidates.exotic(type_), type_.capacity["cpu"], type_.capacity["memory"], type_.name


def _overrides(node_class: EC2NodeClass, type_: InstanceType, image_id: str, template: str) -> Iterator[Override]:
    """One for each zone, as a fleet may name them: into the subnet that is listed first."""
    offered = {o.zone for o in type_.offerings if o.available} or {o.zone for o in type_.offerings}
    taken = set[str]()
    for subnet in node_class.status.subnets:
        if subnet.zone in offered and subnet.zone not in taken:
            taken.add(subnet.zone)
            yield Override(
                instance_type=type_.name,
                zone=subnet.zone,
                subnet_id=subnet.id,
                image_id=image_id,
                template=template,
                zone_id=subnet.zone_id,
            )
