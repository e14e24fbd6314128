"""Behaviours of the AWS catalogue over the wire: images, selectors, profiles, templates of classes (127 to 199)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.aws.cloud import AwsCloud
from kerf.aws.observe.images import alias_sources, query
from kerf.aws.profiles import UNKNOWN_SECONDS, Maker
from kerf.model.aws.cloud import ClassFacts
from kerf.ports import Forbidden, Invalid, RoleNotFound, TemplateMissing, Unavailable
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from kerf_api.v1.meta import Condition, ObjectMeta
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import launch_tags, node_class, request

BOTH = 2
pytestmark = pytest.mark.only_real("behaviours of the AWS catalogue: codes and calls of AWS's own API")


def resolved(cloud: AwsCloud, *terms: SelectorTerm, **spec: object) -> ClassFacts:
    """What AWS makes of a class that selects images by these terms."""
    made = EC2NodeClassSpec(**{"ami_selector_terms": terms, "instance_profile": "p", **spec})  # type: ignore[arg-type]
    return cloud.resolve(EC2NodeClass(metadata=ObjectMeta(name="own", uid="own"), spec=made), cloud.cluster())


def names(cloud: AwsCloud, *terms: SelectorTerm) -> set[str]:
    return {image.name for image in resolved(cloud, *terms).images}


# --- images -----------------------------------------------------------------------------------------------------
def test_160_of_an_alias_what_is_published_counts_and_when_nothing_is_the_class_says_so(aws: MotoAws) -> None:
    cloud, ssm = aws_cloud(aws), aws.client("ssm")
    alias, paths = (
        SelectorTerm(alias="bottlerocket@latest"),
        [s.path for s in alias_sources("bottlerocket@latest", "1.36")],
    )
    kept = {path: ssm.get_parameter(Name=path)["Parameter"]["Value"] for path in paths}
    assert resolved(aws_cloud(aws), alias).images_complete
    for path in paths[:-1]:
        ssm.delete_parameter(Name=path)
    some = resolved(cloud, alias)
    assert [image.id for image in some.images] == [kept[paths[-1]]]
    assert not some.images_complete
    assert "AMIsReady" not in some.problems
    ssm.delete_parameter(Name=paths[-1])
    assert resolved(cloud, alias).problems["AMIsReady"][0] == "AMINotFound"


@pytest.mark.parametrize(
    ("term", "owners"),
    [
        (SelectorTerm(name="a"), ["self", "amazon"]),
        (SelectorTerm(name="a", owner="123456789012"), ["123456789012"]),
        (SelectorTerm(tags={"a": "b"}), None),
        (SelectorTerm(tags={"a": "b"}, owner="self"), ["self"]),
    ],
)
def test_164_by_name_alone_only_our_own_images_and_amazons_are_looked_for(
    term: SelectorTerm, owners: list[str] | None
) -> None:
    assert query(term).get("Owners") == owners


def test_164_an_owner_that_is_named_is_the_only_one(aws: MotoAws) -> None:
    cloud, name = aws_cloud(aws), "al2023-1.36-x86_64-standard-0"
    assert names(cloud, SelectorTerm(name=name)) == {name}
    assert names(cloud, SelectorTerm(name=name, owner="amazon")) == {name}
    assert names(cloud, SelectorTerm(name=name, owner="self")) == set()


def test_165_tags_of_one_term_belong_together_and_terms_are_alternatives(aws: MotoAws) -> None:
    cloud, ec2 = aws_cloud(aws), aws.client("ec2")
    found = {row["Name"]: row["ImageId"] for row in ec2.describe_images(Owners=["amazon"])["Images"]}
    first, second = sorted(name for name in found if name.startswith("al2023"))[:2]
    ec2.create_tags(Resources=[found[first]], Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "1"}])
    ec2.create_tags(Resources=[found[second]], Tags=[{"Key": "a", "Value": "1"}])
    assert names(cloud, SelectorTerm(tags={"a": "1"})) == {first, second}
    assert names(cloud, SelectorTerm(tags={"a": "1", "b": "*"})) == {first}
    assert names(cloud, SelectorTerm(tags={"b": "1"}), SelectorTerm(id=found[second])) == {first, second}
    assert names(cloud, SelectorTerm(tags={"a": "2"})) == set()


def test_167_a_parameter_that_is_missing_is_passed_over_and_another_error_is_one(aws: MotoAws) -> None:
    cloud, ssm = aws_cloud(aws), aws.client("ssm")
    path = alias_sources("al2023@latest", "1.36")[0].path
    image = ssm.get_parameter(Name=path)["Parameter"]["Value"]
    ssm.put_parameter(Name="/team/image", Value=image, Type="String", Overwrite=True)
    own = SelectorTerm(ssm_parameter="/team/image")
    assert [one.id for one in resolved(cloud, SelectorTerm(ssm_parameter="/team/none"), own).images] == [image]
    aws.fail("GetParameter", "AccessDeniedException")
    with pytest.raises(Forbidden):
        resolved(cloud, own)


def test_168_what_a_pinned_version_is_is_asked_once(aws: MotoAws) -> None:
    cloud = aws_cloud(aws)

    def ids() -> set[str]:
        aws.clear_calls()
        return {image.id for image in resolved(cloud, SelectorTerm(alias="al2023@v20251001")).images}

    pinned = ids()
    assert (ids(), len(aws.calls("GetParameter"))) == (pinned, 0)
    aws.release_images()
    assert ids() == pinned


def test_terms_that_ec2_refuses_are_the_problem_of_their_class(aws: MotoAws, real: MotoAccount) -> None:
    of = node_class(real, uid="refused")
    wrong = replace(of, spec=replace(of.spec, ami_selector_terms=(SelectorTerm(name="nodes-*", owner="self"),)))
    aws.fail("DescribeImages", "InvalidUserID.Malformed", status=400)
    found = real.cloud.resolve(wrong, real.cloud.cluster())
    reason, message = found.problems["AMIsReady"]
    assert (reason, "InvalidUserID.Malformed" in message) == ("AMIResolutionFailed", True)
    assert (found.images, len(found.subnets) > 0) == ((), True)
    ready = Condition(type="AMIsReady", status="True", observed_generation=of.metadata.generation)
    known = replace(wrong, status=replace(wrong.status, conditions=(ready,)))
    aws.fail("DescribeImages", "InvalidUserID.Malformed", status=400)
    with pytest.raises(Invalid):
        real.cloud.resolve(known, real.cloud.cluster())


# --- instance profiles ------------------------------------------------------------------------------------------
def profile_of(real: MotoAccount, uid: str) -> tuple[str, EC2NodeClass]:
    """Where the profiles of such a class live, and the class."""
    return f"/karpenter/us-west-2/{real.cluster_name}/{uid}/", node_class(real, uid=uid)


def test_172_a_profile_is_made_with_its_role_and_tags(aws: MotoAws, real: MotoAccount) -> None:
    path, _ = profile_of(real, "tagged")
    real.cloud.ensure_instance_profile("tagged", real.role, path, {"team": "x"})
    made = aws.client("iam").get_instance_profile(InstanceProfileName="tagged")["InstanceProfile"]
    assert [role["RoleName"] for role in made["Roles"]] == [real.role]
    assert made.get("Tags") == [{"Key": "team", "Value": "x"}]


def test_173_a_profile_that_has_lost_its_role_is_fixed(aws: MotoAws, real: MotoAccount) -> None:
    cloud, iam = real.cloud, aws.client("iam")
    path, of = profile_of(real, "mended")
    cloud.ensure_instance_profile("mended", real.role, path, {"a": "b"})
    iam.remove_role_from_instance_profile(InstanceProfileName="mended", RoleName=real.role)
    assert cloud.resolve(of, cloud.cluster()).instance_profile == ""
    iam.create_role(RoleName="stranger", AssumeRolePolicyDocument="{}")
    iam.add_role_to_instance_profile(InstanceProfileName="mended", RoleName="stranger")
    assert cloud.resolve(of, cloud.cluster()).instance_profile == ""
    cloud.ensure_instance_profile("mended", real.role, path, {"a": "b"})
    assert cloud.resolve(of, cloud.cluster()).instance_profile == "mended"


def test_174_a_profile_with_the_right_role_is_only_read(aws: MotoAws, real: MotoAccount) -> None:
    path, of = profile_of(real, "right")
    real.cloud.ensure_instance_profile("right", real.role, path, {"a": "b"})
    aws.clear_calls()
    assert real.cloud.resolve(of, real.cloud.cluster()).instance_profile == "right"
    assert {call.action for call in aws.calls() if call.service == "iam"} == {"ListInstanceProfiles"}


def test_180_a_role_with_a_path_is_attached_by_its_last_segment(aws: MotoAws, real: MotoAccount) -> None:
    path, of = profile_of(real, "segments")
    named = replace(of, spec=replace(of.spec, role=f"deep/path/{real.role}"))
    real.cloud.ensure_instance_profile("segments", f"deep/path/{real.role}", path, {"a": "b"})
    made = aws.client("iam").get_instance_profile(InstanceProfileName="segments")["InstanceProfile"]
    assert [role["RoleName"] for role in made["Roles"]] == [real.role]
    assert real.cloud.resolve(named, real.cloud.cluster()).instance_profile == "segments"


def test_178_when_iam_does_not_say_what_there_is_nothing_is_made(aws: MotoAws, real: MotoAccount) -> None:
    """A class without a profile learns the rest; of a class with a profile the known facts stay."""
    _, of = profile_of(real, "silent")
    before = profiles(aws)
    aws.fail("ListInstanceProfiles", "ServiceFailure", status=500, times=BOTH)
    found = real.cloud.resolve(of, real.cloud.cluster())
    assert (len(found.subnets) > 0, found.instance_profile) == (True, "")
    reason, message = found.problems["InstanceProfileReady"]
    assert (reason, "ServiceFailure" in message) == ("IAMUnavailable", True)
    ready = Condition(type="InstanceProfileReady", status="True", observed_generation=of.metadata.generation)
    profiled = replace(of, status=replace(of.status, instance_profile="silent-1", conditions=(ready,)))
    aws.fail("ListInstanceProfiles", "ServiceFailure", status=500, times=BOTH)
    with pytest.raises(Unavailable):
        real.cloud.resolve(profiled, real.cloud.cluster())
    assert profiles(aws) == before


def test_178_a_profile_whose_role_could_not_be_attached_is_not_left_behind(aws: MotoAws, real: MotoAccount) -> None:
    path, _ = profile_of(real, "roleless")
    aws.fail("AddRoleToInstanceProfile", "ServiceFailure", status=500, times=BOTH)
    with pytest.raises(Unavailable):
        real.cloud.ensure_instance_profile("roleless", real.role, path, {"a": "b"})
    assert "roleless" not in profiles(aws)
    real.cloud.ensure_instance_profile("roleless", real.role, path, {"a": "b"})
    assert "roleless" in profiles(aws)


def test_179_a_role_that_iam_does_not_know_is_asked_for_once_a_minute(aws: MotoAws, real: MotoAccount) -> None:
    now = [0.0]
    maker, iam = Maker(lambda: now[0]), aws.client("iam")

    def ensure(role: str = "stranger-yet") -> None:
        maker.ensure(iam, "of-a-stranger", role, "/karpenter/x/", {"a": "b"})

    aws.clear_calls()
    for _ in range(3):
        with pytest.raises(Invalid, match="stranger-yet"):
            ensure()
        now[0] += UNKNOWN_SECONDS / 3 - 0.1
    assert len(aws.calls("CreateInstanceProfile")) == 1
    iam.create_role(RoleName="stranger-yet", AssumeRolePolicyDocument="{}")
    now[0] += 1.0
    ensure()
    assert "of-a-stranger" in profiles(aws)


def test_179_the_answer_of_iam_about_a_role_is_repeated_to_the_letter(aws: MotoAws) -> None:
    maker, iam, said = Maker(), aws.client("iam"), set[str]()
    for _ in range(2):
        with pytest.raises(RoleNotFound) as caught:
            maker.ensure(iam, "of-nobody", "no-such-role", "/karpenter/x/", {"a": "b"})
        said.add(str(caught.value))
    (text,) = said
    assert text.startswith("iam:AddRoleToInstanceProfile: NoSuchEntity: ")
    assert "no-such-role" in text


def of_profile(real: MotoAccount, name: str) -> dict[str, tuple[str, str]]:
    """The problems of a class that names this instance profile."""
    of = node_class(real, uid="named")
    named = replace(of, spec=replace(of.spec, role=None, instance_profile=name))
    return dict(real.cloud.resolve(named, real.cloud.cluster()).problems)


def test_a_named_profile_is_found_with_its_role_and_asked_for_again_only_while_it_is_wrong(
    aws: MotoAws, real: MotoAccount
) -> None:
    iam = aws.client("iam")
    reason, message = of_profile(real, "of-users")["InstanceProfileReady"]
    assert reason == "InstanceProfileNotFound"
    assert message.startswith("iam:GetInstanceProfile: NoSuchEntity: ")
    assert "of-users" in message
    iam.create_instance_profile(InstanceProfileName="of-users")
    assert of_profile(real, "of-users")["InstanceProfileReady"][0] == "InstanceProfileWithoutRole"
    iam.add_role_to_instance_profile(InstanceProfileName="of-users", RoleName=real.role)
    aws.clear_calls()
    assert [of_profile(real, "of-users") for _ in range(3)] == [{}] * 3
    assert len(aws.calls("GetInstanceProfile")) == 1


def test_a_name_that_iam_does_not_allow_is_not_asked_for(aws: MotoAws, real: MotoAccount) -> None:
    aws.clear_calls()
    for name in ("arn:aws:iam::123456789012:instance-profile/nodes", "a" * 129, "two words"):
        assert of_profile(real, name)["InstanceProfileReady"][0] == "InstanceProfileNotFound"
    assert aws.calls("GetInstanceProfile") == []


@pytest.mark.parametrize(
    ("code", "status", "times"), [("AccessDenied", 403, 1), ("ServiceFailure", 500, BOTH), ("Throttling", 400, BOTH)]
)
def test_a_named_profile_that_iam_says_nothing_about_is_taken_as_it_is(
    aws: MotoAws, real: MotoAccount, code: str, status: int, times: int
) -> None:
    aws.fail("GetInstanceProfile", code, status=status, times=times)
    assert of_profile(real, f"unseen-{code}") == {}
    aws.clear_calls()
    again = of_profile(real, f"unseen-{code}")
    assert bool(again) == (code == "Throttling")
    assert (len(aws.calls("GetInstanceProfile")) > 0) == (code == "Throttling")


def test_179_other_errors_are_not_remembered(aws: MotoAws) -> None:
    maker, iam = Maker(), aws.client("iam")
    aws.fail("AddRoleToInstanceProfile", "AccessDenied", status=403)
    with pytest.raises(Forbidden):
        maker.ensure(iam, "denied-once", "KarpenterNodeRole", "/karpenter/x/", {"a": "b"})
    maker.ensure(iam, "denied-once", "KarpenterNodeRole", "/karpenter/x/", {"a": "b"})
    assert "denied-once" in profiles(aws)


LEGACY = "kerf-test_4067990795380418201"  # of region us-west-2 and class default, as Karpenter hashes them


def profiles(aws: MotoAws) -> set[str]:
    return {row["InstanceProfileName"] for row in aws.client("iam").list_instance_profiles()["InstanceProfiles"]}


def test_182_with_its_class_go_its_profiles_and_that_from_before_they_had_paths(
    aws: MotoAws, real: MotoAccount
) -> None:
    iam = aws.client("iam")
    path, _ = profile_of(real, "ended")
    for name in ("ended-1", "ended-2"):
        real.cloud.ensure_instance_profile(name, real.role, path, {"a": "b"})
    iam.create_instance_profile(InstanceProfileName=LEGACY)
    iam.add_role_to_instance_profile(InstanceProfileName=LEGACY, RoleName=real.role)
    others = profiles(aws) - {"ended-1", "ended-2", LEGACY}
    real.cloud.delete_class_resources("default", path)
    assert profiles(aws) == others
    real.cloud.delete_class_resources("default", path)


def test_184_a_name_that_iam_cannot_have_is_passed_over_and_an_isolated_vpc_asks_nothing(
    aws: MotoAws, real: MotoAccount
) -> None:
    cloud = aws_cloud(aws, cluster_name="a/b")
    aws.clear_calls()
    cloud.delete_class_resources("default", "/karpenter/us-west-2/nobody/")
    assert {call.action for call in aws.calls() if call.service == "iam"} == {"ListInstanceProfiles"}
    isolated = aws_cloud(aws, isolated_vpc=True)
    aws.clear_calls()
    isolated.delete_class_resources("default", "/karpenter/us-west-2/nobody/")
    _, of = profile_of(real, "isolated")
    assert isolated.resolve(of, isolated.cluster()).problems["InstanceProfileReady"][0] == "IsolatedVPC"
    named = replace(of, spec=replace(of.spec, role=None, instance_profile="not-asked-for"))
    assert isolated.resolve(named, isolated.cluster()).problems == {}
    assert [call for call in aws.calls() if call.service == "iam"] == []


# --- templates --------------------------------------------------------------------------------------------------
def test_127_templates_themselves_have_the_users_tags(aws: MotoAws, real: MotoAccount) -> None:
    wanted = request(real, "tagged")
    (one,) = wanted.templates
    own = replace(one, name="karpenter.k8s.aws/3", tags={**one.tags, "team": "platform"})
    moved = tuple(replace(override, template=own.name) for override in wanted.overrides)
    real.cloud.create_fleet(replace(wanted, templates=(own,), overrides=moved))
    (made,) = aws.client("ec2").describe_launch_templates(LaunchTemplateNames=[own.name])["LaunchTemplates"]
    aws.client("ec2").delete_launch_template(LaunchTemplateName=own.name)
    assert {"Key": "team", "Value": "platform"} in made["Tags"]


def test_183_templates_are_deleted_with_their_class_and_a_failure_is_reported(aws: MotoAws, real: MotoAccount) -> None:
    ec2, wanted = aws.client("ec2"), request(real, "of-default")
    real.cloud.create_fleet(wanted)
    (mine,) = wanted.templates
    theirs = replace(mine, name="karpenter.k8s.aws/2", tags={**mine.tags, labels.TAG_NODECLASS: "other"})
    moved = tuple(replace(override, template=theirs.name) for override in wanted.overrides)
    real.cloud.create_fleet(replace(wanted, group="of-other", templates=(theirs,), overrides=moved))
    aws.fail("DeleteLaunchTemplate", "InternalError", status=500, times=BOTH)
    with pytest.raises(Unavailable):
        real.cloud.delete_class_resources("default", "")
    real.cloud.delete_class_resources("default", "")
    left = {row["LaunchTemplateName"] for row in ec2.describe_launch_templates()["LaunchTemplates"]}
    assert left == {theirs.name}


def test_158_a_template_is_deleted_when_it_is_asked_for_and_not_because_a_launch_failed(
    aws: MotoAws, real: MotoAccount
) -> None:
    wanted = request(real, "of-its-own")
    aws.fail("CreateFleet", "InvalidLaunchTemplateName.NotFoundException", times=2)
    aws.clear_calls()
    with pytest.raises(TemplateMissing):
        real.cloud.create_fleet(wanted)
    assert aws.calls("DeleteLaunchTemplate") == []
    (one,) = [each for each in real.cloud.launch_templates() if each.name == wanted.templates[0].name]
    real.cloud.delete_resource(one)
    assert len(aws.calls("DeleteLaunchTemplate")) == 1
    aws.clear_calls()
    assert real.cloud.create_fleet(wanted).instances
    assert len(aws.calls("CreateLaunchTemplate")) == 1


def test_158_templates_without_our_tags_or_name_are_not_ours(aws: MotoAws, real: MotoAccount) -> None:
    ec2, ours = aws.client("ec2"), launch_tags(aws.cluster_name, "x")
    lacking = [{k: v for k, v in ours.items() if k != gone} for gone in ours if gone != labels.LAUNCH_GROUP]
    made = {f"karpenter.k8s.aws/lacking-{number}": tags for number, tags in enumerate(lacking)}
    for name, tags in {**made, "of-a-user": ours, "karpenter.k8s.aws/whole": ours}.items():
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={"ImageId": "ami-00000001"},
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": rows}],
        )
    found = {one.name for one in real.cloud.launch_templates()}
    assert "karpenter.k8s.aws/whole" in found
    allowed = {name for name, tags in made.items() if labels.TAG_NODECLASS not in tags}
    assert found & {*made, "of-a-user"} == allowed


def test_199_what_iam_does_not_say_is_an_error_and_nothing_is_taken_for_gone(aws: MotoAws, real: MotoAccount) -> None:
    aws.fail("ListInstanceProfiles", "AccessDenied", status=403)
    with pytest.raises(Forbidden):
        real.cloud.instance_profiles()
    path, _ = profile_of(real, "kept")
    real.cloud.ensure_instance_profile("kept", real.role, path, {"a": "b"})
    (one,) = [each for each in real.cloud.instance_profiles() if each.name == "kept"]
    aws.fail("DeleteInstanceProfile", "ServiceFailure", status=500, times=BOTH)
    with pytest.raises(Unavailable):
        real.cloud.delete_resource(one)
    real.cloud.delete_resource(one)
    assert "kept" not in profiles(aws)
