"""The feed's own process: the world, its API server, its EC2, and what goes on in it.

    python -m benchmarks.feed.server '{"nodes": 5000, "pods": 100000}'

prints one line of JSON when it serves: where the API server and EC2 are. It ends with its standard input. What the
benchmark wants of it comes as requests under `/feed/`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from benchmarks.feed import specimens
from benchmarks.feed.api import Api, Request
from benchmarks.feed.churn import Churn
from benchmarks.feed.ec2 import Ec2Proxy
from benchmarks.feed.people import reviewed
from benchmarks.feed.stamping import World, fill
from benchmarks.feed.store import Store, encode
from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.aws.observe.cluster_facts import ServerFacts
from tests.cluster.moto_aws import MotoAws

Json = dict[str, Any]


class Feed:
    """Store, world and churn, and the commands about them."""

    def __init__(self, store: Store, world: World) -> None:
        self.store, self._churn = store, Churn(store, world)
        self._running: asyncio.Task[None] | None = None
        self.proxy: Ec2Proxy | None = None

    def control(self, request: Request) -> tuple[int, bytes] | None:
        """The answer to a review, or to a path under /feed/."""
        answer = reviewed(request.path, request.body)
        if answer is not None:
            return 201, encode(answer)
        if not request.path.startswith("/feed/"):
            return None
        command = getattr(self, "do_" + request.path.removeprefix("/feed/"), None)
        return (404, b"{}") if command is None else (200, encode(command(request.query)))

    def do_churn(self, query: Mapping[str, str]) -> Json:
        """Begin to change things."""
        rates = (float(query[name]) for name in ("pod_events", "node_events", "seconds"))
        self._running = asyncio.get_running_loop().create_task(self._churn.run(*rates))
        return {}

    def do_state(self, query: Mapping[str, str]) -> Json:
        """Counts of what is there and what was asked; whether the churn is over; sizes."""
        tables = {name: table.objects for name, table in self.store.tables.items()}
        over = self._running is None or self._running.done()
        if over and self._running is not None:
            self._running.result()
        return {
            "now": time.time(),
            "over": over,
            "objects": {name: len(objects) for name, objects in tables.items()},
            "bytes": {name: sum(len(s.raw) for s in tables[name].values()) for name in ("Pod", "Node", "NodeClaim")},
            "requests": dict(self.store.requests),
            "pods_changed": self._churn.pods_changed,
            "nodes_changed": self._churn.nodes_changed,
            "calls": dict(self.proxy.calls) if self.proxy is not None else {},
            "fleets": self.proxy.fleets if self.proxy is not None else [],
        }

    def do_writes(self, query: Mapping[str, str]) -> list[Json]:
        """The write log from an index on."""
        return [msgspec.to_builtins(write) for write in self.store.writes[int(query.get("from", "0")) :]]

    def do_emitted(self, query: Mapping[str, str]) -> list[tuple[int, float]]:
        """Versions of pod changes with the time of day at which each was made."""
        return self.store.emitted["Pod"]

    def do_unschedulable(self, query: Mapping[str, str]) -> Json:
        self._churn.unschedulable(int(query["count"]), query["pool"], int(query["cpu_millis"]), query["name"])
        return {}

    def do_delete_claim(self, query: Mapping[str, str]) -> Json:
        """Somebody deletes a NodeClaim; the name of its node."""
        return {"node": self._churn.delete_claim()}

    def do_remove_unschedulable(self, query: Mapping[str, str]) -> Json:
        self._churn.remove_unschedulable()
        return {}


async def _serve(feed: Feed, world: World, moto: MotoAws) -> None:
    feed.proxy = Ec2Proxy(moto.endpoint_url, world.machines)
    ports = await Api(feed.store, feed.control).serve(), await feed.proxy.serve()
    environment = {**moto.environment(), "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports[1]}"}
    state = feed.do_state({})
    told = {"server": f"http://127.0.0.1:{ports[0]}", "environment": environment, "bytes": state["bytes"]}
    print(json.dumps({**told, "objects": state["objects"]}), flush=True)
    await asyncio.Event().wait()


def main(given: Json) -> None:
    threading.Thread(target=_end_with_input, daemon=True).start()
    with MotoAws(cluster_name=specimens.CLUSTER) as moto:
        aws = AwsCloud(
            AwsOptions(
                cluster_name=specimens.CLUSTER,
                region=moto.region,
                session=moto.session(),
                endpoint_url=moto.endpoint_url,
            ),
            server=lambda: ServerFacts(kubernetes_version="1.36"),
        )
        settled = specimens.settle(aws, moto.role)
        store = Store()
        world = fill(store, settled, given["nodes"], given["pods"])
        gc.collect()
        gc.freeze()
        asyncio.run(_serve(Feed(store, world), world, moto))


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
