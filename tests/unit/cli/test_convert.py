"""`kerf convert` as a command: what it prints, what it writes and what it leaves, how it ends."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from codecs import BOM_UTF8
from pathlib import Path

import pytest
import yaml

from kerf.cli.rewriting import replacing
from kerf.cli.verbs import convert
from kerf.manifests.written import flow, literal

POOL = """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: default}  # the pool
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {name: default}
"""
NEW_POOL = POOL.replace("v1beta1", "v1").replace(
    "{name: default}\n", "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
)
CLASS = """\
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiFamily: AL2023
  role: nodes
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
"""
KUBELET = "      kubelet: {maxPods: 20}\n"
BROKEN = POOL + "  wieght: 1\n"
OTHER = "apiVersion:   v1\nkind: ConfigMap\n"
TEMPLATE = "metadata:\n  name: {{ .Values.name }}\n"


def write(folder: Path, **texts: str) -> dict[str, Path]:
    """Files with these texts, by their names without the ending."""
    found = {name: folder / f"{name}.yaml" for name in texts}
    for name, path in found.items():
        path.write_text(texts[name])
    return found


def run(*arguments: object) -> int:
    return convert.main([str(argument) for argument in arguments])


def test_the_new_text_is_printed_and_problems_go_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path, pool=POOL + "status: {}\n")
    assert run(files["pool"]) == 0
    out, err = capsys.readouterr()
    assert out == NEW_POOL
    assert err.startswith(f"{files['pool']}:9:1: info: NodePool default: status: ")
    assert files["pool"].read_text() == POOL + "status: {}\n"


def test_a_folder_is_printed_as_one_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, a=POOL, b=OTHER)
    assert run(tmp_path) == 0
    assert capsys.readouterr() == (f"{NEW_POOL}---\n{OTHER}", "")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Piped:
        buffer = io.BytesIO(POOL.encode())

    monkeypatch.setattr(sys, "stdin", Piped)
    assert run("-") == 0
    assert capsys.readouterr().out == NEW_POOL


def test_standard_input_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-", "--in-place") == 2
    assert "standard input cannot be changed in place" in capsys.readouterr().err


def test_check_names_what_would_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, a=POOL, b=NEW_POOL, c=OTHER)
    assert run("--check", tmp_path) == 1
    assert capsys.readouterr().out == f"{files['a']}\n"
    assert files["a"].read_text() == POOL
    assert run("--check", files["b"], files["c"]) == 0
    assert capsys.readouterr() == ("", "")


def test_check_fails_for_what_cannot_be_converted(tmp_path: Path) -> None:
    assert run("--check", write(tmp_path, a=BROKEN)["a"]) == 1


def test_a_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, a=POOL, b=NEW_POOL)
    assert run("--diff", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"--- {files['a']}", f"+++ {files['a']}"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "-apiVersion: karpenter.sh/v1beta1",
        "+apiVersion: karpenter.sh/v1",
        "-      nodeClassRef: {name: default}",
        "+      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}",
    ]
    assert run("--diff", "--check", tmp_path) == 1


def test_a_diff_of_a_file_without_a_last_line_break_can_be_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, a=POOL.rstrip("\n"))["a"]
    assert run("--diff", path) == 0
    assert "\n-      nodeClassRef: {name: default}\n\\ No newline at end of file\n+" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_stays_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    path = write(tmp_path, a=POOL)["a"]
    monkeypatch.setattr(os, "replace", refused)
    assert run("--in-place", path) == 2
    assert f"{path}: cannot be written: Read-only file system\n" in capsys.readouterr().err
    assert path.read_text() == POOL
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_in_place_writes_what_changes_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, a=POOL, b=OTHER)
    os.chmod(files["a"], 0o640)
    before = files["b"].stat()
    assert run("--in-place", tmp_path) == 0
    assert capsys.readouterr() == ("", f"{files['a']}: converted\n")
    assert files["a"].read_text() == NEW_POOL
    assert files["a"].stat().st_mode & 0o777 == 0o640
    assert files["b"].stat() == before
    assert sorted(os.listdir(tmp_path)) == ["a.yaml", "b.yaml"]
    assert run("--in-place", tmp_path) == 0
    assert capsys.readouterr() == ("", "")


def test_in_place_with_a_diff_prints_the_changes_of_the_files_that_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write(tmp_path, a=POOL, b=OTHER, c=BROKEN.replace("name: default}  #", "name: b}  #"))
    assert run("--diff", tmp_path / "a.yaml") == 0
    changes = capsys.readouterr().out
    assert run("--in-place", "--diff", tmp_path) == 1
    assert capsys.readouterr().out == changes
    assert changes.startswith(f"--- {files['a']}\n")
    assert files["a"].read_text() == NEW_POOL

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    files["a"].write_text(POOL)
    monkeypatch.setattr(replacing, "replace", full)
    assert run("--in-place", "--diff", files["a"]) == 2
    assert capsys.readouterr() == ("", f"{files['a']}: cannot be written: No space left on device\n")


def test_in_place_keeps_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, a=POOL)["a"]
    path.write_bytes(BOM_UTF8 + path.read_bytes())
    assert run("--in-place", path) == 0
    assert path.read_bytes() == BOM_UTF8 + NEW_POOL.encode()


def test_in_place_writes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = write(tmp_path / "real", a=POOL)["a"]
    (tmp_path / "link.yaml").symlink_to(real)
    assert run("--in-place", tmp_path / "link.yaml") == 0
    assert real.read_text() == NEW_POOL
    assert (tmp_path / "link.yaml").is_symlink()


def test_a_file_that_cannot_be_converted_whole_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, a=f"{CLASS}---\n{BROKEN}", b=POOL.replace("default", "other"))
    assert run("--in-place", tmp_path) == 1
    err = capsys.readouterr().err
    assert f"{files['a']}: left as it is; it cannot be converted whole\n" in err
    assert f"{files['a']}:18:11: error: NodePool default: spec.wieght: " in err
    assert "did you mean weight? [KERF-CONV-102]" in err
    assert files["a"].read_text() == f"{CLASS}---\n{BROKEN}"
    assert "v1beta1" not in files["b"].read_text()


def test_files_between_which_something_moves_are_written_together_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path, a=POOL + KUBELET, b=f"{CLASS}---\n{BROKEN.replace('name: default}  #', 'name: b}  #')}")
    assert run("--in-place", tmp_path) == 1
    assert files["a"].read_text() == POOL + KUBELET
    assert files["b"].read_text().startswith(CLASS)
    err = capsys.readouterr().err
    assert f"{files['a']}: left as it is, for something moves between it and a file that is left\n" in err
    assert f"{files['b']}: left as it is; it cannot be converted whole\n" in err
    files["b"].write_text(CLASS)
    assert run("--in-place", tmp_path) == 0
    assert "kubelet" not in files["a"].read_text()
    assert "kubelet: {maxPods: 20}" in files["b"].read_text()


def test_the_profile_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, a=CLASS.replace("  role: nodes\n", ""))["a"]
    assert run(path) == 1
    assert "[KERF-CONV-105]" in capsys.readouterr().err
    assert run("--instance-profile", "mine", path) == 0
    assert "  instanceProfile: mine\n" in capsys.readouterr().out
    assert run("--role", "mine", path) == 0
    assert "  role: mine\n" in capsys.readouterr().out


def test_a_template_is_left_and_the_rest_is_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, a=POOL, b=TEMPLATE)
    assert run("--in-place", tmp_path) == 2
    err = capsys.readouterr().err
    assert f"{files['b']}:2:9: error: {{{{ begins a template" in err
    assert "helm template … | kerf convert -" in err
    assert files["a"].read_text() == NEW_POOL
    assert files["b"].read_text() == TEMPLATE


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("${extra}\n", "flux envsubst < FILE | kerf convert -, and write the template by hand"),
        ("{% if x %}\n", "let that tool replace it first"),
    ],
)
def test_the_advice_for_a_placeholder_is_for_its_own_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, advice: str
) -> None:
    assert run(write(tmp_path, a=f"kind: NodePool\n{text}spec: {{}}\n")["a"]) == 2
    err = capsys.readouterr().err
    assert advice in err
    assert "helm" not in err
    assert "kerf validate" not in err


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.yaml") == 2
    assert capsys.readouterr().err == f"kerf convert: {tmp_path}/none.yaml: no such file or folder\n"
    files = write(tmp_path, a="a: b: c\n", b=POOL)
    assert run(files["a"], files["b"]) == 2
    out, err = capsys.readouterr()
    assert out == f"a: b: c\n---\n{NEW_POOL}"
    assert f"{files['a']}:1:5: error: this is no YAML" in err
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")
    assert run("--in-place", tmp_path / "c.yaml") == 2
    assert (tmp_path / "c.yaml").read_bytes() == b"\xff\xfe"


def test_carriage_returns_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(POOL.replace("\n", "\r\n").encode())
    assert run("--in-place", path) == 0
    assert path.read_bytes() == NEW_POOL.replace("\n", "\r\n").encode()


def test_it_is_a_verb_of_kerf() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "kerf.cli.main", "convert", "--help"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("usage: kerf convert")


BLOCK = CLASS + "  metadataOptions: {httpPutResponseHopLimit: 1}\n  userData: |\n    #!/bin/bash\n    echo two"


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("head", ["|", "|-", "|+", ">"])
def test_a_block_at_the_end_of_a_file_stays_one_and_says_the_same(tmp_path: Path, head: str, end: str) -> None:
    text = BLOCK.replace("|", head) + end
    (path,) = write(tmp_path, a=text).values()
    assert convert.main(["--in-place", str(path)]) == 0
    new = path.read_text()
    assert yaml.safe_load(new)["spec"]["userData"] == yaml.safe_load(text)["spec"]["userData"]
    assert "\n    echo two\n" in new or (head, end) in ((">", ""), ("|+", "\n\n"))
    assert "\n  role: nodes\n" in new


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("a\nb\n", ("|", ["a", "b"])),
        ("a\n\n  b", ("|-", ["a", "", "  b"])),
        ("a: 'b'\n# c\n", ("|", ["a: 'b'", "# c"])),
        ("a", None),
        ("\na\n", None),
        (" a\nb\n", None),
        ("a\n\n", None),
        ("a\n  ", None),
        ("a\x07\nb", None),
        ("a\r\nb", None),
    ],
)
def test_texts_as_literal_blocks(text: str, block: tuple[str, list[str]] | None) -> None:
    assert literal(text) == block


@pytest.mark.parametrize("text", ["a\nb\n", "\n", "a\n\n\n", "a: b\n- 'c'", "\u2028\n"])
def test_a_text_of_several_lines_is_written_on_one(text: str) -> None:
    written = flow(text)
    assert "\n" not in written
    assert yaml.safe_load(f"- {written}") == [text]
