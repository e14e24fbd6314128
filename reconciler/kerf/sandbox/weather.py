"""How the sandbox's world behaves: how long things take, and what goes wrong by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Times are seconds of virtual time, rates per hour, shares of one; the world's seed decides whom they hit."""

    #: EC2: from CreateFleet to `running`, how long the call itself takes, and how long Describe hides a new instance.
    launch_seconds: float = 3.0
    fleet_seconds: float = 0.0
    describe_lag_seconds: float = 2.0
    #: From TerminateInstances to `terminated`.
    shutdown_seconds: float = 20.0
    #: From `running` until the kubelet registers its Node, and from there until the Node is Ready.
    boot_seconds: float = 25.0
    ready_seconds: float = 5.0
    #: From binding to Running and Ready; and how long a pod takes to stop (never longer than its grace).
    pod_start_seconds: float = 2.0
    pod_stop_seconds: float = 2.0
    #: From the change of a running pod's resources until the kubelet acts on it.
    resize_seconds: float = 2.0
    #: How long a silent node counts as Ready, and how long pods of a vanished node stay.
    node_monitor_seconds: float = 40.0
    pod_gc_seconds: float = 50.0
    #: From the end of the last pod that used a volume to its detachment.
    detach_seconds: float = 3.0
    #: How many EBS volumes a node can attach beside its root volume.
    attachable_volumes: int = 26
    #: Share of (type, zone, capacity type) that is out of stock, drawn again every hour.
    stock_out_rate: float = 0.0
    spot_reclaim_per_hour: float = 0.0
    #: Share of instances that start but never become a Node; of those that do but whose Node never becomes Ready.
    boot_failure_rate: float = 0.0
    ready_failure_rate: float = 0.0
    #: How long the scheduler takes to look; and whether it takes any node that will do instead of the emptiest.
    scheduling_seconds: float = 0.0
    scattered: bool = False
    #: Nodes that differ from their plan: the share of all nodes, and only of these instance types and NodePools (empty:
    #: all). Each of the rows below applies to these nodes.
    differing_share: float = 1.0
    differing_types: Sequence[str] = ()
    differing_nodepools: Sequence[str] = ()
    #: By resource, the amount that the allocatable of the node lacks: a quantity, or a percentage (`10%`).
    lacking: Mapping[str, str] = field(default_factory=dict)
    #: The number of volumes that the node cannot attach of `attachable_volumes`.
    lacking_attachments: int = 0
    #: Keys of labels that an admission plugin of the cluster removes from each write of the Node.
    missing_labels: Sequence[str] = ()
    #: A taint (`key=value:Effect`) that an agent adds so many seconds after the registration; the seconds until the
    #: agent removes the taint (0: never).
    late_taint: str = ""
    late_taint_after_seconds: float = 1.0
    late_taint_seconds: float = 0.0
