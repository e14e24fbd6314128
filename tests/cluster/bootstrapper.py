"""Turns EC2 instances into Kubernetes nodes: the piece between moto, without machines, and kwok, which needs nodes.

    with MotoAws() as aws, ControlPlane() as cluster, Bootstrapper(aws, cluster.kubeconfig):
        ...

For every running instance it reads the user data, waits as long as a machine would take to boot, and registers a Node
as that user data says. When the instance ends, the node's kubelet falls silent: the Node stays until someone deletes
it. By hand: `python -m tests.cluster.bootstrapper --aws http://127.0.0.1:5000 --kubeconfig FILE`.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
import urllib.request
import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import boto3
import kubernetes
import msgspec
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from .moto_aws import MotoAws
from .moto_aws.settings import CONTROL
from .node_object import node
from .node_user_data import read_user_data
from .stages import STOPPED_LABEL

REQUEST_SECONDS: Final = 20.0
HANDS: Final = 8
#: The access key by which the call log tells the machines from a controller.
MACHINES: Final = "machines"
CONFLICT, NOT_FOUND = 409, 404
PASSING: Final = (ApiException, HTTPError, OSError)


class Bootstrapper:
    """A thread that follows the instances of one AWS (a running MotoAws, or its address) for one cluster.

    An instance takes `boot_seconds`, and up to `uneven_seconds` more, as its ID has it. `annotations` go onto every
    node (such as `stages.READY_AFTER`). While `paused` is set no instance boots. `nodes` maps the names registered so
    far to instance IDs.
    """

    def __init__(
        self,
        aws: MotoAws | str,
        kubeconfig: Path,
        *,
        boot_seconds: float = 1.0,
        uneven_seconds: float = 0.0,
        poll_seconds: float = 0.2,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.boot_seconds, self.uneven_seconds = boot_seconds, uneven_seconds
        self.paused = False
        self.nodes: dict[str, str] = {}
        self._aws_url = aws if isinstance(aws, str) else aws.endpoint_url
        self._poll_seconds = poll_seconds
        self._annotations = dict(annotations or {})
        connect: Any = kubernetes.config.new_client_from_config
        self._core: Any = kubernetes.client.CoreV1Api(connect(str(kubeconfig)))
        self._types: dict[str, Any] = {}
        #: By region. One takes a second of CPU to make; how long machines boot must not depend on how many types there
        #: are.
        self._clients: dict[str, Any] = {}
        self._clients_made = threading.Lock()
        self._seen: dict[str, float] = {}
        self._done: set[str] = set()
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="bootstrapper", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Raises what went wrong in it, if anything did."""
        self._stop.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise what ended the thread before its time, if anything did."""
        if self._failure is not None:
            raise RuntimeError("the bootstrapper has stopped") from self._failure

    def join(self) -> None:
        """Wait for as long as the thread runs."""
        self._thread.join()

    def _follow(self) -> None:
        with ThreadPoolExecutor(HANDS) as hands:
            try:
                while not self._stop.wait(self._poll_seconds):
                    with contextlib.suppress(*PASSING):  # the API server restarts: the next round tries again
                        self._look(hands)
            except BaseException as error:
                self._failure = error

    def _look(self, hands: ThreadPoolExecutor) -> None:
        """One round: boot what has been running long enough, silence what has ended."""
        work: list[Future[None]] = []
        states: dict[str, str] = self._ask("states")
        due = [instance_id for instance_id, state in states.items() if state == "running" and self._due(instance_id)]
        if due:
            work += [hands.submit(self._boot, instance) for instance in self._ask("instances", due)]
        for name, instance_id in list(self.nodes.items()):
            if states.get(instance_id) not in ("pending", "running"):
                work.append(hands.submit(self._silence, name, instance_id))
        for future in work:
            future.result()

    def _ask(self, command: str, given: Any = None) -> Any:
        request = urllib.request.Request(f"{self._aws_url}{CONTROL}{command}", data=msgspec.json.encode(given))
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            return msgspec.json.decode(answer.read())

    def _due(self, instance_id: str) -> bool:
        running_since = self._seen.setdefault(instance_id, time.monotonic())
        share = zlib.crc32(instance_id.encode()) / 2**32
        waited = time.monotonic() - running_since >= self.boot_seconds + share * self.uneven_seconds
        return waited and not self.paused and instance_id not in self._done

    def _boot(self, instance: dict[str, Any]) -> None:
        manifest = node(instance, self._type(instance), read_user_data(instance["user_data"]), self._annotations)
        try:
            self._core.create_node(manifest, _request_timeout=REQUEST_SECONDS)
        except ApiException as error:
            if error.status == CONFLICT:
                return  # an earlier machine with this address has not been cleared away yet
            raise
        self._done.add(instance["id"])
        self.nodes[manifest["metadata"]["name"]] = instance["id"]

    def _silence(self, name: str, instance_id: str) -> None:
        try:
            found = self._core.read_node(name, _request_timeout=REQUEST_SECONDS)
            if (found.spec.provider_id or "").endswith(instance_id) and not found.metadata.finalizers:
                self._core.delete_node(name, _request_timeout=REQUEST_SECONDS)  # as AWS' cloud controller manager does
            elif (found.spec.provider_id or "").endswith(instance_id):
                patch = {"metadata": {"labels": {STOPPED_LABEL: "true"}}}
                self._core.patch_node(name, patch, _request_timeout=REQUEST_SECONDS)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
        del self.nodes[name]

    def _type(self, instance: dict[str, Any]) -> Any:
        """What DescribeInstanceTypes says of the instance's type, asked once."""
        name = instance["instance_type"]
        if name not in self._types:
            described = self._client(instance["region"]).describe_instance_types(InstanceTypes=[name])
            self._types[name] = described["InstanceTypes"][0]
        return self._types[name]

    def _client(self, region: str) -> Any:
        with self._clients_made:
            if region not in self._clients:
                session = boto3.session.Session(MACHINES, MACHINES, region_name=region)
                self._clients[region] = session.client("ec2", endpoint_url=self._aws_url)
            return self._clients[region]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aws", required=True, help="address of `python -m tests.cluster.moto_aws`")
    parser.add_argument("--kubeconfig", required=True, type=Path)
    parser.add_argument("--boot-seconds", type=float, default=1.0)
    given = parser.parse_args()
    with Bootstrapper(given.aws, given.kubeconfig, boot_seconds=given.boot_seconds) as bootstrapper:
        bootstrapper.join()


if __name__ == "__main__":
    main()
