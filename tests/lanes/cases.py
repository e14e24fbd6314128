"""What is run in each lane: a verb in a format, and what its standard output has to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import yaml

#: A NodePool with a mistake, and one without; they are all that the folder of a lane has.
FILES: Final = {
    "good.yaml": """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: good}
spec:
  template:
    spec:
      expireAfter: 720h
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
""",
    "wrong.yaml": """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: wrong}
spec:
  template:
    spec:
      expireAfer: 720h
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
""",
    "old.yaml": """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: old}
spec:
  template:
    spec:
      nodeClassRef: {name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
""",
    "pod.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]
""",
}

#: Raises ValueError, or the parser's own error, for output that is not of the format.
Check = Callable[[str], object]


def text(output: str) -> None:
    """Raise ValueError when there is nothing, or a traceback."""
    if not output.strip() or "Traceback" in output:
        raise ValueError("nothing, or a traceback")


def workflow_commands(output: str) -> None:
    """Raise ValueError when a line before the summary is no workflow command of GitHub."""
    *commands, _ = output.splitlines()
    if not commands or any(not line.startswith("::") for line in commands):
        raise ValueError("a line that is no workflow command")


def of_plugin(output: str) -> None:
    """Raise ValueError when the help names another program than `kubectl kerf`."""
    if not output.startswith("kubectl kerf "):
        raise ValueError("the name of another program")


def manifests(output: str) -> None:
    """Raise ValueError when there is a document without a kind."""
    if not all(isinstance(one, dict) and one.get("kind") for one in yaml.safe_load_all(output)):
        raise ValueError("a document without a kind")


@dataclass(frozen=True, slots=True)
class Case:
    """The arguments of a program of the wheel; `codes` are the exit codes that are right."""

    name: str
    arguments: tuple[str, ...]
    check: Check
    codes: tuple[int, ...] = (0,)
    program: str = "kerf"


_WHY: Final = ("why", "pod", "default/web", "-f", "pod.yaml", "-f", "good.yaml", "--cluster-name", "lane")
_CLUSTER: Final = ("--kubeconfig", "nowhere.yaml", "--cluster-name", "lane")
CASES: Final = (
    Case("--version", ("--version",), text),
    Case("--help", ("--help",), text),
    Case("validate text", ("validate", "wrong.yaml"), text, (1,)),
    Case("validate json", ("validate", "--format", "json", "wrong.yaml"), json.loads, (1,)),
    Case("validate sarif", ("validate", "--format", "sarif", "wrong.yaml"), json.loads, (1,)),
    Case("validate gitlab", ("validate", "--format", "gitlab", "wrong.yaml"), json.loads, (1,)),
    Case("validate junit", ("validate", "--format", "junit", "wrong.yaml"), ElementTree.fromstring, (1,)),
    Case("validate github", ("validate", "--format", "github", "wrong.yaml"), workflow_commands, (1,)),
    Case("convert", ("convert", "old.yaml"), manifests),
    Case("default", ("default", "good.yaml"), manifests),
    Case("explain", ("explain", "KERF-NP-004"), text),
    Case("schema", ("schema", "NodePool"), json.loads),
    Case("settings text", ("settings", "--cluster-name", "lane"), text),
    Case("settings json", ("settings", "-o", "json", "--cluster-name", "lane"), json.loads),
    Case("why text", _WHY, text, (0, 1)),
    Case("why json", (*_WHY, "-o", "json"), json.loads, (0, 1)),
    Case("demo json", ("demo", "--json"), json.loads),
    Case("kubectl kerf", ("why", "-h"), of_plugin, program="kubectl-kerf"),
    Case("kubectl completion", ("valid",), text, program="kubectl_complete-kerf"),
    Case("demo text", ("demo",), text),
)
#: No server answers these: the exit code and the text say so.
UNANSWERED: Final = (
    Case("preflight", ("preflight", *_CLUSTER), text, (1,)),
    Case("migrate check", ("migrate", "check", *_CLUSTER), str, (2,)),
    Case("status", ("status", "--url", "http://127.0.0.1:9"), str, (1, 2)),
)


def written(folder: Path) -> Path:
    """The files of a lane, in a folder."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder
