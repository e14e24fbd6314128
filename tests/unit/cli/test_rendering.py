"""Kustomizations and charts are rendered where the tools are there, and what is found is told where it was written.

The tools are doubles that print what lies beside the kustomization or chart; tests/gitops has the real ones.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.verbs import validate
from tests.gitops.repositories import repository, write

from .test_since import CLASS, POOL

GIT = shutil.which("git") or ""
BASE = "resources: [pool.yaml, class.yaml]\n"
OVERLAY = "resources: [../base]\n"
WRONG = POOL.replace("24h", "1d")
DOUBLE = '#!/bin/sh\necho "$0 $*" >> "{log}"\n{body}\n'
#: What the doubles print lies in the folder that they are called for, the last word of a call but for Helm's.
PRINT = (
    'for word; do test -f "$word/.built" && exec /bin/cat "$word/.built"; done; echo "Error: no such thing" >&2; exit 1'
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without any tool."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "repo").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


def tools(repo: Path, *names: str) -> Path:
    """Put doubles on the PATH; the file that has their calls."""
    log = repo.parent / "calls"
    log.touch()
    for name in names:
        program = repo.parent / "bin" / name
        program.write_text(DOUBLE.format(log=log, body=PRINT))
        program.chmod(0o755)
    return log


def told(capsys: Capture, *arguments: str) -> list[tuple[str, int, str]]:
    """File, line and rule of all that is worth a warning."""
    validate.main(["--format", "json", *(arguments or (".",))])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["problems"]
    return [(row["file"], row["line"], row["rule"]) for row in found if row["severity"] != "info"]


def kustomized(repo: Path, files: dict[str, str], **built: str) -> None:
    write(repo, {"base/kustomization.yaml": BASE, "base/pool.yaml": POOL, "base/class.yaml": CLASS, **files})
    for folder, text in built.items():
        write(repo, {f"{folder}/kustomization.yaml": OVERLAY, f"{folder}/.built": f"{text}---\n{CLASS}", **files})


def test_without_the_tools_one_line_says_so_and_files_are_taken_as_they_are(repo: Path, capsys: Capture) -> None:
    kustomized(repo, {"base/pool.yaml": WRONG, "chart/Chart.yaml": "name: x\n"}, prod=WRONG)
    assert validate.main(["."]) == 1
    out, err = capsys.readouterr()
    assert "base/pool.yaml:10:31: error" in out
    assert err == (
        "kerf validate: not rendered: 2 kustomizations need kustomize or kubectl and 1 charts need helm on the PATH\n"
    )
    assert validate.main([".", "--render", "never"]) == 1
    assert capsys.readouterr().err == ""
    assert validate.main([".", "--render", "always"]) == 2
    assert "2 kustomizations need kustomize or kubectl" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "verb"), [("kustomize", "build"), ("kubectl", "kustomize")])
def test_what_others_build_on_is_built_with_them(repo: Path, capsys: Capture, name: str, verb: str) -> None:
    log = tools(repo, name)
    kustomized(repo, {"part/kustomization.yaml": "kind: Component\n"}, prod=POOL, staging=POOL)
    assert told(capsys) == []
    calls = [line.partition(" ")[2] for line in log.read_text().splitlines()]
    assert calls == [f"{verb} {repo}/prod", f"{verb} {repo}/staging"]


def test_files_that_are_named_are_not_rendered(repo: Path, capsys: Capture) -> None:
    log = tools(repo, "kustomize")
    kustomized(repo, {}, prod=POOL)
    assert told(capsys, "base/kustomization.yaml", "base/pool.yaml") == []
    assert log.read_text() == ""


def test_what_is_wrong_in_the_base_is_told_there_and_once(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    kustomized(repo, {"base/pool.yaml": WRONG}, prod=WRONG, staging=WRONG)
    assert told(capsys) == [("base/pool.yaml", 10, "KERF-SCHEMA-PATTERN")]


def test_what_is_wrong_in_a_patch_is_told_there(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    name = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\n"
    patch = f"{name}spec:\n  template: {{spec: {{terminationGracePeriod: 1d}}}}\n"
    kustomized(repo, {}, prod=WRONG)
    write(repo, {"prod/kustomization.yaml": OVERLAY + "patches: [{path: grace.yaml}]\n", "prod/grace.yaml": patch})
    assert told(capsys) == [("prod/grace.yaml", 5, "KERF-SCHEMA-PATTERN")]
    operations = "- op: replace\n  path: /spec/template/spec/terminationGracePeriod\n  value: 1d\n"
    write(repo, {"prod/grace.yaml": operations})
    assert told(capsys) == [("prod/grace.yaml", 3, "KERF-SCHEMA-PATTERN")]
    inline = "patches:\n- patch: |-\n" + "".join(f"    {line}\n" for line in patch.splitlines())
    write(repo, {"prod/kustomization.yaml": OVERLAY + inline})
    assert told(capsys) == [("prod/kustomization.yaml", 8, "KERF-SCHEMA-PATTERN")]


def test_of_several_files_the_one_with_the_value_is_named(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    other = POOL.replace("24h", "48h").replace(
        "metadata:\n  name: general", "metadata:\n  name: general\n  labels: {a: b}"
    )
    kustomized(repo, {"base/pool.yaml": WRONG, "prod/other.yaml": other}, prod=WRONG)
    write(repo, {"prod/kustomization.yaml": OVERLAY + "patches: [{path: other.yaml}]\n"})
    assert told(capsys) == [("base/pool.yaml", 10, "KERF-SCHEMA-PATTERN")]


def test_what_nobody_wrote_is_told_of_the_kustomization(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    kustomized(repo, {}, prod=WRONG.replace("name: general\nspec", "name: other\nspec"))
    assert told(capsys) == [("prod/kustomization.yaml", 1, "KERF-SCHEMA-PATTERN")]


def test_names_with_something_before_or_behind_are_known_again(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    kustomized(repo, {"base/pool.yaml": WRONG}, prod=WRONG.replace("name: general\nspec", "name: eu-general\nspec"))
    assert told(capsys) == [("base/pool.yaml", 10, "KERF-SCHEMA-PATTERN")]


def test_exceptions_in_what_is_rendered_are_heeded(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    excepted = WRONG.replace("1d", "1d  # kerf:ignore KERF-SCHEMA-PATTERN a test")
    kustomized(repo, {"base/pool.yaml": excepted}, prod=WRONG, staging=POOL)
    assert told(capsys) == []


def test_what_is_not_built_from_is_read_as_it_is(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    kustomized(repo, {"prod/left.yaml": WRONG}, prod=POOL)
    assert told(capsys) == [("prod/left.yaml", 10, "KERF-SCHEMA-PATTERN")]


def test_what_a_tool_refuses(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize", "helm")
    write(repo, {"a/kustomization.yaml": BASE, "b/Chart.yaml": "name: b\n"})
    refused = [(f"{name}", 1, "KERF-FILE-RENDER") for name in ("a/kustomization.yaml", "b/Chart.yaml")]
    assert sorted(told(capsys)) == refused
    assert validate.main(["."]) == 0
    assert "warning: cannot be rendered: no such thing [KERF-FILE-RENDER]" in capsys.readouterr().out
    assert validate.main([".", "--render", "always"]) == 2
    assert "error: cannot be rendered: no such thing [KERF-FILE-RENDER]" in capsys.readouterr().out
    write(repo, {"c/kustomization.yaml": "a: b: c\n"})
    assert ("c/kustomization.yaml", 1, "KERF-FILE-YAML") in told(capsys)


def test_files_of_what_cannot_be_rendered_are_taken_as_they_are(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    kustomized(repo, {"base/pool.yaml": WRONG}, prod=POOL)
    (repo / "prod/.built").unlink()
    assert told(capsys) == [
        ("base/pool.yaml", 10, "KERF-SCHEMA-PATTERN"),
        ("prod/kustomization.yaml", 1, "KERF-FILE-RENDER"),
    ]


def test_a_change_is_told_by_what_is_rendered_before_and_after(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    (repo.parent / "bin" / "git").symlink_to(GIT)
    kustomized(repo, {}, prod=POOL, staging=POOL.replace("24h", "48h"))
    repository(repo, {})
    assert told(capsys, ".", "--changed-since", "main") == []
    kustomized(repo, {"base/pool.yaml": POOL.replace("24h", "12h")}, prod=POOL.replace("24h", "12h"))
    assert told(capsys, ".", "--changed-since", "main") == [("base/pool.yaml", 10, "KERF-DIFF-303")]
    (repo / "prod/.built").unlink()
    rules = [(file, rule) for file, _, rule in told(capsys, ".", "--changed-since", "main")]
    assert ("prod/kustomization.yaml", "KERF-FILE-RENDER") in rules
    assert "KERF-DIFF-302" not in [rule for _, rule in rules]
    (repo / "prod/kustomization.yaml").unlink()
    assert ("prod/kustomization.yaml", "KERF-DIFF-302") in [
        (file, rule) for file, _, rule in told(capsys, ".", "--changed-since", "main")
    ]


def chart(repo: Path, template: str, values: str = "") -> None:
    source = "---\n# Source: c/templates/pool.yaml\n"
    built = f"{source}{WRONG}---\n# Source: c/templates/class.yaml\n{CLASS}"
    files = {"Chart.yaml": "name: c\n", "templates/pool.yaml": template, "templates/class.yaml": CLASS, ".built": built}
    write(repo, {f"c/{name}": text for name, text in (files | {"values.yaml": values}).items()})


@pytest.mark.parametrize(
    ("old", "new", "values", "place"),
    [
        ("", "", "", ("c/templates/pool.yaml", 10)),
        ("apiVersion", "{{- /* two\nlines */ -}}\napiVersion", "", ("c/templates/pool.yaml", 12)),
        ("      term", "      {{- if .x }}\n      term", "", ("c/templates/pool.yaml", 11)),
        ("1d", '"{{ .Values.grace.period }}"', "a: 1\ngrace:\n  period: 1d\n", ("c/values.yaml", 3)),
        ("1d", "{{ .Values.grace.period }}", "grace: {}\n", ("c/templates/pool.yaml", 10)),
        (
            "      terminationGracePeriod: 1d\n",
            "      {{- toYaml .Values.spec | nindent 6 }}\n",
            "spec:\n  terminationGracePeriod: 1d\n",
            ("c/templates/pool.yaml", 8),
        ),
        ("metadata", "\t{{ broken", "", ("c/templates/pool.yaml", 1)),
        ("name: general\nspec", "name: {{ .Release.Name }}-x\nspec", "", ("c/templates/pool.yaml", 10)),
        ("1d", "1d  # kerf:ignore KERF-SCHEMA-PATTERN a test", "", None),
    ],
)
def test_a_problem_of_a_chart(
    repo: Path, capsys: Capture, old: str, new: str, values: str, place: tuple[str, int] | None
) -> None:
    tools(repo, "helm")
    chart(repo, WRONG.replace(old, new, 1), values)
    assert [(file, line) for file, line, rule in told(capsys) if rule == "KERF-SCHEMA-PATTERN"] == [place] * bool(place)


@pytest.mark.parametrize("helm", [False, True])
def test_templates_of_a_chart_that_is_not_rendered_fail_no_run(repo: Path, capsys: Capture, helm: bool) -> None:
    """Helm is missing, or it fails: its double has nothing to print."""
    if helm:
        tools(repo, "helm")
    ours, other = "{{ if .a }}\n" + WRONG + "{{ end }}\n", "{{ if .a }}\nkind: Deployment\n{{ end }}\n"
    files = {
        "Chart.yaml": "name: c\n",
        "templates/ours.yaml": ours,
        "templates/x.yaml": other,
        "templates/p.yaml": POOL,
    }
    write(repo, {f"c/{name}": text for name, text in files.items()})
    assert validate.main(["."]) == 0
    capsys.readouterr()
    chart = [("c/Chart.yaml", 1, "KERF-FILE-RENDER")] if helm else []
    assert sorted(told(capsys)) == [*chart, ("c/templates/ours.yaml", 1, "KERF-FILE-RENDER")]
    write(repo, {"c/templates/p.yaml": WRONG})
    assert validate.main(["."]) == 1
    assert validate.main([".", "--render", "never"]) == 2
