"""What EC2 refuses to launch, disks that nobody counts, and archives without a closing boundary."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.ec2 import tags
from kerf_api import labels
from kerf_api.lint import validate
from kerf_api.lint.rules.rules_launch import OWN_TAGS
from kerf_api.userdata import cloud_init, mime
from kerf_api.v1 import meta
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.api.manifests import changed
from tests.unit.ec2.ec2_facts import node_class, one

HEAD = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
SCRIPT = "--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\necho {{ .Name }} %s\n"
NESTED = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="A"\n\n--A\n' + HEAD.partition("\n")[2] + SCRIPT


def rules(manifest: dict[str, Any]) -> list[str]:
    return [problem.rule for problem in validate(manifest)]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + SCRIPT + "--B",
        HEAD + SCRIPT + "--B\n",
        HEAD + SCRIPT + "--B  \n\n\n",
        (HEAD + SCRIPT + "--B\n").replace("\n", "\r\n"),
        (HEAD + SCRIPT + "--B").replace("B", "==MYBOUNDARY=="),
        HEAD.replace('"B"', "B") + SCRIPT + "--B",
        NESTED + "--B\n--A--\n",
        NESTED + "--B\n--A\n",
        NESTED + "--A--\n",
        NESTED + "--A",
        HEAD + SCRIPT + "--B\nContent-Type: text/plain\n",
        (HEAD + SCRIPT + "--B\nContent-Type: text/plain\n").replace("\n", "\r\n"),
    ],
)
def test_a_last_boundary_without_its_dashes_is_accepted_with_a_warning(text: str) -> None:
    parts = cloud_init.parts(text, nodeadm=True)
    assert [(part.kind, part.text.strip().splitlines()[0]) for part in parts] == [("text/x-shellscript", "#!/bin/bash")]
    assert rules(changed("EC2NodeClass", "spec.userData", text)) == ["KERF-EC2-217"]
    assert mime.split(mime.join(parts)) == parts
    assert not mime.has_open_end(mime.join(parts))


@pytest.mark.parametrize(
    "text",
    [HEAD + SCRIPT, HEAD + SCRIPT + "-B--", HEAD + SCRIPT + "--C", HEAD + "--B", HEAD, NESTED, NESTED + "--B--\n"],
    ids=["none", "one dash", "another boundary", "nothing within", "no part", "none of two", "the inner one alone"],
)
def test_an_archive_without_a_boundary_at_the_end_stays_an_error(text: str) -> None:
    assert rules(changed("EC2NodeClass", "spec.userData", text)) == ["KERF-EC2-107"]


def test_the_number_of_tags_that_kerf_sets_is_the_true_one() -> None:
    launched = {*tags.launch(node_class(), "pool", "cluster"), labels.LAUNCH_GROUP}
    later = {"Name", labels.TAG_NODECLAIM}
    assert len(launched | later) == OWN_TAGS


@pytest.mark.parametrize(("number", "expected"), [(43, []), (44, ["KERF-EC2-110"])])
def test_as_many_tags_as_ec2_allows_beside_them(number: int, expected: list[str]) -> None:
    assert rules(changed("EC2NodeClass", "spec.tags", {f"t{i}": "x" for i in range(number)})) == expected


@pytest.mark.parametrize(("number", "expected"), [(43, []), (44, ["KERF-EC2-110"])])
def test_a_tag_name_takes_the_place_of_kerfs_own(number: int, expected: list[str]) -> None:
    tags = {"Name": "x", **{f"t{i}": "x" for i in range(number)}}
    assert rules(changed("EC2NodeClass", "spec.tags", tags)) == expected


@pytest.mark.parametrize("key", ["aws:x", "AWS:x", "Aws:createdBy"])
def test_no_tag_begins_with_aws_in_any_letters(key: str) -> None:
    assert rules(changed("EC2NodeClass", "spec.tags", {key: "x"})) == ["KERF-EC2-111"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("k" * 128, "v" * 256, []), ("k" * 129, "v", ["KERF-EC2-112"]), ("k", "v" * 257, ["KERF-EC2-112"])],
)
def test_tags_are_as_long_as_ec2_allows(key: str, value: str, expected: list[str]) -> None:
    assert rules(changed("EC2NodeClass", "spec.tags", {key: value})) == expected


def test_one_interface_may_have_a_public_address() -> None:
    one = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]
    manifest = changed("EC2NodeClass", "spec.networkInterfaces", one)
    manifest["spec"]["associatePublicIPAddress"] = True
    assert rules(manifest) == []


SIZED, UNSIZED = {"volumeSize": "300Gi"}, {"snapshotID": "snap-0ab03fec22a151ecf"}


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom"])
@pytest.mark.parametrize("device", ["/dev/xvda", "/dev/xvdb", "/dev/sda1"])
@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("ebs", [SIZED, UNSIZED])
def test_a_disk_that_is_not_counted_is_named(family: str, device: str, root: bool, ebs: dict[str, Any]) -> None:
    """As the controller counts: a warning where it does not take the size that is written, with the size it takes."""
    row = {"deviceName": device, "ebs": ebs, **({"rootVolume": True} if root else {})}
    manifest = changed("EC2NodeClass", "spec.blockDeviceMappings", [row])
    manifest["spec"] |= {"amiFamily": family, "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}
    found = one("m5.large", meta.decode(EC2NodeClass, manifest))
    size = found.capacity["ephemeral-storage"] // 2**30
    warned = [problem.message for problem in validate(manifest) if problem.rule == "KERF-EC2-218"]
    assert bool(warned) is (size != 300)
    assert all(f"planned for {size}Gi" in message for message in warned)


def test_with_the_disks_of_the_instance_no_volume_is_counted() -> None:
    manifest = changed("EC2NodeClass", "spec.blockDeviceMappings", [{"deviceName": "/dev/sda1", "ebs": SIZED}])
    manifest["spec"]["instanceStorePolicy"] = "RAID0"
    assert rules(manifest) == []


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        *((family, []) for family in ("AL2", "AL2023", "Bottlerocket")),
        *((family, ["KERF-EC2-225"]) for family in ("Windows2019", "Windows2022", "Windows2025", "Custom")),
    ],
)
def test_disks_of_the_instance_that_no_user_data_of_kerf_joins(family: str, expected: list[str]) -> None:
    manifest = changed("EC2NodeClass", "spec.instanceStorePolicy", "RAID0")
    manifest["spec"] |= {"amiFamily": family, "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}
    assert [rule for rule in rules(manifest) if rule != "KERF-EC2-214"] == expected


@pytest.mark.parametrize(("mode", "expected"), [("always", ["KERF-EC2-216"]), ("once", ["KERF-EC2-216"]), ("off", [])])
def test_a_bootstrap_command_that_is_off_repeats_nothing(mode: str, expected: list[str]) -> None:
    text = (
        f'[settings.bootstrap-commands.a]\ncommands = [["apiclient", "ephemeral-storage", "init"]]\nmode = "{mode}"\n'
    )
    manifest = changed("EC2NodeClass", "spec.userData", text)
    manifest["spec"] |= {"instanceStorePolicy": "RAID0", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}
    assert rules(manifest) == expected


@pytest.mark.parametrize(
    ("field", "name", "expected"),
    [
        ("role", "KarpenterNodeRole-x", None),
        ("role", "r" * 64, None),
        ("role", "KarpenterNodeRole-${CLUSTER_NAME}", None),
        ("role", "{{ .Values.path }}/nodes", None),
        ("role", "r" * 65, "1 to 64 letters"),
        ("role", "the nodes' role", "write the name of the role"),
        ("role", "arn:aws-cn:iam::123456789012:role/teams/nodes", None),  # the controller takes its last part
        ("role", "teams/nodes", None),
        ("role", "teams/", "write the name of the role"),
        ("instanceProfile", "p" * 128, None),
        ("instanceProfile", "p" * 129, "1 to 128 letters"),
        ("instanceProfile", "arn:aws:iam::123456789012:instance-profile/nodes", 'use "nodes"'),
        ("instanceProfile", "/nodes", 'use "nodes"'),
        ("instanceProfile", "nodes of prod", "write the name of the instance profile"),
    ],
)
def test_a_role_and_an_instance_profile_are_written_as_names(field: str, name: str, expected: str | None) -> None:
    manifest = changed("EC2NodeClass", f"spec.{field}", name)
    if field == "instanceProfile":
        del manifest["spec"]["role"]
    found = validate(manifest)
    assert [problem.rule for problem in found] == ([] if expected is None else ["KERF-EC2-115"])
    assert expected is None or expected in f"{found[0].message}; {found[0].hint}"


def test_nodes_without_the_metadata_endpoint_do_not_join() -> None:
    assert rules(changed("EC2NodeClass", "spec.metadataOptions", {"httpEndpoint": "disabled"})) == ["KERF-EC2-221"]
    assert rules(changed("EC2NodeClass", "spec.metadataOptions", {"httpTokens": "optional"})) == []
