"""Tags of what is launched: ours win, and users may not set them."""

from __future__ import annotations

import pytest

from kerf.ec2 import tags
from tests.unit.ec2.ec2_facts import node_class


def test_our_tags_win_and_keys_are_sorted() -> None:
    theirs = {"z": "1", "karpenter.sh/nodepool": "stolen", "eks:eks-cluster-name": "stolen"}
    found = tags.launch(node_class(tags=theirs), "default", "demo")
    assert list(found.items()) == [
        ("eks:eks-cluster-name", "demo"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/cluster/demo", "owned"),
        ("z", "1"),
    ]
    profile = tags.profile(node_class(tags={"topology.kubernetes.io/region": "stolen"}), "demo", "us-west-2")
    assert profile["topology.kubernetes.io/region"] == "us-west-2"


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("karpenter.sh/nodepool", True),
        ("karpenter.sh/nodeclaim", True),
        ("karpenter.k8s.aws/ec2nodeclass", True),
        ("eks:eks-cluster-name", True),
        ("kubernetes.io/cluster/any-name_1", True),
        ("kubernetes.io/cluster/", False),
        ("kubernetes.io/cluster/-x", False),
        ("Name", False),
        ("karpenter.sh/other", False),
    ],
)
def test_restricted_keys(key: str, refused: bool) -> None:
    assert tags.restricted([key]) == ([key] if refused else [])
