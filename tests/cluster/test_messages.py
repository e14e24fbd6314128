"""A thousand messages wait in the interruption queue: about our machines and others', broken ones, doubled ones.

The queue is worked off, each node that is meant has one successor, the others stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from .control_plane import ControlPlane
from .fleet import fleet
from .installation import CLUSTER_NAME, Installation
from .moto_aws.events import KINDS, interruption_body

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
MANY: Final = 1000
#: Of ten messages so many are broken, and so many come twice.
BROKEN, DOUBLED = 0.1, 0.1
NODES: Final = 6
#: What is not JSON, not an object, lacks parts, or has them of the wrong shape.
NONSENSE: Final = (
    "not json",
    "[1, 2]",
    "null",
    "{}",
    '{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}',
    '{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "version": "0", "detail": "x"}',
    '{"source": ["aws.ec2"], "detail-type": {"a": 1}, "version": "0", "detail": {"instance-id": 7}}',
    '{"source": "aws.s3", "detail-type": "Object Created", "version": "0", "detail": {}}',
    "{" * 2000,
)


@pytest.fixture
def kerf(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.mark.timeout(420)
def test_a_thousand_messages(kerf: Installation) -> None:
    with fleet(kerf) as ours:
        ours.allow(NODES)
        ours.scale(NODES)
        machines = {
            claim["metadata"]["uid"]: claim["status"]["providerID"].rpartition("/")[2] for claim in ours.claims()
        }
        meant, spared = sorted(machines)[: NODES // 2], set(sorted(machines)[NODES // 2 :])
        instances, told = len(kerf.aws.instances()), len(kerf.events("TerminatingOnInterruption"))
        kerf.stop_controller()
        sent = messages([machines[uid] for uid in meant], [machines[uid] for uid in spared], kerf.aws.region)
        queue = Queue(kerf)
        queue.send(sent)
        assert queue.length() == MANY == len(sent)
        kerf.start_controller()
        kerf.wait(lambda: kerf.readiness()[0] == 200, 60, "the controller is ready")
        seconds = kerf.wait(lambda: queue.length() == 0, 120, "the queue is empty")
        kerf.wait(lambda: ours.whole(NODES) and not ours.uids() & set(meant), 180, "each has a successor")
        made = len(kerf.aws.instances()) - instances
        print(f"\n{MANY} messages, gone {seconds:.1f} s after the controller was ready; {made} successors", flush=True)
        assert spared <= ours.uids()
        assert made == len(meant)
        told = len(kerf.events("TerminatingOnInterruption")) - told
        assert told == 2 * len(meant)  # on the claim and on the node


def messages(meant: list[str], spared: list[str], region: str) -> list[str]:
    """Bodies in no order: each of the `meant` is told in several ways, the `spared` have only what ends nobody."""
    random = Random(1)
    broken, doubled = int(MANY * BROKEN), int(MANY * DOUBLED)
    ours = [interruption_body(kind, one, region) for one in meant for kind in KINDS]
    ours += [interruption_body("rebalance", one, region) for one in spared]
    foreign = MANY - broken - doubled - len(ours)
    others = [
        interruption_body(random.choice(sorted(KINDS)), f"i-{random.getrandbits(68):017x}", region)
        for _ in range(foreign)
    ]
    found = [*ours, *others, *(random.choice(NONSENSE) for _ in range(broken))]
    found += random.choices(ours, k=doubled // 2) + random.choices(others, k=doubled - doubled // 2)
    random.shuffle(found)
    return found


class Queue:
    """The interruption queue, seen from outside."""

    def __init__(self, kerf: Installation) -> None:
        self._sqs = kerf.aws.client("sqs")
        self._url = self._sqs.get_queue_url(QueueName=CLUSTER_NAME)["QueueUrl"]

    def send(self, bodies: list[str]) -> None:
        for start in range(0, len(bodies), 10):
            entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies[start : start + 10])]
            self._sqs.send_message_batch(QueueUrl=self._url, Entries=entries)

    def length(self) -> int:
        """Messages that wait, and those that somebody has received and not deleted."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found: dict[str, Any] = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in found.values())
