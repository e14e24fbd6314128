"""Fills the default delays into the kubelet stages, and names the labels and annotations that steer single objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

SOURCE: Final = Path(__file__).resolve().parent / "kubelet_stages.yaml"

# See the head of kubelet_stages.yaml for what each one does.
STARTS_AFTER: Final = "kubelet.kerf.test/starts-after"
COMPLETES_AFTER: Final = "kubelet.kerf.test/completes-after"
STOPS_AFTER: Final = "kubelet.kerf.test/stops-after"
READY_AFTER: Final = "kubelet.kerf.test/ready-after"
NOT_READY: Final = "kubelet.kerf.test/not-ready"
STOPPED_LABEL: Final = "kubelet.kerf.test/stopped"

# More hands than kwok's four for pods, or it is slower than the scheduler. Whoever sets one of these must set them all:
# kwok takes the missing ones as zero and refuses to start.
SETTINGS: Final = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 8,
        "nodeLeaseParallelism": 4,
        "podsOnNodeSyncParallelism": 1,
        "enablePodsOnNodeSyncListPager": True,
    },
}


@dataclass(frozen=True, slots=True)
class KubeletDelays:
    """How long a make-believe kubelet takes over things, unless an annotation of the object says otherwise."""

    node_ready_seconds: float = 0.5
    pod_running_seconds: float = 0.3
    pod_terminated_seconds: float = 0.3


def write_stages(path: Path, delays: KubeletDelays) -> Path:
    """Write kwok's configuration file: its settings and the stages."""
    milliseconds = {
        "node-ready": int(delays.node_ready_seconds * 1000),
        "pod-running": int(delays.pod_running_seconds * 1000),
        "pod-terminated": int(delays.pod_terminated_seconds * 1000),
    }
    stages = list(yaml.safe_load_all(SOURCE.read_text()))
    for stage in stages:
        default = milliseconds.get(stage["metadata"]["name"])
        if default is not None:
            stage["spec"]["delay"]["durationMilliseconds"] = default
    path.write_text(yaml.safe_dump_all([SETTINGS, *stages]))
    return path
