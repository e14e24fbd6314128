"""The plan and what the real kube-scheduler makes of it: it, not Kerf, binds the pods, and its scores spread them.

The pods of all worlds wait when the controller starts, so that its first answer is to all of them at once; nodes come
up one by one. Then every pod is bound, no node has been made in vain, and all nodes together cost about what the plan
had said (`binding.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from .agents import Agents
from .binding import MOST, Bound, Json, bound, ratio, table
from .binding_worlds import DRAWN, WORKLOAD, WORLD, BindingWorld, common, worlds
from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: All worlds, and how many are played at once.
MANY, SOME = 36, 12
#: Nodes come up within so many seconds of each other.
UNEVEN_SECONDS = 6.0
#: When no claim has come or gone for so long, and all have a node that is ready, nothing more will: a node on which a
#: pod was expected is not taken for empty for 20 seconds.
QUIET_SECONDS = 25.0
#: From one look to the next; looking costs more than all pods do.
LOOK_SECONDS = 1.0
#: All pods, on a busy machine. The kube-scheduler tries a pod again after five minutes at the latest; one
#: whose room was promised to others that went elsewhere has to wait for that, as no event tells it of the room.
BOUND_WITHIN_SECONDS = 330.0
#: A world that was late, and has a problem, is played alone so many times at most.
REPLAYS = 2
STARTUP_TAINTS = frozenset({"network/not-ready"})


def test_every_feature_is_in_several_worlds() -> None:
    drawn = [name for world in worlds(MANY) for name in world.features]
    assert {feature.name: drawn.count(feature.name) for feature in DRAWN if drawn.count(feature.name) < 3} == {}
    assert len({world.name for world in worlds(MANY)}) == MANY >= 30


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, MANY, SOME))
def test_pods_that_are_told_are_bound_for_what_was_planned(
    control_plane: ControlPlane, tmp_path: Path, first: int
) -> None:
    rows = _played(control_plane, tmp_path, worlds(MANY)[first : first + SOME], told=True)
    for _ in range(REPLAYS):
        rows = [_replayed(control_plane, tmp_path, row) if row.late and row.problems else row for row in rows]
    _check(rows)


def _replayed(control_plane: ControlPlane, folder: Path, row: Bound) -> Bound:
    """Alone: the machine may be less busy."""
    print(f"{row.world.name} again: its nodes joined {row.apart:.0f} s apart", flush=True)
    [again] = _played(control_plane, folder, [row.world], told=True)
    return again


@pytest.mark.long
def test_pods_that_are_not_told_come_to_other_nodes(control_plane: ControlPlane, tmp_path: Path) -> None:
    """What the setting is for: the same worlds without it, for comparison."""
    rows = _played(control_plane, tmp_path, worlds(SOME), told=False)
    assert sum(row.elsewhere for row in rows) > sum(row.world.pods for row in rows) / 10


def _check(rows: Sequence[Bound]) -> None:
    assert [f"{row.world.name}: {problem}" for row in rows for problem in row.problems] == []
    assert ratio(rows) <= MOST


def _show(rows: Sequence[Bound]) -> None:
    print(f"\n{table(rows)}")
    print(*(f"{row.world.name}: {problem}" for row in rows for problem in row.problems), sep="\n", flush=True)


# --- playing ------------------------------------------------------------------------------------------------------
def _played(control_plane: ControlPlane, folder: Path, played: Sequence[BindingWorld], *, told: bool) -> list[Bound]:
    """All of these worlds at once, on a cluster that is empty before and after; pods are `told` where they belong, or
    not."""
    values = {"replicas": "0", "webhook.replicas": "0", **({"settings.nominatePods": "true"} if told else {})}
    with Installation(control_plane, folder, webhook=False, uneven_seconds=UNEVEN_SECONDS, values=values) as kerf:
        try:
            waited = _lay_out(kerf, played)
            with Agents(control_plane.kubeconfig, startup_taints=STARTUP_TAINTS):
                since = datetime.now(UTC)
                kerf.start_controller("--disable-leader-election")  # a busy machine must not depose it in the middle
                claims, joined = _wait(kerf, sum(world.pods for world in played))
                pods, staying, region = _pods(kerf), frozenset(_names(kerf, "nodeclaims")), kerf.region()
            rows = [bound(world, waited, pods, claims, staying, region, since=since, joined=joined) for world in played]
            _show(rows)
            return rows
        finally:
            _clear(kerf, played)


def _lay_out(kerf: Installation, played: Sequence[BindingWorld]) -> list[Json]:
    """Ready NodePools, and pods that wait, to whom nobody answers yet."""
    classes = (HERE / "workloads.yaml").read_text().split("---")[0]
    kerf.kubectl("apply", "-f", "-", input_=classes)
    _create(kerf, common())
    _create(kerf, [one for world in played for one in world.ground])
    kerf.wait(lambda: all(_is_true(pool, "Ready") for pool in kerf.get("nodepools")), 60, "all NodePools are Ready")
    kerf.stop_controller()
    _create(kerf, [one for world in played for one in world.work])
    wanted = sum(world.pods for world in played)
    kerf.wait(lambda: sum(map(_refused, _pods(kerf))) == wanted, 60, f"{wanted} pods wait")
    return _pods(kerf)


def _create(kerf: Installation, manifests: Sequence[Json]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    kerf.kubectl("create", "-f", "-", input_=json.dumps(listed))


def _wait(kerf: Installation, wanted: int) -> tuple[list[Json], dict[str, datetime]]:
    """Until all pods have a node, or it has taken too long (the table says who has none), all claims have one, too, and
    for a while none has come or gone; all claims that were seen, as they were last, and when which node had joined."""
    given_up, quiet_since = time.monotonic() + BOUND_WITHIN_SECONDS, time.monotonic()
    seen, joined, before = dict[str, Json](), dict[str, datetime](), frozenset[str]()

    def settled() -> bool:
        nonlocal quiet_since, before
        time.sleep(LOOK_SECONDS)
        found = kerf.get("nodeclaims,nodes")
        claims = {one["metadata"]["name"]: one for one in found if one["kind"] == "NodeClaim"}
        seen.update(claims)
        joined.update((one["metadata"]["name"], _created(one)) for one in found if one["kind"] == "Node")
        bound_ = sum("nodeName" in pod["spec"] for pod in _pods(kerf)) == wanted or time.monotonic() > given_up
        stays = all(_is_true(claim, "Initialized") and not _goes(claim) for claim in claims.values())
        if not (bound_ and stays and claims.keys() == before):
            quiet_since, before = time.monotonic(), frozenset(claims)
        return time.monotonic() - quiet_since >= QUIET_SECONDS

    kerf.wait(settled, 2 * BOUND_WITHIN_SECONDS, f"{wanted} pods are bound, and no claim comes or goes any more")
    return list(seen.values()), joined


def _created(thing: Json) -> datetime:
    return datetime.fromisoformat(thing["metadata"]["creationTimestamp"])


def _goes(claim: Json) -> bool:
    return "deletionTimestamp" in claim["metadata"]


def _clear(kerf: Installation, played: Sequence[BindingWorld]) -> None:
    kerf.kubectl("delete", "namespaces", "-l", WORLD, "--wait=false")
    kerf.kubectl("delete", "nodepools", "--all", "--wait=false")
    kerf.kubectl("delete", "nodeclaims", "--all", "--wait=false")
    for kind in ("pv", "priorityclasses", "storageclasses", "runtimeclasses"):
        kerf.kubectl("delete", kind, *_names(kerf, kind), "--wait=false", "--ignore-not-found")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 180, "nothing is left")
    kerf.wait(lambda: not kerf.get("namespaces", selector=WORLD), 60, "no namespace is left")


def _names(kerf: Installation, kind: str) -> list[str]:
    """Of what is not the cluster's own; never empty."""
    found = [one["metadata"]["name"] for one in kerf.get(kind)]
    return [name for name in found if not name.startswith("system-")] or ["none"]


def _pods(kerf: Installation) -> list[Json]:
    return kerf.get("pods", namespace="", selector=f"{WORLD},{WORKLOAD}")


def _refused(pod: Json) -> bool:
    """Whether the kube-scheduler has looked at it, and found no node."""
    return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", []))


def _is_true(thing: Json, kind: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)
