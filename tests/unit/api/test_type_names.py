"""Types that the table of facts lacks are not called unknown."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.cli.verbs import catalogue
from kerf_api import labels, type_names
from kerf_api.lint import LintSettings, validate
from kerf_api.lint.catalogue import Catalogue, Table, shipped
from tests.sources import ROOT

from .manifests import changed
from .table.rows import requirement

FAMILY = f"{labels.AWS_GROUP}/instance-family"
#: Of previous generations, of regions other than us-east-1, and of machines that an emulated EC2 does not have.
ABSENT = (
    "t2.nano",
    "t2.medium",
    "t1.micro",
    "m1.small",
    "m1.medium",
    "c1.medium",
    "c3.large",
    "g4ad.xlarge",
    "dl1.24xlarge",
    "p3.2xlarge",
)


def found(*requirements: Any, settings: LintSettings | None = None, **fields: Any) -> list[tuple[str, str, str]]:
    manifest = changed("NodePool", "T.requirements", list(requirements))
    manifest["spec"].update(fields)
    problems = validate(manifest, settings=settings or LintSettings())
    return [(p.severity, p.rule, p.hint) for p in problems if "NP-3" in p.rule and p.rule != "KERF-NP-341"]


def test_the_list_is_that_of_the_pinned_service_model() -> None:
    text = (ROOT / "api/kerf_api/type_names.txt").read_text()
    assert text == catalogue.names(), "run kerf catalogue --names > api/kerf_api/type_names.txt"


def test_it_has_every_type_of_the_table_of_facts() -> None:
    assert set(shipped().names) <= type_names.known()


@pytest.mark.parametrize("name", ABSENT)
def test_a_type_without_facts_is_known(name: str) -> None:
    ((severity, rule, hint),) = found(requirement(labels.INSTANCE_TYPE, values=(name,)))
    assert (severity, rule) == ("info", "KERF-NP-308")
    assert "did you mean" not in hint


@pytest.mark.parametrize(
    ("suffix", "value"), [("family", "g4ad"), ("family", "dl1"), ("size", "36xlarge"), ("size", "480xlarge")]
)
def test_so_is_what_follows_from_its_name(suffix: str, value: str) -> None:
    ((_, rule, _),) = found(requirement(f"{labels.AWS_GROUP}/instance-{suffix}", values=(value,)))
    assert rule == "KERF-NP-308"


def test_advice_that_counts_types_is_silent_then() -> None:
    spot = requirement(labels.CAPACITY_TYPE, values=("spot",))
    large = requirement(labels.INSTANCE_TYPE, values=("t2.small", "m7i.48xlarge"))
    assert {rule for _, rule, _ in found(spot, large, limits={"cpu": "2"})} == {"KERF-NP-308"}
    known = requirement(labels.INSTANCE_TYPE, values=("m7i.48xlarge",))
    assert {rule for _, rule, _ in found(spot, known, limits={"cpu": "2"})} == {"KERF-NP-306", "KERF-NP-343"}


def test_a_name_that_no_type_has_is_a_warning_still() -> None:
    assert found(requirement(labels.INSTANCE_TYPE, values=("m1.smal", "m7i.large"))) == [
        ("warning", "KERF-NP-301", "did you mean m1.small?")
    ]


def test_the_catalogue_of_a_region_is_complete() -> None:
    own = LintSettings(catalogue=Catalogue(Table(["m7i.large"], {FAMILY: ["m7i"]})))
    value = requirement(FAMILY, values=("m7i", "g4ad"))
    assert found(value, settings=own) == [
        ("warning", "KERF-NP-301", "EC2 has it, but not in the region of this catalogue")
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m7i-flex.2xlarge", ("m7i-flex", "2xlarge", "m", "7")),
        ("u-6tb1.metal", ("u-6tb1", "metal", "u", "1")),
        ("mac-m4.metal", ("mac-m4", "metal")),
    ],
)
def test_labels_of_names(name: str, expected: tuple[str, ...]) -> None:
    assert tuple(value for _, value in type_names.labels_of(name)) == expected


@pytest.mark.parametrize(("limit", "size"), [("-5", "1 vCPU;"), ("1", "2 vCPUs;")])
def test_a_limit_below_the_smallest_type_names_its_size(limit: str, size: str) -> None:
    known = requirement(labels.INSTANCE_TYPE, values=("m3.medium" if limit == "-5" else "m7i.large",))
    manifest = changed("NodePool", "T.requirements", [known])
    manifest["spec"]["limits"] = {"cpu": limit}
    (said,) = [str(p) for p in validate(manifest) if p.rule == "KERF-NP-343"]
    assert f"which has {size}" in said
