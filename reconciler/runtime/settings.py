"""Settings from flags and the environment, by Karpenter's names: a flag beats a variable, a variable the default.

Every mistake is reported at once, with the name of the setting and what would be right. A variable that cannot be read
is a mistake too (Karpenter falls back to the default without a word). Source: operations reference §1.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from api import durations
from reconciler.model.objects import TopologySpreadConstraint
from reconciler.model.settings import FeatureGates, Settings
from reconciler.runtime import scheduler_config
from reconciler.runtime.leases import KARPENTER, USUAL, LeaseName

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_GATES = {
    "NodeRepair": "node_repair",
    "ReservedCapacity": "reserved_capacity",
    "SpotToSpotConsolidation": "spot_to_spot_consolidation",
    "NodeOverlay": "node_overlay",
    "StaticCapacity": "static_capacity",
    "CapacityBuffer": "capacity_buffer",
}
#: Names that are accepted and mean nothing any more (or nothing yet).
_GATES_WITHOUT_EFFECT = frozenset({"Drift", "NodeClassCEL"})


class SettingsError(Exception):
    """What is wrong, all of it, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Help(Exception):
    """Someone asked for `--help`."""


# --- how values are read ----------------------------------------------------------------------------------------
def _text(value: str) -> str:
    return value


def _boolean(value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ValueError("must be true or false")


def _whole(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    def read(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if number < lowest or (highest is not None and number > highest):
            raise ValueError(f"must be at least {lowest}" if highest is None else f"must be {lowest} to {highest}")
        return number

    return read


def _share(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= number < 1:
        raise ValueError("must be at least 0 and less than 1")
    return number


def _seconds(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError("must be a number of seconds") from None
    if not 0 <= number <= 60:
        raise ValueError("must be at least 0 and at most 60 seconds")
    return number


def _duration(lowest: timedelta = timedelta(milliseconds=1)) -> Callable[[str], timedelta]:
    def read(value: str) -> timedelta:
        found = durations.parse_go(value)
        if found is None:
            raise ValueError("must be a duration such as 300ms, 10s or 1h30m")
        if found < lowest:
            raise ValueError(f"must be at least {durations.go_text(lowest)}")
        return found

    return read


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(a for a in allowed if a)}")
        return value

    return read


def _url(value: str) -> str:
    parts = urlsplit(value)
    if value and not (parts.scheme in ("http", "https") and parts.netloc):
        raise ValueError("must be a URL with scheme and host")
    return value


def _base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None
    return value


def _leases(value: str) -> tuple[LeaseName, ...]:
    return tuple(LeaseName.parse(part) for part in filter(None, (p.strip() for p in value.split(","))))


def _gates(value: str) -> FeatureGates:
    chosen: dict[str, bool] = {}
    for part in filter(None, (p.strip() for p in value.split(","))):
        name, equals, text = part.partition("=")
        if not equals or (text not in _TRUE and text not in _FALSE):
            raise ValueError(f"{part!r} is not of the form Name=true or Name=false")
        if name in _GATES:
            chosen[_GATES[name]] = text in _TRUE
        elif name not in _GATES_WITHOUT_EFFECT:
            raise ValueError(f"no gate is named {name!r}; there are {', '.join(sorted(_GATES))}")
    return FeatureGates(**chosen)


# --- the settings -----------------------------------------------------------------------------------------------
def _about(env: str, read: Callable[[str], Any], text: str) -> dict[str, Any]:
    """Of a field: its variable and flag, how its text is read, and a line of help."""
    return {"env": env, "flag": "--" + env.lower().replace("_", "-"), "read": read, "about": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that can be set. `settings` is the part that decisions depend on."""

    cluster_name: str = field(default="", metadata=_about("CLUSTER_NAME", _text, "name of the cluster; required"))
    cluster_endpoint: str = field(
        default="", metadata=_about("CLUSTER_ENDPOINT", _url, "the API server, for nodes; empty: ask EKS")
    )
    cluster_ca_bundle: str = field(
        default="", metadata=_about("CLUSTER_CA_BUNDLE", _base64, "base64 CA for nodes; empty: the one we use")
    )
    region: str = field(default="", metadata=_about("AWS_REGION", _text, "AWS region; empty: ask the SDK"))
    aws_endpoint_url: str = field(
        default="", metadata=_about("AWS_ENDPOINT_URL", _url, "another address for all AWS services")
    )
    interruption_queue: str = field(
        default="", metadata=_about("INTERRUPTION_QUEUE", _text, "name of the SQS queue; empty: none")
    )
    isolated_vpc: bool = field(
        default=False, metadata=_about("ISOLATED_VPC", _boolean, "no calls to services without a VPC endpoint")
    )
    eks_control_plane: bool = field(
        default=False, metadata=_about("EKS_CONTROL_PLANE", _boolean, "ask EKS for the cluster's details")
    )
    vm_memory_overhead_percent: float = field(
        default=0.075,
        metadata=_about("VM_MEMORY_OVERHEAD_PERCENT", _share, "share of memory that the hypervisor keeps"),
    )
    reserved_enis: int = field(
        default=0, metadata=_about("RESERVED_ENIS", _whole(0), "network interfaces left out of max-pods")
    )
    batch_max_duration: timedelta = field(
        default=timedelta(seconds=10),
        metadata=_about("BATCH_MAX_DURATION", _duration(), "longest batch of pending pods"),
    )
    batch_idle_duration: timedelta = field(
        default=timedelta(seconds=1),
        metadata=_about("BATCH_IDLE_DURATION", _duration(), "a batch ends after this long without a new pod"),
    )
    preference_policy: str = field(
        default="Respect",
        metadata=_about("PREFERENCE_POLICY", _one_of("Respect", "Ignore"), "soft constraints: Respect or Ignore"),
    )
    min_values_policy: str = field(
        default="Strict",
        metadata=_about("MIN_VALUES_POLICY", _one_of("Strict", "BestEffort"), "unmet minValues: Strict or BestEffort"),
    )
    improve_seconds: float = field(
        default=1.0,
        metadata=_about("IMPROVE_SECONDS", _seconds, "work for a cheaper answer to a batch of pods; 0: none"),
    )
    nominate_pods: bool = field(
        default=False,
        metadata=_about("NOMINATE_PODS", _boolean, "tell pods which node was made for them (nominatedNodeName)"),
    )
    expire_within_budgets: bool = field(
        default=False,
        metadata=_about("EXPIRE_WITHIN_BUDGETS", _boolean, "expired nodes wait for the budgets of their NodePools"),
    )
    scheduler_config: tuple[TopologySpreadConstraint, ...] = field(
        default=(),
        metadata=_about("SCHEDULER_CONFIG", scheduler_config.read, "YAML: podTopologySpread.defaultConstraints"),
    )
    feature_gates: FeatureGates = field(
        default=FeatureGates(), metadata=_about("FEATURE_GATES", _gates, "Name=true,Name=false")
    )
    log_level: str = field(
        default="info", metadata=_about("LOG_LEVEL", _one_of("", "debug", "info", "error"), "debug, info or error")
    )
    log_output_paths: str = field(
        default="stdout", metadata=_about("LOG_OUTPUT_PATHS", _one_of("stdout", "stderr"), "stdout or stderr")
    )
    log_error_output_paths: str = field(
        default="stderr", metadata=_about("LOG_ERROR_OUTPUT_PATHS", _text, "accepted, without effect")
    )
    metrics_port: int = field(
        default=8080, metadata=_about("METRICS_PORT", _whole(0, 65535), "port of the metrics; 0: any free one")
    )
    health_probe_port: int = field(
        default=8081, metadata=_about("HEALTH_PROBE_PORT", _whole(0, 65535), "port of the probes")
    )
    kube_client_qps: int = field(
        default=200, metadata=_about("KUBE_CLIENT_QPS", _whole(1), "requests a second to the API server")
    )
    kube_client_burst: int = field(
        default=300, metadata=_about("KUBE_CLIENT_BURST", _whole(1), "requests at once to the API server")
    )
    disable_leader_election: bool = field(
        default=False, metadata=_about("DISABLE_LEADER_ELECTION", _boolean, "for a single replica")
    )
    leader_election_name: str = field(
        default=KARPENTER, metadata=_about("LEADER_ELECTION_NAME", _text, "name of the Lease")
    )
    system_namespace: str = field(
        default="", metadata=_about("SYSTEM_NAMESPACE", _text, "the controller's own namespace; empty: the pod's")
    )
    leader_election_namespace: str = field(
        default="", metadata=_about("LEADER_ELECTION_NAMESPACE", _text, "namespace of the Lease; empty: the pod's own")
    )
    karpenter_leases: tuple[LeaseName, ...] = field(
        default=USUAL,
        metadata=_about(
            "KARPENTER_LEASES", _leases, "where a Karpenter controller may run: namespace or namespace/lease, by comma"
        ),
    )
    webhook_service: str = field(
        default="",
        metadata=_about("WEBHOOK_SERVICE", _text, "Service whose certificate is made and rotated; empty: none"),
    )
    webhook_cert_secret: str = field(
        default="", metadata=_about("WEBHOOK_CERT_SECRET", _text, "Secret that holds that certificate")
    )
    webhook_configuration: str = field(
        default="kerf",
        metadata=_about("WEBHOOK_CONFIGURATION", _text, "name of the webhook configurations whose caBundle is kept"),
    )
    karpenter_service: str = field(default="", metadata=_about("KARPENTER_SERVICE", _text, "accepted, without effect"))
    enable_profiling: bool = field(
        default=False,
        metadata=_about(
            "ENABLE_PROFILING", _boolean, "serve what each turn of the loop took, at /debug/turns of metrics"
        ),
    )
    disable_controller_warmup: bool = field(
        default=True, metadata=_about("DISABLE_CONTROLLER_WARMUP", _boolean, "accepted, without effect")
    )
    disable_cluster_state_observability: bool = field(
        default=False, metadata=_about("DISABLE_CLUSTER_STATE_OBSERVABILITY", _boolean, "no metrics of single pods")
    )
    memory_limit: int = field(default=-1, metadata=_about("MEMORY_LIMIT", _whole(-1), "accepted, without effect"))
    cpu_requests: int = field(
        default=1000, metadata=_about("CPU_REQUESTS", _whole(-(2**31)), "accepted, without effect")
    )
    ignore_dra_requests: bool = field(
        default=True,
        metadata=_about(
            "IGNORE_DRA_REQUESTS", _boolean, "pods with resource claims are refused, and such daemon sets take nothing"
        ),
    )
    enable_zonal_shift: bool = field(
        default=False, metadata=_about("ENABLE_ZONAL_SHIFT", _boolean, "accepted, without effect")
    )
    disable_dry_run: bool = field(
        default=False, metadata=_about("DISABLE_DRY_RUN", _boolean, "accepted, without effect")
    )
    ami_refresh_interval: timedelta = field(
        default=timedelta(minutes=1),
        metadata=_about("AMI_REFRESH_INTERVAL", _duration(timedelta(minutes=1)), "accepted, without effect"),
    )
    subnet_refresh_interval: timedelta = field(
        default=timedelta(minutes=1),
        metadata=_about("SUBNET_REFRESH_INTERVAL", _duration(timedelta(minutes=1)), "accepted, without effect"),
    )

    @property
    def settings(self) -> Settings:
        return Settings(
            cluster_name=self.cluster_name,
            batch_idle=self.batch_idle_duration,
            batch_max=self.batch_max_duration,
            preference_policy=self.preference_policy,
            min_values_policy=self.min_values_policy,
            improve=timedelta(seconds=self.improve_seconds),
            nominate_pods=self.nominate_pods,
            expire_within_budgets=self.expire_within_budgets,
            default_constraints=self.scheduler_config,
            ignore_dra_requests=self.ignore_dra_requests,
            vm_memory_overhead_percent=self.vm_memory_overhead_percent,
            reserved_enis=self.reserved_enis,
            interruption_queue=self.interruption_queue,
            isolated_vpc=self.isolated_vpc,
            gates=self.feature_gates,
        )


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line and an environment. Raises SettingsError with every problem; Help for `--help`."""
    problems: list[str] = []
    flags = _flags(arguments, problems)
    found: dict[str, Any] = {}
    for option in fields(Options):
        meta = option.metadata
        for source, text in (
            (meta["flag"], flags.get(meta["flag"])),
            (meta["env"], environment.get(meta["env"]) or None),
        ):
            if text is not None:
                _read_into(found, option.name, meta["read"], source, text, problems)
                break
    options = Options(**found)
    problems += _together(options)
    if problems:
        raise SettingsError(problems)
    return options


def _read_into(
    found: dict[str, Any], name: str, read: Callable[[str], Any], source: str, text: str, problems: list[str]
) -> None:
    try:
        found[name] = read(text)
    except scheduler_config.SchedulerConfigError as error:
        problems += [f"{source}: {problem}" for problem in error.problems]
    except ValueError as error:
        problems.append(f"{source}: {error}, not {text!r}")


def _flags(arguments: Sequence[str], problems: list[str]) -> dict[str, str]:
    """Flags and their texts. One dash or two; `--x=v` or `--x v`; a bare flag of a switch means true."""
    switches = {f.metadata["flag"] for f in fields(Options) if f.metadata["read"] is _boolean}
    known = {f.metadata["flag"] for f in fields(Options)}
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, text = rest.pop(0).partition("=")
        flag = "--" + name.lstrip("-")
        if flag in ("--help", "--h"):
            raise Help
        if not name.startswith("-") or flag not in known:
            problems.append(f"{name}: there is no such flag")
        elif equals:
            found[flag] = text
        elif flag in switches:
            found[flag] = "true"
        elif rest:
            found[flag] = rest.pop(0)
        else:
            problems.append(f"{flag}: needs a value")
    return found


def _together(options: Options) -> list[str]:
    problems = []
    if not options.cluster_name:
        problems.append("CLUSTER_NAME (--cluster-name): is required")
    if options.batch_idle_duration > options.batch_max_duration:
        problems.append("BATCH_IDLE_DURATION (--batch-idle-duration): must not be longer than BATCH_MAX_DURATION")
    if bool(options.webhook_service) != bool(options.webhook_cert_secret):
        problems.append("WEBHOOK_SERVICE and WEBHOOK_CERT_SECRET: belong together")
    return problems


def usage() -> str:
    """Every setting with flag, variable, default and a line of help."""
    rows = []
    for option in fields(Options):
        meta, default = option.metadata, option.default
        shown = durations.go_text(default) if isinstance(default, timedelta) else default
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else shown
        shown = "" if isinstance(default, FeatureGates) or shown == "" else f" (default {shown})"
        rows.append(f"  {meta['flag']:<40} {meta['env']:<36} {meta['about']}{shown}")
    return "\n".join(rows)
