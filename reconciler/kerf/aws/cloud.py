"""The Cloud port over boto3: the reconciler's whole view of AWS, put together from one module per service.

Nothing here decides. Reads are complete (all pages) or fail; writes are one call each; what AWS answers is returned as
facts or as an error that says what to do next. Remembered between calls are the names of launch templates, the roles
that IAM did not know a moment ago, and (in `Answers`) what parameters said of images, which instance profiles were
found, and what a look at a node class had learned when it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from kerf.aws import dry_runs, profiles
from kerf.aws.interruptions import Queue
from kerf.aws.launch import fleets
from kerf.aws.launch.launch_templates import LaunchTemplates
from kerf.aws.launch.terminations import Terminations
from kerf.aws.observe import instances, networks, placement_groups, prices, reservations, statuses, types, zonal_shifts
from kerf.aws.observe.cluster_facts import KnownFacts, ServerFacts, check_version, read_cluster
from kerf.aws.observe.images import ImageReader, Selected, UnsupportedAlias
from kerf.aws.requests.answers import Answer, Answers, Ask, Key, just_under
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.pace import Pace
from kerf.aws.requests.parallel import together
from kerf.ec2.nodeclass import profile_verdicts, unmatched
from kerf.ec2.nodeclass.nodeclass import profiles_path
from kerf.model.aws.cloud import (
    CapacityReservation,
    ClassFacts,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Impairment,
    Instance,
    LaunchTemplate,
    Region,
    ZonalShift,
)
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import PROFILE, Resource
from kerf.ports import Invalid, PortError
from kerf.telemetry.log.logs import Logger, silent
from kerf.telemetry.precedence import GiveWay, at_once
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.ec2nodeclass import EC2NodeClass

Problem = tuple[str, str]
#: What a look at a node class has learned is good for its repetition for so long, should it fail.
ATTEMPT_SECONDS: Final = 60.0
_ATTEMPT: Final = "attempt"
#: What every launch makes fewer of: free addresses, free machines of capacity reservations.
_COUNTED: Final = frozenset({"describe_subnets", "describe_capacity_reservations"})


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """Which cluster and account, and what is asked there.

    `endpoint_url` replaces the address of every service; `session` is a boto3 Session (default: the usual credential
    chain). `queue_wait_seconds` is how long `receive` waits for a first message. Without `reserved_capacity` AWS is not
    asked for capacity reservations. What a public parameter says of the latest image is remembered for about
    `image_refresh`.
    """

    cluster_name: str
    region: str
    cluster_endpoint: str = ""
    ca_bundle: str = ""
    interruption_queue: str = ""
    isolated_vpc: bool = False
    eks_control_plane: bool = False
    reserved_capacity: bool = True
    session: Any | None = None
    endpoint_url: str | None = None
    queue_wait_seconds: int = 20
    image_refresh: timedelta = timedelta(0)


class AwsCloud:
    """AWS in one region, for one cluster. Implements `kerf.ports.Cloud`; safe for many threads.

    `server` is asked whenever the cluster's facts are. `logger` gets a version of Kubernetes that is not known;
    `give_way` is called before each small step of a long computation; `pace` is what requests to EC2 keep to (default:
    its usual one); `on_client` is handed each client of boto3 that is made.
    """

    def __init__(
        self,
        options: AwsOptions,
        *,
        server: Callable[[], ServerFacts] = ServerFacts,
        logger: Logger | None = None,
        give_way: GiveWay = at_once,
        pace: Pace | None = None,
        on_client: Callable[[Any], None] = lambda client: None,
    ) -> None:
        self._logger, self._give_way, self._server = logger or silent(), give_way, server
        self._clients = Clients(options.region, options.session, options.endpoint_url, pace or Pace(), on_client)
        self._reserved_capacity = options.reserved_capacity
        self._known = KnownFacts(
            name=options.cluster_name,
            endpoint=options.cluster_endpoint,
            ca_bundle=options.ca_bundle,
            eks_control_plane=options.eks_control_plane,
            isolated_vpc=options.isolated_vpc,
        )
        self._answers = Answers()
        self._images = ImageReader(self._clients, self._answers, just_under(options.image_refresh))
        self._templates = LaunchTemplates(self._clients, options.cluster_name)
        self._queue = Queue(self._clients, options.interruption_queue, options.queue_wait_seconds)
        self._profiles = profiles.Maker()
        self._terminations = Terminations(lambda: self._clients.get("ec2"))

    # --- what is the same for everyone ------------------------------------------------------------------------------
    def region(self) -> Region:
        ec2 = self._clients.get("ec2")
        infos, zones = together([lambda: types.read_types(ec2), lambda: types.read_offerings(ec2)])
        offered = {name: zones[name] for name in infos if name in zones}
        return Region(
            name=self._clients.region,
            types={name: infos[name] for name in offered},
            zones_by_type=offered,
            on_demand={},
            spot={},
            zones=tuple(sorted({zone for places in offered.values() for zone in places})),
        )

    def on_demand_prices(self) -> Mapping[str, int]:
        return {} if self._known.isolated_vpc else prices.read_on_demand(self._clients)

    def spot_prices(self) -> Mapping[tuple[str, str], int]:
        return prices.read_spot(self._clients.get("ec2"))

    def cluster(self) -> ClusterFacts:
        server = self._server()
        known = replace(
            self._known,
            ca_bundle=self._known.ca_bundle or server.ca_bundle,
            dns_ip=server.dns_ip,
            kubernetes_version=server.kubernetes_version,
        )
        facts = read_cluster(self._clients, known)
        check_version(facts.kubernetes_version, self._logger)
        return facts

    # --- node classes -----------------------------------------------------------------------------------------------
    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        """Subnets, groups, images, profile, capacity reservations and placement group of a class, asked for at once.

        When one of these cannot be had, what was answered is kept for the repetition.
        """
        uid = node_class.metadata.uid
        found = self._resolved(node_class, cluster, partial(self._ask_once, uid))
        self._answers.forget(lambda key: key[:2] == (_ATTEMPT, uid))
        return found

    def _ask_once(self, uid: str, key: Key, read: Callable[[], Answer]) -> Answer:
        return self._answers.ask((_ATTEMPT, uid, *key), read, ATTEMPT_SECONDS)

    def _resolved(self, node_class: EC2NodeClass, cluster: ClusterFacts, ask: Ask) -> ClassFacts:
        ec2, spec = self._clients.get("ec2"), node_class.spec
        problems: dict[str, Problem] = {}
        subnets, groups, selected, profile, reserved, placed = together(
            [
                lambda: networks.read_subnets(ec2, spec.subnet_selector_terms, ask),
                lambda: networks.read_security_groups(ec2, spec.security_group_selector_terms, ask),
                lambda: self._read_images(node_class, cluster.kubernetes_version, problems, ask),
                lambda: self._read_profile(node_class, problems),
                lambda: self._read_reservations(ec2, node_class, ask),
                lambda: placement_groups.read_placement_group(ec2, spec.placement_group_selector, ask),
            ]
        )
        images = selected.images
        for condition, found in (("SubnetsReady", subnets), ("SecurityGroupsReady", groups), ("AMIsReady", images)):
            if not found:
                problems.setdefault(condition, unmatched.problem(condition, node_class))
        if spec.placement_group_selector is not None and placed is None:
            problems["PlacementGroupReady"] = unmatched.placement_group(node_class)
        return ClassFacts(
            generation=node_class.metadata.generation,
            subnets=subnets,
            security_groups=groups,
            images=images,
            images_complete=selected.complete,
            instance_profile=profile,
            problems=problems,
            reservations=reserved,
            placement_group=placed,
        )

    def ensure_instance_profile(self, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
        with profiles.changing(self._answers):
            self._profiles.ensure(self._clients.get("iam"), name, role, path, tags)

    def delete_class_resources(self, class_name: str, profile_path: str) -> None:
        self._templates.delete_of_class(class_name)
        if profile_path and not self._known.isolated_vpc:
            iam = self._clients.get("iam")
            with profiles.changing(self._answers):
                profiles.delete_under(iam, profile_path)
                profiles.delete_named(iam, profiles.legacy_name(self._clients.region, self._known.name, class_name))

    # --- what is listed to see whether anything needs it ------------------------------------------------------------
    def launch_templates(self) -> Sequence[Resource]:
        return self._templates.all()

    def instance_profiles(self) -> Sequence[Resource]:
        path = profiles_path(self._clients.region, self._known.name)
        return profiles.all_under(self._clients.get("iam"), path)

    def delete_resource(self, resource: Resource) -> None:
        if resource.kind == PROFILE:
            with profiles.changing(self._answers):
                profiles.delete_named(self._clients.get("iam"), resource.id)
        else:
            self._templates.delete(resource)

    # --- instances --------------------------------------------------------------------------------------------------
    def instances(self) -> Sequence[Instance]:
        return instances.read_instances(self._clients.get("ec2"), self._known.name, self._give_way)

    def impairments(self, of: Sequence[str] | None = None) -> Sequence[Impairment]:
        return statuses.read_impairments(self._clients.get("ec2"), of)

    def zonal_shifts(self, cluster: ClusterFacts) -> Sequence[ZonalShift]:
        return zonal_shifts.read_zonal_shifts(self._clients.get("arc-zonal-shift"), cluster.arn)

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        try:
            result = fleets.create_fleet(self._clients, self._templates, request, may_act)
        except Invalid as error:
            self._doubt_profiles(str(error))
            raise
        finally:
            self._answers.forget(lambda key: key[0] == _ATTEMPT and key[2] in _COUNTED)
        self._doubt_profiles(*(error.message for error in result.errors))
        return result

    def ensure_template(self, template: LaunchTemplate) -> None:
        self._templates.ensure((template,))

    def dry_run(self, request: FleetRequest) -> Problem | None:
        problem = dry_runs.dry_run(self._clients, self._templates, request)
        self._doubt_profiles(problem[1] if problem else "")
        return problem

    def _doubt_profiles(self, *words: str) -> None:
        """Ask IAM again when EC2 refuses the instance profile of a launch."""
        if any(map(profiles.unfit, words)):
            profiles.forget(self._answers)

    def terminate(self, instance_id: str) -> None:
        self._terminations.end(instance_id)

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        instances.tag(self._clients.get("ec2"), instance_id, tags)

    # --- interruption queue -----------------------------------------------------------------------------------------
    def receive(self) -> Sequence[Message]:
        return self._queue.receive()

    def delete_message(self, message: Message) -> None:
        self._queue.delete(message)

    # --- parts ------------------------------------------------------------------------------------------------------
    def _read_images(self, node_class: EC2NodeClass, version: str, problems: dict[str, Problem], ask: Ask) -> Selected:
        try:
            return self._images.read(node_class.spec.ami_selector_terms, version, ask)
        except UnsupportedAlias as reason:
            problems["AMIsReady"] = ("UnsupportedAlias", str(reason))
        except Invalid as error:  # EC2 refuses the terms themselves, such as an owner that cannot be
            if _is_true(node_class, "AMIsReady"):
                raise
            problems["AMIsReady"] = ("AMIResolutionFailed", str(error))
        return Selected()

    def _read_reservations(self, ec2: Any, node_class: EC2NodeClass, ask: Ask) -> tuple[CapacityReservation, ...]:
        terms = node_class.spec.capacity_reservation_selector_terms if self._reserved_capacity else ()
        return reservations.read_reservations(ec2, terms, datetime.now(UTC), ask)

    def _read_profile(self, node_class: EC2NodeClass, problems: dict[str, Problem]) -> str:
        """Return the named profile, or the profile of a role if IAM has it; IAM is not asked in an isolated VPC.

        Raises PortError when IAM does not answer for a class whose profile is known: the known facts stay.
        """
        spec, known = node_class.spec, node_class.status.instance_profile
        if spec.instance_profile:
            self._check_named(spec.instance_profile, problems)
            return spec.instance_profile
        if not spec.role:
            return known
        if self._known.isolated_vpc:
            if not known:
                problems[profile_verdicts.CONDITION] = profile_verdicts.isolated(node_class)
            return known
        path = profiles.profile_path(self._clients.region, self._known.name, node_class.metadata.uid)
        try:
            return profiles.find(self._clients.get("iam"), path, spec.role, known, self._answers)
        except PortError as error:
            if known and _is_true(node_class, profile_verdicts.CONDITION):
                raise
            problems[profile_verdicts.CONDITION] = profile_verdicts.failed(error)
            return ""

    def _check_named(self, name: str, problems: dict[str, Problem]) -> None:
        if self._known.isolated_vpc:
            return
        problem = profiles.named_problem(self._clients.get("iam"), name, self._answers)
        if problem is not None:
            problems[profile_verdicts.CONDITION] = problem

    def role_problem(self, role: str) -> PortError | None:
        """Return the error that IAM answers to a question for a role; None when the role exists."""
        return profiles.role_problem(self._clients.get("iam"), role)


def _is_true(node_class: EC2NodeClass, type_: str) -> bool:
    """Whether a condition is True for the present generation: then the known facts outlast a failed request."""
    found = conditions.get(node_class.status.conditions, type_)
    return found is not None and found.status == TRUE and found.observed_generation == node_class.metadata.generation
