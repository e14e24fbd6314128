"""What the real adapter asks AWS again, and what not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.aws.cloud import AwsCloud
from kerf.aws.observe.statuses import MOST_IDS
from kerf.model.aws.cloud import ClassFacts
from kerf.ports import Forbidden, Invalid, Throttled
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import node_class, request

pytestmark = pytest.mark.only_real("calls of AWS (the sandbox has none that could be saved)")

#: The SDK tries a call twice.
BOTH = 2
LOOKS = {"DescribeSubnets": 1, "DescribeSecurityGroups": 1, "DescribeImages": 1, "ListInstanceProfiles": 1}


class Looks:
    """Looks at one class of its own, and what each has cost."""

    def __init__(self, aws: MotoAws, real: MotoAccount, uid: str) -> None:
        self.aws, self.cloud, self.role = aws, aws_cloud(aws, image_refresh=timedelta(minutes=15)), real.role
        self.of: EC2NodeClass = node_class(real, uid=uid)
        self._cluster = self.cloud.cluster()
        self.path = f"/karpenter/us-west-2/{real.cluster_name}/{uid}/"

    def look(self) -> ClassFacts:
        self.aws.clear_calls()
        return self.cloud.resolve(self.of, self._cluster)

    def fail(self, action: str) -> None:
        self.aws.fail(action, "RequestLimitExceeded", status=503, times=BOTH)
        with pytest.raises(Throttled):
            self.look()

    @property
    def calls(self) -> Counter[str]:
        return Counter(call.action for call in self.aws.calls())

    def make_profile(self) -> str:
        name = self.of.metadata.uid
        self.cloud.ensure_instance_profile(name, self.role, self.path, {"a": "b"})
        return name


# --- looks at a class ---------------------------------------------------------------------------------------------
def test_a_look_that_failed_is_repeated_only_where_it_failed(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "repeated")
    looks.make_profile()
    looks.fail("DescribeSecurityGroups")
    assert looks.look().security_groups
    assert looks.calls == {"DescribeSecurityGroups": 1}


def test_a_look_that_succeeded_is_made_anew(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "anew")
    looks.fail("DescribeSecurityGroups")
    looks.look()
    assert looks.look().subnets
    assert looks.calls == LOOKS


def test_what_a_launch_has_taken_is_counted_again(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "counted")
    looks.make_profile()
    before = {one.id: one.free_addresses for one in looks.look().subnets}
    looks.fail("DescribeSecurityGroups")
    (launched,) = looks.cloud.create_fleet(request(real, "counted")).instances
    free = {one.id: one.free_addresses for one in looks.look().subnets}
    assert looks.calls == {"DescribeSecurityGroups": 1, "DescribeSubnets": 1}
    assert before[launched.subnet_id] - free[launched.subnet_id] == 1


def test_what_the_other_parameters_said_is_not_asked_again(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "parameters")
    looks.make_profile()
    aws.fail("GetParameter", "AccessDeniedException")
    with pytest.raises(Forbidden):
        looks.look()
    assert looks.look().images
    assert looks.calls == {"GetParameter": 1, "DescribeImages": 1}


def test_what_the_latest_image_is_is_asked_once_in_a_while_and_when_it_is_gone(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "latest")
    latest = {one.id for one in looks.look().images}
    aws.release_images()
    assert {one.id for one in looks.look().images} == latest
    assert looks.calls["GetParameter"] == 0
    for id_ in sorted(latest):
        aws.client("ec2").deregister_image(ImageId=id_)
    assert {one.id for one in looks.look().images}.isdisjoint(latest)


# --- instance profiles --------------------------------------------------------------------------------------------
def test_a_profile_that_was_found_is_taken_to_be_there(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "found")
    assert looks.look().instance_profile == ""
    made = looks.make_profile()
    assert [looks.look().instance_profile for _ in range(2)] == [made, made]
    assert looks.calls["ListInstanceProfiles"] == 0


def test_another_role_is_another_question(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "roles")
    looks.make_profile()
    looks.look()
    looks.of = replace(looks.of, spec=replace(looks.of.spec, role="another"))
    assert looks.look().instance_profile == ""


def test_a_profile_that_we_have_deleted_is_not_there(aws: MotoAws, real: MotoAccount) -> None:
    looks = Looks(aws, real, "deleted")

    def delete_orphans() -> None:
        for one in looks.cloud.instance_profiles():
            if one.name == "deleted":
                looks.cloud.delete_resource(one)

    def delete_with_class() -> None:
        looks.cloud.delete_class_resources("nobody", looks.path)

    for delete in (delete_with_class, delete_orphans):
        assert looks.make_profile() == looks.look().instance_profile
        delete()
        assert looks.look().instance_profile == ""


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize(
    "words", ["Value (x) is invalid. Invalid IAM Instance Profile name", 'Profile "x" has no associated IAM Roles']
)
def test_a_profile_with_which_nothing_can_be_launched_is_looked_for(
    aws: MotoAws, real: MotoAccount, dry: bool, words: str
) -> None:
    uid = f"lost-{dry}-{'name' in words}"
    looks = Looks(aws, real, uid)
    assert looks.make_profile() == looks.look().instance_profile
    _delete(aws, uid)
    assert looks.look().instance_profile == uid
    wanted = request(real, uid)
    aws.fail("RunInstances" if dry else "CreateFleet", "InvalidParameterValue", words, times=len(wanted.overrides))
    if dry:
        assert looks.cloud.dry_run(wanted) is not None
    else:
        with pytest.raises(Invalid):
            looks.cloud.create_fleet(wanted)
    aws.clear_faults()
    assert looks.look().instance_profile == ""


def _delete(aws: MotoAws, name: str) -> None:
    """Somebody else does."""
    iam = aws.client("iam")
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)


# --- status checks ------------------------------------------------------------------------------------------------
def ailing(aws: MotoAws, cloud: AwsCloud, of: Sequence[str] | None) -> tuple[set[str], int]:
    """Which instances something ails, and how many calls it took to know."""
    aws.clear_calls()
    found = {one.instance_id for one in cloud.impairments(of)}
    return found, len(aws.calls("DescribeInstanceStatus"))


def test_a_few_instances_are_asked_about_with_one_call(aws: MotoAws, real: MotoAccount) -> None:
    first, second, other = _running(real, "few", 3)
    for id_, what in ((first, "system"), (second, "instance-retirement"), (other, "instance")):
        aws.ail(id_, what)
    assert ailing(aws, real.cloud, (first, second)) == ({first, second}, 1)
    assert ailing(aws, real.cloud, None) == ({first, second, other}, 3)
    assert ailing(aws, real.cloud, ()) == (set(), 0)
    for id_ in (first, second, other):
        aws.recover(id_)


def test_an_instance_that_is_gone_hides_no_other(aws: MotoAws, real: MotoAccount) -> None:
    (id_,) = _running(real, "gone", 1)
    aws.ail(id_, "system")
    assert ailing(aws, real.cloud, (id_, "i-0123456789abcdef0")) == ({id_}, 4)
    assert ailing(aws, real.cloud, (id_, "i-malformed")) == ({id_}, 1)  # not sent
    aws.recover(id_)


def test_of_many_instances_only_those_are_asked_for_that_something_ails(aws: MotoAws, real: MotoAccount) -> None:
    (id_,) = _running(real, "many", 1)
    aws.ail(id_, "instance")
    assert ailing(aws, real.cloud, (id_, *(f"i-{n:017x}" for n in range(MOST_IDS)))) == ({id_}, 3)
    aws.recover(id_)


def _running(real: MotoAccount, group: str, number: int) -> list[str]:
    members = tuple(f"{group}-{n}" for n in range(number))
    ids = sorted(one.id for one in real.cloud.create_fleet(request(real, group, members=members)).instances)
    real.eventually(lambda: {i.id for i in real.cloud.instances() if i.state == "running"}.issuperset(ids))
    return ids
