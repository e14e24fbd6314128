"""All matches of selectors at once are those one by one, in the same order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kerf.model.kubernetes.objects import LabelSelector, Pod
from kerf.model.kubernetes.selectors import Selector, selector_of
from kerf.scheduling.solve import solve
from kerf.scheduling.topology import counts, solve_counts
from kerf.scheduling.topology.label_table import LabelTable
from kerf_api.v1.meta import decode
from tests.unit.scheduling import worlds as w

KEYS, VALUES, NAMESPACES = ("app", "team", "tier"), ("a", "b", "c"), ("default", "other")


def drawn_labels(dice: Random) -> dict[str, str]:
    return {key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.6}


def drawn_selector(dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"matchLabels": {key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.2}}
    rows = []
    for key in (*KEYS, "none"):
        if dice.random() < 0.4:
            operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            values = dice.sample(VALUES, dice.randint(1, 2)) if operator in ("In", "NotIn") else []
            rows.append({"key": key, "operator": operator, "values": values})
    return {**found, "matchExpressions": rows}


@pytest.mark.parametrize("seed", range(3))
def test_a_table_matches_as_a_selector_does(seed: int) -> None:
    dice = Random(seed)
    sets = [(dice.choice(NAMESPACES), drawn_labels(dice)) for _ in range(40)]
    table = LabelTable(sets)
    selectors = [selector_of(decode(LabelSelector, drawn_selector(dice)), {}, ()) for _ in range(60)]
    for selector in (*selectors, Selector(), Selector(nothing=True)):
        for namespaces in (None, frozenset[str](), frozenset({"other"}), frozenset({"other", "none"})):
            expected = [(namespaces is None or name in namespaces) and selector.matches(own) for name, own in sets]
            assert table.matching(namespaces, selector).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_a_solution_is_the_same_with_and_without_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(seed)

    def some(prefix: str, number: int, **more: Any) -> list[Pod]:
        def term(key: str) -> dict[str, Any]:
            return {"topologyKey": key, "labelSelector": drawn_selector(dice)}

        def spec() -> dict[str, Any]:
            rule = "requiredDuringSchedulingIgnoredDuringExecution"
            terms = [term(dice.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))) for _ in range(2)]
            near = dice.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
            spreads = (
                [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **terms.pop()}] if dice.random() < 0.3 else []
            )
            return {"affinity": {near: {rule: terms}}, "topologySpreadConstraints": spreads}

        return [
            w.pod(f"{prefix}{i}", labels=drawn_labels(dice), namespace=dice.choice(NAMESPACES), **spec(), **more)
            for i in range(number)
        ]

    running = [*some("r", 8, node="one"), *some("s", 8, node="two")]
    pending = some("p", 12)
    world = w.world(w.pool(), w.node("one"), w.node("two", zone="z2"), *running, *pending)
    few = solve(world, pending)
    assert few.placed or few.new_nodes
    monkeypatch.setattr(counts, "MANY", 0)
    monkeypatch.setattr(solve_counts, "MANY", 0)
    monkeypatch.setattr(counts, "_TIMES", 0)
    many = solve(world, pending)
    assert (many.placed, many.new_nodes, many.unplaced, many.order) == (
        few.placed,
        few.new_nodes,
        few.unplaced,
        few.order,
    )
