"""Names in AWS fit its limits for every legal name of a cluster, in CloudFormation, Terraform and the README."""

from __future__ import annotations

import hashlib
import re
import subprocess
from typing import Final

import pytest
from ruamel.yaml import YAML

from tests.unit.aws.policies import AWS

MAIN: Final = (AWS / "terraform" / "main.tf").read_text(encoding="utf-8")
README: Final = (AWS / "README.md").read_text(encoding="utf-8")
TEMPLATE: Final = YAML(typ="rt", pure=True).load((AWS / "cloudformation.yaml").read_text(encoding="utf-8"))
#: By Terraform's kind of resource: characters that AWS allows in its name.
#: Sources: IAM user guide, quotas; SQS developer guide, quotas; EventBridge API reference, PutRule.
LIMITS: Final = {"aws_iam_role": 64, "aws_iam_policy": 128, "aws_sqs_queue": 80, "aws_cloudwatch_event_rule": 64}
#: An EKS cluster's name has at most so many characters. Source: EKS API reference, CreateCluster.
LONGEST: Final = 100
RESOURCE: Final = re.compile(r'^resource "(\w+)" "\w+" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
SHORTENED: Final = re.compile(
    r"(\w+)\s+= length\(var\.cluster_name\) <= (\d+) \? var\.cluster_name : "
    r'"\$\{substr\(var\.cluster_name, 0, (\d+)\)\}-\$\{local\.hash\}"'
)


def cluster(length: int) -> str:
    return ("my-cluster_" * 10)[:length]


def shortened(name: str) -> dict[str, str]:
    """The values of Terraform's locals that shorten a cluster's name."""
    assert "hash      = substr(sha256(var.cluster_name), 0, 8)" in MAIN
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    found = SHORTENED.findall(MAIN)
    return {local: name if len(name) <= int(most) else f"{name[: int(kept)]}-{digest}" for local, most, kept in found}


def names(name: str) -> list[tuple[str, str]]:
    """Kinds and names of the resources of a cluster; of each repeated resource that with the longest key."""
    values = {f"local.{local}": text for local, text in shortened(name).items()}
    keys = {"aws_iam_policy": "instance-profiles", "aws_cloudwatch_event_rule": "reservation-interruption"}
    found = []
    for kind, body in RESOURCE.findall(MAIN):
        if kind in LIMITS:
            text = re.search(r"^\s+name\s+= (.*)$", body, re.MULTILINE)
            assert text is not None
            key = keys.get(kind, "")
            template = text[1].replace('${replace(each.key, "_", "-")}', key).replace("${each.key}", key)
            found.append((kind, re.sub(r"\$\{([\w.]+)\}", lambda one: values[one[1]], template).strip('"')))
    return [(kind, values.get(text, text)) for kind, text in found]


@pytest.mark.parametrize("length", [1, 34, 35, 46, 47, LONGEST])
def test_terraform_gives_names_that_aws_takes(length: int) -> None:
    found = names(cluster(length))
    assert {kind for kind, _ in found} == {*LIMITS}
    assert [(kind, name) for kind, name in found if len(name) > LIMITS[kind] or "$" in name] == []
    assert all(re.fullmatch(r"[\w-]+", name) for _, name in found)


def test_a_name_that_fits_stays_as_it_is_and_two_long_ones_differ() -> None:
    assert ("aws_iam_role", f"KarpenterNodeRole-{cluster(46)}") in names(cluster(46))
    assert ("aws_sqs_queue", cluster(46)) in names(cluster(46))
    one, other = cluster(LONGEST), cluster(LONGEST - 1) + "x"
    assert not {*names(one)} & {*names(other)}


def test_the_readme_shortens_a_name_as_terraform_does() -> None:
    (command,) = re.findall(r"^printf .*$", README, re.MULTILINE)
    name = cluster(LONGEST)
    done = subprocess.run(["/bin/sh", "-c", command], env={"CLUSTER": name}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == shortened(name)["name"]


def test_cloud_formation_takes_every_name_of_a_cluster_and_the_shortened_one() -> None:
    parameters = TEMPLATE["Parameters"]
    clusters, short = (re.compile(parameters[name]["AllowedPattern"]) for name in ("ClusterName", "Name"))
    for length in (1, 46, 47, LONGEST):
        assert clusters.fullmatch(cluster(length))
        assert short.fullmatch(shortened(cluster(length))["name"])
    assert not clusters.fullmatch(cluster(LONGEST) + "x")
    assert short.fullmatch("")
    longest = "x" * 46
    assert not short.fullmatch(longest + "x")
    prefixes = [
        each["Properties"]["RoleName"][0] for each in TEMPLATE["Resources"].values() if "RoleName" in each["Properties"]
    ]
    assert [len(text.replace("${Suffix}", longest)) for text in prefixes] == [64, 61]
