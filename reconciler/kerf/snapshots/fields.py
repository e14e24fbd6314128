"""The annotations and texts that a file of a snapshot contains. Whatever is not named here is left out.

The fields of objects are those of their types, which have only what a decision reads: no environment variable, command,
argument, Secret or ConfigMap. docs/reference/snapshots.md lists them, and a test compares that list with the types, so
that a new field is a decision.
"""

from __future__ import annotations

from typing import Final

from kerf_api import labels

#: The annotations that decisions read. `kerf.sh/launch-mark` is not one of them: the snapshot has the verdict.
ANNOTATIONS: Final = frozenset(
    {
        labels.DO_NOT_DISRUPT,
        labels.POD_DELETION_COST,
        labels.NODEPOOL_HASH,
        labels.NODEPOOL_HASH_VERSION,
        labels.NODECLASS_HASH,
        labels.NODECLASS_HASH_VERSION,
        labels.INSTANCE_PROFILE,
        labels.TAGGED,
        labels.CLUSTER_NAME_TAGGED,
        labels.TERMINATION_TIMESTAMP,
        labels.MIN_VALUES_RELAXED,
        labels.PRICE_OVERLAY,
        labels.CAPACITY_OVERLAY,
        labels.REQUESTED_DRIVERS,
        labels.BUFFER_FAKE_POD,
        labels.BUFFER_NAME,
        labels.BUFFER_NAMESPACE,
        labels.LAUNCH_GROUP,
        labels.LAUNCH_REQUEST,
        labels.INSTANCE,
        labels.COMMAND,
        labels.COMMAND_FAILED,
        labels.REGISTRATIONS,
        labels.BACK_OFF,
        labels.ZONAL_SHIFT,
        labels.REPLACES,
        labels.PLANNED_PODS,
        labels.PLANNED_SHAPES,
        labels.MISMATCHES,
        labels.PROBES,
        labels.ALTERNATIVE_FOR,
        labels.DEVICE_TEMPLATES,
        labels.MINIMUM_SAVING,
        labels.PAYBACK_TIME,
        labels.MINIMUM_AGE,
        labels.CONSOLIDATION_PAUSE,
        labels.GARBAGE,
        labels.ALLOW_GARBAGE,
        labels.ALLOW_DELETION,
        labels.DELETION_ALLOWED,
        labels.ENDS,
        labels.PLAN_FIRST,
        labels.APPROVED_PLAN,
        labels.SEEN_PLAN,
        labels.CANARY_SOAK,
        labels.CONTINUED_PLAN,
        labels.CANARY,
        "pv.kubernetes.io/bind-completed",
        "storageclass.kubernetes.io/is-default-class",
        "volume.beta.kubernetes.io/storage-class",
    }
)
#: The conditions of pods whose message is kept; those of others may be of anybody's making.
MESSAGES_OF: Final = frozenset({"PodScheduled"})
#: The tags of instances that decisions read; so do all of the cluster's own prefixes below.
TAGS: Final = frozenset({labels.TAG_NAME, labels.TAG_EKS_CLUSTER})
TAG_PREFIXES: Final = ("kubernetes.io/cluster/", f"{labels.GROUP}/", f"{labels.AWS_GROUP}/", f"{labels.KERF}/")
