"""Every example of the documentation is validated, applied or rendered by a test, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.cli.verbs import default, validate
from kerf_api import crds, lint
from tests.sources import ROOT
from tests.unit.argocd import lua
from tests.unit.docs import field_pages
from tests.unit.docs.example_blocks import BLOCKS, YAML, Block, blocks, commands, kind_of

LISTED = yaml.safe_load(Path(__file__).with_name("examples.yaml").read_text(encoding="utf-8"))
OTHERS = [block for block in YAML if kind_of(block) == "others"]
WORKLOADS = ("apps/v1", "batch/v1", "v1", "scheduling.k8s.io/v1", "policy/v1")
#: Pages of which tests/cluster/test_task_pages.py applies every file.
APPLIED = re.compile(r"tasks/[\w-]+\.md")


def errors(manifest: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in lint.validate(manifest) if problem.severity == "error"]


def block_of(page: str, has: str) -> Block:
    (found,) = [block for block in BLOCKS if block.page == page and block.language == "yaml" and has in block.text]
    return found


def rows_of(block: Block) -> list[dict[str, str]]:
    return [row for row in LISTED if row["page"] == block.page and row["has"] in block.text]


@pytest.mark.parametrize("block", [block for block in YAML if kind_of(block) == "objects"], ids=str)
def test_objects_of_kerfs_kinds_are_valid(block: Block) -> None:
    assert [error for one in yaml.safe_load_all(block.text) for error in errors(one)] == []


@pytest.mark.parametrize("block", [block for block in YAML if kind_of(block) == "fields"], ids=str)
def test_fields_of_a_kind_make_a_valid_object(block: Block) -> None:
    (kind,) = [kind for kind, page in field_pages.PAGES.items() if page == block.page]
    for one in yaml.safe_load_all(block.text):
        assert errors(one if "kind" in one else field_pages.merged(field_pages.BASES[kind], one)) == []


@pytest.mark.parametrize("block", OTHERS, ids=str)
def test_any_other_example_is_one_that_a_test_applies_renders_or_runs(block: Block) -> None:
    if APPLIED.fullmatch(block.page):
        for one in yaml.safe_load_all(block.text):
            assert one["apiVersion"] in WORKLOADS or errors(one) == []
        assert block.text.startswith("# "), "a file without a name is not applied"
    else:
        assert [row["has"] for row in rows_of(block)], f"{block}: name the test of this example in examples.yaml"


@pytest.mark.parametrize("row", LISTED, ids=lambda row: f"{row['page']}:{row['has']}")
def test_a_listed_example_and_its_test_exist(row: dict[str, str]) -> None:
    assert block_of(row["page"], row["has"]) in OTHERS
    file, _, test = row["by"].partition(":")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert test in text
    assert row["page"] in text


def test_an_example_without_a_test_is_found() -> None:
    (block,) = blocks("new.md", "# X\n\n```yaml\nunknown: {field: 1}\n```\n")
    assert (kind_of(block), rows_of(block), str(block)) == ("others", [], "new.md:3")


# --- commands -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", sorted({page for page, _ in commands("kerf")}))
def test_verbs_and_flags_of_kerf_exist(page: str) -> None:
    """Also those of conversion.md and validate.md for pipelines."""
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    verbs = {*re.findall(r"^## kerf ([a-z]+)$", reference, re.MULTILINE)}
    for _, words in (one for one in commands("kerf") if one[0] == page):
        verb, _, rest = words.partition(" ")
        if re.fullmatch(r"[a-z]+", verb) and (verb in verbs or rest.startswith("--")):
            assert verb in verbs, words
            assert [flag for flag in re.findall(r"(?<!\S)--[a-z][a-z-]+", rest) if flag not in reference] == [], words


def test_targets_of_make_exist() -> None:
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)}
    used = {(page, words.split()[0]) for page, words in commands("make") if re.match(r"[a-z-]+(?: |$)", words)}
    assert len(used) > 20
    assert {(page, target) for page, target in used if target not in targets} == set()


# --- single examples ----------------------------------------------------------------------------------------------
def test_the_expressions_of_a_kubelet_are_valid() -> None:
    spec = yaml.safe_load(block_of("aws.md", "kubeReserved:").text)
    assert errors(field_pages.merged(field_pages.BASES["EC2NodeClass"], {"spec": spec})) == []


def test_the_health_script_follows_a_roll_out() -> None:
    ((_, script),) = yaml.safe_load(block_of("disruption.md", "local status").text).items()
    pool = {"kind": "NodePool", "metadata": {"generation": 2}, "status": {}}
    states = []
    for condition in (
        None,
        {"type": "UpToDate", "status": "True", "observedGeneration": 1, "message": "5 of 5 nodes"},
        {"type": "UpToDate", "status": "False", "observedGeneration": 2, "message": "2 of 5 nodes"},
        {"type": "UpToDate", "status": "True", "observedGeneration": 2, "message": "5 of 5 nodes"},
        {"type": "Stalled", "status": "True", "message": "blocked"},
    ):
        pool["status"] = {"conditions": [condition] if condition else []}
        states.append(lua.run(script, pool).status)
    assert states == ["Progressing", "Progressing", "Progressing", "Healthy", "Degraded"]


def test_ignored_differences_are_fields_of_a_nodepool() -> None:
    rows = yaml.safe_load(block_of("gitops-argocd.md", "ignoreDifferences").text)["ignoreDifferences"]
    assert rows
    for row in rows:
        schema = crds.schema(row["kind"])
        for pointer in row["jsonPointers"]:
            inner = schema
            for name in pointer.strip("/").split("/"):
                inner = inner["properties"][name]


def test_the_exceptions_of_a_manifest_cover_their_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = block_of("validate.md", "kerf:ignore").text
    base = field_pages.merged(field_pages.BASES["NodePool"], {"spec": {}})
    template = {key: value for key, value in field_pages.BASES["NodePool"]["spec"].items() if key != "limits"}
    del base["spec"]
    whole = yaml.safe_dump(base) + text + "".join(f"  {line}\n" for line in yaml.safe_dump(template).splitlines())
    (tmp_path / "pool.yaml").write_text(whole)
    (tmp_path / "class.yaml").write_text(yaml.safe_dump(field_pages.BASES["EC2NodeClass"]))
    assert validate.main([str(tmp_path)]) == 0
    report = capsys.readouterr().out
    assert "KERF-NP-342" not in report
    assert "KERF-NP-321" not in report
    assert "KERF-IGNORE" not in report


def test_the_hooks_of_pre_commit_exist() -> None:
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    used = yaml.safe_load(block_of("validate.md", "kerf-validate").text)["repos"][0]["hooks"]
    assert {hook["id"] for hook in used} <= hooks


def test_the_defaults_are_those_that_kerf_default_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = field_pages.merged(field_pages.BASES["NodePool"], {"spec": {"disruption": {"consolidateAfter": "5m"}}})
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(pool))
    assert default.main([str(tmp_path / "pool.yaml")]) == 0
    printed = capsys.readouterr().out
    for line in block_of("validate.md", "# default").text.splitlines():
        assert line.strip() in [one.strip() for one in printed.splitlines()], printed
