"""`kerf run`: the controller as a process. Puts the parts together, serves probes and metrics, leads, and ends well."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from types import MappingProxyType

from kerf.aws.requests.pace import Pace
from kerf.kube.client import KubeClient
from kerf.model.kinds import Kind
from kerf.ports import Ports
from kerf.runtime import status
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import VersionNoted
from kerf.runtime.leadership.announcing import Announcer
from kerf.runtime.leadership.karpenter import KarpenterLeases, Obstacle
from kerf.runtime.leadership.leader import Candidate, Leader, own_identity
from kerf.runtime.leadership.leading import Leading
from kerf.runtime.leadership.leases import LeaseName
from kerf.runtime.observe.answer_times import AnswerTimes
from kerf.runtime.parts import Parts
from kerf.runtime.preflight import served
from kerf.runtime.process import collecting, connecting, debugging, health, saving, signals
from kerf.runtime.process.clock import SteadyClock, SystemClock
from kerf.runtime.process.connecting import Where
from kerf.runtime.process.log_level import LogLevel
from kerf.runtime.recording.starting import Recording
from kerf.runtime.secrets.keepers import Keepers
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import DEFAULT, Effective, SettingsError
from kerf.runtime.status import Replica, Status
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log import libraries
from kerf.telemetry.log.logs import Logger, Threshold, make_logger
from kerf.telemetry.log.sinks import Sinks
from kerf.telemetry.precedence import Precedence
from kerf.telemetry.series import build
from kerf.telemetry.series.clouds import MeasuredCloud
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.requests import AwsRequests, KubeRequests
from kerf.telemetry.telemetry import Telemetry
from kerf.telemetry.turns import KEPT

#: Actions under way may take so long to end when the process is asked to; Kubernetes kills after 30 s.
GRACE_SECONDS = 20.0
#: Turns of the loop that are remembered for its status; how long who asks for that waits for the loop.
TURNS_KEPT, STATUS_SECONDS = 200, 5.0
#: A loop that has not looked for this long is stuck, and liveness says so.
STUCK_AFTER = timedelta(minutes=5)


def run(options: Options, where: Where, told: Sequence[Effective] = ()) -> int:
    """Run until a signal comes or the lease is lost; the exit code. Raises SettingsError, PortError at start.

    `told`: the settings and where they come from; those that a user set are logged.
    """
    built = build.commit(os.environ)
    threshold = Threshold(options.log_level)
    log = make_logger(threshold, _sinks(options), commit=built)
    libraries.route(log)
    if not built:
        log.info("this build does not say from which commit it was made")
    changed = {row.variable: row.logged for row in told if row.source != DEFAULT}
    log.info("effective settings", settings=changed)
    process = Process(options, where, log, threading.Event(), threshold=threshold)
    signals.heed(process.ask_to_stop)
    signals.show_stacks()
    return process.run()


def _sinks(options: Options) -> Sinks:
    """Raises SettingsError."""
    try:
        return Sinks(options.log_output_paths, options.log_error_output_paths)
    except OSError as error:
        raise SettingsError([f"LOG_OUTPUT_PATHS, LOG_ERROR_OUTPUT_PATHS: {error}"]) from error


class Process:
    """The parts, put together."""

    def __init__(
        self,
        options: Options,
        where: Where,
        log: Logger,
        stop: threading.Event,
        *,
        threshold: Threshold | None = None,
    ) -> None:
        """`threshold` is the log's, if its level is to be changed."""
        self._options, self._log, self._stop = options, log, stop
        #: Whether a thread died of a bug; set when nothing is under way any more, and the lease need not be renewed.
        self._broken, self._ended = False, threading.Event()
        self._clock, self._identity, self._precedence = SteadyClock(SystemClock()), own_identity(), Precedence()
        self._log_level = LogLevel(threshold or Threshold(), log)
        self._metrics = Metrics(details=options.detailed_metrics).with_process()
        self._answer_times = AnswerTimes(KubeRequests(self._metrics))
        self._kube = self._client(where)
        self._telemetry = self._reporting()
        self._keys, self._leads_now = LaunchKeys(options.cluster_name), threading.Event()
        self._karpenter = KarpenterLeases(self._kube, self._clock, self._karpenter_leases(), self._own_lease)
        self._leader = None if options.disable_leader_election else self._election()
        self._leading = Leading(self._leader, self._karpenter, self._clock)
        recording = options, connecting.bucket(options), self._telemetry, self._precedence.give_way
        self._recording = Recording(*recording, lambda: self._controller.state.catalogues.region)
        self._controller = Controller(
            Ports(kube=self._kube, cloud=self._cloud(), clock=self._clock),
            Parts(self._telemetry, self._recording.decide, precedence=self._precedence, keys=self._keys),
            settings=options.settings,
            may_act=self._leading.may_act,
        )
        self._controller.state.leading_since = self._leading.since
        waiting = self._metrics.news.labels(name="inbox", controller="loop", priority="")
        waiting.set_function(lambda: len(self._controller.inbox))

    def _reporting(self) -> Telemetry:
        events = EventWriter(
            self._kube,
            self._clock,
            threaded=True,
            on_error=lambda error: self._telemetry.event_failed(error),
            on_event=lambda type_, outcome: self._telemetry.event_tried(type_, outcome),
        )
        return Telemetry(
            self._log,
            self._metrics,
            events,
            self._clock,
            turns_kept=KEPT if self._options.enable_profiling else TURNS_KEPT,
            single_objects=not self._options.disable_cluster_state_observability,
            process=self._identity,
        )

    def ask_to_stop(self) -> None:
        self._stop.set()
        self._leads_now.set()
        self._controller.inbox.wake()

    def run(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Until asked to stop, or not whole any more; the exit code. Actions under way may take so long to end."""
        servers = self._serve()
        self._controller.start()
        lead = self._thread("lead", self._lead)
        keepers, controller = self._keepers(), self._controller
        launch_key = partial(
            keepers.launch_key,
            self._keys,
            earlier_key_in_use=lambda: controller.state.marks.earlier_key_in_use,
            changed=controller.inbox.wake,
            at_once=self._leads_now,
        )
        threads = [
            self._thread("definitions", partial(served.report, self._kube, self._log)),
            self._thread("karpenter", self._watch_karpenter),
            self._thread("certificates", keepers.certificates),
            self._thread("answers", partial(self._answer_times.report, controller.inbox, self._clock, self._stop)),
            self._thread("launch key", launch_key),
            self._thread("collector", partial(collecting.keep_quiet, self._stop)),
        ]
        self._log.info("starting", cluster=self._options.cluster_name, server=self._kube.server)
        self._say_what_is_special()
        try:
            self._controller.run(self._stop, on_sync=collecting.put_aside)
        finally:
            lost = self._leader is not None and self._leader.lost
            self._give_up(lead, grace_seconds)
            self._end(threads, servers)
        return 1 if lost or self._broken else 0

    def _say_what_is_special(self) -> None:
        """Settings of which an operator should know that they were understood, and how far they go."""
        if rows := self._options.scheduler_config:
            told = [{"topologyKey": row.topology_key, "whenUnsatisfiable": row.when_unsatisfiable} for row in rows]
            self._log.info("default spread constraints apply to pods that have none", constraints=told)
        if not self._options.ignore_dra_requests:
            self._log.info("pods with resource claims are placed; their DeviceClasses and ResourceSlices are watched")

    def _give_up(self, lead: threading.Thread, grace_seconds: float) -> None:
        """The lease, as soon as nothing is under way any more: from then on another may act."""
        self._log.info("stopping")
        self.ask_to_stop()
        finished = self._controller.finish(grace_seconds)
        self._ended.set()
        lead.join(5.0)
        if not finished:
            self._log.error("requests are under way still: the lease is not given up, and runs out by itself")
        elif self._leader is not None:
            self._leader.release()

    def _end(self, threads: list[threading.Thread], servers: list[health.Server]) -> None:
        self._controller.close()
        self._recording.close()
        self._log_level.close()
        for thread in threads:
            thread.join(5.0)
        for server in servers:
            server.close()

    # --- parts --------------------------------------------------------------------------------------------------
    def _client(self, where: Where) -> KubeClient:
        def poisoned(kind: Kind, problem: str) -> None:
            self._metrics.errors.labels(f"decode/{kind.name}").inc()
            self._log.error("an object cannot be read", kind=kind.name, error=problem)

        return connecting.client(
            self._options, where, poisoned, lambda text: self._telemetry.warned(text), self._answer_times
        )

    def _cloud(self) -> MeasuredCloud:
        pace = Pace(
            self._options.ec2_request_rate,
            held=lambda family, seconds: self._metrics.ec2_held.labels(family).inc(seconds),
            refused=lambda family: self._metrics.ec2_refused.labels(family).inc(),
        )
        told = AwsRequests(self._metrics)
        give_way = self._precedence.give_way
        cloud = connecting.cloud(self._options, self._kube, self._clock, give_way, pace, self._log, told.install)
        return MeasuredCloud(cloud, self._metrics)

    @property
    def _namespace(self) -> str:
        return self._options.system_namespace or connecting.own_namespace()

    @property
    def _own_lease(self) -> LeaseName | None:
        """The lease that we vie for, if we do."""
        options, namespace = self._options, self._options.leader_election_namespace or self._namespace
        if options.disable_leader_election or not namespace:
            return None
        return LeaseName(namespace, options.leader_election_name)

    def _election(self) -> Leader:
        if (own := self._own_lease) is None:
            raise SettingsError(["LEADER_ELECTION_NAMESPACE (--leader-election-namespace): is required outside a pod"])

        def failed(error: Exception) -> None:
            self._telemetry.trouble("leader election failed", "", error)

        def counted() -> str:
            return self._controller.state.known_cluster.version.counted

        return Leader(
            self._kube,
            self._clock,
            Candidate(own.namespace, own.name, self._identity),
            on_error=failed,
            kubernetes_version=counted,
            on_version=lambda version: self._controller.inbox.put(VersionNoted(version)),
            not_before=self._karpenter.last_led,
        )

    def _karpenter_leases(self) -> set[LeaseName]:
        """Where a Karpenter controller may be: the places set, our own namespace, and the lease that we vie for."""
        options, own = self._options, self._own_lease
        spaces = (options.leader_election_namespace, self._namespace)
        named = {LeaseName(space) for space in spaces if space} | ({own} if own is not None else set())
        return named.union(options.karpenter_leases)

    def _keepers(self) -> Keepers:
        return Keepers(
            kube=self._kube,
            clock=self._clock,
            options=self._options,
            namespace=self._namespace,
            log=self._log,
            telemetry=self._telemetry,
            leads=self._leading.has_lease,
            report=self._controller.report,
            stop=self._stop,
        )

    def _serve(self) -> list[health.Server]:
        probes = {"/healthz": health.check(self._stuck), "/readyz": health.check(self._unready, self._remark)}
        metrics = {"/metrics": health.metrics(partial(self._metrics.text, self._precedence.give_way))}
        turns = self._telemetry.turns.as_json
        profiles = debugging.of_profiling(turns) if self._options.enable_profiling else {}
        debug = self._debug()
        if self._options.metrics_port == self._options.health_probe_port != 0:
            both = {**metrics, **probes}
            return [_server("METRICS_PORT (--metrics-port)", self._options.metrics_port, both, profiles), *debug]
        servers = [
            _server("METRICS_PORT (--metrics-port)", self._options.metrics_port, metrics, profiles),
            _server("HEALTH_PROBE_PORT (--health-probe-port)", self._options.health_probe_port, probes),
        ]
        ports = {"debug": debug[0].port} if debug else {}
        self._log.info("serving", metrics=servers[0].port, probes=servers[1].port, **ports)
        return [*servers, *debug]

    def _debug(self) -> list[health.Server]:
        """Nothing that a controller needs: where the port is taken (by another one, on the network of a node) it runs
        without."""
        if self._options.debug_port < 0:
            return []
        asked = debugging.routes(self._status, self._snapshot, self._log_level, self._telemetry.turns.as_json)
        try:
            return [debugging.DebugServer(self._options.debug_port, asked, self._options.debug_token_file)]
        except (OSError, ValueError) as error:
            self._log.error("the debug port cannot be served", port=self._options.debug_port, error=error)
            return []

    def _status(self) -> Status:
        """Raises TimeoutError when the loop does not answer."""
        own, leader = self._own_lease, self._leader
        replica = Replica(
            identity=self._identity,
            version=version("kerf"),
            commit=build.commit(os.environ),
            log_level=self._log_level.level,
            leading=self._leading.may_act(),
            lease=str(own or ""),
            leader=self._identity if leader is None else leader.holder,
            in_the_way=tuple(f"only watching: {one}" for one in self._karpenter.obstacles()),
            recording=self._recording.problems(),
        )
        return status.of(replica, self._controller.questions.ask(self._controller.status, STATUS_SECONDS))

    def _snapshot(self) -> bytes:
        return saving.snapshot(self._controller, self._clock.now, STATUS_SECONDS, self._precedence.give_way)

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
        """A process that lacks a part might hold the lease and do nothing: it ends, and its pod starts it again."""
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
            self._leads_now.set()
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


def _server(
    setting: str,
    port: int,
    routes: Mapping[str, Callable[[], health.Answer]],
    asked: Mapping[health.Asked, Callable[[debugging.Query], health.Answer]] = MappingProxyType({}),
) -> health.Server:
    """A server on the port that a setting names. Raises SettingsError."""
    try:
        return health.Server(port, routes, asked=asked)
    except (OSError, OverflowError) as error:
        raise SettingsError([f"{setting}: {port} cannot be served: {error}"]) from error
