"""A NodePool and an EC2NodeClass that leave no instance type together: the rows and the field that exclude the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kerf.cli.app import app
from kerf.judgement import pools
from kerf.model.aws.cloud import ClassFacts, Subnet
from kerf.provisioning import contradictions
from kerf.provisioning.missing import cause_of_pool, patches_of_pool
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import CATALOGUE, NOW, ZONE, pool, snapshot
from tests.worlds import node_class

ROW = "spec.template.spec.requirements[0]"
TYPE = labels.INSTANCE_TYPE
WINDOWS = [{"alias": "windows2022@latest"}]
CARDS = [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
]


def row(key: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values), **more}


def files(rows: Iterable[dict[str, Any]], **spec: Any) -> str:
    made = node_class()
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": ref, "requirements": list(rows)}}
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    own = {**kind, "metadata": {"name": "general"}, "spec": {"template": template}}
    return yaml.safe_dump_all([own, {**made, "spec": {**made["spec"], **spec}}])


def told(manifests: str) -> str:
    done = CliRunner().invoke(app, ["why", "nodepool", "general", "-f", "-"], input=manifests)
    return next(line for line in done.stdout.splitlines() if line.startswith("NodePool general is"))


@pytest.mark.parametrize(
    ("asked", "spec", "text"),
    [
        (
            row(labels.CAPACITY_TYPE, "reserved"),
            {},
            f"{ROW} ({labels.CAPACITY_TYPE} In [reserved]), but spec.capacityReservationSelectorTerms of EC2NodeClass "
            "default selects no capacity reservation; change one of them",
        ),
        (
            row(labels.OS, "windows"),
            {},
            f"{ROW} ({labels.OS} In [windows]), but spec.amiSelectorTerms of EC2NodeClass default selects images for "
            "linux; change one of them",
        ),
        (
            row(labels.OS, "linux"),
            {"amiSelectorTerms": WINDOWS},
            f"{ROW} ({labels.OS} In [linux]), but spec.amiSelectorTerms of EC2NodeClass default selects images for "
            "windows; change one of them",
        ),
        (
            row(labels.ARCH, "arm64"),
            {"amiSelectorTerms": WINDOWS},
            f"{ROW} ({labels.ARCH} In [arm64]), but spec.amiSelectorTerms of EC2NodeClass default selects no image",
        ),
        (
            row(TYPE, "m5.large"),
            {"networkInterfaces": CARDS},
            "spec.networkInterfaces of EC2NodeClass default needs network cards or EFA that ",
        ),
        (
            row(TYPE, "m5.large"),
            {"cpuOptions": {"nestedVirtualization": "enabled"}},
            "spec.cpuOptions.nestedVirtualization of EC2NodeClass default is enabled, which ",
        ),
        (
            row(TYPE, "m4.large"),
            {"connectionTracking": {"udpTimeout": 30}},
            f"{ROW} ({TYPE} In [m4.large]): none of the ",
        ),
    ],
)
def test_the_rows_and_the_field_are_named(asked: dict[str, Any], spec: dict[str, Any], text: str) -> None:
    manifests = files([asked, row(labels.ARCH, "amd64", "arm64")][: 1 if asked["key"] == labels.ARCH else 2], **spec)
    assert text in told(manifests)
    assert told(manifests).startswith("NodePool general is not ready: no instance type is left: ")


def test_rows_that_exclude_each_other_are_named_and_no_others() -> None:
    rows = [row(TYPE, "m5.large"), row(labels.ARCH, "arm64"), row(labels.CAPACITY_TYPE, "spot")]
    text = told(files(rows))
    assert f"{ROW[:-3]}[1] ({labels.ARCH} In [arm64]) and {ROW} ({TYPE} In [m5.large])" in text.replace("  ", " ")
    assert labels.CAPACITY_TYPE not in text


def test_a_pair_that_fits_is_ready() -> None:
    assert told(files([row(labels.ARCH, "arm64")])) == "NodePool general is ready: Kerf can launch nodes from it"


# --- in snapshots -----------------------------------------------------------------------------------------------
def plain(**spec: Any) -> EC2NodeClass:
    return decode(EC2NodeClass, {"metadata": {"name": "default", "uid": "u"}, "spec": spec})


def xen(name: str) -> Any:
    one = next(each for each in CATALOGUE if each.name == name)
    hypervisor = Requirements.of_labels({f"{labels.AWS_GROUP}/instance-hypervisor": "xen"})
    offerings = tuple(replace(offer, available=False) for offer in one.offerings)
    return replace(one, offerings=offerings, requirements=one.requirements & hypervisor)


def found(made: NodePool, *classes: EC2NodeClass, **facts: Any) -> contradictions.Contradiction | None:
    given = snapshot([made, *classes], **facts)
    return contradictions.of(given, given.node_pools["default"])


def test_an_ec2nodeclass_that_does_not_exist() -> None:
    given = snapshot([pool()])
    verdict = pools.why(given, "default")
    assert (verdict.code, verdict.text) == (
        "NotReady",
        "is not ready: EC2NodeClass default does not exist; create it, or correct "
        "spec.template.spec.nodeClassRef.name of NodePool default",
    )
    made = given.node_pools["default"]
    assert cause_of_pool(given, made, "").text == "NodePool default: EC2NodeClass default does not exist"
    (patch,) = patches_of_pool(given, made, "")
    assert (patch.action, patch.kind, patch.name) == ("Create", "EC2NodeClass", "default")
    assert patch.text.startswith("create EC2NodeClass default, or correct ")


def test_a_pod_has_the_fields_as_its_cause() -> None:
    given = snapshot([pool(requirements=[row(labels.CAPACITY_TYPE, "reserved")]), plain()])
    made = given.node_pools["default"]
    cause, (patch,) = cause_of_pool(given, made, ""), patches_of_pool(given, made, "")
    assert [str(one.path) for one in cause.fields] == [ROW, "spec.capacityReservationSelectorTerms"]
    assert patch.text == (
        f"NodePool default: correct {ROW}, or EC2NodeClass default: correct spec.capacityReservationSelectorTerms"
    )


def test_connection_tracking_names_instance_types_without_nitro() -> None:
    made = pool(requirements=[row(TYPE, "t3.small")])
    catalogues = {"default": (*CATALOGUE[:2], xen("t3.small"))}
    one = found(made, plain(connectionTracking={"udpTimeout": 30}), catalogues=catalogues)
    assert one is not None
    assert "spec.connectionTracking of EC2NodeClass default needs Nitro, which t3.small" in one.text


def test_offerings_out_of_stock_and_full_subnets_pass() -> None:
    made = pool(requirements=[row(TYPE, "t3.small")])
    sold = {("t3.small", ZONE, kind): NOW + timedelta(minutes=3) for kind in ("on-demand", "spot")}
    one = found(made, plain(), out_of_stock=sold)
    assert one is not None
    assert (one.passes, one.text.partition(",")[0]) == (
        True,
        "no instance type is left: 2 offerings out of stock for now",
    )
    full = ClassFacts(1, subnets=(Subnet("s", ZONE, "usw2-az1", 0),), full_subnets=frozenset(["s"]))
    two = found(made, plain(), catalogues={"default": (xen("t3.small"),)}, class_facts={"default": full})
    assert two is not None
    assert two.text == "no instance type is left for now: its subnets have no free IP address"
    given = snapshot([made, plain()], out_of_stock=sold)
    assert pools.why(given, "default").code == "Hindered"
    assert patches_of_pool(given, made, "")[0].action == "Wait"


def test_min_values_that_the_instance_types_do_not_have() -> None:
    made = pool(requirements=[row(TYPE, "t3.small", "m5.large", minValues=3)])
    one = found(made, plain())
    assert one is not None
    assert one.text.endswith(f"{ROW} ({TYPE}) has minValues 3, and they have 2 values of it")


def test_unknown_instance_types_are_no_contradiction() -> None:
    assert found(pool(), plain(), catalogues={}) is None
    assert found(pool(requirements=[{"key": "x", "operator": "Gt", "values": ["y"]}]), plain()) is None
