"""The AWS side of a preflight: who asks, what may be called, the cluster's facts, the queue, and each node class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kerf.aws import probes
from kerf.aws.cloud import AwsCloud
from kerf.aws.requests.clients import Clients
from kerf.ec2.nodeclass import profile_verdicts
from kerf.model.aws.cloud import ClassFacts, ClusterFacts
from kerf.ports import AlreadyGone, Forbidden, Invalid, PortError
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding, unchecked
from kerf.runtime.preflight.to_come import TEMPLATE, tag_command
from kerf.runtime.settings.options import Options
from kerf_api.v1.ec2nodeclass import EC2NodeClass

_POLICIES: Final = "allow it to the controller's role: manifests/aws/policies"
_QUEUE_SETTING: Final = "settings.interruptionQueue (INTERRUPTION_QUEUE)"
#: In the message of a refusal of a signature for its time.
_LATE: Final = ("Signature expired", "Signature not yet current", "RequestExpired")
#: With fewer free addresses in all of its subnets a node class will soon launch nothing.
_FEW_ADDRESSES: Final = 16

#: By condition of an EC2NodeClass.
_FIXES: Final = {
    "SubnetsReady": f"add the tags of subnetSelectorTerms to the subnets: {tag_command('NAME-OF-THE-CLUSTER')}",
    "SecurityGroupsReady": "add the tags of securityGroupSelectorTerms to a group: "
    f"{tag_command('NAME-OF-THE-CLUSTER')}",
    "InstanceProfileReady": f"deploy {TEMPLATE}, or set spec.role or spec.instanceProfile to one that exists in IAM",
    "AMIsReady": "amiSelectorTerms have to name images of this region and of the cluster's Kubernetes version",
}


def look(clients: Clients, options: Options) -> Iterator[Finding]:
    """Who asks, what may be called, and the queue; nothing more without credentials."""
    first = caller(clients)
    yield first
    if first.how == WRONG:
        return
    yield from calls(clients, options)
    yield from queue(clients, options.interruption_queue)
    if options.enable_zonal_shift:
        yield from zonal_shift(clients, options.cluster_name)


def caller(clients: Clients) -> Finding:
    """Who asks AWS; WRONG without credentials."""
    try:
        return Finding("AWS", GOOD, f"{probes.caller(clients)} in {clients.region}")
    except Forbidden as error:
        if any(word in str(error) for word in _LATE):
            return Finding("AWS", WRONG, str(error), "synchronize the clock: the signature is too old or too new")
        return Finding("AWS", WRONG, str(error), "give credentials: a profile or role; the controller by its role")
    except PortError as error:
        return Finding("AWS", UNCHECKED, f"caller not checked: needs an STS endpoint: {error}")


def calls(clients: Clients, options: Options) -> Iterator[Finding]:
    """Whether the caller may read what Kerf reads."""
    for action, probe in probes.reads(clients, options.cluster_name, isolated_vpc=options.isolated_vpc).items():
        yield _allowed(action, probes.outcome(action, probe))


def look_at_classes(cloud: AwsCloud, classes: Sequence[EC2NodeClass]) -> Iterator[Finding]:
    """The cluster's facts, and what AWS has for each class."""
    try:
        facts = cloud.cluster()
    except PortError as error:
        yield Finding("cluster", WRONG, str(error), "set CLUSTER_NAME to an EKS cluster's name, or CLUSTER_ENDPOINT")
        return
    yield Finding("cluster", GOOD, f"{facts.name}, Kubernetes {facts.kubernetes_version}, {facts.endpoint}")
    for node_class in classes:
        yield from _class(cloud, facts, node_class)


def _allowed(action: str, error: PortError | None) -> Finding:
    if error is None or isinstance(error, AlreadyGone):
        return Finding(action, GOOD)
    if isinstance(error, Forbidden):
        return Finding(action, WRONG, str(error), _POLICIES)
    return unchecked(action, str(error))


def queue(clients: Clients, name: str) -> Iterator[Finding]:
    """The interruption queue of this name, if there is one."""
    if not name:
        fix = f"set {_QUEUE_SETTING}: without it spot nodes are terminated without a warning"
        yield Finding("interruption queue", DOUBTFUL, "none is named", fix)
        return
    for action, probe in probes.queue_reads(clients, name).items():
        error = probes.outcome(action, probe)
        if isinstance(error, AlreadyGone):
            seen = f"there is no queue {name} in {clients.region}"
            yield Finding("interruption queue", WRONG, seen, f"deploy {TEMPLATE}, or correct {_QUEUE_SETTING}")
            return
        yield _allowed(action, error)
    yield Finding("interruption queue", GOOD, name)


def zonal_shift(clients: Clients, cluster_name: str) -> Iterator[Finding]:
    """Whether the cluster takes part in zonal shifts."""
    for action, probe in probes.shift_reads(clients, cluster_name).items():
        error = probes.outcome(action, probe)
        if isinstance(error, AlreadyGone):
            fix = "enable it for the EKS cluster (zonalShiftConfig), or leave ENABLE_ZONAL_SHIFT out"
            yield Finding("zonal shift", WRONG, f"cluster {cluster_name} is not part of it: {error}", fix)
        else:
            yield _allowed(action, error)


# --- node classes -----------------------------------------------------------------------------------------------
def _class(cloud: AwsCloud, cluster: ClusterFacts, node_class: EC2NodeClass) -> Iterator[Finding]:
    what = f"EC2NodeClass {node_class.name}"
    if node_class.metadata.unreadable:
        yield Finding(
            what, WRONG, f"it cannot be read: {node_class.metadata.unreadable}", "kerf validate reports the details"
        )
        return
    try:
        facts = cloud.resolve(node_class, cluster)
    except PortError as error:
        yield Finding(what, WRONG, str(error))
        return
    for condition, (reason, message) in facts.problems.items():
        if reason == profile_verdicts.UNAVAILABLE:
            yield Finding(what, UNCHECKED, f"role {node_class.spec.role} not checked: needs an IAM endpoint: {message}")
        else:
            yield Finding(what, WRONG, f"{reason}: {message}", _FIXES.get(condition, ""))
    if not facts.problems:
        yield _found(what, facts)
    if profile_verdicts.CONDITION not in facts.problems:
        yield from _role(cloud, what, node_class, facts)
    yield from _told_by_the_controller(what, node_class)


def _role(cloud: AwsCloud, what: str, node_class: EC2NodeClass, facts: ClassFacts) -> Iterator[Finding]:
    """The role of a class without an instance profile; a profile that carries the role proves that it exists."""
    role = node_class.spec.role
    if not role or facts.instance_profile:
        return
    error = cloud.role_problem(role)
    if isinstance(error, AlreadyGone | Invalid):
        fix = f"deploy {TEMPLATE}, or write the name of an existing role into spec.role"
        yield Finding(what, WRONG, f"{profile_verdicts.ROLE_NOT_FOUND}: {error}", fix)
    elif isinstance(error, Forbidden):
        yield Finding(what, UNCHECKED, f"role {role} not checked: needs iam:GetRole")
    elif error is not None:
        yield Finding(what, UNCHECKED, f"role {role} not checked: needs an IAM endpoint: {error}")


def _found(what: str, facts: ClassFacts) -> Finding:
    free = sum(subnet.free_addresses for subnet in facts.subnets)
    zones = sorted({subnet.zone for subnet in facts.subnets})
    seen = (
        f"{len(facts.subnets)} subnets in {', '.join(zones)} with {free} free addresses, "
        f"{len(facts.security_groups)} security groups, {len(facts.images)} images"
    )
    if free < _FEW_ADDRESSES:
        return Finding(what, DOUBTFUL, seen, "nodes and their pods need addresses: add subnets")
    return Finding(what, GOOD, seen)


def _told_by_the_controller(what: str, node_class: EC2NodeClass) -> Iterator[Finding]:
    """Conditions of the class that are False, as the controller left them."""
    for condition in node_class.status.conditions:
        if condition.status == "False" and condition.type != "Ready":
            yield Finding(what, WRONG, f"{condition.type} is False: {condition.text}")
