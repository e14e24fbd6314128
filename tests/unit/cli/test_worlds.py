"""Folders of different clusters are not judged side by side; the files of one cluster are."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from kerf.cli.verbs import validate
from kerf.manifests import file_rules, worlds
from kerf.manifests.checking import Content, Wish, check
from tests.sources import ROOT

POOL = (ROOT / "manifests/examples/general-purpose.yaml").read_text()


def doubles(*names: str) -> list[tuple[str, str]]:
    """File and message of each report about an object that is defined twice."""
    contents = [
        Content(name, POOL.replace("cpu:", f"nvidia.com/gpu: {index}\n    cpu:").encode())
        for index, name in enumerate(names)
    ]
    found = check(contents, Wish(), file_rules.known).findings
    return [(f.file, f.problem.message) for f in found if f.problem.rule == "KERF-SET-308" and "NodePool" in f.subject]


@pytest.mark.parametrize(
    "names", [("a/pool.yaml", "b/pool.yaml"), ("x/a/pools/p.yaml", "x/b/q.yaml"), ("dev/a.yaml", "prod/eu/a.yaml")]
)
def test_folders_that_are_apart_are_different_clusters(names: tuple[str, ...]) -> None:
    assert doubles(*names) == []


@pytest.mark.parametrize("names", [("a.yaml", "b.yaml"), ("x/a.yaml", "x/b.yaml"), ("x/a.yaml", "x/gpu/b.yaml")])
def test_a_folder_and_all_below_it_are_one_cluster(names: tuple[str, str]) -> None:
    (first, message), (second, _) = doubles(*names)
    assert (first, second) == names
    assert f"also at {names[1]}:3;" in message


def test_other_files_of_a_cluster_s_folder_belong_to_it() -> None:
    written = [("x/dev/pools/a.yaml", "NodePool a"), ("x/prod/a.yaml", "NodePool a"), ("x/b.yaml", "NodePool b")]
    world = worlds.of_folders(written)
    assert world("x/dev/classes/c.yaml") == world("x/dev/pools/a.yaml") == "x/dev"
    assert world("x/prod/deep/er/c.yaml") == "x/prod"
    assert world("x/b.yaml") == world("y.yaml") == ""


def test_kerf_s_own_manifests_have_no_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert validate.main(["--strict", "--render", "never", "manifests/"]) == 0
    assert capsys.readouterr().out.startswith("no problem in ")


def test_every_kind_of_path_has_a_world(tmp_path: Path) -> None:
    absolute = str(tmp_path / "a" / "p.yaml")
    world = worlds.of_folders([(absolute, "NodePool a"), (str(tmp_path / "b" / "p.yaml"), "NodePool a")])
    assert world(absolute) == str(tmp_path / "a")
    assert world("<stdin>") == ""


def test_a_thousand_clusters_take_work_in_proportion() -> None:
    def calls(count: int) -> int:
        written = [
            (f"clusters/{number}/pools/{name}.yaml", f"NodePool {name}") for number in range(count) for name in "ab"
        ]
        profile = Counter[str]()
        sys.setprofile(lambda _, event, __: profile.update([event]))
        try:
            worlds.of_folders(written)
        finally:
            sys.setprofile(None)
        return profile.total()

    assert calls(2000) < 2.3 * calls(1000)
