"""Where `kerf migrate check` looks: a cluster, or files from `kubectl get -o yaml`. The same questions to both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from kerf.cli.answering import cluster_files
from kerf.cli.gathering import sources
from kerf.kube.client import KubeClient
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Image, Region, SecurityGroup, Subnet
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.snapshot import Snapshot
from kerf.ports import AlreadyGone, Forbidden
from kerf.runtime.observe import looking
from kerf.runtime.preflight import account, cluster
from kerf.runtime.preflight.findings import Finding
from kerf.runtime.process import connecting
from kerf.runtime.process.clock import SystemClock
from kerf.runtime.settings.options import Options
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass

Manifest = Mapping[str, Any]

#: What is looked at as it is written, and where the API server has it.
PATHS: Final = {
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "NodeOverlay": "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    "CapacityBuffer": "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers",
    "Deployment": "/apis/apps/v1/deployments",
    "ServiceAccount": "/api/v1/serviceaccounts",
}


class Cluster(Protocol):
    """What the check asks."""

    @property
    def live(self) -> bool:
        """Whether it is a cluster, whose AWS can be asked, too."""

    @property
    def manifests(self) -> Mapping[str, Sequence[Manifest]]:
        """By kind; a kind that may not be read, or is not served, has none."""

    @property
    def withheld(self) -> Sequence[str]:
        """Kinds that may not be listed."""

    def snapshot(self, options: Options) -> Snapshot:
        """What Kerf would decide from. Raises PortError, SettingsError."""

    def rights(self, options: Options) -> Iterable[Finding]:
        """What Kerf needs of the API server and of the account, asked with the credentials of the caller."""


# --- a cluster --------------------------------------------------------------------------------------------------
class LiveCluster:
    """See `Cluster`."""

    live = True

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self.manifests: dict[str, list[Manifest]] = {}
        self.withheld: list[str] = []
        for kind, path in PATHS.items():
            try:
                items = kube.request("GET", path)["items"]
            except Forbidden:
                self.withheld.append(kind)
                continue
            except AlreadyGone:
                continue
            version = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
            self.manifests[kind] = [{"apiVersion": version, "kind": kind, **item} for item in items]

    def snapshot(self, options: Options) -> Snapshot:
        clock = SystemClock()
        cloud = connecting.cloud(options, self._kube, clock)
        found = looking.look(self._kube, cloud, options.settings, clock)
        return replace(found, instances=InstanceIndex.of({one.id: one for one in cloud.instances()}))

    def rights(self, options: Options) -> Iterable[Finding]:
        yield from cluster.look(self._kube, options.settings)
        yield from account.look(connecting.clients(options), options)


def live(kubeconfig: str, context: str) -> LiveCluster:
    """Raises PortError."""
    where = connecting.Where(kubeconfig, context)
    return LiveCluster(connecting.client(Options(), where, lambda kind, problem: None, patience=connecting.PATIENCE))


# --- files ------------------------------------------------------------------------------------------------------
class FileCluster:
    """See `Cluster`. AWS is what the statuses of EC2NodeClasses say of it; no instance type is known."""

    live = False

    def __init__(self, found: Sequence[sources.Source]) -> None:
        rows = [row for source in found for row in cluster_files.manifests(source)]
        self._found = cluster_files.of(rows)
        self.manifests: dict[str, list[Manifest]] = {}
        self.withheld: list[str] = []
        for _, manifest in rows:
            self.manifests.setdefault(str(manifest.get("kind", "")), []).append(manifest)

    def snapshot(self, options: Options) -> Snapshot:
        zones = {one.metadata.labels.get(labels.ZONE, "") for one in self._found.objects.get("Node", ())} - {""}
        return looking.look(self._found, _Remembered(tuple(sorted(zones))), options.settings, SystemClock())

    def rights(self, options: Options) -> Iterable[Finding]:
        return ()


def files(paths: Sequence[str]) -> FileCluster:
    """Raises NotFound, BadFile."""
    return FileCluster(sources.find(paths))


@dataclass(frozen=True, slots=True)
class _Remembered:
    """Of Cloud what a look needs: what was known of AWS when the files were written."""

    zones: tuple[str, ...]

    def region(self) -> Region:
        return Region(self.zones[0][:-1] if self.zones else "", {}, {}, {}, {}, self.zones)

    def on_demand_prices(self) -> dict[str, int]:
        return {}

    def spot_prices(self) -> dict[tuple[str, str], int]:
        return {}

    def cluster(self) -> ClusterFacts:
        return ClusterFacts(name="", endpoint="")

    def impairments(self, of: Sequence[str] | None = None) -> tuple[()]:
        return ()

    def zonal_shifts(self, cluster: ClusterFacts) -> tuple[()]:
        return ()

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        status = node_class.status
        return ClassFacts(
            generation=node_class.metadata.generation,
            subnets=tuple(Subnet(one.id, one.zone, one.zone_id) for one in status.subnets),
            security_groups=tuple(SecurityGroup(one.id, one.name) for one in status.security_groups),
            images=tuple(Image(one.id, one.name) for one in status.amis),
            instance_profile=status.instance_profile or "",
        )


def names(manifest: Manifest) -> tuple[str, str]:
    """(namespace, name), as far as it has them."""
    meta = manifest.get("metadata") or {}
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")
