"""Names: labels, annotations, taints, finalizers and tags, exactly as Karpenter v1 and its AWS provider write them.

Everything in the project that needs one of these strings takes it from here. Source: the v1 API, sections "Labels,
annotations, taints, finalizers" of the Karpenter documentation.
"""

from __future__ import annotations

import re
from typing import Final

GROUP = "karpenter.sh"
AWS_GROUP = "karpenter.k8s.aws"
KERF = "kerf.sh"

#: The name of a label after its prefix; a value that is not empty is one, too.
NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*", re.ASCII)
LONGEST_NAME: Final = 63

# --- labels -----------------------------------------------------------------------------------------------------
NODEPOOL = f"{GROUP}/nodepool"
CAPACITY_TYPE = f"{GROUP}/capacity-type"
REGISTERED = f"{GROUP}/registered"
INITIALIZED = f"{GROUP}/initialized"
DO_NOT_SYNC_TAINTS = f"{GROUP}/do-not-sync-taints"
NODECLASS = f"{AWS_GROUP}/ec2nodeclass"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ZONE_ID = "topology.k8s.aws/zone-id"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"
#: How requirements spell the field of `matchFields`: no label has this key. Each node has it, a new node no known one.
NAME_FIELD = "metadata.name (field)"
EXCLUDE_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"

ON_DEMAND, SPOT, RESERVED = "on-demand", "spot", "reserved"

#: Suffixes of the AWS provider's own well-known labels; each is written `karpenter.k8s.aws/<suffix>`.
AWS_SUFFIXES = (
    "instance-category",
    "instance-family",
    "instance-generation",
    "instance-size",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-memory",
    "instance-ebs-bandwidth",
    "instance-network-bandwidth",
    "instance-hypervisor",
    "instance-encryption-in-transit-supported",
    "nitro-sandbox",
    "instance-local-nvme",
    "instance-capability-flex",
    "instance-gpu-name",
    "instance-gpu-manufacturer",
    "instance-gpu-count",
    "instance-gpu-memory",
    "instance-accelerator-name",
    "instance-accelerator-manufacturer",
    "instance-accelerator-count",
    "instance-tenancy",
    "capacity-reservation-id",
    "capacity-reservation-type",
    "capacity-reservation-interruptible",
    "placement-group-id",
    "placement-group-partition",
)
AWS_LABELS = frozenset(f"{AWS_GROUP}/{suffix}" for suffix in AWS_SUFFIXES)
#: Which capacity reservation a machine was launched into, of what kind; no other machine has these labels.
RESERVATION_ID = f"{AWS_GROUP}/capacity-reservation-id"
RESERVATION_TYPE = f"{AWS_GROUP}/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = f"{AWS_GROUP}/capacity-reservation-interruptible"
RESERVATION_LABELS = (RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE)
#: Which placement group a machine was launched into, and which partition of it.
PLACEMENT_GROUP = f"{AWS_GROUP}/placement-group-id"
PLACEMENT_PARTITION = f"{AWS_GROUP}/placement-group-partition"
CORE_LABELS = frozenset({NODEPOOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD})
#: Labels that a NodeClaim gets from the instance it lands on, so a requirement may name one that a pool leaves open.
WELL_KNOWN = CORE_LABELS | AWS_LABELS | {ZONE_ID}
#: Labels that a NodeOverlay may name: what is only settled when a machine is launched cannot set its price before.
OVERLAY_LABELS = WELL_KNOWN - {
    f"{AWS_GROUP}/instance-tenancy",
    *RESERVATION_LABELS,
    PLACEMENT_GROUP,
    PLACEMENT_PARTITION,
}

RESTRICTED_DOMAINS = (GROUP, AWS_GROUP)

#: Old spellings, read as the new ones wherever a requirement or a node selector is parsed (never rewritten in objects).
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "topology.ebs.csi.aws.com/zone": ZONE,
}

# --- annotations ------------------------------------------------------------------------------------------------
DO_NOT_DISRUPT = f"{GROUP}/do-not-disrupt"
NODEPOOL_HASH = f"{GROUP}/nodepool-hash"
NODEPOOL_HASH_VERSION = f"{GROUP}/nodepool-hash-version"
NODECLASS_HASH = f"{AWS_GROUP}/ec2nodeclass-hash"
NODECLASS_HASH_VERSION = f"{AWS_GROUP}/ec2nodeclass-hash-version"
INSTANCE_PROFILE = f"{AWS_GROUP}/instance-profile-name"
TAGGED = f"{AWS_GROUP}/tagged"
CLUSTER_NAME_TAGGED = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
TERMINATION_TIMESTAMP = f"{GROUP}/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED = f"{GROUP}/nodeclaim-min-values-relaxed"
PRICE_OVERLAY = f"{GROUP}/price-overlay-applied"
#: Drivers that have to publish devices of the node before it is initialized, by commas.
REQUESTED_DRIVERS = f"{GROUP}/requested-dra-drivers"
CAPACITY_OVERLAY = f"{GROUP}/capacity-overlay-applied"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
BUFFER_FAKE_POD = f"{GROUP}/capacity-buffer-fake-pod"
BUFFER_NAME = f"{GROUP}/capacity-buffer-name"
BUFFER_NAMESPACE = f"{GROUP}/capacity-buffer-namespace"

#: Ours: the fleet call a claim belongs to, the call's request, the instance that was chosen for it (written with the
#: labels, before the status says Launched), and the state of a disruption command.
#: On an Event: the look that it belongs to, as the log has it (`reconcileID`).
RECONCILE_ID = f"{KERF}/reconcile-id"
LAUNCH_GROUP = f"{KERF}/launch-group"
LAUNCH_REQUEST = f"{KERF}/launch-request"
#: On a NodeClaim: the mark of Kerf's own key over group and request (docs/decisions/0009-launch-marks.md).
LAUNCH_MARK = f"{KERF}/launch-mark"
#: On the lease: the version of the cluster that its holder selects images for.
KUBERNETES_VERSION = f"{KERF}/kubernetes-version"
#: On the Lease: since when Kerf leads, and the number of the lease's transitions then; see runtime/leadership.
LEADING_SINCE = f"{KERF}/leading-since"
INSTANCE = f"{KERF}/instance"
COMMAND = f"{KERF}/command"
COMMAND_FAILED = f"{KERF}/command-failed"
REGISTRATIONS = f"{KERF}/registrations"
BACK_OFF = f"{KERF}/back-off"
#: On a NodePool: the zones (IDs) whose traffic was reported as shifted away.
ZONAL_SHIFT = f"{KERF}/zonal-shift"
REPLACES = f"{KERF}/replaces"
#: Marks of the pods that a claim was made for: until they run, the next plan puts them there again.
PLANNED_PODS = f"{KERF}/planned-pods"
#: The shapes of these pods, by comma: one that is deleted is followed by another of its shape.
PLANNED_SHAPES = f"{KERF}/planned-shapes"
#: On a NodePool: nodes that came up other than planned (docs/scheduling.md). On a NodeClaim: the shapes of pods, by
#: comma, of which an earlier node did not help and that this one is made for again.
MISMATCHES = f"{KERF}/mismatches"
PROBES = f"{KERF}/probes"
#: On a NodeClaim: the shapes of pods, by comma, that were not bound to the node where Kerf expected them before.
ALTERNATIVE_FOR = f"{KERF}/alternative-for"
#: On an EC2NodeClass: what nodes of instance types will publish of devices, as JSON (docs/scheduling.md).
DEVICE_TEMPLATES = f"{KERF}/device-templates"
#: On a NodePool: what the consolidation of its nodes has to bring (docs/disruption.md).
MINIMUM_SAVING = f"{KERF}/consolidation-minimum-saving"
PAYBACK_TIME = f"{KERF}/consolidation-payback-time"
MINIMUM_AGE = f"{KERF}/consolidation-minimum-age"
#: On a NodePool: that its consolidation has cost more than it saved, when, and how often.
CONSOLIDATION_PAUSE = f"{KERF}/consolidation-pause"
#: On a NodePool or EC2NodeClass: instances that are ended because nothing in the cluster stands for them, and a
#: person's word that those in question may be.
GARBAGE = f"{KERF}/garbage-collected"
ALLOW_GARBAGE = f"{KERF}/allow-garbage-collection"
#: A person's word for how many nodes may be removed when the object is deleted that bears it (a NodePool, EC2NodeClass,
#: NodeClaim or definition); and what a NodeClaim has noted of its NodePool's, which may be gone when it counts.
ALLOW_DELETION = f"{KERF}/allow-deletion"
DELETION_ALLOWED = f"{KERF}/deletion-allowed"
#: On a NodePool or EC2NodeClass: nodes of an earlier version are replaced only after approval (docs/tasks/approval.md).
PLAN_FIRST = f"{KERF}/plan-first"
#: On a NodePool: the digest of the approved plan; and the digests that Kerf has seen, with the time of the latest one.
APPROVED_PLAN = f"{KERF}/approved-plan"
SEEN_PLAN = f"{KERF}/seen-plan"
#: On a NodePool or EC2NodeClass: one drifted node is replaced first, and observed for this time (docs/tasks/canary.md).
CANARY_SOAK = f"{KERF}/canary-soak"
#: On a NodePool: the digest of the plan that continues without a canary; and the state of its canary.
CONTINUED_PLAN = f"{KERF}/continued-plan"
CANARY = f"{KERF}/canary"
#: On a NodeClaim: why Kerf itself deletes it; without that, and without a command, another client deleted it.
ENDS = f"{KERF}/ends"
#: Annotations that Kerf writes on NodeClaims: those of a NodePool's template do not come down to them.
WRITTEN_ON_CLAIMS = frozenset(
    {
        NODEPOOL_HASH,
        NODEPOOL_HASH_VERSION,
        NODECLASS_HASH,
        NODECLASS_HASH_VERSION,
        INSTANCE_PROFILE,
        TAGGED,
        CLUSTER_NAME_TAGGED,
        TERMINATION_TIMESTAMP,
        MIN_VALUES_RELAXED,
        PRICE_OVERLAY,
        CAPACITY_OVERLAY,
        REQUESTED_DRIVERS,
        LAUNCH_GROUP,
        LAUNCH_REQUEST,
        LAUNCH_MARK,
        INSTANCE,
        COMMAND,
        COMMAND_FAILED,
        REPLACES,
        PLANNED_PODS,
        PLANNED_SHAPES,
        PROBES,
        ALTERNATIVE_FOR,
        DELETION_ALLOWED,
        ENDS,
    }
)

# --- taints and finalizers --------------------------------------------------------------------------------------
DISRUPTED_TAINT = f"{GROUP}/disrupted"
UNREGISTERED_TAINT = f"{GROUP}/unregistered"
TERMINATION_FINALIZER = f"{GROUP}/termination"
NODECLASS_FINALIZER = f"{AWS_GROUP}/termination"

#: (key, effect) of taints that go away by themselves while a node starts.
EPHEMERAL_TAINTS = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (UNREGISTERED_TAINT, "NoExecute"),
    }
)
READINESS_TAINT_PREFIX = "readiness.k8s.io/"

# --- EC2 tags ---------------------------------------------------------------------------------------------------
TAG_NODEPOOL = NODEPOOL
TAG_NODECLAIM = f"{GROUP}/nodeclaim"
TAG_NODECLASS = NODECLASS
TAG_EKS_CLUSTER = "eks:eks-cluster-name"
TAG_NAME = "Name"


def cluster_tag(cluster_name: str) -> str:
    """The ownership tag of a cluster; its value is `owned`."""
    return f"kubernetes.io/cluster/{cluster_name}"


def of_reservation(id_: str, type_: str, interruptible: bool) -> dict[str, str]:
    """The labels of a machine in a capacity reservation."""
    return dict(zip(RESERVATION_LABELS, (id_, type_, "true" if interruptible else "false"), strict=True))


def is_label_value(value: str) -> bool:
    """Whether the API server accepts a text as the value of a label."""
    return len(value) <= LONGEST_NAME and (not value or NAME.fullmatch(value) is not None)


def normalise(key: str) -> str:
    """The current spelling of a label key."""
    return ALIASES.get(key, key)


def is_restricted(key: str) -> bool:
    """Whether a user may not set this label, by the controller's (run-time) rule."""
    if key in WELL_KNOWN:
        return False
    domain = key.split("/", 1)[0] if "/" in key else ""
    return key == HOSTNAME or any(domain == d or domain.endswith(f".{d}") for d in RESTRICTED_DOMAINS)


def is_ephemeral_taint(key: str, effect: str) -> bool:
    """Whether a taint belongs to a node's start-up and is expected to vanish by itself."""
    return (key, effect) in EPHEMERAL_TAINTS or key.startswith(READINESS_TAINT_PREFIX)
