"""docs/getting-started.md, command by command: an empty cluster and an account, and in the end both as they were."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from tests.sources import ROOT

from . import record
from .control_plane import ControlPlane
from .flux_installation import nested
from .installation import CLUSTER_NAME, Installation
from .person import Person
from .slips import surround

pytestmark = pytest.mark.cluster

GUIDE = ROOT / "docs/getting-started.md"
#: What comes first, and is what the tests run on.
FIRST = "python3 -m pip install --constraint constraints.txt ."
#: What moto's stack lacks comes after it: the association, and what a cluster has.
STACK = "aws cloudformation deploy"
LAST_OF_INSTALLATION = "helm install kerf charts/kerf"


def commands() -> list[str]:
    """All commands of the guide, for this cluster."""
    blocks = re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [line for block in blocks for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)]
    return [command.replace("my-cluster", CLUSTER_NAME) for command in found]


class Started(Installation):
    """Kerf as who reads the guide installs it; `rest` are the commands that come afterwards. From `uninstalled` on the
    controller, which runs on until the test is over, has no rights."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        super().__init__(control_plane, folder, values={"webhook.deletionGuard": "true"})
        self._place = folder / "repository"
        self._place.mkdir()
        for name in ("charts", "manifests"):
            (self._place / name).symlink_to(ROOT / name)
        self.rest: list[str] = []
        self.uninstalled: datetime | None = None

    def _install_charts(self, values: Mapping[str, str]) -> None:
        self.person = Person(self.control_plane, self._folder / "bin", self._place, self.aws.environment())
        own = self._folder / "own.yaml"
        own.write_text(yaml.safe_dump(nested({k: v for k, v in values.items() if k not in TYPED})))
        self.person.with_values(own)
        ec2 = self.aws.client("ec2")
        self.aws.client("sqs").delete_queue(QueueUrl=self._queue())  # the stack makes it
        subnets = [one["SubnetId"] for one in ec2.describe_subnets(Filters=OURS)["Subnets"]]
        (group,) = ec2.describe_security_groups(Filters=OURS)["SecurityGroups"]
        self.person.variables |= {"SUBNETS": " ".join(subnets), "SECURITY_GROUP": group["GroupId"]}
        first, *todo = commands()
        assert first == FIRST
        while todo:
            command = todo.pop(0)
            self.person.does(command)
            if command.startswith(STACK):
                surround(self)
            if command.startswith(LAST_OF_INSTALLATION):
                break
        self.rest = todo

    def _queue(self) -> str:
        return str(self.aws.client("sqs").get_queue_url(QueueName=CLUSTER_NAME)["QueueUrl"])


#: What the guide's own command says.
TYPED = ("settings.clusterName", "settings.interruptionQueue")
OURS = [{"Name": "tag:karpenter.sh/discovery", "Values": [CLUSTER_NAME]}]


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with Started(own_control_plane, tmp_path_factory.mktemp("started")) as installation:
        yield installation
    if installation.uninstalled is not None:
        record.mark(own_control_plane.record, installation.uninstalled, None)


def test_from_an_empty_cluster_to_nodes_and_back(kerf: Started) -> None:
    told = {}
    for command in kerf.rest:
        if "10 percent" in command:
            done = kerf.person.run(command)
            assert done.returncode != 0
            assert "KERF-" in done.stdout
            continue
        if command.startswith("helm uninstall"):
            kerf.uninstalled = kerf.uninstalled or record.now()
        told[command] = kerf.person.does(command, timeout=330)
        print(command, told[command], sep="\n")
    assert len(told) >= 14
    assert kerf.running_instances() == []
