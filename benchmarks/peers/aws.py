"""Karpenter's controller for AWS, beside moto and the machines of the tests: a peer for whole clusters.

It is the program of Karpenter's own module, of the version that `karpenter_aws/go.mod` pins. It meets the AWS that Kerf
meets in the tests (`tests/cluster/moto_aws`), with nothing of it switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.peers.controller import Peer, PeerController
from benchmarks.peers.karpenter import Target
from tests.cluster.bootstrapper import Bootstrapper
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import CLUSTER_NAME, DESCRIBE_DELAY
from tests.cluster.moto_aws import MotoAws

MODULE: Final = "github.com/aws/karpenter-provider-aws"
TARGET: Final = Target(f"{MODULE}/cmd/controller", "karpenter-aws", "Karpenter's controller for AWS")
AWS: Final = Peer(Path(__file__).resolve().parent / "karpenter_aws", MODULE, TARGET, ("pkg/apis/crds",))


@dataclass(frozen=True, slots=True)
class AwsController:
    """The running controller with its AWS."""

    controller: PeerController
    aws: MotoAws


@contextmanager
def aws_controller(
    cluster: ControlPlane,
    folder: Path,
    families: Sequence[str],
    boots: tuple[float, float],
    settings: Mapping[str, str],
) -> Iterator[AwsController]:
    """The controller on a control plane. `boots` are the least seconds of a machine's boot, and by how many more others
    differ; `settings` are further environment variables. Raises PeerUnavailable when it cannot be built here."""
    with MotoAws(cluster_name=CLUSTER_NAME, describe_delay=DESCRIBE_DELAY, families=tuple(families)) as aws:
        own = {
            **aws.environment(),
            "CLUSTER_NAME": CLUSTER_NAME,
            "CLUSTER_ENDPOINT": cluster.server,
            "INTERRUPTION_QUEUE": CLUSTER_NAME,
            **settings,
        }
        with (
            Bootstrapper(aws, cluster.kubeconfig, boot_seconds=boots[0], uneven_seconds=boots[1]),
            PeerController(cluster, folder, AWS, own) as controller,
        ):
            yield AwsController(controller, aws)
