"""The indexed Job of manifests/simulate/job: its fields, its command line, its mounted files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.cli.verbs.simulation import shapes
from kerf.cli.verbs.simulation.loading import File
from kerf.cli.verbs.simulation.simulate import _jobs, _parser, main
from tests.sources import ROOT

FOLDER = ROOT / "manifests" / "simulate"
TEXT = (FOLDER / "job" / "indexed-job.yaml").read_text(encoding="utf-8")
JOB: dict[str, Any] = yaml.safe_load(TEXT)
POD: dict[str, Any] = JOB["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
#: The files of the ConfigMap, from the command in the manifest's comment.
FILES = [word.removeprefix("--from-file=") for word in TEXT.split() if word.startswith("--from-file=")]


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """The folder of the ConfigMap as a kubelet mounts it: links to files in a hidden folder."""
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    for name in FILES:
        shutil.copy(FOLDER / name, tmp_path / "..2026" / name)
        (tmp_path / name).symlink_to(f"..data/{name}")
    return tmp_path


def arguments(folder: Path, index: int) -> list[str]:
    """The arguments of `kerf simulate` in the pod of an index."""
    program, verb, *rest = CONTAINER["command"]
    assert (program, verb) == ("kerf", "simulate")
    (mount,) = CONTAINER["volumeMounts"]
    rest = [word.replace(mount["mountPath"], str(folder)) for word in rest]
    return [word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in rest]


def test_every_field_is_one_of_the_api() -> None:
    assert (JOB["apiVersion"], JOB["kind"], JOB["spec"]["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert list(shapes.of("V1Job", JOB)) == []
    wrong = {**JOB, "spec": {**JOB["spec"], "completion": 8}}
    assert [steps for steps, _ in shapes.of("V1Job", wrong)] == [("spec", "completion")]


def test_the_volume_is_the_config_map_of_the_comment() -> None:
    (volume,) = POD["volumes"]
    assert volume["configMap"]["name"] == TEXT.partition("create configmap ")[2].split()[0]
    assert CONTAINER["volumeMounts"][0]["name"] == volume["name"]


def test_the_pods_have_all_runs_once(mounted: Path) -> None:
    runs: list[int] = []
    for index in range(JOB["spec"]["completions"]):
        asked = _parser().parse_args(arguments(mounted, index))
        (name,) = asked.scenarios
        runs += [job.seed for job in _jobs(asked, [File(name).case()])]
    assert sorted(runs) == list(range(1000))


def test_a_pod_runs_its_part(mounted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments(mounted, 7)
    words[words.index("--repeat") + 1] = "8"
    assert main(words) == 0
    assert "seed 7" in capsys.readouterr().out
