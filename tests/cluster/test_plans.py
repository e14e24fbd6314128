"""`kerf plan` on real parts: changes are planned from a snapshot of the live cluster, and then made there.

All cases live on one control plane at once, each with NodePools, an EC2NodeClass and workloads of its own, so that one
plan and one roll-out judge them all. Live nodes and pods are read with kubectl, and prices are those that moto quotes.
The table is printed (`-s` shows it); with KERF_PLANS=docs/plan.md it is written into that page.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from kerf.planning.changes import Change
from kerf.planning.forecast import Forecast, Manner, forecast
from kerf.snapshots import files, reading
from tests.simulation.plan_cases import CASES, Case
from tests.simulation.plan_table import Played, planned_starts, table, written

from .control_plane import ControlPlane
from .fleet import is_true
from .installation import CLUSTER_NAME, Installation
from .pressure import processor_waits

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(3600)]

Manifest = dict[str, Any]
#: Cases whose clusters need neither a certain image nor volumes, of a few nodes each.
NAMES: Final = (
    *("nothing", "label", "label, a budget of none", "requirement", "taint that pods do not tolerate"),
    *("spot to on-demand", "on-demand to spot", "user data", "a NodePool is deleted", "limit"),
    *("taint that pods tolerate", "taint is removed", "expiry", "grace", "tags", "weights change"),
    *("a new NodePool of higher weight", "a budget of pods that blocks", "pods that must not be disrupted"),
    *("label, one node at a time", "half at a time", "a budget of pods of one", "zone", "metadata options"),
    *("consolidation is allowed", "empty nodes only"),
)
#: Misses, and why.
EXPLAINED: Final[Mapping[str, str]] = {}
BEGIN, END = "<!-- table of plans on a control plane -->\n", "<!-- end of the table on a control plane -->\n"
#: The cluster is at rest when no NodeClaim has come or gone for so long.
QUIET_SECONDS: Final = 90
_SETTLED_SECONDS, _ROLLED_SECONDS = 900, 1500
#: With a larger share of time in which processes waited for a processor, order and durations say nothing about Kerf.
_MOST_WAITING: Final = 0.5
#: As long as the plan takes EC2 to need.
_SHUTTING_DOWN_SECONDS: Final = 20.0


@dataclass
class Seen:
    """A case on the live cluster: its NodePools and Deployments; the NodeClaims before and after; seconds from the
    change to the deletion of each, and until the last one was gone; pods before and after; dollars per hour.
    """

    pools: frozenset[str]
    apps: frozenset[str]
    before: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    starts: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    pods: set[str] = field(default_factory=set)
    moves: int = 0
    waiting: int = 0
    cost: float = 0.0


def test_plans_come_true_on_the_real_control_plane(own_control_plane: ControlPlane, tmp_path: Path) -> None:
    cases = {name: CASES[name]() for name in NAMES}
    with Installation(own_control_plane, tmp_path, kept_running=True, shutting_down=_SHUTTING_DOWN_SECONDS) as kerf:
        _apply(kerf, [_own(one, name) for name, case in cases.items() for one in case.before])
        kerf.wait(lambda: _settled(kerf), _SETTLED_SECONDS, "all pods run and no node comes or goes")
        _scale(kerf, cases)
        file = tmp_path / "cluster.snapshot"
        kerf.kerf("snapshot", "-o", str(file), "--kubeconfig", str(own_control_plane.kubeconfig))
        applied = [_own(one, name) for name, case in cases.items() for one in case.applied]
        deleted = [(kind, ns, _named(it, name)) for name, case in cases.items() for kind, ns, it in case.deleted]
        captured = reading.read(files.lines(file.read_bytes()))
        plan = forecast(captured, Change(tuple(applied), tuple(deleted)), Manner(timedelta(hours=1)))
        waited, began = processor_waits(), time.monotonic()
        seen = _lived(kerf, cases, applied, deleted)
        waiting = (processor_waits() - waited) / (time.monotonic() - began)
    rows = {name: _played(plan, one) for name, one in seen.items()}
    _publish(rows, waiting)
    full = [one for one in rows.values() if one.planned or one.gone]
    missed = {name for name, one in rows.items() if min(one.precision, one.recall) < 0.95 or one.cost_off > 0.02}
    assert missed <= EXPLAINED.keys()
    late = [name for name, one in rows.items() if one.order < 1 or not one.in_time]
    assert waiting > _MOST_WAITING or late == []
    assert len(rows) >= 15
    assert len(full) >= 10


def _publish(rows: Mapping[str, Played], waiting: float) -> None:
    share = f"Processes of this machine waited for a processor for {100 * waiting:.0f} % of the time."
    text = f"{table(rows, EXPLAINED)}\n{share}\n"
    print(f"\n{text}")
    if page := os.environ.get("KERF_PLANS"):
        written(Path(page), BEGIN, END, text)


# --- objects of a case -------------------------------------------------------------------------------------------
def _named(name: str, case: str) -> str:
    return f"{name}-{NAMES.index(case)}"


def _pools(manifests: Iterable[Manifest], case: str) -> Iterable[str]:
    return (_named(one["metadata"]["name"], case) for one in manifests if one["kind"] == "NodePool")


def _own(manifest: Manifest, case: str) -> Manifest:
    """The object under a name of its case; only pods of the same case tolerate its nodes."""
    one, key = copy.deepcopy(manifest), f"example.com/case-{NAMES.index(case)}"
    one["metadata"]["name"] = _named(one["metadata"]["name"], case)
    spec = one["spec"]
    if one["kind"] == "EC2NodeClass":
        terms = [{"tags": {"karpenter.sh/discovery": CLUSTER_NAME}}]
        spec |= {"role": "KarpenterNodeRole", "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms}
    elif one["kind"] == "NodePool":
        inner = spec["template"]["spec"]
        inner["nodeClassRef"]["name"] = _named(inner["nodeClassRef"]["name"], case)
        inner["taints"] = [*inner.get("taints", []), {"key": key, "effect": "NoSchedule"}]
    elif one["kind"] == "PodDisruptionBudget":
        spec["selector"] = {"matchLabels": {"app": one["metadata"]["name"]}}
    else:
        app, pod = {"app": one["metadata"]["name"]}, spec["template"]
        spec["selector"], pod["metadata"]["labels"] = {"matchLabels": app}, app
        pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", []), {"key": key, "operator": "Exists"}]
        pod["spec"]["terminationGracePeriodSeconds"] = 5
    return one


# --- the live cluster --------------------------------------------------------------------------------------------
def _apply(kerf: Installation, manifests: list[Manifest]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    kerf.kubectl("apply", "-f", "-", input_=json.dumps(listed))


def _settled(kerf: Installation) -> bool:
    claims, pods = kerf.get("nodeclaims"), kerf.get("pods", namespace="default")
    whole = all(is_true(one, "Initialized") and "deletionTimestamp" not in one["metadata"] for one in claims)
    return bool(pods) and whole and all(one["status"].get("phase") == "Running" for one in pods)


def _scale(kerf: Installation, cases: Mapping[str, Case]) -> None:
    """Deployments get another number of replicas, where a case says so."""
    for name, case in cases.items():
        for deployment, replicas in case.scaled.items():
            kerf.kubectl("scale", f"deployment/{_named(deployment, name)}", f"--replicas={replicas}")
    wanted = sum(_replicas(one, case) for case in cases.values() for one in case.before if one["kind"] == "Deployment")
    kerf.wait(lambda: len(kerf.get("pods", namespace="default")) == wanted, _SETTLED_SECONDS, f"{wanted} pods are left")


def _replicas(deployment: Manifest, case: Case) -> int:
    return case.scaled.get(deployment["metadata"]["name"], deployment["spec"]["replicas"])


def _claims(kerf: Installation) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in kerf.get("nodeclaims")}


def _pool_of(claim: Manifest) -> str:
    return str(claim["metadata"]["labels"]["karpenter.sh/nodepool"])


def _app_of(pod: Manifest) -> str:
    return str(pod["metadata"]["labels"]["app"])


class Watch:
    """The NodeClaims from the changes on; `at_rest` reads them again."""

    def __init__(self, kerf: Installation, seen: Mapping[str, Seen]) -> None:
        self._kerf, self._seen, self.claims = kerf, seen, _claims(kerf)
        pods = kerf.get("pods", namespace="default")
        for one in seen.values():
            one.before = {name for name, claim in self.claims.items() if _pool_of(claim) in one.pools}
            one.pods = {pod["metadata"]["uid"] for pod in pods if _app_of(pod) in one.apps}
        self._began = self._changed = time.time()

    def at_rest(self) -> bool:
        """Whether no NodeClaim has come or gone for some time, and none is on its way."""
        before, self.claims, now = self.claims.keys(), _claims(self._kerf), time.time()
        ends = {name: at for name, claim in self.claims.items() if (at := claim["metadata"].get("deletionTimestamp"))}
        for one in self._seen.values():
            for name in (ends.keys() & one.before) - one.starts.keys():
                one.starts[name] = datetime.fromisoformat(ends[name]).timestamp() - self._began
            gone = one.before - self.claims.keys()
            one.seconds = now - self._began if gone != one.gone else one.seconds
            one.gone = gone
        self._changed = now if self.claims.keys() != before else self._changed
        return not ends and now - self._changed >= QUIET_SECONDS


def _lived(
    kerf: Installation, cases: Mapping[str, Case], applied: list[Manifest], deleted: list[tuple[str, str, str]]
) -> dict[str, Seen]:
    """Make the changes, and watch the NodeClaims until nothing has changed for some time."""
    seen = {name: _seen(case, name) for name, case in cases.items()}
    watch = Watch(kerf, seen)
    _apply(kerf, applied)
    for kind, _, name in deleted:
        kerf.kubectl("delete", kind.lower(), name, "--wait=false")
    kerf.wait(watch.at_rest, _ROLLED_SECONDS, "no node comes or goes any more")
    pods = kerf.get("pods", namespace="default")
    for one in seen.values():
        rows = [claim["metadata"]["labels"] for claim in watch.claims.values() if _pool_of(claim) in one.pools]
        one.cost = sum(kerf.price(*(row[key] for key in _PRICED)) for row in rows) / 1e6
        one.moves = len(one.pods - {pod["metadata"]["uid"] for pod in pods})
        one.waiting = sum(not pod["spec"].get("nodeName") for pod in pods if _app_of(pod) in one.apps)
    return seen


def _seen(case: Case, name: str) -> Seen:
    apps = frozenset(_named(one["metadata"]["name"], name) for one in case.before if one["kind"] == "Deployment")
    return Seen(frozenset(_pools((*case.before, *case.applied), name)), apps)


_PRICED: Final = ("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type")


# --- plan beside live cluster -------------------------------------------------------------------------------------
def _played(plan: Forecast, seen: Seen) -> Played:
    planned, began = plan.planned, plan.planned.began
    going = [one for one in planned.departures if one.node.nodepool in seen.pools]
    ends = [(one.ended - began).total_seconds() for one in going if one.ended is not None]
    return Played(
        planned_starts=planned_starts(going, began),
        starts={name: seen.starts[name] for name in seen.gone},
        planned_cost=sum(price for pool, price in planned.cost.items() if pool in seen.pools) / 1e6,
        cost=seen.cost,
        planned_waiting=sum(_app(one.pod) in seen.apps for one in planned.waiting),
        waiting=seen.waiting,
        planned_moves=sum(_app(one.pod) in seen.apps for one in planned.moves),
        moves=seen.moves,
        planned_seconds=max(ends, default=0.0),
        seconds=seen.seconds,
    )


def _app(pod: str) -> str:
    """The Deployment of a pod, by the key of the pod."""
    return pod.partition("/")[2].rsplit("-", 2)[0]
