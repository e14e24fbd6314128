"""One EC2 instance of the sandbox, and its whole story."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kerf.model.aws.cloud import HeldReservation, Instance
from kerf_api.v1.ec2nodeclass import BlockDeviceMapping


@dataclass(slots=True)
class Machine:
    """One instance and its whole story; terminated ones stay for inspection. `number` counts launches."""

    id: str
    number: int
    instance_type: str
    zone: str
    zone_id: str
    capacity_type: str
    image_id: str
    subnet_id: str
    security_group_ids: tuple[str, ...]
    user_data: str
    volumes: tuple[BlockDeviceMapping, ...]
    launched: datetime
    visible_at: datetime
    tags: dict[str, str]
    price: int
    state: str = "pending"
    ended: datetime | None = None
    reservation: HeldReservation | None = None
    placement_group: str = ""
    partition: int = 0
    profile: str = ""
    #: Whether it becomes a Node, and that Ready.
    boots: bool = True
    fit: bool = True

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/{self.id}"

    def shown(self) -> Instance:
        return Instance(
            id=self.id,
            instance_type=self.instance_type,
            zone=self.zone,
            state=self.state,
            capacity_type=self.capacity_type,
            launched=self.launched,
            image_id=self.image_id,
            subnet_id=self.subnet_id,
            security_group_ids=self.security_group_ids,
            tags=dict(self.tags),
            zone_id=self.zone_id,
            reservation=self.reservation,
            placement_group=self.placement_group,
            partition=self.partition,
            profile=self.profile,
        )
