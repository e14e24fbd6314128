"""`python -m tests.cluster.verdicts`: the same verdict by `validate`, by the webhook and by the real API server?

Every case of the corpus (`tests/unit/api/corpus.py`) is put to `validate`, to both doors of the webhook over HTTP, and
to a real API server without the webhook. The report shows the three side by side. The exit code is 1 when there is a
disagreement that nothing explains, or an explanation that nothing needs (`agreement.py`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.unit.api.corpus import Case, changes, creations
from tests.unit.webhook.doors import DOORS, patched, reply
from tests.unit.webhook.test_server import Server, served

from .agreement import Outcome, Report
from .api_server import ApiServer, with_definitions
from .binaries import ControlPlaneUnavailable
from .control_plane import ControlPlane
from .processes import ComponentFailed


def judged(cases: Iterable[Case], webhook: Server, server: ApiServer) -> Iterator[Outcome]:
    """Each case with what the three say to it."""
    connection = webhook.connect()
    for case in cases:
        replies = {door: reply(connection, door, case) for door in DOORS}
        answer, completed = server.judge(case), None
        if answer.accepted and replies["/mutate"]["allowed"]:
            completed = server.judge(patched(case, replies["/mutate"]))
        yield Outcome(case, case.errors(), replies, answer, completed)


def judged_by_all(cluster: ControlPlane, folder: Path) -> list[Outcome]:
    """The whole corpus, judged on this control plane; `folder` is for the webhook's files."""
    with served(folder) as webhook, with_definitions(cluster) as server:
        return list(judged((*creations(), *changes()), webhook, server))


def main() -> int:
    """Print the report and return the exit code."""
    argparse.ArgumentParser(prog="python -m tests.cluster.verdicts", description=__doc__).parse_args()
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder, ControlPlane() as cluster:
            report = Report(judged_by_all(cluster, Path(folder)))
    except (ControlPlaneUnavailable, ComponentFailed) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(report.text())
    print(f"\n{'NOT the same' if report.problems else 'The same'} verdicts; {time.monotonic() - begun:.0f} s")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
