"""The command line of every program in the control plane, and how to ask each one whether it is ready.

Everything listens on the loopback interface only. The scheduler and the controller manager get far higher request
rates than their defaults, which are meant for clusters of many machines; with the defaults, creating pods would be the
slowest part of every test.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from . import kubeconfig, record
from .certificates import CertificateAuthority, KeyPair, write_signing_key
from .objects import Objects
from .processes import Component, free_ports
from .stages import STOPPED_LABEL, KubeletDelays, write_stages

API_RATE: Final = ("--kube-api-qps=2000", "--kube-api-burst=4000")
ADMINISTRATOR: Final = "kerf:admin"
PROBE_SECONDS: Final = 2.0
COMPACTION_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 40


@dataclass(frozen=True, slots=True)
class Options:
    """What a test may choose about its control plane."""

    audit_log: Path | None = None
    delays: KubeletDelays = field(default_factory=KubeletDelays)
    node_monitor_grace_seconds: int = 120
    extra_flags: Mapping[str, Sequence[str]] | None = None


class ComponentFactory:
    """Lays out one control plane in a folder (ports, certificates, log files) and makes its components."""

    def __init__(self, folder: Path, binaries: Path, options: Options) -> None:
        self._folder, self._binaries, self._options = folder, binaries, options
        self._etcd_port, self._etcd_peer_port, self._api_port, self._kcm_port, self._scheduler_port, self._kwok_port = (
            free_ports(6)
        )
        self._authority = CertificateAuthority(folder)
        self._serving = self._authority.server("kube-apiserver")
        self._admin = self._authority.client(ADMINISTRATOR, "system:masters")
        self._signing_key = write_signing_key(folder / "service-accounts.key")
        self.server: Final = f"https://127.0.0.1:{self._api_port}"
        self.ca_file: Final = self._authority.certificate
        self.kubeconfig: Final = self._kubeconfig("admin", self._admin)
        self.record: Final = record.path_for(folder)
        self._tls = ssl.create_default_context(cafile=str(self.ca_file))
        self._tls.load_cert_chain(self._admin.certificate, self._admin.key)
        self.objects: Final = Objects(self.server, self._tls)

    def etcd(self) -> Component:
        """The store. It never syncs to disk: losing its data with the machine is no loss."""
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._etcd_peer_port))
        flags = [
            "--name=kerf",
            f"--data-dir={self._folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=kerf={peer}",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ]
        return self._component("etcd", flags, f"{client}/health")

    def apiserver(self) -> Component:
        """The API server, with RBAC in force and tokens for service accounts."""
        flags = [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._api_port}",
            *self._serving_flags(),
            f"--client-ca-file={self.ca_file}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-signing-key-file={self._signing_key}",
            f"--service-account-key-file={self._signing_key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",  # a loopback address must not become an Endpoint
            "--enable-aggregator-routing",  # webhooks of Services go to their endpoints: there is no kube-proxy
            "--allow-privileged",
            *self._audit_flags(),
        ]
        return self._component("kube-apiserver", flags, f"{self.server}/readyz")

    def controller_manager(self) -> Component:
        """All of Kubernetes' usual controllers, each acting as its own service account."""
        config = self._client_kubeconfig("system:kube-controller-manager")
        flags = [
            *self._controller_flags(config, self._kcm_port),
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.ca_file}",
            # Patient by default: a busy machine that renews a lease late must not make healthy nodes Unknown.
            f"--node-monitor-grace-period={self._options.node_monitor_grace_seconds}s",
        ]
        return self._component("kube-controller-manager", flags, f"https://127.0.0.1:{self._kcm_port}/healthz")

    def scheduler(self) -> Component:
        """The real scheduler in its default configuration."""
        config = self._client_kubeconfig("system:kube-scheduler")
        flags = self._controller_flags(config, self._scheduler_port)
        return self._component("kube-scheduler", flags, f"https://127.0.0.1:{self._scheduler_port}/healthz")

    def kwok(self) -> Component:
        """The kubelets of all nodes, except of those that are labelled as having none."""
        flags = [
            f"--kubeconfig={self._client_kubeconfig('kerf:kwok', 'system:masters')}",
            f"--config={write_stages(self._folder / 'kwok.yaml', self._options.delays)}",
            f"--manage-nodes-with-label-selector=!{STOPPED_LABEL}",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            "--cidr=10.244.0.0/14",  # of pods; and for nodes registered without any address:
            "--node-ip=192.0.2.1",
            f"--server-address=127.0.0.1:{self._kwok_port}",
        ]
        return self._component("kwok", flags, f"http://127.0.0.1:{self._kwok_port}/healthz")

    def compact_etcd(self) -> None:
        """Let etcd forget every revision but the present one. Source: etcd's gRPC gateway, /v3/kv."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv"
        revision = _post(f"{url}/range", {"key": "AA=="})["header"]["revision"]
        _post(f"{url}/compaction", {"revision": revision, "physical": True})

    def _component(self, name: str, flags: Sequence[str], health_url: str) -> Component:
        extra = (self._options.extra_flags or {}).get(name, ())
        command = [str(self._binaries / name), *flags, *extra]
        environment = {"HOME": str(self._folder), "PATH": "/usr/bin:/bin"}
        return Component(name, command, self._folder / f"{name}.log", environment, lambda: self._healthy(health_url))

    def _healthy(self, url: str) -> bool:
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        try:
            with urllib.request.build_opener(*handlers).open(url, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _serving_flags(self) -> list[str]:
        return [f"--tls-cert-file={self._serving.certificate}", f"--tls-private-key-file={self._serving.key}"]

    def _controller_flags(self, config: Path, port: int) -> list[str]:
        return [
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *self._serving_flags(),
            "--leader-elect=false",
            *API_RATE,
        ]

    def _audit_flags(self) -> list[str]:
        """One API server writes one log: of everything where that is asked for, else what `record` keeps."""
        log, policy = self._options.audit_log, {**record.POLICY, "rules": [{"level": "Metadata"}]}
        if log is None:
            log, policy = self.record, record.POLICY
        path = self._folder / "audit-policy.json"
        path.write_text(json.dumps(policy))
        return [f"--audit-policy-file={path}", f"--audit-log-path={log.resolve()}"]

    def _client_kubeconfig(self, user: str, *groups: str) -> Path:
        return self._kubeconfig(user.rpartition(":")[2], self._authority.client(user, *groups))

    def _kubeconfig(self, name: str, client: KeyPair) -> Path:
        path = self._folder / f"{name}.kubeconfig"
        return kubeconfig.write_for_certificate(path, self.server, self.ca_file, client)


def _post(url: str, given: dict[str, Any]) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, json.dumps(given).encode(), timeout=COMPACTION_SECONDS) as answer:
        return json.loads(answer.read())
