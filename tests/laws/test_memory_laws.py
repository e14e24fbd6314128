"""Memory: whatever changes in a table is told to the journal, and what is remembered is what would be worked out anew.

Steps here are small functions that look up what a drawn recipe says, in tables that events change between the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model import kinds
from kerf.model.changes.indexes import InstanceIndex, PodIndex
from kerf.model.changes.journal import Journal
from kerf.model.changes.pdbs import PdbIndex
from kerf.model.cluster import Cluster
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import (
    LabelSelector,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kerf.model.memory import Memory, Step, Turn, planning
from kerf.model.plan import INTERNAL_ERROR, EvictPod, Plan, Reason, Refusal, Source
from kerf.model.snapshot import Snapshot
from kerf_api.v1.meta import ObjectMeta
from tests.laws.test_cluster_laws import NAMES, NOW, SETTINGS, Edit, Server, any_news, deliver, servers

TABLES = (
    "node_claims",
    "nodes",
    "state_nodes",
    "nodes_by_provider",
    "claims_by_provider",
    "pods_on",
    "expected_on",
    "not_before",
)
KEYS = (*NAMES, "node/a", "node/b")


def tables(snapshot: Snapshot) -> dict[str, Mapping[str, Any]]:
    """Every table of a snapshot that follows events, copied."""
    pods = snapshot.pods
    found: dict[str, Mapping[str, Any]] = {"pods": dict(pods.by_key), "pending": dict(pods.pending)}
    found["pods_on"] = {name: dict(here) for name, here in pods.by_node.items()}
    found["expected_on"] = {name: dict(here) for name, here in pods.nominated.items()}
    for f in fields(snapshot):
        value = getattr(snapshot, f.name)
        if isinstance(value, Mapping) and not isinstance(value, (PodIndex, InstanceIndex)):
            found[f.name] = dict(value)
    return found


def look(cluster: Cluster, now: datetime = NOW, **facts: Any) -> Snapshot:
    return cluster.snapshot(now=now, settings=SETTINGS, **facts)


@given(st.data())
def test_the_journal_tells_of_every_entry_that_changes(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)):
        journal = look(cluster).journal
        assert journal is not None
        before, position = tables(look(cluster)), journal.position
        deliver(cluster, server, news)
        after, told = tables(look(cluster)), set(journal.since(position) or ())
        for name, table in after.items():
            changed = {key for key in {*before[name], *table} if before[name].get(key) != table.get(key)}
            assert {(name, key) for key in changed} <= told


# --- steps ------------------------------------------------------------------------------------------------------
Recipe = tuple[tuple[str, str | None], ...]
recipes = st.lists(st.tuples(st.sampled_from(TABLES), st.sampled_from((*KEYS, None))), max_size=4).map(tuple)


def looked_up(snapshot: Snapshot, table: str, key: str | None) -> Any:
    of_nodes = {"pods_on": snapshot.pods.by_node, "expected_on": snapshot.pods.nominated}
    found = of_nodes[table] if table in of_nodes else getattr(snapshot, table)
    if key is None:
        return sorted((k, repr(v)) for k, v in found.items())
    value = found.get(key)
    if isinstance(value, datetime):
        return value > snapshot.now
    return repr(value)


def steps(recipe: Recipe, fragile: bool) -> tuple[Step[Turn, Any], Step[Turn, Any]]:
    """One that looks up what the recipe says, and one that asks it, and adds up. A fragile one fails over what is not
    there, or is still ahead."""

    def first(turn: Turn, key: str) -> tuple[Any, None]:
        found = [key, *(looked_up(turn.noted, table, entry) for table, entry in recipe)]
        if fragile and ("None" in found or True in found):
            raise LookupError(str(found))
        return found, None

    inner: Step[Turn, Any] = Step("inner", "state_nodes", first, speaks=lambda _: True)

    def second(turn: Turn, key: str) -> tuple[Any, None]:
        try:
            return ["outer", turn.one(inner, turn, key)], None
        except LookupError as error:
            return ["outer", ["a", str(error)]], None

    outer: Step[Turn, Any] = Step(
        "outer",
        "state_nodes",
        second,
        speaks=lambda found: "a" in found[1][0],
        counts=lambda f: ((f[1][0], 1), ("", 2)),
    )
    return inner, outer


def answers(memory: Memory, snapshot: Snapshot, recipe: Recipe, fragile: bool) -> Any:
    turn = memory.turn(snapshot)
    inner, outer = steps(recipe, fragile)
    said = turn.all(outer, turn)
    return (
        dict(said.spoken),
        dict(said.sums),
        {} if fragile else {k: turn.one(inner, turn, k) for k in turn.keys("state_nodes")},
        list(turn.keys("state_nodes")),
    )


def snapshots(data: st.DataObject) -> Iterator[Snapshot]:
    """A cluster after each of its events, some seconds apart; some entries wait until a time."""
    server, cluster, now = data.draw(servers()), Cluster(), NOW
    waits: dict[str, datetime] = {}
    for event in data.draw(any_news(server)):
        deliver(cluster, server, event)
        now += timedelta(seconds=data.draw(st.integers(0, 3)))
        if data.draw(st.booleans()):
            waits = {**waits, data.draw(st.sampled_from(KEYS)): now + timedelta(seconds=data.draw(st.integers(0, 4)))}
        yield look(cluster, now, not_before=waits)


@pytest.mark.parametrize("fragile", [False, True])
@given(st.data(), recipes)
def test_what_is_remembered_is_what_would_be_worked_out_anew(
    fragile: bool, data: st.DataObject, recipe: Recipe
) -> None:
    memory = Memory()
    for snapshot in snapshots(data):
        assert answers(memory, snapshot, recipe, fragile) == answers(Memory(), snapshot, recipe, fragile)


@given(st.data())
def test_what_is_held_is_held_for_as_long_as_nothing_changes(data: st.DataObject) -> None:
    server, cluster, memory = data.draw(servers()), Cluster(), Memory()
    waits: dict[str, datetime] = {}
    for number, news in enumerate(data.draw(any_news(server))):
        deliver(cluster, server, news)
        if data.draw(st.booleans()):
            waits = {**waits, data.draw(st.sampled_from(KEYS)): NOW + timedelta(seconds=data.draw(st.integers(0, 2)))}
        snapshot = look(cluster, not_before=waits, fresh_at={Source.NODES: NOW + timedelta(seconds=number)})
        turn, world = memory.turn(snapshot), {k: v for k, v in tables(snapshot).items() if k != "fresh_at"}
        held = turn.held("world")
        assert held is None or held == world
        assert turn.held("another") is None
        turn.hold("world", partial(dict, world))
        assert memory.turn(snapshot).held("world") == world


def test_a_step_that_fails_over_one_object_is_a_refusal_about_it_and_is_asked_again() -> None:
    def fails(turn: Turn, key: str) -> Plan:
        raise ValueError(key) if key == "a" else KeyError(key)

    server, cluster = Server(), Cluster()
    for name in NAMES:
        server.edit(Edit(kinds.NODE_CLAIM, name))
    for event in server.history:
        deliver(cluster, server, event)
    turn = Memory().turn(look(cluster))
    plans = turn.all(planning("fails", "node_claims", "nodeclaim", fails), turn).spoken
    told = {name: [(r.subject, r.reason.code) for r in plan.refusals] for name, plan in plans.items()}
    assert told == {"a": [("nodeclaim/a", "Malformed")], "b": [("nodeclaim/b", INTERNAL_ERROR)]}


@pytest.mark.parametrize("waits", [{}, {"b": NOW + timedelta(seconds=2)}])
def test_a_refusal_goes_when_what_led_to_it_has_gone(waits: dict[str, datetime]) -> None:
    """The step that failed was asked by another one, which looked up nothing itself."""
    recipe: Recipe = (("not_before", "b"),) if waits else (("nodes", "b"),)
    server, cluster, memory = Server(), Cluster(), Memory()
    server.edit(Edit(kinds.NODE_CLAIM, "a"))
    server.edit(Edit(kinds.NODE, "b"))
    for step, event in enumerate(server.history):
        deliver(cluster, server, event)
        snapshot = look(cluster, NOW + step * timedelta(seconds=3), not_before=waits)
        assert answers(memory, snapshot, recipe, True) == answers(Memory(), snapshot, recipe, True)


def spoken(recipe: Recipe, asked: list[str]) -> Step[Turn, Plan]:
    """A step that says what it looked up, until the first instant that is ahead; it tells `asked` of each key."""

    def run(turn: Turn, key: str) -> Plan:
        asked.append(key)
        found = [turn.noted.state_nodes[key], *(looked_up(turn.noted, table, entry) for table, entry in recipe)]
        text = ", ".join(map(str, found))
        if key == "a" and "True" in text:
            return Plan(actions=(EvictPod(reason=Reason("Due", text), ref=Ref("Pod", "a", "a"), uid=text),))
        return Plan(refusals=(Refusal(key, Reason("Found", text)),))

    return planning("spoken", "state_nodes", "nodeclaim", run)


@given(st.data(), recipes)
def test_the_plan_of_some_objects_is_what_would_be_made_anew(data: st.DataObject, recipe: Recipe) -> None:
    """Which objects, and what asks about one of them alone, changes from turn to turn."""
    memory, asked = Memory(), list[str]()
    step = spoken(recipe, asked)
    for snapshot in snapshots(data):
        turn, fresh = memory.turn(snapshot), Memory().turn(snapshot)
        without = data.draw(st.sampled_from((None, None, None, *KEYS)))
        keys = [key for key in turn.keys("state_nodes") if key != without]
        if data.draw(st.booleans()) and keys:
            turn.one(step, turn, keys[0])
        assert turn.plan_of(step, turn, keys) == fresh.plan_of(step, fresh, keys)
        again = memory.turn(snapshot)
        asked.clear()
        plan = again.plan_of(step, again, keys)
        assert asked == (["a"] if plan.actions else [])


@pytest.mark.parametrize("alone_first", [False, True])
def test_the_plan_of_some_objects_follows_a_change_of_one(alone_first: bool) -> None:
    """The one that has changed may be asked about alone before."""
    server, cluster, memory = Server(), Cluster(), Memory()
    step = spoken((), [])
    for kind in (kinds.NODE_CLAIM, kinds.NODE, kinds.NODE):
        server.edit(Edit(kind, "b"))
    for event in server.history:
        deliver(cluster, server, event)
        snapshot = look(cluster)
        turn, fresh, keys = memory.turn(snapshot), Memory().turn(snapshot), list(snapshot.state_nodes)
        if alone_first:
            turn.one(step, turn, keys[-1])
        assert turn.plan_of(step, turn, keys) == fresh.plan_of(step, fresh, keys)


# --- PodDisruptionBudgets ---------------------------------------------------------------------------------------
def pdb(namespace: str, name: str, app: str | None, allowed: int, version: int) -> PodDisruptionBudget:
    selector = LabelSelector(match_labels={"app": app} if app else {})
    return PodDisruptionBudget(
        metadata=ObjectMeta(namespace=namespace, name=name, uid=f"{namespace}/{name}", resource_version=str(version)),
        spec=PodDisruptionBudgetSpec(selector=selector, min_available="100%" if allowed > 2 else 1),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


pdb_edits = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(("x", "y", None)), st.integers(-1, 3)),
    max_size=12,
)


@given(pdb_edits)
def test_budgets_follow_their_objects_and_only_news_for_evictions_is_told(edits: list[Any]) -> None:
    journal = Journal()
    index, living = PdbIndex(journal), dict[str, PodDisruptionBudget]()
    for version, (namespace, name, app, allowed) in enumerate(edits, 1):
        key, position = f"{namespace}/{name}", journal.position
        old = living.pop(key, None)
        new = pdb(namespace, name, app, allowed, version) if allowed >= 0 else None
        before: dict[str, dict[Any, Any]]
        before = {"pdb_budgets": dict(index.budgets), "pdb_selectors": dict(index.selectors)}
        index.replace(old, new)
        living |= {key: new} if new is not None else {}
        after: dict[str, dict[Any, Any]]
        after = {"pdb_budgets": dict(index.budgets), "pdb_selectors": dict(index.selectors)}
        changed = {(t, k) for t in after for k in {*before[t], *after[t]} if before[t].get(k) != after[t].get(k)}
        assert set(journal.since(position) or ()) == changed
        rebuilt = PdbIndex(Journal())
        for one in living.values():
            rebuilt.replace(None, one)
        assert after == {"pdb_budgets": dict(rebuilt.budgets), "pdb_selectors": dict(rebuilt.selectors)}


def test_steps_find_every_table_of_a_snapshot_noted() -> None:
    """One that was handed to them as it is would change behind the back of what is remembered."""
    turn = Memory().turn(Cluster().snapshot(now=NOW, settings=SETTINGS))
    tables = [f.name for f in fields(Snapshot) if isinstance(getattr(turn.snapshot, f.name), Mapping)]
    assert len(tables) > 40
    assert [name for name in tables if getattr(turn.noted, name) is getattr(turn.snapshot, name)] == []
