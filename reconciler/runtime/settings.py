"""Settings from flags and the environment, by Karpenter's names: a flag beats a variable, a variable the default.

Every mistake is reported at once, with the name of the setting and what would be right. A variable that cannot be read
is a mistake too (Karpenter falls back to the default without a word). Source: operations reference §1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

from api import durations, thresholds
from api.thresholds import Saving, Thresholds
from reconciler.model.objects import TopologySpreadConstraint
from reconciler.model.settings import FeatureGates, Settings
from reconciler.runtime import readers, scheduler_config
from reconciler.runtime.leases import KARPENTER, USUAL, LeaseName


class SettingsError(Exception):
    """What is wrong, all of it, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Help(Exception):
    """Someone asked for `--help`."""


# --- the settings -----------------------------------------------------------------------------------------------
def _about(env: str, read: Callable[[str], Any], text: str) -> dict[str, Any]:
    """Of a field: its variable and flag, how its text is read, and a line of help."""
    return {"env": env, "flag": "--" + env.lower().replace("_", "-"), "read": read, "about": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that can be set. `settings` is the part that decisions depend on."""

    cluster_name: str = field(
        default="", metadata=_about("CLUSTER_NAME", readers.text, "name of the cluster; required")
    )
    cluster_endpoint: str = field(
        default="", metadata=_about("CLUSTER_ENDPOINT", readers.url, "the API server, for nodes; empty: ask EKS")
    )
    cluster_ca_bundle: str = field(
        default="",
        metadata=_about("CLUSTER_CA_BUNDLE", readers.base64_text, "base64 CA for nodes; empty: the one we use"),
    )
    region: str = field(default="", metadata=_about("AWS_REGION", readers.text, "AWS region; empty: ask the SDK"))
    aws_endpoint_url: str = field(
        default="", metadata=_about("AWS_ENDPOINT_URL", readers.url, "another address for all AWS services")
    )
    ec2_request_rate: float = field(
        default=1.0,
        metadata=_about(
            "EC2_REQUEST_RATE", readers.number(100), "times EC2's usual request rates that are kept to; 0: as they come"
        ),
    )
    interruption_queue: str = field(
        default="", metadata=_about("INTERRUPTION_QUEUE", readers.text, "name of the SQS queue; empty: none")
    )
    isolated_vpc: bool = field(
        default=False, metadata=_about("ISOLATED_VPC", readers.boolean, "no calls to services without a VPC endpoint")
    )
    eks_control_plane: bool = field(
        default=False, metadata=_about("EKS_CONTROL_PLANE", readers.boolean, "ask EKS for the cluster's details")
    )
    vm_memory_overhead_percent: float = field(
        default=0.075,
        metadata=_about("VM_MEMORY_OVERHEAD_PERCENT", readers.share, "share of memory that the hypervisor keeps"),
    )
    reserved_enis: int = field(
        default=0, metadata=_about("RESERVED_ENIS", readers.whole(0), "network interfaces left out of max-pods")
    )
    batch_max_duration: timedelta = field(
        default=timedelta(seconds=10),
        metadata=_about("BATCH_MAX_DURATION", readers.duration(), "longest batch of pending pods"),
    )
    batch_idle_duration: timedelta = field(
        default=timedelta(seconds=1),
        metadata=_about("BATCH_IDLE_DURATION", readers.duration(), "a batch ends after this long without a new pod"),
    )
    preference_policy: str = field(
        default="Respect",
        metadata=_about(
            "PREFERENCE_POLICY", readers.one_of("Respect", "Ignore"), "soft constraints: Respect or Ignore"
        ),
    )
    min_values_policy: str = field(
        default="Strict",
        metadata=_about(
            "MIN_VALUES_POLICY", readers.one_of("Strict", "BestEffort"), "unmet minValues: Strict or BestEffort"
        ),
    )
    improve_seconds: float = field(
        default=1.0,
        metadata=_about(
            "IMPROVE_SECONDS", readers.number(60, "seconds"), "work for a cheaper answer to a batch of pods; 0: none"
        ),
    )
    nominate_pods: bool = field(
        default=False,
        metadata=_about("NOMINATE_PODS", readers.boolean, "tell pods which node was made for them (nominatedNodeName)"),
    )
    expire_within_budgets: bool = field(
        default=False,
        metadata=_about(
            "EXPIRE_WITHIN_BUDGETS", readers.boolean, "expired nodes wait for the budgets of their NodePools"
        ),
    )
    consolidation_minimum_saving: Saving = field(
        default=Saving(),
        metadata=_about(
            "CONSOLIDATION_MINIMUM_SAVING", thresholds.saving, "least a move saves: 5% of what goes, or dollars an hour"
        ),
    )
    consolidation_payback_time: timedelta = field(
        default=timedelta(0),
        metadata=_about(
            "CONSOLIDATION_PAYBACK_TIME", thresholds.span, "a move earns back within it what it costs; 0s: any"
        ),
    )
    consolidation_minimum_age: timedelta = field(
        default=timedelta(0),
        metadata=_about("CONSOLIDATION_MINIMUM_AGE", thresholds.span, "younger nodes in use are not consolidated"),
    )
    scheduler_config: tuple[TopologySpreadConstraint, ...] = field(
        default=(),
        metadata=_about("SCHEDULER_CONFIG", scheduler_config.read, "YAML: podTopologySpread.defaultConstraints"),
    )
    feature_gates: FeatureGates = field(
        default=FeatureGates(), metadata=_about("FEATURE_GATES", readers.gates, "Name=true,Name=false")
    )
    aws_feature_gates: tuple[str, ...] = field(
        default=(),
        metadata=_about("AWS_FEATURE_GATES", readers.provider_gates, "NodeClassCEL=true: CEL in spec.kubelet"),
    )
    log_level: str = field(
        default="info",
        metadata=_about("LOG_LEVEL", readers.one_of("", "debug", "info", "error"), "debug, info or error"),
    )
    log_output_paths: str = field(
        default="stdout", metadata=_about("LOG_OUTPUT_PATHS", readers.one_of("stdout", "stderr"), "stdout or stderr")
    )
    log_error_output_paths: str = field(
        default="stderr", metadata=_about("LOG_ERROR_OUTPUT_PATHS", readers.text, "accepted, without effect")
    )
    metrics_port: int = field(
        default=8080, metadata=_about("METRICS_PORT", readers.whole(0, 65535), "port of the metrics; 0: any free one")
    )
    health_probe_port: int = field(
        default=8081, metadata=_about("HEALTH_PROBE_PORT", readers.whole(0, 65535), "port of the probes")
    )
    kube_client_qps: int = field(
        default=200, metadata=_about("KUBE_CLIENT_QPS", readers.whole(1), "requests a second to the API server")
    )
    kube_client_burst: int = field(
        default=300, metadata=_about("KUBE_CLIENT_BURST", readers.whole(1), "requests at once to the API server")
    )
    disable_leader_election: bool = field(
        default=False, metadata=_about("DISABLE_LEADER_ELECTION", readers.boolean, "for a single replica")
    )
    leader_election_name: str = field(
        default=KARPENTER, metadata=_about("LEADER_ELECTION_NAME", readers.text, "name of the Lease")
    )
    system_namespace: str = field(
        default="",
        metadata=_about("SYSTEM_NAMESPACE", readers.text, "the controller's own namespace; empty: the pod's"),
    )
    leader_election_namespace: str = field(
        default="",
        metadata=_about("LEADER_ELECTION_NAMESPACE", readers.text, "namespace of the Lease; empty: the pod's own"),
    )
    karpenter_leases: tuple[LeaseName, ...] = field(
        default=USUAL,
        metadata=_about(
            "KARPENTER_LEASES",
            readers.leases,
            "where a Karpenter controller may run: namespace or namespace/lease, by comma",
        ),
    )
    webhook_service: str = field(
        default="",
        metadata=_about("WEBHOOK_SERVICE", readers.text, "Service whose certificate is made and rotated; empty: none"),
    )
    webhook_cert_secret: str = field(
        default="", metadata=_about("WEBHOOK_CERT_SECRET", readers.text, "Secret that holds that certificate")
    )
    webhook_configuration: str = field(
        default="kerf",
        metadata=_about(
            "WEBHOOK_CONFIGURATION", readers.text, "name of the webhook configurations whose caBundle is kept"
        ),
    )
    karpenter_service: str = field(
        default="", metadata=_about("KARPENTER_SERVICE", readers.text, "accepted, without effect")
    )
    enable_profiling: bool = field(
        default=False,
        metadata=_about(
            "ENABLE_PROFILING", readers.boolean, "serve what each turn of the loop took, at /debug/turns of metrics"
        ),
    )
    disable_controller_warmup: bool = field(
        default=True, metadata=_about("DISABLE_CONTROLLER_WARMUP", readers.boolean, "accepted, without effect")
    )
    disable_cluster_state_observability: bool = field(
        default=False,
        metadata=_about("DISABLE_CLUSTER_STATE_OBSERVABILITY", readers.boolean, "no metrics of single pods"),
    )
    memory_limit: int = field(
        default=-1, metadata=_about("MEMORY_LIMIT", readers.whole(-1), "accepted, without effect")
    )
    cpu_requests: int = field(
        default=1000, metadata=_about("CPU_REQUESTS", readers.whole(-(2**31)), "accepted, without effect")
    )
    ignore_dra_requests: bool = field(
        default=True,
        metadata=_about(
            "IGNORE_DRA_REQUESTS",
            readers.boolean,
            "pods with resource claims are refused, and such daemon sets take nothing",
        ),
    )
    enable_zonal_shift: bool = field(
        default=False,
        metadata=_about(
            "ENABLE_ZONAL_SHIFT", readers.boolean, "leave zones alone that ARC zonal shift has shifted the cluster from"
        ),
    )
    disable_dry_run: bool = field(
        default=False,
        metadata=_about("DISABLE_DRY_RUN", readers.boolean, "EC2NodeClasses are valid without a launch tried dry"),
    )
    ami_refresh_interval: timedelta = field(
        default=timedelta(minutes=15),
        metadata=_about(
            "AMI_REFRESH_INTERVAL",
            readers.duration(timedelta(minutes=1)),
            "how long the latest image of an alias counts as such",
        ),
    )
    subnet_refresh_interval: timedelta = field(
        default=timedelta(minutes=5),
        metadata=_about(
            "SUBNET_REFRESH_INTERVAL",
            readers.duration(timedelta(minutes=1)),
            "how often what EC2NodeClasses select is looked up while nothing happens",
        ),
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
            thresholds=Thresholds(
                self.consolidation_minimum_saving, self.consolidation_payback_time, self.consolidation_minimum_age
            ),
            default_constraints=self.scheduler_config,
            ignore_dra_requests=self.ignore_dra_requests,
            vm_memory_overhead_percent=self.vm_memory_overhead_percent,
            reserved_enis=self.reserved_enis,
            interruption_queue=self.interruption_queue,
            isolated_vpc=self.isolated_vpc,
            zonal_shift=self.enable_zonal_shift,
            disable_dry_run=self.disable_dry_run,
            refresh=min(self.ami_refresh_interval, self.subnet_refresh_interval),
            gates=replace(self.feature_gates, node_class_cel="NodeClassCEL" in self.aws_feature_gates),
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
    switches = {f.metadata["flag"] for f in fields(Options) if f.metadata["read"] is readers.boolean}
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
