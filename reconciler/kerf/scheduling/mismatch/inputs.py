"""The hash of everything whose change may help pods that no new node has helped.

These are the NodePools, the EC2NodeClasses, the daemon sets, and the taints and labels that Kerf has learned of nodes;
the pod's own spec is its shape. Learned sizes are left out: their end after a day is no reason for one more node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kerf.model import mismatches
from kerf.model.kubernetes.objects import DaemonSet
from kerf.model.snapshot import Snapshot
from kerf_api import labels

_DIGITS: Final = 12


def inputs_of(snapshot: Snapshot) -> str:
    return hashlib.sha256(msgspec.json.encode(list(_inputs(snapshot)), order="sorted")).hexdigest()[:_DIGITS]


def _inputs(snapshot: Snapshot) -> Iterator[Any]:
    for name in sorted(snapshot.node_pools):
        pool = snapshot.node_pools[name]
        requirements = sorted(map(repr, pool.spec.template.spec.requirements))
        yield name, pool.metadata.annotations.get(labels.NODEPOOL_HASH, ""), pool.static, requirements
    for name in sorted(snapshot.node_classes):
        yield name, snapshot.node_classes[name].metadata.annotations.get(labels.NODECLASS_HASH, "")
    for name in sorted(snapshot.node_pools):
        pool = snapshot.node_pools[name]
        if labels.MISMATCHES in pool.metadata.annotations:
            known = mismatches.believable(mismatches.remembered(pool), snapshot.now)
            yield from sorted([t.kind, t.text, t.hash] for t in known.traits if t.is_proven and t.lasts)
    for name in sorted(snapshot.daemon_sets):
        yield name, _placement(snapshot.daemon_sets[name])


def _placement(daemon_set: DaemonSet) -> Any:
    """The part of a DaemonSet that decides where its pods run and what they take, or its generation if that cannot be
    read: another annotation or image is no reason for one more node."""
    try:
        return msgspec.to_builtins(daemon_set.spec.template.spec, enc_hook=dict)
    except Exception:
        return daemon_set.metadata.generation
