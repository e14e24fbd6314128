"""The page behind gunicorn on a port of the loopback address: `python -m tests.unit.gate.served PORT HEALTH_PORT`."""

from __future__ import annotations

import sys
from typing import Any, cast

from kerf.cli.gate import options, serving
from kerf.cli.gate.claims import LONGEST_TOKEN
from kerf.kube.client import KubeClient
from kerf.model.settings import Settings
from kerf.sandbox.clock import VirtualClock
from tests.unit.gate.worlds import NOW, USERS, Cluster

#: A valid token of the greatest length.
LONG_TOKEN = "y" * LONGEST_TOKEN


class Paced(Cluster):
    """As the client calls it."""

    def request(self, method: str, path: str, body: Any, read_seconds: float = 0.0) -> Any:
        assert read_seconds > 0
        return super().request(method, path, body)


def main(port: str, health_port: str) -> None:
    USERS[LONG_TOKEN] = USERS["admin-token"]
    cluster = cast(KubeClient, Paced())
    chosen = options.read(["--bind", f"127.0.0.1:{port}", "--health-bind", f"127.0.0.1:{health_port}"])
    serving.run(serving.Clients(cluster, cluster), chosen, Settings("test"), VirtualClock(NOW), print)


if __name__ == "__main__":
    main(*sys.argv[1:])
