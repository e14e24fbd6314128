"""What every adapter of the Cloud port promises of launch templates and instance profiles: lists, and their end."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.inventory import PROFILE, TEMPLATE, Resource

from .cloud_accounts import Account
from .launches import listed, request


def called(wanted: FleetRequest, name: str) -> FleetRequest:
    """The same launch from a template of its own."""
    (template,) = wanted.templates
    moved = tuple(replace(override, template=name) for override in wanted.overrides)
    return replace(wanted, templates=(replace(template, name=name),), overrides=moved)


def templates(account: Account) -> dict[str, Resource]:
    return {one.name: one for one in account.cloud.launch_templates()}


def profiles(account: Account) -> dict[str, Resource]:
    return {one.name: one for one in account.cloud.instance_profiles()}


def path(account: Account, cluster_name: str, uid: str) -> str:
    return f"/karpenter/{account.cloud.cluster().region}/{cluster_name}/{uid}/"


def test_the_template_of_a_launch_is_listed_and_those_of_another_cluster_are_not(account: Account, group: str) -> None:
    mine, theirs = f"karpenter.k8s.aws/{group}-mine", f"karpenter.k8s.aws/{group}-theirs"
    account.cloud.create_fleet(called(request(account, f"{group}-1"), mine))
    account.cloud.create_fleet(called(request(account, f"{group}-2", cluster_name="another"), theirs))
    found = templates(account)
    assert mine in found
    assert theirs not in found
    assert list(found) == sorted(found)
    assert (found[mine].kind, found[mine].created.tzinfo) == (TEMPLATE, UTC)


def test_a_template_that_is_made_ahead_is_that_of_the_launch(account: Account, group: str) -> None:
    name = f"karpenter.k8s.aws/{group}"
    wanted = called(request(account, group), name)
    account.cloud.ensure_template(wanted.templates[0])
    made = templates(account)[name]
    account.cloud.ensure_template(wanted.templates[0])
    assert account.cloud.create_fleet(wanted).instances
    assert templates(account)[name] == made


def test_a_template_that_was_deleted_is_made_again_by_the_next_launch(account: Account, group: str) -> None:
    name = f"karpenter.k8s.aws/{group}"
    account.cloud.create_fleet(called(request(account, f"{group}-1"), name))
    one = templates(account)[name]
    account.cloud.delete_resource(one)
    assert name not in templates(account)
    account.cloud.delete_resource(one)
    assert account.cloud.create_fleet(called(request(account, f"{group}-2"), name)).instances
    assert name in templates(account)


def test_profiles_of_all_classes_are_listed_and_those_of_another_cluster_are_not(account: Account) -> None:
    for name, cluster, uid in (("p-1", account.cluster_name, "u-1"), ("p-2", account.cluster_name, "u-2")):
        account.cloud.ensure_instance_profile(name, account.role, path(account, cluster, uid), {"a": "b"})
    account.cloud.ensure_instance_profile("p-3", account.role, path(account, "another", "u-1"), {"a": "b"})
    similar = path(account, f"{account.cluster_name}-2", "u-1")
    account.cloud.ensure_instance_profile("p-4", account.role, similar, {"a": "b"})
    found = profiles(account)
    assert {"p-1", "p-2"} <= set(found)
    assert {"p-3", "p-4"}.isdisjoint(found)
    assert (found["p-1"].kind, found["p-1"].id, found["p-1"].created.tzinfo) == (PROFILE, "p-1", UTC)


def test_a_profile_is_deleted_with_its_role_on_and_that_may_be_repeated(account: Account) -> None:
    account.cloud.ensure_instance_profile("gone", account.role, path(account, account.cluster_name, "u"), {"a": "b"})
    one = profiles(account)["gone"]
    account.cloud.delete_resource(one)
    assert "gone" not in profiles(account)
    account.cloud.delete_resource(one)
    account.cloud.delete_resource(changed(one, created=datetime.now(UTC) - timedelta(days=1)))


def test_an_instance_shows_the_profile_that_it_was_given(account: Account, group: str) -> None:
    wanted = request(account, group)
    (told,) = account.cloud.create_fleet(wanted).instances
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert told.profile == shown.profile == wanted.templates[0].instance_profile
