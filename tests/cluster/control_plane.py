"""A whole Kubernetes control plane that a test starts and throws away.

    with ControlPlane() as cluster:
        cluster.kubectl("get", "nodes")

There are no machines behind it. A test (or the component that plays EC2) creates Node objects with the capacity,
labels, taints and providerID they should have, and kwok then acts as their kubelets: it makes the nodes Ready, runs
the pods that the real scheduler binds to them, and stops the pods that someone deletes or evicts. What those kubelets
do, and how to steer them, is at the head of `kubelet_stages.yaml`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from . import kubeconfig, record
from .binaries import find_binaries
from .components import ComponentFactory, Options
from .objects import READS, Objects
from .processes import Component, ProcessGroup, wait_until
from .stages import KubeletDelays

COMMAND_SECONDS: Final = 120.0
TOKEN_LIFETIME: Final = "24h"
GIVEN_UP: Final = "(Timeout)"


class ControlPlane:
    """etcd, the API server, the controller manager, the scheduler and kwok, on free loopback ports.

    `audit_log` receives one JSON line per finished request, and `record` then nothing. `node_monitor_grace_seconds` is
    how long a node may be silent before it becomes Unknown. `extra_flags` maps a program's name to command line flags,
    which win over ours.
    Raises ControlPlaneUnavailable from the constructor when the programs are missing and cannot be built.
    """

    def __init__(
        self,
        *,
        binaries: Path | None = None,
        audit_log: Path | None = None,
        delays: KubeletDelays | None = None,
        node_monitor_grace_seconds: int = 120,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.binaries: Final = binaries or find_binaries()
        self._options = Options(audit_log, delays or KubeletDelays(), node_monitor_grace_seconds, extra_flags)
        self._group: ProcessGroup | None = None
        self._components: tuple[Component, ...] = ()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; return when pods can be created. Raises ComponentFailed, leaving nothing behind."""
        self.folder = Path(tempfile.mkdtemp(prefix="kerf-cluster-"))
        self._group = ProcessGroup(self.folder)
        try:
            self._start_components(self._group)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process and remove the temporary folder. Does nothing when it is not running."""
        if self._group is None:
            return
        self._group.end()
        for component in self.components:
            component.forget()
        self._group = None

    def check(self) -> None:
        """Raise ComponentFailed if one of the programs has died."""
        for component in self.components:
            component.check()

    @property
    def process_group(self) -> int:
        """What is started in this group ends with the control plane, even when the run is killed outright."""
        assert self._group is not None
        return self._group.id

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._factory.server

    @property
    def ca_file(self) -> Path:
        """The certificate authority to trust the API server by."""
        return self._factory.ca_file

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator (group `system:masters`)."""
        return self._factory.kubeconfig

    @property
    def record(self) -> Path:
        """What Kerf asks of the API server, line by line; see the module `record`."""
        return self._factory.record

    @property
    def objects(self) -> Objects:
        """What is there: for who looks again and again."""
        return self._factory.objects

    def restart_apiserver(self) -> None:
        """Stop the API server and start it again at the same address; every watch and connection breaks."""
        self._restart(self._apiserver)

    def restart_etcd(self) -> None:
        """Stop etcd and start it again with its data; return when the API server serves from it again."""
        self._restart(self._etcd)
        self._apiserver.wait_ready()

    @contextmanager
    def down(self, program: str) -> Iterator[None]:
        """Kill `etcd` or `kube-apiserver` outright; after the block it is started again, with its address and data."""
        component = {"etcd": self._etcd, "kube-apiserver": self._apiserver}[program]
        component.kill()
        try:
            yield
        finally:
            self._start_again(component)
            self._apiserver.wait_ready()

    def forget_history(self) -> None:
        """Compact etcd to its present revision: who asks for what was before is told that it is gone (410).

        The API server's watch cache still knows the latest of it, until it is restarted.
        """
        self._factory.compact_etcd()

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
        check: bool = True,
        timeout: float = COMMAND_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator; with `check`, raise CalledProcessError with its stderr as a note.

        A read that the API server gives up (504: etcd is slow on a busy machine) is made again, `READS` times in all.
        """
        completed = self._run("kubectl", args, input, timeout)
        repeats = READS - 1 if args[0] == "get" else 0
        while repeats and completed.returncode != 0 and GIVEN_UP in completed.stderr:
            repeats -= 1
            time.sleep(1)
            completed = self._run("kubectl", args, input, timeout)
        return _checked(completed) if check else completed

    def helm(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
        check: bool = True,
        timeout: float = COMMAND_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run Helm as administrator, with caches and settings of its own."""
        completed = self._run("helm", args, input, timeout)
        return _checked(completed) if check else completed

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path, *, server: str = "") -> Path:
        """Write a kubeconfig for that service account, with a token of the kind that its pods would get.

        `server` is another address of the API server, such as a proxy's.
        """
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration", TOKEN_LIFETIME)
        return kubeconfig.write_for_token(path, server or self.server, self.ca_file, token.stdout.strip())

    @property
    def components(self) -> tuple[Component, ...]:
        """The programs, in the order in which they start."""
        return self._components

    def _start_components(self, group: ProcessGroup) -> None:
        self._factory = ComponentFactory(self.folder, self.binaries, self._options)
        self._etcd, self._apiserver = self._factory.etcd(), self._factory.apiserver()
        clients = self._factory.controller_manager(), self._factory.scheduler(), self._factory.kwok()
        self._components = (self._etcd, self._apiserver, *clients)
        for component in (self._etcd, self._apiserver):
            component.start(group.id)
            component.wait_ready()
        for component in clients:
            component.start(group.id)
        for component in clients:
            component.wait_ready()
        # Until this account exists, no pod can be created in its namespace.
        wait_until(self._default_account_exists, lambda: "the default service account did not appear")

    def _default_account_exists(self) -> bool:
        return self.kubectl("get", "serviceaccount", "default", check=False).returncode == 0

    def _restart(self, component: Component) -> None:
        if self._group is None:
            raise RuntimeError("the control plane is not running")
        component.stop()
        self._start_again(component)

    def _start_again(self, component: Component) -> None:
        if self._group is None:
            raise RuntimeError("the control plane is not running")
        since = record.now()
        component.start(self._group.id)
        component.wait_ready()
        if component is self._apiserver:
            record.mark(self.record, since, None)

    def _run(
        self, program: str, args: Sequence[str], text: str | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.binaries / program), *args]
        return subprocess.run(
            command, input=text, check=False, timeout=timeout, capture_output=True, text=True, env=self._environment()
        )

    def _environment(self) -> dict[str, str]:
        # A home of their own: neither program may read or write the developer's settings and caches.
        own = {"HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig)}
        own |= {f"HELM_{kind}_HOME": str(self.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return {**os.environ, **own}


def _checked(completed: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The same, if it succeeded. Raises CalledProcessError with the program's stderr as a note."""
    if completed.returncode != 0:
        error = subprocess.CalledProcessError(completed.returncode, completed.args, completed.stdout, completed.stderr)
        error.add_note(completed.stderr)
        raise error
    return completed
