"""The commonest slips of a first installation, and the line of `kerf preflight` that names each.

`docs/reference/preflight.md` is rendered from this table, and a test makes each slip and looks for its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kerf.runtime.preflight.checks import CHECKS, Check


@dataclass(frozen=True, slots=True)
class Slip:
    """`line` and `fix` are as they are printed; `…` stands for what differs."""

    slip: str
    check: Check
    line: str
    fix: str


_DEPLOY: Final = "deploy manifests/aws/cloudformation.yaml"
_ROWS: Final = (
    (
        "the IAM role of the controller is missing",
        "controller-role",
        "role of the controller: IAM has no role …",
        f"{_DEPLOY}, or name an existing role",
    ),
    (
        "the IAM role of nodes is missing, before there is an EC2NodeClass",
        "node-role",
        "role of nodes: IAM has no role …",
        f"{_DEPLOY}, or write an EC2NodeClass with your role",
    ),
    (
        "the IAM role that an EC2NodeClass names is missing",
        "node-classes",
        "EC2NodeClass …: RoleNotFound: …",
        f"{_DEPLOY}, or …spec.role…",
    ),
    (
        "subnets have no discovery tag, before there is an EC2NodeClass",
        "discovery",
        "subnets: none has the tag karpenter.sh/discovery=…",
        "aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=… --resources IDS",
    ),
    (
        "security groups have no discovery tag, before there is an EC2NodeClass",
        "discovery",
        "security groups: none has the tag karpenter.sh/discovery=…",
        "aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=… --resources IDS",
    ),
    (
        "subnets do not have the tag that the EC2NodeClass selects",
        "node-classes",
        "EC2NodeClass …: SubnetsNotFound: …",
        "add the tags of subnetSelectorTerms to the subnets: aws ec2 create-tags …",
    ),
    (
        "security groups do not have the tag that the EC2NodeClass selects",
        "node-classes",
        "EC2NodeClass …: SecurityGroupsNotFound: …",
        "add the tags of securityGroupSelectorTerms to a group: aws ec2 create-tags …",
    ),
    (
        "the interruption queue is missing, or has another name",
        "queue",
        "interruption queue: there is no queue … in …",
        f"{_DEPLOY}, or correct settings.interruptionQueue (INTERRUPTION_QUEUE)",
    ),
    (
        "the ServiceAccount has neither an annotation (IRSA) nor a Pod Identity association",
        "controller-role",
        "role of the controller: ServiceAccount … has no annotation eks.amazonaws.com/role-arn, and EKS Pod Identity "
        "gives it no role",
        f"{_DEPLOY} with Namespace=… ServiceAccount=…, or set serviceAccount.annotations …",
    ),
    (
        "the agent of EKS Pod Identity is missing",
        "agent",
        "EKS Pod Identity: … ServiceAccount… a role (…), and there is no DaemonSet eks-pod-identity-agent",
        "add the EKS add-on eks-pod-identity-agent to the cluster",
    ),
    (
        "the name of the cluster is wrong",
        "cluster-name",
        "cluster name: EKS has no cluster … in …",
        "set settings.clusterName (CLUSTER_NAME, --cluster-name), or the region (…)",
    ),
    (
        "the name is that of another cluster",
        "cluster-name",
        "cluster name: the cluster … of EKS is another one than the API server's: …",
        "name the cluster that the kubeconfig leads to, or another kubeconfig",
    ),
    (
        "the region is wrong",
        "region",
        "region: AWS is called in …, and the nodes are in …",
        "set AWS_REGION=… (--aws-region; in the chart controller.env)",
    ),
    (
        "the CRDs are those of an older release",
        "definitions",
        "definition of …: …no spec.…: the API server drops them from what is applied",
        "helm upgrade kerf-crd charts/kerf-crd: …",
    ),
    (
        "the API server does not reach the webhook",
        "webhook",
        "webhook: the API server does not reach …",
        "…allow TCP 8443 (webhook.port) from the control plane to its pods, or set webhook.hostNetwork=true …",
    ),
    (
        "the controller may not evict pods",
        "permissions",
        "create pods/eviction: ServiceAccount … has no permission",
        "upgrade Kerf's chart, whose ClusterRole has it, …",
    ),
    (
        "CoreDNS does not run, and Kerf uses the cluster's DNS",
        "dns",
        "cluster DNS: dnsPolicy is …, and no pod of CoreDNS is ready …",
        "run CoreDNS on nodes that Kerf does not make, or set dnsPolicy=Default in Kerf's chart",
    ),
    (
        "the service-linked role for spot is missing",
        "spot-role",
        "service-linked role for spot: there is no role AWSServiceRoleForEC2Spot: …",
        "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    (
        "the quota of vCPUs is reached",
        "quota",
        "quota of … vCPUs: … of … vCPUs of the standard families are in use in …: EC2 launches no more",
        "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code … --desired-value …",
    ),
    (
        "the clock of this machine is wrong",
        "clock",
        "clock of this machine: it is … s … AWS: AWS refuses requests that are signed so",
        "synchronize the machine's clock …",
    ),
    (
        "the clock of the controller's node is wrong",
        "controller-clock",
        "clock of the controller: it is … s … the API server: AWS refuses requests that are signed so",
        "synchronize the machine's clock …",
    ),
    (
        "Kerf's image has not been built",
        "image-name",
        "image of Kerf: no public registry has kerf/controller, the default of the chart",
        "build and push it (docs/images.md), and set controller.image.repository",
    ),
    (
        "nodes cannot pull Kerf's image",
        "image",
        "image of the controller: … is not pulled: …",
        "set controller.image.repository (and tag, imagePullSecrets) to an image that nodes can pull",
    ),
    (
        "EventBridge rules are missing",
        "rules",
        "EventBridge rules: no enabled rule sends … to the queue …",
        f"{_DEPLOY}, or add the rules with the queue as their target",
    ),
)
SLIPS: Final = tuple(Slip(slip, CHECKS[check], line, fix) for slip, check, line, fix in _ROWS)
