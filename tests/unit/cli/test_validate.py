"""`kerf validate` as a command: what it reads, what it refuses, how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kerf.cli.gathering import sources
from kerf.cli.verbs import validate
from tests.sources import ROOT

from .test_checking import CLAIM, OTHER

CLEAN = CLAIM.replace("[on]", "[a]")
#: What a Git hook should not wait for.
HEAVY = ("boto3", "botocore", "kubernetes", "numpy", "flask", "rich", "typer", "prompt_toolkit", "cryptography")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "b.yaml": CLEAN,
        "a.yml": CLAIM,
        "deep/er/c.json": '{"apiVersion": "v1", "kind": "Secret"}',
        "deep/README.md": "not: [yaml",
        ".git/x.yaml": CLAIM,
        ".hidden.yaml": CLAIM,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(*paths: str) -> list[str]:
    return [source.name for source in sources.find(paths)]


def test_a_folder_gives_its_files_and_those_below(folder: Path) -> None:
    assert names(str(folder)) == [str(folder / name) for name in ("a.yml", "b.yaml", "deep/er/c.json")]


def test_a_file_is_read_once_whatever_it_is_called(folder: Path) -> None:
    (folder / "link.yaml").symlink_to(folder / "b.yaml")
    found = names(
        str(folder / "b.yaml"), str(folder / "deep" / ".." / "b.yaml"), str(folder), str(folder / "link.yaml")
    )
    assert found == [str(folder / name) for name in ("b.yaml", "a.yml", "deep/er/c.json")]


def test_patterns(folder: Path) -> None:
    assert names(str(folder / "*.yaml")) == [str(folder / "b.yaml")]
    assert names(str(folder / "**" / "*.json")) == [str(folder / "deep/er/c.json")]
    assert names(str(folder / "d*")) == [str(folder / "deep/er/c.json")]
    assert names(str(folder / "deep" / "README.md")) == [str(folder / "deep" / "README.md")]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(folder: Path) -> None:
    (folder / "[a].yaml").write_text(CLEAN)
    assert names(str(folder / "[a].yaml")) == [str(folder / "[a].yaml")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere.yaml", "no such file or folder"),
        ("*.toml", "no file matches"),
        ("deep/empty", "no *.yaml, *.yml, *.json in this folder or below it"),
    ],
)
def test_what_is_not_there_is_bad_usage(
    folder: Path, path: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "deep" / "empty").mkdir()
    assert validate.main([str(folder / path)]) == 2
    out, err = capsys.readouterr()
    assert (out, words in err) == ("", True)


def test_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(folder / "b.yaml")]) == 0
    assert validate.main([str(folder)]) == 1
    assert validate.main([str(folder), "--ignore", "KERF-SCHEMA-TYPE"]) == 0
    (folder / "c.yaml").write_text("a: b: c")
    assert validate.main([str(folder)]) == 2
    (folder / "c.yaml").unlink()
    (folder / "c.yaml").symlink_to(folder / "gone")
    assert validate.main([str(folder)]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().out


def test_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "b.yaml").write_text(CLEAN.replace("  name:", "  labels: {on: x}\n  name:"))
    assert validate.main([str(folder / "b.yaml")]) == 0
    assert validate.main([str(folder / "b.yaml"), "--strict"]) == 1
    assert capsys.readouterr().out.count("warning") == 4


def test_one_run_tells_it_in_several_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {form: folder / f"report.{form}" for form in validate.FORMATS}
    wanted = [f"--write={form}={path}" for form, path in files.items()]
    assert validate.main([str(folder / "a.yml"), "--format", "github", *wanted]) == 1
    assert capsys.readouterr().out == files["github"].read_text()
    for form, path in files.items():
        validate.main([str(folder / "a.yml"), "--format", form])
        assert capsys.readouterr().out == path.read_text()


@pytest.mark.parametrize("wanted", ["yaml=x", "sarif", "sarif="])
def test_a_report_that_cannot_be_written(folder: Path, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(folder / "b.yaml"), "--write", wanted]) == 2
    assert f"--write {wanted}: write FORMAT=FILE, with one of text" in capsys.readouterr().err
    assert validate.main([str(folder / "b.yaml"), "--write", f"json={folder}"]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_an_unknown_rule_is_refused_with_the_nearest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(folder), "--ignore", "KERF-SCHEMA-TIPE"]) == 2
    expected = "kerf validate: --ignore KERF-SCHEMA-TIPE: there is no such rule; did you mean KERF-SCHEMA-TYPE?\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("arguments", [[], ["x", "--format", "yaml"], ["x", "--colour"]])
def test_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        validate.main(arguments)
    assert ended.value.code == 2
    assert "usage: kerf validate" in capsys.readouterr().err


def test_the_examples_are_clean_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(ROOT / "manifests" / "examples"), "--strict"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "manifests" / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_is_clean(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(path), "--strict"]) == 0, capsys.readouterr().out


def test_a_pipe_and_what_a_process_loads() -> None:
    program = (
        "import sys; from kerf.cli.main import main\n"
        "try: main()\n"
        f"finally: print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "validate", "-"],
        input=f"{OTHER}---\n{CLAIM}",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.startswith(
        "<stdin>:14:14: error: NodeClaim general-x7k2p: spec.requirements[0].values[0]: true is"
    )
    assert done.stdout.endswith("1 error in 1 manifest of 1 file; 1 document of other kinds skipped\n")
    assert done.stderr == "[]\n"


def test_another_catalogue(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "types.json").write_text('{"types": ["x1.large"], "labels": {"kubernetes.io/arch": ["amd64"]}}')
    pool = ROOT / "manifests" / "examples" / "general-purpose.yaml"
    assert validate.main([str(pool)]) == 0
    assert "KERF-NP-3" not in capsys.readouterr().out
    assert validate.main([str(pool), "--catalogue", str(folder / "types.json")]) == 0
    assert "KERF-NP-3" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "words"), [("none.json", "No such file or directory"), ("a.yml", "JSON")])
def test_a_catalogue_that_is_none(folder: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(folder), "--catalogue", str(folder / name)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"kerf validate: --catalogue {folder / name}: ")
    assert words in err
