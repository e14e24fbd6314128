"""Kerf installed as a user would: both charts by Helm on the real control plane, controller and webhook as processes.

The processes run with the chart's own ServiceAccount tokens, so the API server enforces the chart's roles on each
call. AWS is a moto server (see `moto_aws`), and the bootstrapper turns its instances into Nodes.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.model.aws.cloud import Region
from kerf.runtime.observe import looking
from tests.sources import ROOT

from . import grants, record
from .answers import asked
from .bootstrapper import Bootstrapper
from .certificates import CertificateAuthority
from .control_plane import ControlPlane
from .moto_aws import MotoAws
from .moto_aws.settings import FAMILIES
from .pressure import processor_waits
from .processes import free_ports
from .proxy import Proxy

NAMESPACE: Final = record.KERF
CLUSTER_NAME: Final = "kerf-e2e"
#: The lease of the replicas, in Kerf's own namespace.
LEASE: Final = "karpenter-leader-election"
LEASE_LOST: Final = '"not leading any more"'
#: Seconds until DescribeInstances shows a new instance.
DESCRIBE_DELAY: Final = 3.0
#: Source: Kubernetes, "Pod Lifecycle", container restarts (CrashLoopBackOff).
RESTART_SECONDS: Final = 10.0
#: Tests delete what they have made, many at once, and wait for its end: who tests the guard says so.
_UNGUARDED: Final = {"settings.deletionGuardWait": "0s", "webhook.deletionGuard": "false"}
KERF: Final = (sys.executable, "-m", "kerf.cli.main")


class Installation:
    """A running Kerf; a context manager. `kubectl` and `helm` are the control plane's, as administrator.

    Without `webhook` the charts are those of a cluster: the webhook is a Service there, whose certificate the
    controller makes. Its pods do not run here, so nobody answers for it.

    With `proxied` the controllers reach both the API server and AWS through `proxy`, and nobody else does. With
    `kept_running` a process that ends by itself is started again, as by a kubelet (while somebody waits, see
    `wait`). `values` are further values of the chart. An instance boots for `boot_seconds` and up to
    `uneven_seconds`, and is shutting down for `shutting_down` seconds. Without `controller` the charts are
    installed and the webhook runs, but no controller, and there is no AWS. Files of `definitions` are applied
    instead of the chart `kerf-crd`.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        folder: Path,
        *,
        webhook: bool = True,
        families: tuple[str, ...] = FAMILIES,
        proxied: bool = False,
        kept_running: bool = False,
        values: Mapping[str, str] = {},
        boot_seconds: float = 1.0,
        uneven_seconds: float = 0.0,
        shutting_down: float = 0.5,
        controller: bool = True,
        definitions: Sequence[Path] = (),
    ) -> None:
        self.control_plane, self._folder, self._webhook, self._values = control_plane, folder, webhook, values
        ca = base64.b64encode(control_plane.ca_file.read_bytes()).decode()
        own: dict[str, Any] = {"describe_delay": DESCRIBE_DELAY, "shutting_down": shutting_down}
        self.aws = MotoAws(cluster_name=CLUSTER_NAME, families=families, ca_bundle=ca, **own)
        self._proxied, self._kept_running = proxied, kept_running
        self._boots = boot_seconds, uneven_seconds
        self._controller, self._definitions = controller, definitions
        #: The processes that have ended by themselves, one entry each time.
        self.ended: list[str] = []
        self._restarts: dict[str, float] = {}
        self._arguments: dict[str, tuple[str, ...]] = {}
        self._bootstrapper: Bootstrapper | None = None
        self._region: Region | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._webhook_port, self.metrics_port, self.health_port, self.debug_port = free_ports(4)
        self._settings: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._controller:
            self._start_aws()
        self._install_charts(self._chart_values())
        self._settings = self._chart_settings()
        if self._webhook:
            self.start_webhook()
        if self._controller:
            self.start_controller()
        return self

    def _start_aws(self) -> None:
        self.aws.start()
        if self._proxied:
            plane = self.control_plane
            self.proxy = Proxy(kube=plane.server, ca_file=plane.ca_file, aws=self.aws.endpoint_url)
            self.proxy.start()
        kubeconfig, (least, more) = self.control_plane.kubeconfig, self._boots
        self._bootstrapper = Bootstrapper(self.aws, kubeconfig, boot_seconds=least, uneven_seconds=more)
        self._bootstrapper.start()

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self._stop(name, signal.SIGTERM)
        if self._bootstrapper is not None:
            self._bootstrapper.stop()
        if self._proxied:
            self.proxy.stop()
        self.aws.stop()

    # --- installing ---------------------------------------------------------------------------------------------
    def _chart_values(self) -> dict[str, str]:
        """By path; they tie the chart to this control plane and, with a webhook, to the keys that are made for it."""
        authority = self._authority = CertificateAuthority(self._folder)
        self._webhook_keys = authority.server("kerf-webhook")
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        values = {
            "settings.clusterName": CLUSTER_NAME,
            "settings.clusterEndpoint": self.control_plane.server,
            "settings.interruptionQueue": CLUSTER_NAME,
            **_UNGUARDED,
            **self._values,
        }
        inside = {"webhook.timeoutSeconds": "1"}
        outside = {
            "webhook.url": f"https://127.0.0.1:{self._webhook_port}",
            "webhook.caBundle": bundle,
            "webhook.failurePolicy": "Fail",
        }
        return {**values, **(outside if self._webhook else inside)}

    def _install_charts(self, values: Mapping[str, str]) -> None:
        if self._definitions:
            self.kubectl("apply", "--server-side", *(f"--filename={path}" for path in self._definitions))
        else:
            self._install("kerf-crd")
        self._install("kerf", *(f"--set-string={path}={value}" for path, value in values.items()))

    def _install(self, chart: str, *flags: str) -> None:
        """Install, or bring to these values what an earlier test installed."""
        where = ("--namespace", NAMESPACE, "--create-namespace")
        self.helm("upgrade", "--install", chart, str(ROOT / "charts" / chart), *where, *flags)

    def _chart_settings(self) -> dict[str, str]:
        """The environment that the chart gives to the controller's container."""
        pod = self.one("deployment", "kerf", NAMESPACE)["spec"]["template"]
        rows = pod["spec"]["containers"][0]["env"]
        return {**{r["name"]: r["value"] for r in rows if "value" in r}, "SYSTEM_NAMESPACE": NAMESPACE}

    def start_webhook(self) -> None:
        """Start the webhook, and wait until the API server is answered by it.

        It has its account's token, as no pod of it has: should it ever ask the API server for anything, that is seen.
        """
        own = {"KUBECONFIG": str(self.account("kerf-webhook"))}
        flags = ("--cert-file", str(self._webhook_keys.certificate), "--key-file", str(self._webhook_keys.key))
        bind = ("--bind", f":{self._webhook_port}")
        self._start("webhook", "webhook", *bind, *flags, environment=own)
        self.wait(self.webhook_answers, 30, "the webhook answers")

    def kill_webhook(self) -> None:
        """kill -9; the API server finds nobody at its address."""
        self._stop("webhook", signal.SIGKILL)

    def webhook_answers(self) -> bool:
        """Whether the API server accepts what the webhook has to allow."""
        done = self.control_plane.kubectl("apply", "--dry-run=server", "-f", "-", input=_PROBE, check=False)
        return done.returncode == 0

    def account(self, name: str = "kerf") -> Path:
        """A kubeconfig with a token of the chart's ServiceAccount, of the controller by default."""
        path, server = self._folder / f"{name}.kubeconfig", self.proxy.kube_url if self._proxied else ""
        return self.control_plane.service_account_kubeconfig(NAMESPACE, name, path, server=server)

    def start_controller(self, *extra: str, name: str = "controller") -> None:
        """Start the controller as a user outside the cluster would, with the chart's ServiceAccount's token.

        One of another `name` is another replica; it serves on ports of its own.
        """
        own = (self.metrics_port, self.health_port, self.debug_port)
        metrics, health, debug = own if name == "controller" else free_ports(3)
        ports = ("--metrics-port", str(metrics), "--health-probe-port", str(health), "--debug-port", str(debug))
        self._start(name, "run", "--kubeconfig", str(self.account()), *ports, *extra)

    def kill_controller(self, name: str = "controller") -> None:
        """kill -9, as a node that dies."""
        self._stop(name, signal.SIGKILL)

    def stop_controller(self, name: str = "controller") -> int | None:
        """SIGTERM, as a rolling update; the exit code, or None when none was running."""
        return self._stop(name, signal.SIGTERM)

    def ask_to_stop(self, name: str = "controller") -> subprocess.Popen[bytes]:
        """SIGTERM, without waiting for the end; the process, which nobody looks after any more."""
        process = self._processes.pop(name)
        process.terminate()
        return process

    def _start(self, name: str, *arguments: str, environment: Mapping[str, str] = {}) -> None:
        self._arguments[name] = arguments
        env = {**self._environment(), **environment}
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                (*KERF, *arguments), cwd=ROOT, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _look_after(self, name: str) -> None:
        """Start what has ended by itself or lost its lease: at once, then after 10 s, 20 s, …, as a kubelet does."""
        assert self._kept_running or LEASE_LOST in self.tail(name, 5), f"{name} ended:\n{self.tail(name)}"
        if name not in self._restarts:
            before = self.ended.count(name)
            self._restarts[name] = time.monotonic() + (RESTART_SECONDS * 2 ** (before - 1) if before else 0.0)
            self.ended.append(name)
        if time.monotonic() >= self._restarts[name]:
            del self._restarts[name]
            self._start(name, *self._arguments[name])

    def _stop(self, name: str, how: signal.Signals) -> int | None:
        process = self._processes.pop(name, None)
        if process is None:
            return None
        process.send_signal(how)
        try:
            return process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _environment(self) -> dict[str, str]:
        aws = self.aws.environment() | ({"AWS_ENDPOINT_URL": self.proxy.aws_url} if self._proxied else {})
        return {**os.environ, **aws, **self._settings}

    def log(self, name: str) -> Path:
        """What a process wrote."""
        return self._folder / f"{name}.log"

    def pid(self, name: str = "controller") -> int:
        """Of a process that was started and not stopped since."""
        return self._processes[name].pid

    # --- its rights ---------------------------------------------------------------------------------------------
    def rules(self) -> list[dict[str, Any]]:
        """What the chart's ClusterRole allows the controller now."""
        return list(self.one("clusterrole", "kerf")["rules"])

    @contextmanager
    def allowed_only(self, rules: list[dict[str, Any]]) -> Iterator[None]:
        """The controller may do no more than this; after the block, what it might before."""
        before = self.rules()
        with self.refused(grants.lost(before, rules)):
            self._allow(rules)
            try:
                yield
            finally:
                self._allow(before)

    @contextmanager
    def refused(self, missing: record.Rules) -> Iterator[None]:
        """What is asked for and is among these is meant to be refused."""
        since = record.now()
        try:
            yield
        finally:
            record.mark(self.control_plane.record, since, missing)

    def _allow(self, rules: list[dict[str, Any]]) -> None:
        self.kubectl("patch", "clusterrole", "kerf", "--type=merge", "-p", json.dumps({"rules": rules}))

    # --- looking ------------------------------------------------------------------------------------------------
    def kubectl(self, *arguments: str, input_: str | None = None, check: bool = True) -> str:
        done = self.control_plane.kubectl(*arguments, input=input_, check=check)
        return done.stdout + ("" if check else done.stderr)

    def helm(self, *arguments: str) -> str:
        return self.control_plane.helm(*arguments).stdout

    def kerf(self, *arguments: str, code: int = 0) -> str:
        """What a command of ours prints for somebody with this AWS account and these settings; it exits so."""
        command, environment = (*KERF, *arguments), self._environment()
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    def get(self, kinds: str, *, namespace: str = "default", selector: str = "") -> list[dict[str, Any]]:
        """Objects of one or more kinds; see `Objects.list`."""
        return self.control_plane.objects.list(kinds, namespace=namespace, selector=selector)

    def one(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """An object that is there."""
        return self.control_plane.objects.read(kind, name, namespace)

    def running(self, app: str = "web") -> set[str]:
        """UIDs of the pods that run and stay."""
        pods = self.get("pods", selector=f"app={app}")
        alive = [p for p in pods if p["status"].get("phase") == "Running" and "deletionTimestamp" not in p["metadata"]]
        return {p["metadata"]["uid"] for p in alive}

    def events(self, reason: str) -> list[str]:
        """The messages of all events of that reason."""
        return [event["message"] for event in self.get("events", namespace="") if event["reason"] == reason]

    def holder(self) -> str:
        """Which replica leads; empty when none does."""
        leases = self.get("leases", namespace=NAMESPACE)
        return next((x["spec"].get("holderIdentity", "") for x in leases if x["metadata"]["name"] == LEASE), "")

    def readiness(self, port: int = 0, host: str = "127.0.0.1") -> tuple[int, str]:
        """What a replica, by default the first, answers when it is asked whether it is ready; (0, "") for nothing."""
        return asked(port or self.health_port, "/readyz", host=host)

    def metrics(self, port: int = 0, host: str = "127.0.0.1") -> str:
        """All that a replica, by default the first, tells Prometheus; empty while nobody answers."""
        return asked(port or self.metrics_port, "/metrics", host=host)[1]

    def webhook_metrics(self, host: str = "127.0.0.1") -> str:
        """The same of the webhook, whose certificate is for the API server; empty while nobody answers."""
        return asked(self._webhook_port, "/metrics", host=host, context=ssl._create_unverified_context())[1]

    def metric(self, name: str) -> float:
        """The sum of the series whose text begins so; 0 also while nobody answers."""
        return sum(float(line.rpartition(" ")[2]) for line in self.metrics().splitlines() if line.startswith(name))

    def running_instances(self) -> list[dict[str, Any]]:
        """Instances that are pending or running, as `MotoAws.instances` tells them."""
        return self.aws.instances("pending", "running")

    def region(self) -> Region:
        """Types and prices that this AWS quotes, asked once."""
        if self._region is None:
            aws = self.aws
            cloud = AwsCloud(
                AwsOptions(
                    cluster_name=CLUSTER_NAME, region=aws.region, session=aws.session(), endpoint_url=aws.endpoint_url
                )
            )
            self._region = looking.region(cloud)
        return self._region

    def price(self, instance_type: str, zone: str, capacity_type: str) -> int:
        """In millionths of a dollar per hour."""
        region = self.region()
        return region.spot[(instance_type, zone)] if capacity_type == "spot" else region.on_demand[instance_type]

    def cost_usd_per_hour(self) -> float:
        """What the running instances cost at the prices that this AWS quotes."""
        rows = self.running_instances()
        return sum(self.price(i["instance_type"], i["zone"], i["capacity_type"]) for i in rows) / 1e6

    def wait(self, reached: Callable[[], bool], seconds: float, what: str) -> float:
        """Wait until it is so; the seconds it took. Fails with the end of the controller's log when it is not.

        Time in which processes of the machine waited for a processor is given in addition, up to three times as much:
        tests run side by side, and a bound is to end a test that hangs.
        """
        begun, waited = time.monotonic(), processor_waits()
        while not reached():
            for name, process in list(self._processes.items()):
                if process.poll() is not None:
                    self._look_after(name)
            given = seconds + min(processor_waits() - waited, 3 * seconds)
            assert time.monotonic() - begun < given, f"not within {given:.0f} s: {what}\n{self.tail('controller')}"
            time.sleep(0.25)
        return time.monotonic() - begun

    def tail(self, name: str, lines: int = 40) -> str:
        """The end of a process's log."""
        log = self.log(name)
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


_PROBE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: probe}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: probe}
      requirements: []
"""
