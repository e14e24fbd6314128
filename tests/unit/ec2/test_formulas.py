"""What expressions of a class come to on each instance type, and where that shows: capacity, user data, templates."""

from __future__ import annotations

import tomllib
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.instance_types.formulas import Unresolvable
from kerf.ec2.nodeclass import nodeclass
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.instance_type import InstanceType
from kerf.model.settings import FeatureGates
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.aws.catalogue.test_user_data import node_config
from tests.unit.ec2.ec2_facts import CLUSTER, NOW, SETTINGS, catalogue, claim, facts, node_class, one
from tests.unit.ec2.fleet_requests import request

OPEN = changed(SETTINGS, gates=FeatureGates(node_class_cel=True))
MIB, GIB = 2**20, 2**30


def on(name: str, family: str = "AL2023", **kubelet: Any) -> InstanceType:
    return one(name, node_class(family, kubelet=kubelet), OPEN)


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "vcpus - 2", "0m"),
        ("cpu", "vcpus", "10m"),
        ("cpu", "vcpus * 50", "100m"),
        ("cpu", "double(vcpus) + 98.9", "100m"),
        ("cpu", "vcpus + 99", "110m"),
        ("memory", "vcpus - 1", "16Mi"),
        ("memory", "max_pods * 11", "320Mi"),
        ("memory", "memory_mib / 16", "512Mi"),
        ("ephemeral-storage", "vcpus", "2Gi"),
        ("pid", "vcpus * 500 + 1", "1001"),
    ],
)
@pytest.mark.parametrize("field", ["kubeReserved", "systemReserved"])
def test_each_resource_has_its_unit_and_its_steps(field: str, name: str, text: str, amount: str) -> None:
    kubelet: dict[str, Any] = {field: {name: text}}
    assert on("m5.large", **kubelet).reserved == ((field, name, amount),)


def test_plain_quantities_and_what_no_expression_is_about_stay() -> None:
    found = on("m5.large", kubeReserved={"cpu": "vcpus * 50", "memory": "1Gi"})
    assert found.reserved == (("kubeReserved", "cpu", "100m"),)
    kept = {name: found.capacity[name] - found.allocatable[name] for name in ("cpu", "memory", "ephemeral-storage")}
    assert kept == {"cpu": 100, "memory": GIB + 100 * MIB, "ephemeral-storage": GIB + 2 * GIB}
    assert on("m5.large").reserved == ()


@pytest.mark.parametrize(
    ("name", "variable", "found"),
    [
        ("m5.xlarge", "vcpus", 4),
        ("m5.xlarge", "memory_mib / 16", 1024),
        ("m5.xlarge", "default_enis", 4),
        ("m5.xlarge", "ips_per_eni", 15),
        ("m5.xlarge", "max_pods", 58),
        ("m5.xlarge", "instance_type == 'm5.xlarge' ? 1 : 2", 1),
        ("p4d.24xlarge", "default_enis", 15),
    ],
)
def test_what_expressions_may_ask_is_the_machines(name: str, variable: str, found: int) -> None:
    assert on(name, maxPods=variable).capacity["pods"] == found


@pytest.mark.parametrize(("family", "pods"), [("AL2023", 10), ("AL2", 10), ("Custom", 10), ("Windows2022", 10)])
def test_pods_per_core_holds_beside_an_expression(family: str, pods: int) -> None:
    assert on("m5.large", family, maxPods="vcpus * 100", podsPerCore=5).capacity["pods"] == pods
    assert on("m5.large", family, maxPods="vcpus * 2", podsPerCore=5).capacity["pods"] == 4


@pytest.mark.parametrize(("name", "text"), [("cpu", "0 - vcpus"), ("memory", "1 / (vcpus - 2)"), ("pid", "0.0 / 0.0")])
def test_what_cannot_be_reserved_leaves_no_type(name: str, text: str) -> None:
    with pytest.raises(Unresolvable, match=f"kubeReserved.{name}: .*m5.large") as caught:
        on("m5.large", kubeReserved={name: text})
    assert caught.value.reason == "KubeletExpressionEvaluationFailed"


def test_an_expression_that_cannot_be_read_is_told_as_such_before_anything_is_asked() -> None:
    of = node_class(kubelet={"kubeReserved": {"cpu": "vcpus *"}})
    found = nodeclass.status(of, facts(), cluster=CLUSTER, settings=OPEN, now=NOW)
    (row,) = (row for row in found.conditions if row.type == "ValidationSucceeded")
    assert (row.status, row.reason) == ("False", "KubeletExpressionInvalid")
    assert row.message == "kubeReserved.cpu: 'vcpus *' cannot be read: column 8: it ends too early"


# --- launches ---------------------------------------------------------------------------------------------------
NAMES = ("c5.large", "m5.large", "m5.xlarge", "r5.large")


def ready(family: str, kubelet: dict[str, Any]) -> EC2NodeClass:
    of = node_class(family, kubelet=kubelet)
    new = nodeclass.status(of, facts(), cluster=CLUSTER, settings=OPEN, now=NOW)
    return replace(of, status=new)


def launched(family: str = "AL2023", names: tuple[str, ...] = NAMES, **kubelet: Any) -> FleetRequest:
    of = ready(family, kubelet)
    return request(claim("a"), types=catalogue(*names, of=of, settings=OPEN), node_class=of, settings=OPEN)


@pytest.mark.parametrize(
    ("kubelet", "templates"),
    [
        ({"maxPods": "vcpus * 8"}, 2),
        ({"maxPods": "20 + vcpus / 100"}, 1),
        ({"maxPods": 20, "kubeReserved": {"memory": "memory_mib / 100"}}, 3),
        ({"maxPods": 20, "kubeReserved": {"cpu": "vcpus"}}, 1),
        ({"maxPods": 20, "systemReserved": {"cpu": "vcpus * 10"}}, 2),
        ({"maxPods": "vcpus", "kubeReserved": {"cpu": "max_pods * 10"}}, 2),
    ],
)
def test_types_for_which_the_same_comes_of_all_share_a_launch_template(kubelet: Any, templates: int) -> None:
    found = launched(**kubelet)
    assert len(found.templates) == templates
    assert {override.template for override in found.overrides} == {template.name for template in found.templates}
    assert {override.instance_type for override in found.overrides} == set(NAMES)


KUBELET = {"maxPods": "vcpus * 8", "kubeReserved": {"cpu": "vcpus * 50", "memory": "1Gi"}, "podsPerCore": 100}


def test_al2023_is_told_the_values() -> None:
    (template,) = launched("AL2023", ("m5.large",), **KUBELET).templates
    config = node_config(template.user_data)["spec"]["kubelet"]["config"]
    assert (config["maxPods"], config["kubeReserved"]) == (16, {"cpu": "100m", "memory": "1Gi"})


def test_al2_and_windows_are_told_the_values() -> None:
    for family in ("AL2", "Windows2022"):
        (template,) = launched(family, ("m5.large",), **KUBELET).templates
        assert "--max-pods=16" in template.user_data
        assert '--kube-reserved="cpu=100m,memory=1Gi"' in template.user_data


def test_bottlerocket_is_told_the_values() -> None:
    kubelet = {field: value for field, value in KUBELET.items() if field != "podsPerCore"}
    (template,) = launched("Bottlerocket", ("m5.large",), **kubelet).templates
    found = tomllib.loads(template.user_data)["settings"]["kubernetes"]
    assert (found["max-pods"], found["kube-reserved"]) == (16, {"cpu": "100m", "memory": "1Gi"})


def test_no_text_of_an_expression_reaches_a_node() -> None:
    for family in ("AL2", "AL2023", "Windows2022"):
        (template,) = launched(family, ("m5.large",), **KUBELET).templates
        assert "vcpus" not in template.user_data
