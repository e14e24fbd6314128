"""Both adapters of the Cloud port, each with an AWS behind it: the sandbox's EC2 and the real adapter on moto."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.ec2.nodeclass.validation import denial
from kerf.model.aws.cloud import CapacityReservation, PlacementGroup
from kerf.model.aws.interruptions import Message
from kerf.ports import Cloud
from kerf.sandbox.aws.ec2 import VISIBILITY
from kerf.sandbox.world import World
from tests.cluster.moto_aws import MotoAws
from tests.cluster.moto_aws.settings import ZONES

SECONDS = 30.0
SANDBOX_NAME = "sandbox"
OWNER = "123456789012"


class Account(Protocol):
    """An AWS account with a cluster's surroundings in it."""

    cluster_name: str
    role: str

    @property
    def cloud(self) -> Cloud: ...

    @property
    def discovery(self) -> Mapping[str, str]:
        """The tag of the cluster's subnets and security group."""
        ...

    def stock_out(self, instance_type: str, zone: str, capacity_type: str, left: int = 0) -> None:
        """Only so many more are to be had of it."""
        ...

    def reserve(self, id_: str, instance_type: str, zone: str, machines: int, tags: Mapping[str, str]) -> None:
        """The account has a capacity reservation of so many machines in all."""
        ...

    def group(self, id_: str, name: str, strategy: str, partitions: int = 0) -> None:
        """The account has a placement group."""
        ...

    def hide_new_instances(self) -> None:
        """From now on DescribeInstances shows what is launched only after a while."""
        ...

    def deny_launches(self) -> None:
        """A policy does not let the next dry run pass."""
        ...

    def interrupt(self, instance_id: str) -> None:
        """EC2 announces the end of a spot instance."""
        ...

    def ail(self, instance_id: str) -> None:
        """From now on the system's status check of an instance fails."""
        ...

    def recover(self, instance_id: str) -> None:
        """It does not fail any more."""
        ...

    def shift_away(self, zone_id: str, seconds: float) -> None:
        """Traffic of the cluster is shifted away from a zone for so long."""
        ...

    def time_out(self, message: Message) -> None:
        """Whoever received a message has kept it for longer than it stays hidden from others."""
        ...

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Let time pass until this is so; fail when it does not come true."""
        ...


class SandboxAccount:
    """The sandbox's EC2. It always hides new instances for a while."""

    def __init__(self) -> None:
        self._world = World(cluster_name=SANDBOX_NAME)
        self.cloud = self._world.cloud
        self.cluster_name = SANDBOX_NAME
        self.role = "node-role"

    @property
    def discovery(self) -> Mapping[str, str]:
        return {"karpenter.sh/discovery": SANDBOX_NAME}

    def stock_out(self, instance_type: str, zone: str, capacity_type: str, left: int = 0) -> None:
        self._world.ec2.leave(instance_type, zone, capacity_type, left)

    def reserve(self, id_: str, instance_type: str, zone: str, machines: int, tags: Mapping[str, str]) -> None:
        self._world.ec2.reserve(CapacityReservation(id_, instance_type, zone, machines, OWNER), tags)

    def group(self, id_: str, name: str, strategy: str, partitions: int = 0) -> None:
        self._world.ec2.placement_groups.add(PlacementGroup(id_, name, strategy, partitions))

    def hide_new_instances(self) -> None:
        return

    def deny_launches(self) -> None:
        self._world.cloud.objection = denial("ec2:RunInstances", "UnauthorizedOperation")

    def interrupt(self, instance_id: str) -> None:
        self._world.ec2.reclaim_spot(instance_id)

    def ail(self, instance_id: str) -> None:
        self._world.ec2.impair(instance_id)

    def recover(self, instance_id: str) -> None:
        self._world.ec2.recover(instance_id)

    def shift_away(self, zone_id: str, seconds: float) -> None:
        self._world.ec2.shift_away(zone_id, self._world.clock.now() + timedelta(seconds=seconds))

    def time_out(self, message: Message) -> None:
        self._world.run(None, VISIBILITY)

    def eventually(self, holds: Callable[[], bool]) -> None:
        for _ in range(int(SECONDS)):
            if holds():
                return
            self._world.run(None, timedelta(seconds=1))
        assert holds(), "did not come true in time"


class MotoAccount:
    """The real adapter; each test meets full shelves and a prompt DescribeInstances."""

    def __init__(self, aws: MotoAws) -> None:
        self._aws = aws
        self.cluster_name = aws.cluster_name
        self.role = aws.role
        self.cloud: AwsCloud = aws_cloud(aws)
        aws.restock()
        aws.clear_shifts()
        aws.set_describe_delay(0.0)

    @property
    def discovery(self) -> Mapping[str, str]:
        return self._aws.discovery

    def stock_out(self, instance_type: str, zone: str, capacity_type: str, left: int = 0) -> None:
        self._aws.stock_out(instance_type, zone, capacity_type, left=left)

    def reserve(self, id_: str, instance_type: str, zone: str, machines: int, tags: Mapping[str, str]) -> None:
        self._aws.reserve(id_, instance_type, zone, machines, tags)

    def group(self, id_: str, name: str, strategy: str, partitions: int = 0) -> None:
        self._aws.group(id_, name, strategy, partitions)

    def hide_new_instances(self) -> None:
        self._aws.set_describe_delay(1.0)

    def deny_launches(self) -> None:
        self._aws.fail("RunInstances", "UnauthorizedOperation", status=403, times=len(ZONES))

    def interrupt(self, instance_id: str) -> None:
        self._aws.interrupt(instance_id)

    def ail(self, instance_id: str) -> None:
        self._aws.ail(instance_id, "system")

    def recover(self, instance_id: str) -> None:
        self._aws.recover(instance_id)

    def shift_away(self, zone_id: str, seconds: float) -> None:
        self._aws.shift(zone_id, seconds)

    def time_out(self, message: Message) -> None:
        sqs = self._aws.client("sqs")
        url = sqs.get_queue_url(QueueName=self.cluster_name)["QueueUrl"]
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message.receipt, VisibilityTimeout=0)

    def eventually(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, "did not come true in time"
            time.sleep(0.1)


def aws_cloud(aws: MotoAws, **more: Any) -> AwsCloud:
    """A new adapter, as after a restart of the controller; `more` is set, or set otherwise than usual."""
    usual = {"cluster_name": aws.cluster_name, "interruption_queue": aws.cluster_name, "queue_wait_seconds": 0}
    told = {"region": aws.region, "session": aws.session(), "endpoint_url": aws.endpoint_url, **usual, **more}
    options = {name: told.pop(name) for name in AwsOptions.__dataclass_fields__ if name in told}
    return AwsCloud(AwsOptions(**options), **told)
