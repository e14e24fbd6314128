"""The status of an EC2NodeClass: what is listed, in which order, and what each condition says."""

from __future__ import annotations

from dataclasses import replace as copy
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.nodeclass import nodeclass
from kerf.model.aws.cloud import CapacityReservation, ClassFacts, Image, SecurityGroup, Subnet
from kerf.model.settings import FeatureGates
from kerf_api.v1 import conditions
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus
from kerf_api.v1.meta import encode
from tests.unit.ec2.ec2_facts import CLUSTER, NOW, SETTINGS, facts, node_class

LATER = NOW + timedelta(hours=1)

NO_RESERVED = copy(SETTINGS, gates=FeatureGates(reserved_capacity=False))


def status(of: EC2NodeClass, found: ClassFacts | None, **changes: Any) -> EC2NodeClassStatus:
    return nodeclass.status(of, found, **{"cluster": CLUSTER, "now": NOW, "settings": SETTINGS, **changes})


def verdict(found: EC2NodeClassStatus, type_: str) -> tuple[str, str]:
    condition = conditions.get(found.conditions, type_)
    assert condition is not None
    return condition.status, condition.reason


def test_everything_found() -> None:
    found = status(node_class(), facts())
    assert {c.type: (c.status, c.reason, c.message) for c in found.conditions} == {
        type_: ("True", type_, "")
        for type_ in (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY, "Ready")
    }
    assert found.conditions[-1].type == "Ready"
    assert {c.observed_generation for c in found.conditions} == {1}
    assert found.instance_profile == "demo_1"


@pytest.mark.parametrize(
    ("counts", "order"),
    [((10, 11, 3), "012"), ((6, 11, 90), "012"), ((5, 11, 3), "102"), ((10, 11, None), "01"), ((10, None, 11), "02")],
)
def test_the_order_of_subnets_stays_while_it_serves(counts: tuple[int | None, ...], order: str) -> None:
    """Counts of free addresses move with every launch; the first two are in one zone, and were listed as 0, 1, 2."""

    def found(free: tuple[int | None, ...]) -> ClassFacts:
        rows = zip(range(3), ("y", "y", "z"), free, strict=True)
        return facts(
            subnets=tuple(Subnet(f"subnet-{n}", zone, free_addresses=x) for n, zone, x in rows if x is not None)
        )

    told = replace(node_class(), status=status(node_class(), found((12, 11, 3))))
    assert "".join(subnet.id[-1] for subnet in status(told, found(counts)).subnets) == order


def test_the_order_of_what_is_listed() -> None:
    rows = facts(
        subnets=(Subnet("subnet-b", "z", free_addresses=5), Subnet("subnet-c", "y"), Subnet("subnet-a", "x", "az", 5)),
        security_groups=(SecurityGroup("sg-2", "node"), SecurityGroup("sg-1")),
    )
    found = status(node_class(), rows)
    assert [(s.id, s.zone, s.zone_id) for s in found.subnets] == [
        ("subnet-a", "x", "az"),
        ("subnet-b", "z", ""),
        ("subnet-c", "y", ""),
    ]
    assert [(g.id, g.name) for g in found.security_groups] == [("sg-1", ""), ("sg-2", "node")]
    assert [(a.id, [(e.key.rpartition("/")[2], e.operator, e.values) for e in a.requirements]) for a in found.amis] == [
        (
            "ami-1",
            [
                ("arch", "In", ("amd64",)),
                ("instance-gpu-count", "DoesNotExist", ()),
                ("instance-accelerator-count", "DoesNotExist", ()),
            ],
        ),
        ("ami-2", [("arch", "In", ("amd64",)), ("instance-gpu-count", "Exists", ())]),
        ("ami-3", [("arch", "In", ("amd64",)), ("instance-accelerator-count", "Exists", ())]),
        (
            "ami-4",
            [
                ("arch", "In", ("arm64",)),
                ("instance-gpu-count", "DoesNotExist", ()),
                ("instance-accelerator-count", "DoesNotExist", ()),
            ],
        ),
        ("ami-5", [("arch", "In", ("arm64",)), ("instance-gpu-count", "Exists", ())]),
    ]


def test_windows_and_plain_images() -> None:
    windows = Image("ami-w", "w", "amd64", "2026-02-01", windows_build="10.0.20348")
    plain = Image("ami-p", "p", "arm64", "2026-01-01")
    found = status(node_class("Windows2022"), facts(images=(windows, plain))).amis
    assert [[(e.key, e.values) for e in a.requirements] for a in found] == [
        [
            ("kubernetes.io/os", ("windows",)),
            ("kubernetes.io/arch", ("amd64",)),
            ("node.kubernetes.io/windows-build", ("10.0.20348",)),
        ],
        [("kubernetes.io/arch", ("arm64",))],
    ]


def test_nothing_moves_while_nothing_changes() -> None:
    of = node_class()
    once = status(of, facts())
    again = status(replace(of, status=once), facts(), now=LATER)
    assert again == once
    for found in (facts(subnets=()), None):
        broken = status(replace(of, status=once), found, now=LATER)
        assert status(replace(of, status=broken), found, now=LATER + timedelta(hours=1)) == broken


def test_a_part_that_is_lost_and_found_again() -> None:
    of = node_class()
    good = status(of, facts())
    lost = status(replace(of, status=good), facts(subnets=()), now=LATER)
    assert lost.subnets == ()
    assert verdict(lost, "SubnetsReady") == ("False", "SubnetsNotFound")
    assert verdict(lost, "ValidationSucceeded") == ("False", "DependenciesNotReady")
    assert verdict(lost, "Ready") == ("False", "UnhealthyDependents")
    since = {c.type: c.last_transition_time for c in lost.conditions}
    assert since["SubnetsReady"] == since["Ready"] == LATER
    assert since["AMIsReady"] == NOW
    assert verdict(status(replace(of, status=lost), facts()), "Ready") == ("True", "Ready")


@pytest.mark.parametrize(
    ("changes", "type_", "reason", "message"),
    [
        (
            {"images": ()},
            "AMIsReady",
            "AMINotFound",
            "AMISelector did not match any AMIs",
        ),
        (
            {"security_groups": ()},
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "SecurityGroupSelector did not match any SecurityGroups",
        ),
        (
            {"images": (), "problems": {"AMIsReady": ("UnsupportedAlias", "AL2 ends with 1.32")}},
            "AMIsReady",
            "UnsupportedAlias",
            "AL2 ends with 1.32",
        ),
    ],
)
def test_selectors_that_match_nothing(changes: dict[str, Any], type_: str, reason: str, message: str) -> None:
    found = status(node_class(), facts(**changes))
    condition = conditions.get(found.conditions, type_)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", reason)
    assert message in condition.message
    assert verdict(found, "Ready")[0] == "False"


def test_facts_of_another_generation_change_nothing_but_readiness() -> None:
    of = node_class()
    good = status(of, facts())
    edited = replace(of, metadata=replace(of.metadata, generation=2), status=good)
    for found in (None, facts()):
        waiting = status(edited, found)
        assert waiting.subnets == good.subnets
        assert waiting.instance_profile == "demo_1"
        assert verdict(waiting, "Ready") == ("Unknown", "ReconcilingDependents")
    assert verdict(status(edited, facts(generation=2)), "Ready") == ("True", "Ready")


def test_before_any_facts_everything_is_awaited() -> None:
    found = status(node_class(), None)
    assert {c.type: c.status for c in found.conditions} == dict.fromkeys(
        (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY, "Ready"), "Unknown"
    )


def test_a_class_that_is_deleted_keeps_what_it_was() -> None:
    of = node_class()
    good = status(of, facts())
    going = replace(of, metadata=replace(of.metadata, generation=2, deletion_timestamp=NOW), status=good)
    found = status(going, facts(generation=2, subnets=()))
    assert found.subnets == good.subnets
    assert {(c.status, c.observed_generation) for c in found.conditions} == {("True", 2)}


# --- instance profile -------------------------------------------------------------------------------------------
def test_the_users_instance_profile_is_taken_as_it_is() -> None:
    of = node_class(role=None, instanceProfile="mine")
    assert status(of, facts(instance_profile="")).instance_profile == "mine"


def test_a_managed_profile_is_awaited_until_it_exists() -> None:
    missing = facts(instance_profile="")
    waiting = status(node_class(), missing)
    assert verdict(waiting, "InstanceProfileReady") == ("Unknown", "AwaitingReconciliation")
    assert verdict(waiting, "ValidationSucceeded") == ("Unknown", "DependenciesNotReady")
    assert verdict(waiting, "Ready")[0] == "Unknown"
    made = status(node_class(), facts(instance_profile="demo_2"))
    assert made.instance_profile == "demo_2"
    assert verdict(made, "Ready") == ("True", "Ready")


def test_iam_not_answering_changes_nothing() -> None:
    of = node_class()
    good = replace(of, status=status(of, facts()))
    silent = facts(instance_profile="", problems={"InstanceProfileReady": ("Throttled", "later")})
    found = status(good, silent, now=LATER)
    assert found == good.status


def test_the_profile_of_a_class_is_deterministic() -> None:
    name, path, tags = nodeclass.profile_for(node_class(tags={"team": "x"}), CLUSTER)
    assert name.startswith("demo_")
    assert name[5:].isdigit()
    assert len(name) <= 128
    assert path == "/karpenter/us-west-2/demo/class-uid/"
    assert tags == {
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "kubernetes.io/cluster/demo": "owned",
        "team": "x",
        "topology.kubernetes.io/region": "us-west-2",
    }
    assert nodeclass.profile_for(node_class(), CLUSTER)[0] == name
    with_path = nodeclass.profile_for(node_class(role="/a/path/NodeRole"), CLUSTER)[0]
    assert with_path == name, "IAM attaches a role by its last segment"
    reborn = replace(node_class(), metadata=replace(node_class().metadata, uid="other"))
    others = {nodeclass.profile_for(c, CLUSTER)[0] for c in (node_class(role="Other"), reborn)}
    assert len({name, *others}) == 3


# --- validation -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (node_class(tags={"karpenter.sh/nodepool": "x"}), "TagValidationFailed"),
        (node_class(tags={"kubernetes.io/cluster/demo": "x"}), "TagValidationFailed"),
        (node_class(kubelet={"nope": 1}), "InvalidKubeletConfiguration"),
        (node_class(kubelet={"maxPods": "vcpus * 2"}), "KubeletExpressionsDisabled"),
        (node_class("AL2", kubelet={"cpuManagerPolicy": "static"}), "UnsupportedKubeletConfiguration"),
        (node_class("Bottlerocket", userData="not toml"), "InvalidUserData"),
        (node_class(userData="MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx"), "InvalidUserData"),
        (node_class("Custom", userData="x" * 20000), "UserDataSizeLimitExceeded"),
    ],
)
def test_a_class_that_is_wrong_in_itself(of: EC2NodeClass, reason: str) -> None:
    found = status(of, facts())
    assert verdict(found, "ValidationSucceeded") == ("False", reason)
    assert verdict(found, "Ready") == ("False", "UnhealthyDependents")


@pytest.mark.parametrize("tags", [{"Name": "x"}, {"team": ""}, {"kubernetes.io/cluster/": "x"}])
def test_tags_that_are_for_users(tags: dict[str, str]) -> None:
    assert verdict(status(node_class(tags=tags), facts()), "ValidationSucceeded")[0] == "True"


def test_al2023_needs_the_clusters_cidr() -> None:
    unknown = copy(CLUSTER, service_cidr="")
    found = status(node_class(), facts(), cluster=unknown)
    assert verdict(found, "ValidationSucceeded") == ("False", "ClusterCIDRResolutionFailed")
    assert verdict(status(node_class("AL2"), facts(), cluster=unknown), "ValidationSucceeded")[0] == "True"


def test_the_cluster_is_awaited() -> None:
    assert verdict(status(node_class(), facts(), cluster=None), "Ready")[0] == "Unknown"


def test_a_placement_group_that_is_not_resolved_holds_the_class_back() -> None:
    of = node_class(placementGroupSelector={"name": "fast"})
    found = status(of, facts())
    assert verdict(found, "PlacementGroupReady") == ("False", "PlacementGroupResolutionFailed")
    missing = facts(problems={"PlacementGroupReady": ("PlacementGroupNotFound", "no group fast")})
    assert verdict(status(of, missing), "PlacementGroupReady") == ("False", "PlacementGroupNotFound")


def test_capacity_reservations_are_listed_by_id_without_their_numbers() -> None:
    ends = NOW + timedelta(minutes=30)
    rows = (
        CapacityReservation("cr-2", "p5.48xlarge", "y", 1, "210987654321", "open", "capacity-block", False, ends, True),
        CapacityReservation("cr-1", "m5.large", "x", 7, "123456789012", interruptible=True),
    )
    found = status(node_class(), facts(reservations=rows))
    assert [encode(row) for row in found.capacity_reservations] == [
        {
            "availabilityZone": "x",
            "id": "cr-1",
            "instanceMatchCriteria": "targeted",
            "instanceType": "m5.large",
            "ownerID": "123456789012",
            "interruptible": True,
        },
        {
            "availabilityZone": "y",
            "id": "cr-2",
            "instanceMatchCriteria": "open",
            "instanceType": "p5.48xlarge",
            "ownerID": "210987654321",
            "endTime": "2026-11-20T12:30:00Z",
            "reservationType": "capacity-block",
            "state": "expiring",
        },
    ]
    fewer = tuple(copy(row, left=0) for row in rows)
    assert status(node_class(), facts(reservations=fewer)) == found
    assert status(node_class(), facts(reservations=rows), settings=NO_RESERVED).capacity_reservations == ()
