"""User data by family: what is a fault, what is doubtful, and that no text can hurt."""

from __future__ import annotations

import sys
from base64 import b64encode
from subprocess import run
from time import process_time
from typing import Any

import pytest

from kerf_api.lint import Problem, validate
from kerf_api.userdata import bottlerocket, cloud_init, mime, node_config, rules
from kerf_api.userdata.doubts import doubts

from .manifests import changed, placed

ALIASES = {"AL2": "al2", "AL2023": "al2023", "Bottlerocket": "bottlerocket", "Windows2022": "windows2022"}
NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"
SETTINGS = '# ours\n[settings.kernel]\nlockdown = "integrity"\n'
SCRIPT = "#!/bin/bash\necho hi\n"


def archive(*parts: str) -> str:
    """A MIME archive of parts that are written with their headers."""
    body = "".join(f"--B\n{part}\n" for part in parts)
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n{body}--B--\n'


def part(kind: str, text: str = SCRIPT) -> str:
    return f"Content-Type: {kind}\n\n{text}"


def linted(family: str, text: str, **spec: Any) -> list[Problem]:
    made = changed("EC2NodeClass", "spec.userData", text)
    made = placed(made, "spec.amiSelectorTerms", [{"alias": f"{ALIASES[family]}@latest"}])
    for field, value in spec.items():
        made = placed(made, f"spec.{field}", value)
    return validate(made)


def kinds(family: str, text: str) -> list[str]:
    return [doubt.kind for doubt in doubts(family, text)]


# --- faults -----------------------------------------------------------------------------------------------------
NO_BOUNDARY = "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--x\n\nhello\n--x--\n"
NOT_BEGUN = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\nno parts here\n'
NOT_ENDED = archive(part("text/x-shellscript")).removesuffix("--B--\n")
NO_COLON = 'MIME-Version: 1.0\r\nContent-Type multipart/mixed; boundary="x"\r\n\r\n--x\r\n\r\nhello\r\n--x--\r\n'


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NO_BOUNDARY, "names no boundary"),
        (NOT_BEGUN, "the line --x, with which its first part begins, is missing"),
        (NOT_ENDED, "the line --B--, which ends its last part, is missing"),
        (NO_COLON, 'line 2, "Content-Type multipart/mixed; boundary="x"", is no header'),
        (archive(part("text/cloud-config"), "Content-Type\n\nx"), 'part 2: line 11, "Content-Type", is no header'),
        (archive(" x: y\n\nz"), "part 1: its first header begins with a space"),
        ("Content-Type: multipart/mixed; boundary*=us''%41; boundary*1=b\n\n--A\n", "parameters"),
        ("Content-Type: multipart/mixed; boundary*=us\0''%41\n\n--A\n", "parameters"),
    ],
)
def test_a_malformed_archive_is_told_with_its_line_or_part(family: str, text: str, words: str) -> None:
    fault = rules.fault(family, text)
    assert fault is not None
    assert fault.reason == rules.INVALID
    assert words in fault.words
    (problem,) = linted(family, text)
    assert (problem.rule, problem.severity, problem.path) == ("KERF-EC2-107", "error", "spec.userData")
    assert problem.message == fault.words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SCRIPT, "(at line 2, column 6)"),
        ("[a]\nb = 1\n[a]\n", "(at line 3, column 3)"),
        ("settings = 3", "settings is not a table"),
        ("[settings]\nkubernetes = 1", "kubernetes is not a table"),
        (f"a = 0x{'f' * 40}", "64 bits"),
        (f"a = {'9' * 5000}", "not valid TOML"),
        ("a = [[9223372036854775808]]", "64 bits"),
        (f"a = {'[' * 100}{']' * 100}", "64 levels"),
        (f"a = {'[' * 8000}{']' * 8000}", "64 levels"),
        (".".join("a" * 100) + " = 1", "64 levels"),
        (archive(part("text/cloud-config")), "(at line 1, column 13)"),
    ],
)
def test_what_is_no_settings_is_told_with_its_place(text: str, words: str) -> None:
    fault = rules.fault("Bottlerocket", text)
    assert fault is not None
    assert words in fault.words
    (problem,) = linted("Bottlerocket", text)
    assert (problem.rule, problem.severity, problem.message) == ("KERF-EC2-108", "error", fault.words)


def test_settings_that_leave_no_place_for_the_mount_of_the_instance_store() -> None:
    text = "settings.bootstrap-commands = 1"
    assert rules.fault("Bottlerocket", text) is None
    assert rules.fault("Bottlerocket", text, raid0=True) is not None
    assert [p.rule for p in linted("Bottlerocket", text, instanceStorePolicy="RAID0")] == ["KERF-EC2-108"]


@pytest.mark.parametrize("family", ["AL2", "Windows2022", "Bottlerocket", "Custom"])
def test_the_limit_is_ec2s(family: str) -> None:
    text = "#é" + "x" * (rules.LIMIT_BYTES - 3)
    assert rules.fault(family, text) is None
    fault = rules.fault(family, text + "x")
    assert fault is not None
    assert fault.reason == rules.TOO_LARGE
    assert "16385" in fault.words


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Windows2022", "Custom", "NoSuchFamily"])
@pytest.mark.parametrize("text", [SCRIPT, "echo hi", NODE_CONFIG, SETTINGS, "\0", "{{ .Values.script }}", " \n"])
def test_what_the_controller_can_hand_on_is_no_fault(family: str, text: str) -> None:
    assert rules.fault(family, text) is None


# --- doubts -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("family", "text"),
    [
        *((family, SCRIPT) for family in ("AL2", "AL2023")),
        *((family, archive(part("text/x-shellscript"), part("text/cloud-config"))) for family in ("AL2", "AL2023")),
        *((family, archive(part("text/part-handler"), part("text/ours"))) for family in ("AL2", "AL2023")),
        ("AL2", archive("Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\nIyEvYmluL2Jhc2gK")),
        ("AL2", archive("\nplain text")),
        ("AL2", f"\n{SCRIPT}"),
        ("AL2023", NODE_CONFIG),
        ("AL2023", f"---\n{NODE_CONFIG}"),
        ("AL2023", '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}'),
        ("AL2023", archive(part("application/node.eks.aws", NODE_CONFIG))),
        ("AL2023", "#!/bin/bash\ncat > /etc/x <<END\napiVersion: node.eks.aws/v1\n[settings.x]\nEND\n"),
        ("Bottlerocket", SETTINGS),
        ("Bottlerocket", "#include\n" + SETTINGS),
        ("Bottlerocket", "# " + "x" * 15000 + "\n" + SETTINGS),
        ("Windows2022", "Write-Host hi"),
        ("Windows2022", "#!/usr/bin/env pwsh\nWrite-Host hi"),
        ("Custom", "x" * 16000),
        ("AL2", " \n"),
    ],
)
def test_nothing_is_doubtful(family: str, text: str) -> None:
    assert rules.fault(family, text) is None
    assert kinds(family, text) == []


@pytest.mark.parametrize(
    ("family", "text", "kind", "words"),
    [
        ("AL2", "echo hi", "no script", "does not begin with #!"),
        ("AL2023", "echo hi", "no script", "does not begin with #!"),
        ("AL2", "#cloud-config\npackages: []\n", "no script", "does not begin with #!"),
        ("AL2", archive(part("text/cloud-config"), part("text/x-shellscript", "echo")), "no script", "part 2 "),
        ("AL2023", f"\n{SCRIPT}", "no script", "before #!"),
        ("AL2023", b64encode(SCRIPT.encode()).decode(), "no script", "base64"),
        ("AL2", b64encode(archive(part("text/cloud-config")).encode()).decode(), "no script", "base64"),
        ("AL2023", archive(part("text/X-ShellScript; charset=utf-8", " #!/bin/sh")), "no script", "before #!"),
        ("AL2023", "#cloud-config\npackages: []\n", "no NodeConfig", "is cloud-config"),
        ("AL2023", "a: b", "no NodeConfig", "it has no apiVersion and no kind"),
        ("AL2023", NODE_CONFIG.replace("v1alpha1", "v9"), "no NodeConfig", "it has apiVersion node.eks.aws/v9"),
        ("AL2023", NODE_CONFIG + "kind: x\n", "no NodeConfig", "line 4"),
        ("AL2023", NODE_CONFIG + "---\na: b\n", "no NodeConfig", "another document (line 4)"),
        ("AL2023", archive(part("application/node.eks.aws", "- a")), "no NodeConfig", "part 1 is no NodeConfig"),
        ("AL2", archive(part("application/node.eks.aws", NODE_CONFIG)), "unknown type", "part 1 has the type"),
        ("AL2023", archive(part("text/x-shellscipt")), "unknown type", "text/x-shellscipt"),
        ("AL2", NODE_CONFIG, "another family", "AL2023"),
        ("AL2", SETTINGS, "another family", "Bottlerocket"),
        ("AL2023", SETTINGS, "another family", "Bottlerocket"),
        ("AL2023", "<PowerShell>\nx\n</PowerShell>", "another family", "Windows"),
        ("Windows2022", SCRIPT, "another family", "Linux"),
        ("Windows2025", archive(part("text/cloud-config")), "another family", "Linux"),
        ("Windows2022", NODE_CONFIG, "another family", "AL2023"),
        ("Windows2022", "<powershell>\nx\n</powershell>", "tags", "<powershell>"),
        ("Windows2022", "x\n</PowerShell>\n<persist>true</persist>", "tags", "</PowerShell>"),
        ("Windows2022", "x\n<persist>true</persist>", "tags", "<persist>"),
        ("Windows2019", "<script>\necho x\n</script>", "tags", "<script>"),
        ("Windows2025", "x\n<powershellArguments>-NoExit</powershellArguments>", "tags", "<powershellArguments>"),
        ("Bottlerocket", "[kernel]\nlockdown = 1", "replaced", "kernel is ignored"),
        ("Bottlerocket", "[settings.kubernetes]\nmax-pods = 1", "replaced", "maxPods"),
        ("Bottlerocket", "[settings.kubernetes.node-taints]\na = ['b:NoSchedule']", "replaced", "NodePool's taints"),
        ("Bottlerocket", "[settings.kubernetes]\nnode-labels = ['a=b']", "no table", "labels are left out"),
        ("Bottlerocket", "[settings.kubernetes]\nnode-labels = 'a=b'", "no table", "node-labels is not a table"),
        ("AL2", SCRIPT + "x" * 15000, "little space", "15020 of the 16384"),
        ("Windows2022", "x" * 14745, "little space", "14745"),
    ],
)
def test_what_is_doubtful_is_a_warning(family: str, text: str, kind: str, words: str) -> None:
    (doubt,) = doubts(family, text)
    assert doubt.kind == kind
    assert words in doubt.words
    if family in ALIASES:
        (problem,) = linted(family, text)
        assert (problem.severity, problem.path, problem.message) == ("warning", "spec.userData", doubt.words)


def test_a_custom_class_without_user_data_is_worth_a_word() -> None:
    base = placed(
        changed("EC2NodeClass", "spec.amiFamily", "Custom"), "spec.amiSelectorTerms", [{"id": "ami-00000001"}]
    )
    assert [(p.rule, p.severity) for p in validate(base)] == [("KERF-EC2-214", "info")]
    assert validate(placed(base, "spec.userData", SCRIPT)) == []


# --- what is read where -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text", ["a: 2024-13-45", f"a: {'9' * 5000}", "a: &x 1\nb: &x 2", "a: &a [*a]", "{" + NODE_CONFIG + "}"]
)
def test_only_the_form_of_yaml_counts(text: str) -> None:
    assert node_config.is_mapping(text) == (not text.startswith("{"))


@pytest.mark.parametrize(
    "text", ["- a", "a", "a: !Sub b", "a: 1\na: 2", "a: *b", "a: 1\n---\nb: 2", "#!a: b", "\0: a", ""]
)
def test_what_is_no_mapping(text: str) -> None:
    assert not node_config.is_mapping(text)


def test_nesting_is_judged_by_its_beginning() -> None:
    assert node_config.is_mapping("{a: " * 1000 + "}" * 1000)
    assert not node_config.is_mapping("[" * 1000 + "]" * 1000)
    assert node_config.read("{a: " * 64 + "}" * 64) != {}


def test_the_parts_of_a_text() -> None:
    assert [p.kind for p in cloud_init.parts(NODE_CONFIG, nodeadm=True)] == [mime.NODE_CONFIG]
    assert [p.kind for p in cloud_init.parts(NODE_CONFIG, nodeadm=False)] == ["text/x-shellscript"]
    assert cloud_init.parts("\r\n", nodeadm=True) == []
    assert bottlerocket.settings("") == {"settings": {"kubernetes": {}}}


# --- no text can hurt -------------------------------------------------------------------------------------------
_MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 200))
_WITHIN = "".join(f"Content-Type: multipart/mixed; boundary={n}\n\n--{n}\n" for n in range(330))
HOSTILE = {
    "brackets": "[" * 16384,
    "braces": "{a: " * 4096,
    "dashes": "- " * 8192,
    "question marks": "? " * 8192,
    "merges": _MERGES[:16384].rpartition("\n")[0],
    "arrays": "a = " + "[" * 16000,
    "dotted": ".".join("a" * 8000) + " = 1",
    "hexadecimal": "a = 0x" + "f" * 16000,
    "messages": "MIME-Version: 1.0\n" + "Content-Type: message/rfc822\n\n" * 540,
    "archives": "MIME-Version: 1.0\n" + _WITHIN[:16300],
    "parameters": "Content-Type: multipart/mixed" + ";" * 16000 + "\n\nx",
    "zeros": "\0" * 16384,
    "endless": "x" * 5_000_000,
    "lines": "\n" * 16383 + "x",
    "prefixes": " \t{\"'" * 3276,
}


@pytest.mark.parametrize("family", ALIASES)
@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HOSTILE.items()])
def test_hostile_text_costs_little(family: str, text: str) -> None:
    before = process_time()
    assert {problem.path for problem in linted(family, text)} <= {"spec.userData"}
    assert process_time() - before < 10


def test_messages_hold_nothing_that_a_terminal_obeys() -> None:
    for family, text in (("AL2", archive("\x1b[31mx\n\ny")), ("AL2023", NODE_CONFIG + '"\\e[31m": 1\n"\\e[31m": 2\n')):
        (problem,) = linted(family, text)
        assert problem.message.isprintable()


def test_a_class_without_user_data_loads_no_reader() -> None:
    code = """
import sys
from kerf_api.lint import validate
validate({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "a"}, "spec": {}})
print([name for name in ("tomllib", "email.feedparser", "ruamel.yaml", "kerf_api.userdata") if name in sys.modules])
"""
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
