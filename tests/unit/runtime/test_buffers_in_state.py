"""CapacityBuffers in what the controller knows: when their kinds are watched, and which changes ask for a pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.runtime.inbox import Changed, Listed, Removed
from kerf.runtime.state.state import State
from kerf_api import labels
from kerf_api.v1.meta import decode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ON = Settings(cluster_name="c", gates=FeatureGates(capacity_buffer=True))


def state(settings: Settings = ON) -> State:
    return State(settings, build=lambda *_: (), interpret=lambda message: None)


def made(kind: Kind, version: int, generation: int = 1) -> Any:
    meta = {"name": "x", "namespace": "d", "uid": f"uid-{kind.name}"}
    return decode(kind.type, {"metadata": {**meta, "resourceVersion": str(version), "generation": generation}})


def test_their_kinds_are_watched_where_the_gate_is_open() -> None:
    plain = Settings(cluster_name="c")
    assert not set(kinds.BUFFERS) & set(kinds.watched(plain))
    assert set(kinds.watched(ON)) == {*kinds.WATCHED, *kinds.BUFFERS}
    for settings, missing in ((plain, set[str]()), (ON, {kind.name for kind in kinds.BUFFERS})):
        told = state(settings)
        for kind in kinds.WATCHED:
            told.take(Listed(kind, (), "1", NOW), NOW)
        assert set(told.missing()) == missing
        assert told.synced is not bool(missing)


def test_workloads_that_are_watched_for_something_else_ask_for_no_pass() -> None:
    spread = Settings(cluster_name="c", default_constraints=(TopologySpreadConstraint(topology_key=labels.HOSTNAME),))
    told = state(spread)
    told.take(Changed(kinds.REPLICA_SET, made(kinds.REPLICA_SET, 1)), NOW)
    told.take(Changed(kinds.REPLICA_SET, made(kinds.REPLICA_SET, 2, generation=2)), NOW)
    assert told.batch.at(NOW) is None


def test_new_specs_ask_for_a_pass_and_statuses_do_not() -> None:
    told, instant = state(), NOW
    opened: list[bool] = []

    def take(news: Any) -> None:
        nonlocal instant
        instant += timedelta(seconds=1)
        told.take(news, instant)
        opened.append(told.batch.at(instant) is not None)
        told.planned(Plan(provisioned=True), instant)

    take(Changed(kinds.DEPLOYMENT, made(kinds.DEPLOYMENT, 1)))
    take(Changed(kinds.CAPACITY_BUFFER, made(kinds.CAPACITY_BUFFER, 2)))
    take(Changed(kinds.CAPACITY_BUFFER, made(kinds.CAPACITY_BUFFER, 3)))
    take(Changed(kinds.CAPACITY_BUFFER, made(kinds.CAPACITY_BUFFER, 4, generation=2)))
    take(Changed(kinds.DEPLOYMENT, made(kinds.DEPLOYMENT, 5)))
    take(Changed(kinds.DEPLOYMENT, made(kinds.DEPLOYMENT, 6, generation=2)))
    take(Removed(kinds.DEPLOYMENT, "d", "x", "uid-Deployment"))
    take(Removed(kinds.CAPACITY_BUFFER, "d", "x", "uid-CapacityBuffer"))
    take(Changed(kinds.POD_TEMPLATE, made(kinds.POD_TEMPLATE, 9)))
    assert opened == [False, True, False, True, False, True, True, True, False]


def test_the_latest_pass_says_where_room_is_kept() -> None:
    told = state()
    told.planned(Plan(provisioned=True, buffer_pods={"a": 2}), NOW)
    told.planned(Plan(), NOW)
    assert dict(told.snapshot(NOW).buffer_pods) == {"a": 2}
    told.planned(Plan(provisioned=True), NOW)
    assert dict(told.snapshot(NOW).buffer_pods) == {}
