"""Scenario files with hostile or unusual YAML: each is read as written, or refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kerf.cli.arguments import Mistake
from kerf.cli.verbs.simulation.loading import File
from tests.unit.simulating.changes import SCENARIO

TEXT = yaml.safe_dump(SCENARIO, sort_keys=False)
#: Nine levels of nine aliases each.
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "s.yaml:1:1: the file is empty; write a scenario"),
        ("hello\n", "s.yaml:1:1: the file: this is a text; write a map"),
        ("- a\n", "s.yaml:1:1: the file: this is a list; write a map"),
        (f"{TEXT}name: twice\n", "the key name is written twice in one map, first in line 1; remove one of the two"),
        (f"{TEXT}---\n{TEXT}", "a second YAML document begins here; a scenario is one document"),
        (f"x-base: &b {{cpu: 1}}\n{TEXT}", "s.yaml:1:1: x-base: there is no field x-base"),
        ("name: &a [*a]\n", "s.yaml:1:11: *a is inside &a and would be endless"),
        (LAUGHS + TEXT, "more than 100000 values of this document are repetitions"),
        ("name: " + "[" * 500 + "]" * 500, "is nested more than 100 levels deep"),
        ("name: {{ .Values.name }}\n", "s.yaml:1:7: {{ begins a template, which is no YAML before it is rendered"),
        ("name:\n\t- a\n", "s.yaml:2:1: this is no YAML: "),
        ('name: "a\x07"\n', "s.yaml:1:9: the character U+0007 is not allowed in a YAML file; remove it"),
        ("duration: 1:30\n", "duration: '1:30' is not a duration"),
    ],
    ids=(
        *("empty", "scalar", "list", "key twice", "two documents", "base", "endless alias", "aliases", "deep"),
        *("template", "tab", "control character", "sexagesimal"),
    ),
)
def test_a_text_that_is_no_scenario_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(Mistake) as error:
        File(str(path)).case()
    assert words in str(error.value)
    assert f"{path}:" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("- name: web", "- &web\n  name: web") + "timeline: []\n",
    ],
    ids=("byte order mark", "CRLF", "anchor"),
)
def test_an_unusual_text_is_read_as_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "plain.yaml").write_text(TEXT)
    path = tmp_path / "s.yaml"
    path.write_bytes(text.encode())
    assert File(str(path)).case() == File(str(tmp_path / "plain.yaml")).case()


def test_a_merge_key_brings_the_fields_of_its_map(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    merged = "workloads:\n- &web\n  name: web\n  replicas: 2\n  cpu: 3\n- <<: *web\n  name: api\n"
    path.write_text(TEXT.partition("workloads:")[0] + merged + "assertions:\n- evictions: {}\n")
    found = File(str(path)).case().scenario.workloads
    assert [(one.name, one.replicas, one.cpu) for one in found] == [("web", 2, 3), ("api", 2, 3)]
