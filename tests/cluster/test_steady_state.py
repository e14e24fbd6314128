"""Nothing changes in a cluster of five hundred nodes with one node class: what AWS is asked meanwhile, call by call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .control_plane import ControlPlane
from .fleet import fleet
from .installation import Installation

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NODES: Final = 500
#: The chores that come seldom are due every five minutes; those that come once an hour or less are not seen.
MINUTES: Final = 10
#: What EC2 gives an account back each second for calls that change nothing is 20; others share it.
AT_MOST_A_MINUTE: Final = 20


@pytest.fixture
def kerf(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path) as installation:
        installation.kubectl("apply", "-f", str(Path(__file__).parent / "workloads.yaml"))
        yield installation


@pytest.mark.timeout(3000)
def test_five_hundred_nodes_that_stay(kerf: Installation) -> None:
    with fleet(kerf, "steady", gone_within=900) as ours:
        seconds = ours.scale(NODES, 900)
        time.sleep(60)
        kept, began = ours.uids(), time.time()
        time.sleep(MINUTES * 60)
        calls = Counter(f"{call.service} {call.action}" for call in kerf.aws.calls() if call.time >= began)
        print(
            f"\n{NODES} nodes, there {seconds:.0f} s after their pods. Calls of AWS in {MINUTES} minutes:", flush=True
        )
        for name, many in [*calls.most_common(), ("all", calls.total())]:
            print(f"  {name:48}{many:5}{many / MINUTES:8.1f} a minute", flush=True)
        assert ours.uids() == kept
        assert calls.total() / MINUTES <= AT_MOST_A_MINUTE
