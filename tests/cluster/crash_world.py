"""What a crash test looks at and works with: the objects of one run, and what the API server and EC2 have of them."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from kerf.kube.client import KubeClient
from kerf_api.labels import COMMAND, DISRUPTED_TAINT
from tests.worlds import deployment, node_class, node_pool

from .installation import CLUSTER_NAME, Installation

#: The pods of a run; with a zone for each, as many nodes.
PODS: Final = 2

#: Its pods do not tolerate a disrupted node, so they are evicted.
AGENT: Final[dict[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "agent", "image": "agent", "resources": {"requests": {"cpu": "50m"}}}],
            },
        },
    },
}


def objects(name: str) -> list[dict[str, Any]]:
    """A class, a pool, and a Deployment whose pods need a zone each."""
    spread = {
        "maxSkew": 1,
        "minDomains": PODS,  # or the scheduler puts all on the first node, which the second may follow much later
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    return _objects(name, {"consolidateAfter": "0s"}, {"topologySpreadConstraints": [spread]})


def one_node(name: str) -> list[dict[str, Any]]:
    """A class, a pool that takes no node away for a saving, and pods that share a node, one of which may be away."""
    metadata, selector = {"name": name, "namespace": "default"}, {"matchLabels": {"app": name}}
    spec = {"selector": selector, "maxUnavailable": 1}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    return [*_objects(name, {"consolidateAfter": "Never"}, {}), budget]


def _objects(name: str, disruption: dict[str, Any], pods: dict[str, Any]) -> list[dict[str, Any]]:
    class_ = node_class(name, role="KarpenterNodeRole", cluster=CLUSTER_NAME)
    pool = node_pool(name, {"disruption": {"budgets": [{"nodes": "100%"}], **disruption}})
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = name
    own = {"nodeSelector": {"karpenter.sh/nodepool": name}, "terminationGracePeriodSeconds": 1}
    return [class_, pool, deployment(name, {"replicas": PODS, **own, **pods})]


class World:
    """What the API server and EC2 have of one run, asked directly rather than through the proxy.

    Whatever AWS has now, before the run begins, is none of the run's. It makes so many `nodes`. `fewest_running` pods
    were seen to run at any time.
    """

    def __init__(self, kerf: Installation, name: str, *, nodes: int = PODS) -> None:
        self._aws, self._name, self._of_pool = kerf.aws, name, f"karpenter.sh/nodepool={name}"
        self._made, self.fewest_running = nodes, PODS
        self._kube = KubeClient.from_kubeconfig(kerf.control_plane.kubeconfig)
        self._instances_before = {one["id"] for one in kerf.aws.instances()}
        self._resources_before = self._resources()

    def amiss_at_height(self) -> list[str]:
        """What is not yet as it should be: all pods run, each claim has its node and its one instance."""
        claims, nodes = self._claims(), self._nodes("karpenter.sh/initialized=true")
        amiss = _unlike("pods running", self._running(), PODS)
        amiss += _unlike("claims", len(claims), self._made)
        amiss += [f"claim {name} has no node" for name, id_ in claims.items() if not id_ or id_ not in nodes]
        return amiss or self._amiss_in_ec2(set(claims.values()))

    def amiss_after(self, old: str) -> list[str]:
        """Of a claim (by UID) that was to be replaced: that it is left, or its instance, or marks of its command."""
        self.fewest_running = min(self.fewest_running, self._running())
        claims = self._objects("/apis/karpenter.sh/v1/nodeclaims", self._of_pool)
        amiss = [f"claim {old} is left" for claim in claims if claim["metadata"]["uid"] == old]
        bearing = [claim["metadata"] for claim in claims if COMMAND in claim["metadata"].get("annotations", {})]
        amiss += [f"claim {meta['name']} bears a command" for meta in bearing]
        for node in self._objects("/api/v1/nodes", self._of_pool):
            if any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints", [])):
                amiss.append(f"node {node['metadata']['name']} is tainted")
        live = {one["id"] for one in self._aws.instances("pending", "running")}
        amiss += [f"instance {id_} is left" for id_ in sorted(live & self._instances_before)]
        return amiss or self.amiss_at_height()

    def amiss_when_empty(self) -> list[str]:
        """Claims, nodes and instances that are left."""
        amiss = [f"claim {name} is left" for name in self._claims()]
        amiss += [f"the node of {id_} is left" for id_ in sorted(self._nodes())]
        return amiss or self._amiss_in_ec2(set())

    def amiss_at_end(self) -> list[str]:
        """Pool, class, launch templates, instance profiles and messages that are left."""
        amiss = []
        for kind in ("karpenter.sh/v1/nodepools", "karpenter.k8s.aws/v1/ec2nodeclasses"):
            names = [found["metadata"]["name"] for found in self._objects(f"/apis/{kind}")]
            amiss += [f"{kind} {name} is left" for name in names if name == self._name]
        amiss = amiss or [f"{name} is left" for name in sorted(self._resources() - self._resources_before)]
        return amiss or _unlike("messages in the queue", self._messages(), 0)

    def doubled(self) -> list[str]:
        """Claims that ever had two instances, and instances that nobody needed, whatever became of them since.

        An instance that ended before it was given its claim's tag counts only among all.
        """
        instances = self._instances()
        of_claim: dict[str, list[str]] = {}
        for one in instances:
            of_claim.setdefault(one["tags"].get("karpenter.sh/nodeclaim", ""), []).append(one["id"])
        had = [f"claim {name or '(none)'} had {', '.join(sorted(ids))}" for name, ids in sorted(of_claim.items())]
        twice = any(name and len(ids) > 1 for name, ids in of_claim.items())
        amiss = twice or len(instances) != self._made
        return _unlike("instances ever", len(instances), self._made) + had if amiss else []

    def nodes_by_claim(self) -> dict[str, str]:
        """Name of the node (empty: none yet) by UID of claim."""
        found = self._objects("/apis/karpenter.sh/v1/nodeclaims", self._of_pool)
        return {c["metadata"]["uid"]: c.get("status", {}).get("nodeName", "") for c in found}

    def live(self) -> list[str]:
        """IDs of the run's instances that cost money."""
        return sorted(one["id"] for one in self._instances() if one["state"] in ("pending", "running"))

    def _amiss_in_ec2(self, wanted: set[str]) -> list[str]:
        live = set(self.live())
        missing = [f"instance {id_} is not there" for id_ in sorted(wanted - live)]
        return missing + [f"instance {id_} has no claim" for id_ in sorted(live - wanted)]

    # --- asking -------------------------------------------------------------------------------------------------
    def _instances(self) -> list[dict[str, Any]]:
        return [one for one in self._aws.instances() if one["id"] not in self._instances_before]

    def _resources(self) -> set[str]:
        """What else Kerf makes in AWS."""
        templates = self._aws.client("ec2").describe_launch_templates()["LaunchTemplates"]
        profiles = self._aws.client("iam").list_instance_profiles()["InstanceProfiles"]
        found = {f"launch template {one['LaunchTemplateName']}" for one in templates}
        return found | {f"instance profile {one['InstanceProfileName']}" for one in profiles}

    def _messages(self) -> int:
        """In the queue, those that somebody is dealing with included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        sqs = self._aws.client("sqs")
        url = sqs.get_queue_url(QueueName=CLUSTER_NAME)["QueueUrl"]
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(map(int, counts.values()))

    def _claims(self) -> dict[str, str]:
        """Instance ID (empty: none yet) by name of claim."""
        found = self._objects("/apis/karpenter.sh/v1/nodeclaims", self._of_pool)
        return {c["metadata"]["name"]: _id(c.get("status", {}).get("providerID", "")) for c in found}

    def _running(self) -> int:
        """Pods that run and stay."""
        pods = self._objects("/api/v1/namespaces/default/pods", f"app={self._name}")
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sum(pod["status"].get("phase") == "Running" for pod in alive)

    def _nodes(self, selector: str = "") -> set[str]:
        """Instance IDs of the nodes that have these labels too."""
        selectors = ",".join(filter(None, (self._of_pool, selector)))
        return {_id(node["spec"].get("providerID", "")) for node in self._objects("/api/v1/nodes", selectors)}

    def _objects(self, path: str, selector: str = "") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._kube.request("GET", f"{path}?labelSelector={quote(selector)}")["items"]
        return items


def _id(provider_id: str) -> str:
    return provider_id.rpartition("/")[2]


def _unlike(what: str, found: int, expected: int) -> list[str]:
    return [] if found == expected else [f"{what}: {found} instead of {expected}"]
