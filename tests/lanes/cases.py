"""What is run in each lane: a verb in a format, and what its standard output has to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import yaml

from tests.sources import ROOT

#: A NodePool with a mistake, one without, its EC2NodeClass, and what else the verbs read; a lane's folder has no more.
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
    "class.yaml": """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: lane
  amiSelectorTerms: [{alias: al2023@v20260101}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: lane}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: lane}}]
""",
    "scenario.yaml": """\
name: lane
duration: 20m
world: {manifests: [class.yaml, good.yaml]}
workloads:
- {name: web, replicas: 2, cpu: "1", memory: 1Gi}
assertions:
- podsRunWithin: {duration: 10m, workload: web}
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

#: A record that an earlier version wrote.
RECORD: Final = ROOT / "tests/unit/records/versions/1.record"

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


def markdown(output: str) -> None:
    """Raise ValueError when it does not begin with a heading, or has no table."""
    if not output.startswith("#") or "|---|" not in output:
        raise ValueError("no heading, or no table")


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
_WORLD: Final = ("-f", "pod.yaml", "-f", "good.yaml", "-f", "class.yaml", "--cluster-name", "lane")
_SNAPSHOT: Final = ("--snapshot", "world.snapshot")
_CLUSTER: Final = ("--kubeconfig", "nowhere.yaml", "--cluster-name", "lane", "--aws-region", "us-west-2")
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
    Case("snapshot", ("snapshot", *_WORLD, "-o", "world.snapshot"), str),  # read by those that follow
    Case("why of a snapshot", ("why", "pod", "default/web", *_SNAPSHOT, "-o", "json"), json.loads),
    Case("why nodepool", ("why", "nodepool", "good", *_SNAPSHOT, "-o", "json"), json.loads),
    Case("plan text", ("plan", *_SNAPSHOT, "good.yaml"), text),
    Case("plan json", ("plan", *_SNAPSHOT, "good.yaml", "-o", "json"), json.loads),
    Case("plan markdown", ("plan", *_SNAPSHOT, "good.yaml", "-o", "markdown"), markdown),
    Case("simulate text", ("simulate", "scenario.yaml"), text),
    Case("simulate chart", ("simulate", "scenario.yaml", "--chart"), text),
    Case("simulate json", ("simulate", "scenario.yaml", "-o", "json"), json.loads),
    Case("simulate schema", ("simulate", "--schema"), json.loads),
    Case("migrate check text", ("migrate", "check", "-f", "good.yaml", "-f", "class.yaml"), text, (0, 1)),
    Case("migrate check json", ("migrate", "check", "-f", "good.yaml", "-o", "json"), json.loads, (0, 1)),
    Case("replay", ("replay", RECORD.name), text, (0, 3)),  # 3 where other versions decide otherwise
    Case("replay list", ("replay", RECORD.name, "--list"), text),
    Case("why of a record", ("why", "nodepool", "general", "--record", RECORD.name, "-o", "json"), json.loads, (0, 1)),
    Case("demo json", ("demo", "--json"), json.loads),
    Case("kubectl kerf", ("why", "-h"), of_plugin, program="kubectl-kerf"),
    Case("kubectl completion", ("valid",), text, program="kubectl_complete-kerf"),
    Case("demo text", ("demo",), text),
)
#: No server answers these: the exit code and the text say so.
UNANSWERED: Final = (
    Case("preflight", ("preflight", *_CLUSTER), text, (1,)),
    Case("events", ("events", "--kubeconfig", "nowhere.yaml"), str, (1, 2)),
    Case("top", ("top", *_SNAPSHOT), str, (2,)),  # no terminal is there
    Case("migrate check", ("migrate", "check", *_CLUSTER), str, (2,)),
    Case("status", ("status", "--url", "http://127.0.0.1:9"), str, (1, 2)),
)


def written(folder: Path) -> Path:
    """The files of a lane, in a folder."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / RECORD.name).write_bytes(RECORD.read_bytes())
    return folder
