"""Everything that can be set: names, defaults and readers, and how each compares with Karpenter's.

`docs/reference/settings.md` is rendered from this table. Source: operations reference §1.
"""

# ruff: noqa: RUF009 - what is called for a default gives a `field`

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.model.settings import FeatureGates, Settings
from kerf.runtime.leadership.leases import KARPENTER, USUAL, LeaseName
from kerf.runtime.settings import readers, scheduler_config
from kerf.telemetry.catalogue.listing import DETAILS
from kerf_api import approval, thresholds
from kerf_api.approval import PlanFirst
from kerf_api.thresholds import Saving, Thresholds

#: How a setting compares with Karpenter's of the same name; anything else says what differs, and why.
SAME, OWN = "same", "Kerf's own"


def _setting(default: Any, env: str, read: Callable[[str], Any], about: str, karpenter: str = SAME) -> Any:
    """A field with its variable and flag, how its text is read, and a line of help."""
    flag = "--" + env.lower().replace("_", "-")
    return field(
        default=default, metadata={"env": env, "flag": flag, "read": read, "about": about, "karpenter": karpenter}
    )


def _own(default: Any, env: str, read: Callable[[str], Any], about: str) -> Any:
    return _setting(default, env, read, about, OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that can be set. `settings` is the part that decisions depend on."""

    cluster_name: str = _setting("", "CLUSTER_NAME", readers.text, "name of the cluster; required")
    cluster_endpoint: str = _setting("", "CLUSTER_ENDPOINT", readers.url, "the API server, for nodes; empty: ask EKS")
    cluster_ca_bundle: str = _setting(
        "", "CLUSTER_CA_BUNDLE", readers.base64_text, "base64 CA for nodes; empty: the one we use"
    )
    region: str = _setting(
        "",
        "AWS_REGION",
        readers.text,
        "AWS region; empty: ask the SDK",
        "the AWS SDK's own variable; the flag is Kerf's",
    )
    aws_endpoint_url: str = _setting(
        "",
        "AWS_ENDPOINT_URL",
        readers.url,
        "another address for all AWS services",
        "the AWS SDK's own variable; the flag is Kerf's",
    )
    aws_endpoint_url_s3: str = _setting(
        "",
        "AWS_ENDPOINT_URL_S3",
        readers.url,
        "address of the store of RECORD_S3, by paths; empty: AWS_ENDPOINT_URL, else S3",
        "the AWS SDK's own variable; the flag is Kerf's",
    )
    ec2_request_rate: float = _own(
        1.0,
        "EC2_REQUEST_RATE",
        readers.number(100),
        "factor for EC2's usual request rates, as a limit; 0: no limit",
    )
    interruption_queue: str = _setting("", "INTERRUPTION_QUEUE", readers.text, "name of the SQS queue; empty: none")
    isolated_vpc: bool = _setting(False, "ISOLATED_VPC", readers.boolean, "no calls to services without a VPC endpoint")
    eks_control_plane: bool = _setting(False, "EKS_CONTROL_PLANE", readers.boolean, "ask EKS for the cluster's details")
    vm_memory_overhead_percent: float = _setting(
        0.075,
        "VM_MEMORY_OVERHEAD_PERCENT",
        readers.share,
        "share of memory that the hypervisor uses",
        "1 and more are refused: no memory would be left",
    )
    reserved_enis: int = _setting(0, "RESERVED_ENIS", readers.whole(0), "network interfaces left out of max-pods")
    batch_max_duration: timedelta = _setting(
        timedelta(seconds=10),
        "BATCH_MAX_DURATION",
        readers.duration(),
        "longest batch of pending pods",
        "0s is refused",
    )
    batch_idle_duration: timedelta = _setting(
        timedelta(seconds=1),
        "BATCH_IDLE_DURATION",
        readers.duration(),
        "a batch ends after this long without a new pod",
        "0s is refused, and so is more than BATCH_MAX_DURATION",
    )
    batch_lone_duration: timedelta = _own(
        timedelta(milliseconds=200),
        "BATCH_LONE_DURATION",
        readers.duration(timedelta(0)),
        "wait for more pods after a single one, created ten seconds or more after the previous pod; no longer "
        "than BATCH_IDLE_DURATION; 0s: no wait",
    )
    early_orders: bool = _own(
        True,
        "EARLY_ORDERS",
        readers.boolean,
        "launch nodes that pods fill at about the best price before the batch ends",
    )
    preference_policy: str = _setting(
        "Respect", "PREFERENCE_POLICY", readers.one_of("Respect", "Ignore"), "soft constraints: Respect or Ignore"
    )
    min_values_policy: str = _setting(
        "Strict", "MIN_VALUES_POLICY", readers.one_of("Strict", "BestEffort"), "unmet minValues: Strict or BestEffort"
    )
    improve_seconds: float = _own(
        1.0, "IMPROVE_SECONDS", readers.number(60, "seconds"), "work for a cheaper answer to a batch of pods; 0: none"
    )
    nominate_pods: bool = _own(
        False, "NOMINATE_PODS", readers.boolean, "write the planned node into the pods' status.nominatedNodeName"
    )
    expire_within_budgets: bool = _own(
        False, "EXPIRE_WITHIN_BUDGETS", readers.boolean, "expired nodes wait for the budgets of their NodePools"
    )
    consolidation_minimum_saving: Saving = _own(
        Saving(),
        "CONSOLIDATION_MINIMUM_SAVING",
        thresholds.saving,
        "minimum saving of a move: 5% of the removed cost, or dollars an hour",
    )
    consolidation_payback_time: timedelta = _own(
        timedelta(0),
        "CONSOLIDATION_PAYBACK_TIME",
        thresholds.span,
        "time within which a move has to save as much as it costs; 0s: no limit",
    )
    consolidation_minimum_age: timedelta = _own(
        timedelta(0), "CONSOLIDATION_MINIMUM_AGE", thresholds.span, "younger nodes in use are not consolidated"
    )
    plan_first: PlanFirst = _own(
        approval.OFF,
        "PLAN_FIRST",
        approval.plan_first,
        "changes of NodePools and EC2NodeClasses wait for approval: true, false, or the longest wait, such as 24h",
    )
    canary_soak: timedelta = _own(
        timedelta(0),
        "CANARY_SOAK",
        thresholds.span,
        "a change replaces one node per NodePool first, and the others after this time; 0s: no canary",
    )
    deletion_guard_percent: int = _own(
        10, "DELETION_GUARD_PERCENT", readers.whole(0, 100), "share of the nodes that others may have drained at once"
    )
    deletion_guard_wait: timedelta = _own(
        timedelta(minutes=10),
        "DELETION_GUARD_WAIT",
        thresholds.span,
        "how long the drain of more waits; 0s: not at all",
    )
    scheduler_config: tuple[TopologySpreadConstraint, ...] = _setting(
        (), "SCHEDULER_CONFIG", scheduler_config.read, "YAML: podTopologySpread.defaultConstraints"
    )
    feature_gates: FeatureGates = _setting(
        FeatureGates(), "FEATURE_GATES", readers.gates, "Name=true,Name=false", "unknown names are refused, not ignored"
    )
    aws_feature_gates: tuple[str, ...] = _setting(
        (),
        "AWS_FEATURE_GATES",
        readers.provider_gates,
        "NodeClassCEL=true: CEL in spec.kubelet",
        "unknown names are refused, not ignored",
    )
    log_level: str = _setting("info", "LOG_LEVEL", readers.one_of("", "debug", "info", "error"), "debug, info or error")
    log_output_paths: tuple[str, ...] = _setting(
        ("stdout",), "LOG_OUTPUT_PATHS", readers.sinks, "outputs of the log: stdout, stderr, paths of files, by comma"
    )
    log_error_output_paths: tuple[str, ...] = _setting(
        ("stderr",), "LOG_ERROR_OUTPUT_PATHS", readers.sinks, "outputs for errors of the log itself"
    )
    metrics_port: int = _setting(8080, "METRICS_PORT", readers.whole(0, 65535), "port of the metrics; 0: any free one")
    health_probe_port: int = _setting(8081, "HEALTH_PROBE_PORT", readers.whole(0, 65535), "port of the probes")
    debug_port: int = _own(
        8082,
        "DEBUG_PORT",
        readers.whole(-1, 65535),
        "port of the loopback address for `kerf status` and `kerf debug`; 0: any free one, -1: none",
    )
    debug_token_file: str = _own(
        "",
        "DEBUG_TOKEN_FILE",
        readers.text,
        "file with the token that the debug port requires; empty: the controller writes kerf-debug-PORT.token, mode "
        "0600, in the folder for temporary files",
    )
    record_folder: str = _own(
        "", "RECORD_FOLDER", readers.text, "folder for a record of all decisions, for `kerf replay`; empty: none"
    )
    record_size: int = _own(100, "RECORD_SIZE", readers.whole(1), "most MiB of that record; the oldest part is deleted")
    record_age: timedelta = _own(
        timedelta(hours=24),
        "RECORD_AGE",
        readers.duration(timedelta(minutes=1)),
        "age of the oldest decision in that record",
    )
    record_s3: str = _own(
        "", "RECORD_S3", readers.bucket, "copies of that record: s3://bucket/prefix, of one cluster; empty: none"
    )
    record_encryption: str = _own(
        "AES256",
        "RECORD_ENCRYPTION",
        readers.encryption,
        "of these copies: AES256 (SSE-S3), aws:kms, aws:kms:dsse, the ID, ARN or alias of a KMS key, or none",
    )
    kube_client_qps: int = _setting(
        200,
        "KUBE_CLIENT_QPS",
        readers.whole(1),
        "requests a second to the API server",
        "less than 1 is refused, where Karpenter would ask without a limit",
    )
    kube_client_burst: int = _setting(
        300, "KUBE_CLIENT_BURST", readers.whole(1), "requests at once to the API server", "less than 1 is refused"
    )
    disable_leader_election: bool = _setting(False, "DISABLE_LEADER_ELECTION", readers.boolean, "for a single replica")
    leader_election_name: str = _setting(KARPENTER, "LEADER_ELECTION_NAME", readers.object_name, "name of the Lease")
    system_namespace: str = _setting(
        "",
        "SYSTEM_NAMESPACE",
        readers.text,
        "the controller's own namespace; empty: the pod's",
        "Karpenter's chart sets it, and nothing reads it",
    )
    leader_election_namespace: str = _setting(
        "", "LEADER_ELECTION_NAMESPACE", readers.text, "namespace of the Lease; empty: the pod's own"
    )
    karpenter_leases: tuple[LeaseName, ...] = _own(
        USUAL,
        "KARPENTER_LEASES",
        readers.leases,
        "where a Karpenter controller may run: namespace or namespace/lease, by comma",
    )
    webhook_service: str = _own(
        "", "WEBHOOK_SERVICE", readers.text, "Service whose certificate is made and rotated; empty: none"
    )
    webhook_cert_secret: str = _own("", "WEBHOOK_CERT_SECRET", readers.text, "Secret with that certificate")
    webhook_configuration: str = _own(
        "kerf", "WEBHOOK_CONFIGURATION", readers.text, "name of the webhook configurations whose caBundle Kerf updates"
    )
    launch_key_secret: str = _own(
        "",
        "LAUNCH_KEY_SECRET",
        readers.text,
        "Secret for the key behind launch marks, made by the leader; empty: each process has its own key",
    )
    karpenter_service: str = _setting("", "KARPENTER_SERVICE", readers.text, "accepted, without effect")
    enable_profiling: bool = _setting(
        False,
        "ENABLE_PROFILING",
        readers.boolean,
        "serve stacks, profiles and turns of the loop at /debug of the metrics's port",
        "text (stacks, folded stacks, JSON), not pprof; also on the debug port, always",
    )
    disable_controller_warmup: bool = _setting(
        True,
        "DISABLE_CONTROLLER_WARMUP",
        readers.boolean,
        "accepted, without effect",
        "without effect: who waits for the lease always watches and rehearses",
    )
    disable_cluster_state_observability: bool = _setting(
        False,
        "DISABLE_CLUSTER_STATE_OBSERVABILITY",
        readers.boolean,
        "no metrics of single pods, even with DETAILED_METRICS, nor of the resources of single nodes",
        "leaves out series of single pods and nodes only; events and conditions stay",
    )
    detailed_metrics: tuple[str, ...] = _own(
        (),
        "DETAILED_METRICS",
        readers.some_of(*DETAILS),
        f"metrics with a series for each object, by comma: {', '.join(DETAILS)}; or all",
    )
    memory_limit: int = _setting(
        -1,
        "MEMORY_LIMIT",
        readers.whole(-1),
        "accepted, without effect",
        "without effect: Python has no heap limit that bends",
    )
    cpu_requests: int = _setting(
        1000,
        "CPU_REQUESTS",
        readers.millicores,
        "accepted, without effect",
        "without effect: nothing is scaled by it, one loop decides for all",
    )
    ignore_dra_requests: bool = _setting(
        True,
        "IGNORE_DRA_REQUESTS",
        readers.boolean,
        "pods with resource claims are refused, and such DaemonSets use no capacity",
    )
    enable_zonal_shift: bool = _setting(
        False,
        "ENABLE_ZONAL_SHIFT",
        readers.boolean,
        "leave zones alone that ARC zonal shift has shifted the cluster from",
    )
    disable_dry_run: bool = _setting(
        False, "DISABLE_DRY_RUN", readers.boolean, "EC2NodeClasses are valid without a launch tried dry"
    )
    ami_refresh_interval: timedelta = _setting(
        timedelta(minutes=15),
        "AMI_REFRESH_INTERVAL",
        readers.duration(timedelta(minutes=1)),
        "how long the latest image of an alias counts as such",
        "the default is 15m, not 1m: images are resolved at once when an EC2NodeClass changes",
    )
    subnet_refresh_interval: timedelta = _setting(
        timedelta(minutes=5),
        "SUBNET_REFRESH_INTERVAL",
        readers.duration(timedelta(minutes=1)),
        "interval at which selectors of EC2NodeClasses are resolved again",
        "the default is 5m, not 1m: an EC2NodeClass is resolved at once when a pod needs a node",
    )

    @property
    def settings(self) -> Settings:
        return Settings(
            cluster_name=self.cluster_name,
            batch_idle=self.batch_idle_duration,
            batch_max=self.batch_max_duration,
            batch_lone=self.batch_lone_duration,
            early_orders=self.early_orders,
            preference_policy=self.preference_policy,
            min_values_policy=self.min_values_policy,
            improve=timedelta(seconds=self.improve_seconds),
            nominate_pods=self.nominate_pods,
            expire_within_budgets=self.expire_within_budgets,
            thresholds=Thresholds(
                self.consolidation_minimum_saving, self.consolidation_payback_time, self.consolidation_minimum_age
            ),
            plan_first=self.plan_first,
            canary_soak=self.canary_soak,
            deletion_guard_percent=self.deletion_guard_percent,
            deletion_guard_wait=self.deletion_guard_wait,
            default_constraints=self.scheduler_config,
            ignore_dra_requests=self.ignore_dra_requests,
            vm_memory_overhead_percent=self.vm_memory_overhead_percent,
            reserved_enis=self.reserved_enis,
            interruption_queue=self.interruption_queue,
            isolated_vpc=self.isolated_vpc,
            zonal_shift=self.enable_zonal_shift,
            disable_dry_run=self.disable_dry_run,
            refresh=min(self.ami_refresh_interval, self.subnet_refresh_interval),
            gates=replace(self.feature_gates, node_class_cel="NodeClassCEL=true" in self.aws_feature_gates),
        )
