"""Every check of `kerf preflight`: its phase, and the permissions that it needs.

A check before installation needs no installed Kerf, and is made after it, too. A check after installation is about the
Kerf that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BEFORE: Final = "before installation"
AFTER: Final = "after installation"


@dataclass(frozen=True, slots=True)
class Check:
    """`needs` are the caller's permissions, in the cluster and in AWS."""

    name: str
    phase: str
    needs: str


CHECKS: Final[Mapping[str, Check]] = {
    name: Check(name, phase, needs)
    for name, phase, needs in (
        ("api-server", BEFORE, "a kubeconfig"),
        ("settings", BEFORE, "list deployments.apps"),
        ("aws", BEFORE, "AWS credentials"),
        ("clock", BEFORE, "AWS credentials"),
        ("region", BEFORE, "list nodes"),
        ("cluster-name", BEFORE, "eks:DescribeCluster, get configmaps in kube-system"),
        ("aws-permissions", BEFORE, "the permission itself"),
        ("queue", BEFORE, "sqs:GetQueueUrl, sqs:ReceiveMessage"),
        ("rules", BEFORE, "events:ListRuleNamesByTarget, events:DescribeRule, sqs:GetQueueUrl"),
        ("node-role", BEFORE, "list ec2nodeclasses.karpenter.k8s.aws, iam:GetRole"),
        ("discovery", BEFORE, "list ec2nodeclasses.karpenter.k8s.aws, ec2:DescribeSubnets, "
         "ec2:DescribeSecurityGroups"),
        ("spot-role", BEFORE, "list nodepools.karpenter.sh, iam:GetRole"),
        ("quota", BEFORE, "servicequotas:GetServiceQuota, ec2:DescribeInstances"),
        ("agent", BEFORE, "list daemonsets.apps, eks:ListPodIdentityAssociations, eks:DescribeCluster"),
        ("dns", BEFORE, "list pods in kube-system"),
        ("image-name", BEFORE, "none"),
        ("zonal-shift", BEFORE, "arc-zonal-shift:GetManagedResource"),
        ("endpoints", BEFORE, "eks:DescribeCluster, ec2:DescribeVpcEndpoints"),
        ("kinds", AFTER, "list of each kind"),
        ("definitions", AFTER, "none"),
        ("permissions", AFTER, "create subjectaccessreviews.authorization.k8s.io"),
        ("controller-role", BEFORE, "get serviceaccounts, eks:ListPodIdentityAssociations, "
         "eks:DescribePodIdentityAssociation, iam:GetRole"),
        ("image", AFTER, "list pods"),
        ("webhook", AFTER, "list validatingwebhookconfigurations.admissionregistration.k8s.io, "
         "create nodepools.karpenter.sh"),
        ("controller-clock", AFTER, "get leases.coordination.k8s.io"),
        ("node-classes", AFTER, "list ec2nodeclasses.karpenter.k8s.aws, ec2:Describe*, ssm:GetParameter, iam:GetRole"),
        ("node-pools", AFTER, "list nodepools.karpenter.sh, list ec2nodeclasses.karpenter.k8s.aws"),
        ("windows", AFTER, "iam:GetRole, eks:DescribeAccessEntry"),
    )
}  # fmt: skip
