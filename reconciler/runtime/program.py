"""`kerf run`: the controller as a process. Puts the parts together, serves probes and metrics, leads, and ends well."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from reconciler.aws.pace import Pace
from reconciler.kube.client import KubeClient
from reconciler.model.kinds import Kind
from reconciler.runtime import connecting, health, signals
from reconciler.runtime.announcing import Announcer
from reconciler.runtime.certificates import WebhookCertificate
from reconciler.runtime.clock import SystemClock
from reconciler.runtime.connecting import NAMESPACE_FILE, Where
from reconciler.runtime.controller import Controller
from reconciler.runtime.karpenter import KarpenterLeases, Obstacle
from reconciler.runtime.leader import Leader, own_identity
from reconciler.runtime.leases import LeaseName
from reconciler.runtime.settings import Options, SettingsError
from reconciler.telemetry.clouds import MeasuredCloud
from reconciler.telemetry.events import EventWriter
from reconciler.telemetry.logs import LEVELS, Logger, make_logger
from reconciler.telemetry.metrics import Metrics
from reconciler.telemetry.precedence import Precedence
from reconciler.telemetry.telemetry import Telemetry
from reconciler.telemetry.turns import KEPT

#: Actions under way may take so long to end when the process is asked to; Kubernetes kills after 30 s.
GRACE_SECONDS = 20.0
CERTIFICATES_EVERY = timedelta(hours=1)
CERTIFICATES_AGAIN = timedelta(seconds=10)
#: New objects before the collector looks at the young; how often it then looks at older ones, and (never) at all.
COLLECTOR_THRESHOLDS = (2_000, 5, 1_000_000)
COLLECT_EVERY_SECONDS = 300.0
#: A loop that has not looked for this long is stuck, and liveness says so.
STUCK_AFTER = timedelta(minutes=5)


def run(options: Options, where: Where, stop: threading.Event | None = None) -> int:
    """Run until a signal comes or the lease is lost; the exit code. Raises SettingsError, PortError at start."""
    stream = sys.stderr if options.log_output_paths == "stderr" else sys.stdout
    log = make_logger(options.log_level if options.log_level in LEVELS else "info", stream)
    stop = stop or threading.Event()
    process = Process(options, where, log, stop)
    signals.heed(process.ask_to_stop)
    return process.run()


class Process:
    """The parts, put together."""

    def __init__(
        self,
        options: Options,
        where: Where,
        log: Logger,
        stop: threading.Event,
        *,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._options, self._log, self._stop, self._grace_seconds = options, log, stop, grace_seconds
        #: Whether a thread died of a bug; set when nothing is under way any more, and the lease need not be renewed.
        self._broken, self._ended = False, threading.Event()
        self._clock, self._identity, self._precedence = SystemClock(), own_identity(), Precedence()
        self._metrics = Metrics().with_process()
        self._kube = self._client(where)
        events = EventWriter(
            self._kube, self._clock, threaded=True, on_error=lambda error: self._telemetry.event_failed(error)
        )
        kept = KEPT if options.enable_profiling else 0
        single_pods = not options.disable_cluster_state_observability
        self._telemetry = Telemetry(log, self._metrics, events, self._clock, turns_kept=kept, single_pods=single_pods)
        self._leader = None if options.disable_leader_election else self._election()
        self._karpenter = KarpenterLeases(self._kube, self._clock, self._karpenter_leases(), self._own_lease)
        self._controller = Controller(
            kube=self._kube,
            cloud=self._cloud(),
            clock=self._clock,
            settings=options.settings,
            telemetry=self._telemetry,
            may_act=self._may_act,
            precedence=self._precedence,
        )

    def ask_to_stop(self) -> None:
        self._stop.set()
        self._controller.inbox.wake()

    def run(self) -> int:
        """Until asked to stop, or not whole any more; the exit code."""
        servers = self._serve()
        self._controller.start()
        lead = self._thread("lead", self._lead)
        threads = [
            self._thread("karpenter", self._watch_karpenter),
            self._thread("certificates", self._keep_certificates),
            self._thread("collector", self._keep_collector_quiet),
        ]
        self._log.info("starting", cluster=self._options.cluster_name, server=self._kube.server)
        self._say_what_is_special()
        try:
            self._controller.run(self._stop, on_sync=_put_aside)
        finally:
            lost = self._leader is not None and self._leader.lost
            self._give_up(lead)
            self._end(threads, servers)
        return 1 if lost or self._broken else 0

    def _say_what_is_special(self) -> None:
        """Settings of which an operator should know that they were understood, and how far they go."""
        if rows := self._options.scheduler_config:
            told = [{"topologyKey": row.topology_key, "whenUnsatisfiable": row.when_unsatisfiable} for row in rows]
            self._log.info("default spread constraints apply to pods that have none", constraints=told)
        if not self._options.ignore_dra_requests:
            self._log.info(
                "pods with resource claims are placed where they can have their devices: DeviceClasses, ResourceSlices "
                "and ResourceClaims are watched"
            )

    def _give_up(self, lead: threading.Thread) -> None:
        """The lease, as soon as nothing is under way any more: from then on another may act."""
        self._log.info("stopping")
        self._stop.set()
        finished = self._controller.finish(self._grace_seconds)
        self._ended.set()
        lead.join(5.0)
        if not finished:
            self._log.error("requests are under way still: the lease is not given up, and runs out by itself")
        elif self._leader is not None:
            self._leader.release()

    def _end(self, threads: list[threading.Thread], servers: list[health.Server]) -> None:
        self._controller.close()
        for thread in threads:
            thread.join(5.0)
        for server in servers:
            server.close()

    # --- parts --------------------------------------------------------------------------------------------------
    def _client(self, where: Where) -> KubeClient:
        def poisoned(kind: Kind, problem: str) -> None:
            self._metrics.errors.labels(f"decode/{kind.name}").inc()
            self._log.error("an object cannot be read", kind=kind.name, error=problem)

        return connecting.client(self._options, where, poisoned)

    def _cloud(self) -> MeasuredCloud:
        pace = Pace(
            self._options.ec2_request_rate,
            held=lambda family, seconds: self._metrics.ec2_held.labels(family).inc(seconds),
            refused=lambda family: self._metrics.ec2_refused.labels(family).inc(),
        )
        cloud = connecting.cloud(self._options, self._kube, self._clock, self._precedence.give_way, pace)
        return MeasuredCloud(cloud, self._metrics)

    @property
    def _namespace(self) -> str:
        if self._options.system_namespace:
            return self._options.system_namespace
        return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else ""

    @property
    def _own_lease(self) -> LeaseName | None:
        """The lease that we vie for, if we do."""
        options, namespace = self._options, self._options.leader_election_namespace or self._namespace
        if options.disable_leader_election or not namespace:
            return None
        return LeaseName(namespace, options.leader_election_name)

    def _election(self) -> Leader:
        own = self._own_lease
        if own is None:
            raise SettingsError(["LEADER_ELECTION_NAMESPACE (--leader-election-namespace): is required outside a pod"])

        def failed(error: Exception) -> None:
            self._telemetry.trouble("leader election failed", "", error)

        return Leader(self._kube, self._clock, own.namespace, own.name, self._identity, failed)

    def _karpenter_leases(self) -> set[LeaseName]:
        """Where a Karpenter controller may be: the places set, our own namespace, and the lease that we vie for."""
        options, own = self._options, self._own_lease
        spaces = (options.leader_election_namespace, self._namespace)
        named = {LeaseName(space) for space in spaces if space} | ({own} if own is not None else set())
        return named.union(options.karpenter_leases)

    def _may_act(self) -> bool:
        return (self._leader is None or self._leader.may_act()) and self._karpenter.may_act()

    def _serve(self) -> list[health.Server]:
        probes = {"/healthz": health.check(self._stuck), "/readyz": health.check(self._unready, self._remark)}
        metrics = {"/metrics": health.metrics(partial(self._metrics.text, self._precedence.give_way))}
        if self._options.enable_profiling:
            metrics["/debug/turns"] = lambda: (200, "application/json", self._telemetry.turns.as_json())
        if self._options.metrics_port == self._options.health_probe_port != 0:
            return [_server("METRICS_PORT (--metrics-port)", self._options.metrics_port, {**metrics, **probes})]
        servers = [
            _server("METRICS_PORT (--metrics-port)", self._options.metrics_port, metrics),
            _server("HEALTH_PROBE_PORT (--health-probe-port)", self._options.health_probe_port, probes),
        ]
        self._log.info("serving", metrics=servers[0].port, probes=servers[1].port)
        return servers

    def _stuck(self) -> str:
        looked = self._controller.looked_at
        return "the loop is stuck" if self._clock.now() - looked > STUCK_AFTER else ""

    def _unready(self) -> str:
        missing = self._controller.missing()
        if missing:
            return f"not listed yet: {', '.join(missing)}"
        return "; ".join(str(one) for one in self._karpenter.obstacles() if not one.holder)

    def _remark(self) -> str:
        """A replica that only watches is ready to take over."""
        return "; ".join(f"only watching: {one}" for one in self._karpenter.obstacles())

    # --- threads ------------------------------------------------------------------------------------------------
    def _thread(self, name: str, body: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(name, body), name=name, daemon=True)
        thread.start()
        return thread

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        """A process that lacks a part might hold the lease and do nothing: it ends, and its pod starts it anew."""
        try:
            body()
        except Exception as error:
            self._broken = True
            self.ask_to_stop()
            self._telemetry.trouble("a thread died of a bug", name, error, thread=name)

    def _lead(self) -> None:
        gauge = self._metrics.leading.labels(self._options.leader_election_name)
        if self._leader is None:
            gauge.set(1)
            return

        def changed(leading: bool) -> None:
            gauge.set(1 if leading else 0)
            self._log.info("leading" if leading else "not leading any more")
            self._controller.inbox.wake()

        self._leader.run(self._ended, changed)
        if self._leader.lost:
            self.ask_to_stop()

    def _watch_karpenter(self) -> None:
        announcer = Announcer(self._kube, self._telemetry, self._identity, self._karpenter.leases)

        def changed(obstacles: tuple[Obstacle, ...]) -> None:
            announcer.tell(obstacles)
            self._controller.inbox.wake()

        self._karpenter.run(self._stop, changed)

    def _keep_collector_quiet(self) -> None:
        """A full collection in a large cluster stops all threads for some 0.3 s: it never comes by itself.

        Here is looked at what is new since the last time, and then put aside.
        """
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        while not self._stop.wait(COLLECT_EVERY_SECONDS):
            _put_aside()

    def _keep_certificates(self) -> None:
        options = self._options
        if not options.webhook_service:
            return
        keeper = WebhookCertificate(
            self._kube,
            namespace=self._namespace,
            service=options.webhook_service,
            secret=options.webhook_cert_secret,
            configuration=options.webhook_configuration,
        )
        while not self._stop.is_set():
            self._stop.wait(self._keep_once(keeper).total_seconds())

    def _keep_once(self, keeper: WebhookCertificate) -> timedelta:
        """When to look again."""
        if self._leader is not None and not self._leader.may_act():
            return CERTIFICATES_AGAIN
        try:
            if keeper.keep(self._clock.now()):
                self._log.info("wrote the webhook's certificate", Secret={"name": self._options.webhook_cert_secret})
        except Exception as error:  # the webhook's trouble must not become the controller's
            self._telemetry.trouble("keeping the webhook's certificate failed", "", error)
            return CERTIFICATES_AGAIN
        return CERTIFICATES_EVERY


def _server(setting: str, port: int, routes: Mapping[str, Callable[[], health.Answer]]) -> health.Server:
    """A server on the port that a setting names. Raises SettingsError."""
    try:
        return health.Server(port, routes)
    except (OSError, OverflowError) as error:
        raise SettingsError([f"{setting}: {port} cannot be served: {error}"]) from error


def _put_aside() -> None:
    """What is there stays, mostly; the garbage collector need not walk it over and over."""
    gc.collect()
    gc.freeze()
