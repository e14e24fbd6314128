"""Teaches moto, inside its process, what real AWS does and moto does not. Each method names its source."""

from __future__ import annotations

import json
import time
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import unix_time
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError
from moto.ec2.responses import EC2Response
from moto.iam.models import ManagedPolicy
from moto.iam.responses import IamResponse
from moto.sqs.models import Message, SQSBackend

from . import ailments, placement, reservations
from .fleet import create_fleet
from .instance_rows import filters_of, instance_row, passes
from .market import Market
from .templates import check_instance
from .wire import page_of
from .world import World


def extend(world: World, market: Market) -> None:
    """Replace these operations of moto's EC2 and IAM, in this process."""
    for method in _lists(market) + _instances(world, market):
        setattr(EC2Response, method.__name__, method)
    IamResponse.list_instance_profiles = list_instance_profiles  # type: ignore[method-assign]
    SQSBackend.is_message_valid_based_on_retention_period = _still_kept  # type: ignore[method-assign]
    _read_documents()


def _still_kept(self: SQSBackend, queue_name: str, message: Message) -> bool:
    """Whether a queue still has a message, without counting all others for each. Source: SQS developer guide, message
    retention period."""
    kept_seconds: int = self.get_queue(queue_name).message_retention_period  # type: ignore[attr-defined]
    return unix_time() < kept_seconds + (message.sent_timestamp or 0) / 1000


def _read_documents() -> None:
    """A stack may give a policy as text. Source: CloudFormation template reference, AWS::IAM::ManagedPolicy (Json)."""
    make = ManagedPolicy.create_from_cloudformation_json

    def create_from_cloudformation_json(
        resource_name: str, cloudformation_json: dict[str, Any], *rest: Any, **more: Any
    ) -> Any:
        properties = cloudformation_json["Properties"]
        if isinstance(properties["PolicyDocument"], str):
            properties["PolicyDocument"] = json.loads(properties["PolicyDocument"])
        return make(resource_name, cloudformation_json, *rest, **more)

    ManagedPolicy.create_from_cloudformation_json = staticmethod(create_from_cloudformation_json)  # type: ignore[method-assign]


def _lists(market: Market) -> list[Any]:
    def describe_instance_types(self: Any) -> str:
        return market.types_page(self)

    def describe_instance_type_offerings(self: Any) -> str:
        return market.offerings_page(self)

    def describe_spot_price_history(self: Any) -> str:
        return market.spot_page(self)

    return [describe_instance_types, describe_instance_type_offerings, describe_spot_price_history]


def _instances(world: World, market: Market) -> list[Any]:
    create_tags_as_moto = EC2Response.create_tags
    run_as_moto = EC2Response.run_instances

    def create_fleet_(self: Any) -> ActionResult:
        asked = time.time()
        answer = create_fleet(world, market, self)
        world.record_fleet(asked, answer)
        return ActionResult(answer)

    create_fleet_.__name__ = "create_fleet"

    def run_instances(self: Any) -> ActionResult:
        check_instance(self)
        return run_as_moto(self)

    def describe_instances(self: Any) -> str:
        """New instances may be missing for a while, and a page may be short. Source: EC2 API reference, "Eventual
        consistency" and "Pagination".
        """
        with world.settled():
            hidden = world.hidden()
            wanted = self._get_param("InstanceIds", [])
            if hidden.intersection(wanted):
                raise InvalidInstanceIdError(sorted(hidden.intersection(wanted)))
            found = self.ec2_backend.get_multi_instances_by_id(wanted) if wanted else self.ec2_backend.all_instances()
            filters = filters_of(self)
            shown = [one for one in found if one.id not in hidden and passes(one, filters)]
            rows = [{"ReservationId": f"r-{one.id[2:]}", "Instances": [instance_row(one)]} for one in shown]
        return page_of(self, "DescribeInstances", "Reservations", rows, world.describe_page)

    def describe_instance_status(self: Any) -> str:
        """An unknown ID is an error. Source: EC2 API reference."""
        self.error_on_dryrun()
        wanted = self._get_param("InstanceIds", [])
        with world.settled():
            every = self.ec2_backend.get_multi_instances_by_id(wanted) if wanted else self.ec2_backend.all_instances()
            running = {one.id: one.placement for one in every if one.state == "running"}
            rows = ailments.rows(world.ailments, running, self._filters_from_querystring())
        return page_of(self, "DescribeInstanceStatus", "InstanceStatuses", rows, world.describe_page)

    def describe_capacity_reservations(self: Any) -> str:
        """An unknown ID is an error. Source: EC2 API reference, error codes."""
        wanted = self._get_param("CapacityReservationIds", [])
        with world.settled():
            for id_ in wanted:
                if id_ not in world.reservations:
                    text = f"The capacity reservation '{id_}' does not exist"
                    raise EC2ClientError("InvalidCapacityReservationId.NotFound", text)
            known = [world.reservations[id_] for id_ in wanted] or world.reservations.values()
            instances = self.ec2_backend.all_instances()
            rows = reservations.rows(known, instances, self._filters_from_querystring())
        return page_of(self, "DescribeCapacityReservations", "CapacityReservations", rows, world.describe_page)

    def describe_placement_groups(self: Any) -> ActionResult:
        self.error_on_dryrun()
        named = self._get_param("GroupIds", []), self._get_param("GroupNames", [])
        with world.settled():
            found = placement.rows(world.placement_groups, *named, self._filters_from_querystring())
        return ActionResult({"PlacementGroups": found})

    def terminate_instances(self: Any) -> ActionResult:
        """Those that are ending already are fine too. Source: EC2 API reference, TerminateInstances."""
        self.error_on_dryrun()
        with world.settled():
            rows = [
                world.end(one) for one in self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds"))
            ]
        return ActionResult({"TerminatingInstances": rows})

    def create_tags(self: Any) -> ActionResult:
        """Unknown instances are an error. Source: EC2 API reference, error codes, InvalidInstanceID.NotFound."""
        with world.settled():
            self.ec2_backend.get_multi_instances_by_id([id_ for id_ in self._get_param("Resources") if id_[:2] == "i-"])
            return create_tags_as_moto(self)

    lists = [describe_instances, describe_instance_status, describe_capacity_reservations, describe_placement_groups]
    return [create_fleet_, run_instances, *lists, terminate_instances, create_tags]


def list_instance_profiles(self: Any) -> ActionResult:
    """Only those under PathPrefix. Source: IAM API reference, ListInstanceProfiles."""
    prefix = self._get_param("PathPrefix", "/")
    found = [one for one in self.backend.get_instance_profiles() if one.path.startswith(prefix)]
    return ActionResult({"InstanceProfiles": found})
