"""The JSON Schemas say what the definitions say, in words that editors and kubeconform understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from kerf.cli.verbs import schema
from kerf_api import crds
from tests.sources import ROOT

EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))
WRONG = sorted((ROOT / "tests" / "wrong_manifests").glob("*.yaml"))
#: Words that a definition may use and a JSON Schema not.
FOREIGN = ("x-kubernetes", "uniqueKeys", "nullable", "openAPIV3Schema")


def manifests(path: Path) -> list[dict[str, Any]]:
    return [value for value in YAML(typ="safe").load_all(path) if value]


def accepts(manifest: dict[str, Any]) -> bool:
    return bool(Draft202012Validator(schema.schema(manifest["kind"])).is_valid(manifest))


def descriptions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("description"), str):
            yield part["description"]
        for inner in part.values():
            yield from descriptions(inner)


@pytest.mark.parametrize("kind", crds.kinds())
def test_it_is_a_schema_of_its_draft(kind: str) -> None:
    made = schema.schema(kind)
    Draft202012Validator.check_schema(made)
    assert made["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert (made["title"], made["$id"]) == (kind, f"https://kerf.sh/schemas/{schema.file_name(kind)}")
    assert not any(word in json.dumps(made) for word in FOREIGN)


@pytest.mark.parametrize("kind", crds.kinds())
def test_descriptions_and_defaults_are_kept(kind: str) -> None:
    made, source = schema.schema(kind), crds.schema(kind)
    own = {name: part for name, part in source["properties"].items() if name in ("spec", "status")}
    assert set(descriptions(own)) <= set(descriptions(made))
    assert json.dumps(own).count('"default":') == json.dumps(made["properties"]).count('"default":')


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_valid(path: Path) -> None:
    assert all(accepts(manifest) for manifest in manifests(path))


def test_what_is_wrong_with_the_shape_is_refused() -> None:
    refused = {path.stem for path in WRONG if not all(accepts(m) for m in manifests(path) if m["kind"] in crds.kinds())}
    assert {"budget-nodes-number", "budget-nodes-percent", "budget-reason", "budget-duration-seconds"} <= refused


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("spec", "weigth"), 5),
        (("spec", "weight"), "5"),
        (("spec", "weight"), 101),
        (("spec", "template", "spec", "nodeClassRef"), {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}),
        (("spec", "template", "spec", "expireAfter"), "30d"),
        (("metadata", "label"), {}),
        (("apiVersion",), "karpenter.sh/v1beta1"),
        (("kind",), "Nodepool"),
    ],
)
def test_what_a_schema_refuses(place: tuple[str, ...], value: Any) -> None:
    (manifest, *_) = manifests(ROOT / "manifests" / "examples" / "general-purpose.yaml")
    assert manifest["kind"] == "NodePool"
    validator = Draft202012Validator(schema.schema("NodePool"))
    assert validator.is_valid(manifest)
    inner = manifest
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    assert not validator.is_valid(manifest)


def test_all_of_them_in_the_layout_of_kubeconform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schema.main(["--all", str(tmp_path / "schemas")]) == 0
    written = sorted(str(path.relative_to(tmp_path / "schemas")) for path in tmp_path.rglob("*.json"))
    assert "karpenter.sh/nodepool_v1.json" in written
    assert "karpenter.k8s.aws/ec2nodeclass_v1.json" in written
    assert len(written) == len(crds.kinds()) == len(capsys.readouterr().out.splitlines())
    assert json.loads((tmp_path / "schemas" / "karpenter.sh" / "nodepool_v1.json").read_text()) == schema.schema(
        "NodePool"
    )


def test_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert schema.main(["ec2nodeclass"]) == 0
    assert json.loads(capsys.readouterr().out) == schema.schema("EC2NodeClass")


def test_an_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert schema.main(["NodePol"]) == 2
    assert capsys.readouterr().err == "kerf schema: NodePol is no kind that is known here; did you mean NodePool?\n"


@pytest.mark.parametrize("arguments", [[], ["NodePool", "--all", "x"]])
def test_bad_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        schema.main(arguments)
    assert ended.value.code == 2
