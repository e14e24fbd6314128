"""All checks in their order: those before installation, then those of the Kerf that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kerf.aws.cloud import AwsCloud
from kerf.aws.requests.clients import Clients
from kerf.model import kinds
from kerf.ports import PortError
from kerf.runtime.preflight import account as aws
from kerf.runtime.preflight import (
    account_limits,
    admission,
    cluster,
    controller,
    identity,
    served,
    situation,
    surroundings,
    to_come,
)
from kerf.runtime.preflight.asking import ANONYMOUS, Account, Asker, Kube
from kerf.runtime.preflight.checks import CHECKS, Check
from kerf.runtime.preflight.cluster import Objects
from kerf.runtime.preflight.findings import GOOD, WRONG, Finding, unchecked
from kerf.runtime.preflight.situation import Given, Situation
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError

Result = tuple[Check, Finding]
#: What `surroundings` finds, by the check.
_AROUND: Final = {
    surroundings.SPOT_ROLE: "spot-role",
    surroundings.ENDPOINTS: "endpoints",
    surroundings.POD_IDENTITY: "agent",
}


@dataclass(frozen=True, slots=True)
class World:
    """The ways to the cluster and to AWS. `kube` raises PortError; `clients` and `cloud` raise SettingsError."""

    kube: Callable[[], Kube]
    clients: Callable[[Options], Clients]
    cloud: Callable[[Options, Any], AwsCloud]
    now: Callable[[], datetime]
    #: How slow the answers of the API server have been up to now, in words; empty when they were not.
    slow: Callable[[], str] = str


def look(world: World, given: Given, unreachable: Callable[[str], str]) -> Iterator[Result]:
    """Every finding with its check. `unreachable` returns the fix for an API server that does not answer, by its error.

    Raises SettingsError when nothing names the settings.
    """
    asker, first = _api_server(world, unreachable)
    yield CHECKS["api-server"], first
    try:
        found = situation.find(asker, given)
    except SettingsError as error:
        if asker is None:
            return
        if not any(problem.startswith("Deployment ") for problem in error.problems):
            raise
        yield CHECKS["settings"], Finding("settings", WRONG, "; ".join(error.problems), "correct the chart's values")
        return
    yield from _named("settings", _settings(found))
    clients = world.clients(found.options)
    if asker is None:
        yield from _account(clients, found, world.now)
        return
    pools, classes = (cluster.objects(asker.kube, kind) for kind in (kinds.NODE_POOL, kinds.NODE_CLASS))
    yield from _before(asker, clients, found, world.now)
    yield from _first_node(clients, found.options, pools, classes)
    around = surroundings.look(asker.kube, clients, found.options, pools.items, classes.items)
    yield from ((CHECKS[_AROUND.get(one.what, "windows")], one) for one in around)
    if found.expected is None:
        yield from _after(asker, clients, found)
        yield from _named("node-pools", _pools(pools, classes))
        yield from _named("node-classes", _classes(world, asker, found, classes))
    yield from _named("api-server", cluster.pace(world.slow()))


def _api_server(world: World, unreachable: Callable[[str], str]) -> tuple[Asker | None, Finding]:
    try:
        kube = world.kube()
    except PortError as error:
        return None, Finding("API server", WRONG, str(error), unreachable(str(error)))
    first = cluster.version(kube)
    if first.how == WRONG and not first.seen.startswith("Kubernetes"):
        return None, Finding(first.what, WRONG, first.seen, unreachable(first.seen))
    asker = Asker(kube)
    if asker.caller() == ANONYMOUS:
        seen = f"requests have no credentials: the API server treats them as requests of {ANONYMOUS}"
        return None, Finding(first.what, WRONG, seen, unreachable(seen))
    return asker, first


def _settings(found: Situation) -> Iterator[Finding]:
    if found.unknown:
        yield unchecked("settings", f"{found.unknown}; they are {found.of}")
        return
    yield Finding("settings", GOOD, found.of)
    if found.installed is None:
        return
    yield from controller.elsewhere(found.installed)
    yield from controller.others(found.installed)


# --- before -------------------------------------------------------------------------------------------------------
def _account(clients: Clients, found: Situation, now: Callable[[], datetime]) -> Iterator[Result]:
    options = found.options
    yield CHECKS["clock"], identity.clock(clients, now)
    caller = aws.caller(clients)
    yield CHECKS["aws"], caller
    if caller.how == WRONG:
        return
    yield from _named("aws-permissions", aws.calls(clients, options))
    if found.unknown and not options.interruption_queue:
        yield CHECKS["queue"], unchecked("interruption queue", found.unknown)
    else:
        yield from _named("queue", aws.queue(clients, options.interruption_queue))
    if options.interruption_queue:
        yield CHECKS["rules"], account_limits.rules(clients, options.interruption_queue, isolated=options.isolated_vpc)
    yield from _named("quota", account_limits.quotas(clients, isolated=options.isolated_vpc))
    if options.enable_zonal_shift:
        yield from _named("zonal-shift", aws.zonal_shift(clients, options.cluster_name))


def _before(asker: Asker, clients: Clients, found: Situation, now: Callable[[], datetime]) -> Iterator[Result]:
    yield CHECKS["region"], identity.region(asker, clients)
    yield from _named("cluster-name", identity.cluster_name(asker, clients, found))
    yield from _account(clients, found, now)
    policy = found.installed or found.expected
    if policy is not None:
        yield CHECKS["dns"], controller.dns(asker, policy.dns_policy)
    else:
        yield CHECKS["dns"], unchecked(controller.DNS, found.unknown)
    if found.account is not None:
        yield CHECKS["controller-role"], _role(asker, clients, found, found.account)
    else:
        yield CHECKS["controller-role"], unchecked(controller.ROLE_OF_CONTROLLER, found.unknown)
    if found.expected is not None:
        yield CHECKS["image-name"], to_come.image_name(found.expected.image)


def _role(asker: Asker, clients: Clients, found: Situation, account: Account) -> Finding:
    """Before installation the values annotate the ServiceAccount, which is not there."""
    if found.expected is None:
        return controller.role(asker, clients, found.options, account)
    return controller.role_finding(clients, found.options, account, found.expected.role)


def _first_node(clients: Clients, options: Options, pools: Objects, classes: Objects) -> Iterator[Result]:
    """Names that are not given are assumed to be those of the examples; objects that are not known may give them."""
    if classes.unknown:
        yield CHECKS["node-role"], unchecked("role of nodes", classes.unknown)
        yield CHECKS["discovery"], unchecked("subnets and security groups", classes.unknown)
    elif not classes.items:
        role = to_come.node_role(clients, options.cluster_name, isolated=options.isolated_vpc)
        yield CHECKS["node-role"], role
        yield from _named("discovery", to_come.discovery(clients, options.cluster_name))
    if pools.unknown:
        yield CHECKS["spot-role"], unchecked(surroundings.SPOT_ROLE, pools.unknown)
    elif not pools.items:
        yield CHECKS["spot-role"], surroundings.spot_role(clients, isolated=options.isolated_vpc)


# --- after --------------------------------------------------------------------------------------------------------
def _after(asker: Asker, clients: Clients, found: Situation) -> Iterator[Result]:
    settings, account = found.options.settings, found.account
    if account is None:
        blocked: Finding | None = unchecked("permissions of the controller", found.unknown)
    else:
        blocked = cluster.may_ask_for(asker, account)
    yield from _named("kinds", cluster.kinds_served(asker, settings, cluster.Whose(account, blocked is None)))
    yield from _named("definitions", served.look(asker.kube))
    if blocked is None:
        yield from _named("permissions", cluster.permissions(asker, settings, account))
    else:
        yield CHECKS["permissions"], blocked
    if account is not None:
        yield CHECKS["controller-clock"], controller.clock(asker, found.options, account)
    else:
        yield CHECKS["controller-clock"], unchecked(controller.CLOCK, found.unknown)
    if found.installed is not None:
        yield CHECKS["image"], controller.image(asker, found.installed)
    else:
        yield CHECKS["image"], unchecked(controller.IMAGE, found.unknown)
    yield CHECKS["webhook"], admission.look(asker)


def _pools(pools: Objects, classes: Objects) -> Iterator[Finding]:
    """None when a CRD is missing: the finding about the kind has the fix."""
    if unknown := pools.unknown or classes.unknown:
        yield unchecked(kinds.NODE_POOL.names, unknown)
    elif pools.served and classes.served:
        yield from cluster.node_pools(pools.items, classes.items)


def _classes(world: World, asker: Asker, found: Situation, classes: Objects) -> Iterator[Finding]:
    if classes.unknown:
        yield unchecked(kinds.NODE_CLASS.names, classes.unknown)
    if classes.unknown or not classes.served:
        return
    try:
        yield from aws.look_at_classes(world.cloud(found.options, asker.kube), classes.items)
    except PortError as error:
        yield Finding("EC2NodeClasses", WRONG, str(error))


def _named(check: str, findings: Iterable[Finding]) -> Iterator[Result]:
    return ((CHECKS[check], one) for one in findings)
