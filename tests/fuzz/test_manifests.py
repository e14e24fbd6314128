"""Whatever a manifest holds, the linter answers, soon, and twice the same. `make test` tries 10,000, `make long` more.

Time is that of this thread on its core. A machine with much else to do makes even that longer, by half or by two: what
seems to take too long is asked again, beside work of a known extent that tells how slow the machine is just then.
"""

from __future__ import annotations

import copy
import gc
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import thread_time
from typing import Any, Final, TypeVar

import jsonpatch
import pytest

from kerf_api import crds
from kerf_api.defaulting import default, patch
from kerf_api.lint import LintSettings, Problem, together, validate
from kerf_api.lint.differences.changes import Located, changes
from kerf_api.lint.reading.plain import plain
from tests.unit.api.manifests import BASES, changed, placed

from .manifests import Maker
from .wild import ENDINGS, PREFIXES, PUMPS

SEED: Final = 20260131
MOST_SECONDS: Final = 1.0
#: What the yardstick takes where nothing else runs.
YARD_SECONDS: Final = 0.04
CHUNK: Final = 2500
GROUP: Final = 5
#: What manifests of one name are before or after a wild one.
SOUND: Final = list(BASES.values())
LONG: Final = 50_000
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def maker() -> Maker:
    """One for all tests of a process; it keeps nothing between two numbers."""
    made = Maker(SEED)
    gc.freeze()
    return made


def located(manifests: Iterable[Any]) -> list[Located]:
    """These manifests as those of one file without a name."""
    return [Located("", manifest) for manifest in manifests]


def timed(what: object, ask: Callable[[], Result], most: float = MOST_SECONDS) -> Result:
    """The answer, which took this thread no longer than allowed, however slow the machine is."""
    answer, taken = measured(ask)
    if taken >= most:
        before, (answer, taken), after = slowness(), measured(ask), slowness()
        slow = max(before, after)
        assert taken < most * slow, f"{what}: {taken:.2f} s, on a machine that is {slow:.1f} times slower than usual"
    return answer


def measured(ask: Callable[[], Result]) -> tuple[Result, float]:
    """The answer and this thread's seconds. What others left for the collector is none of them."""
    gc.collect(0)
    began = thread_time()
    answer = ask()
    return answer, thread_time() - began


def yardstick() -> int:
    """Work that has nothing to do with manifests, and always is as much."""
    return sum(len(str(number)) for number in range(300_000))


def slowness() -> float:
    """How many times longer than usual work takes just now, but at least once."""
    return max(1.0, measured(yardstick)[1] / YARD_SECONDS)


def test_what_takes_too_long_is_found_however_slow_the_machine_is() -> None:
    """Here four yardsticks are too long where one is allowed, and one is not where two are."""
    with pytest.raises(AssertionError, match="long: "):
        timed("long", lambda: [yardstick() for _ in range(4)], most=YARD_SECONDS)
    assert timed("short", yardstick, most=2 * YARD_SECONDS)


def said(problems: list[Problem]) -> list[tuple[str, str]]:
    """All that a user sees of problems."""
    assert all(problem.severity in ("error", "warning", "info") for problem in problems)
    for problem in problems:
        str(problem).encode()
    return [(problem.severity, str(problem)) for problem in problems]


def try_one(maker: Maker, number: int) -> dict[str, Any]:
    """Put one manifest through the linter and the defaulting, and hand it on."""
    manifest = maker.manifest(number)
    old = maker.before(number) if number % 4 == 0 else None
    first = timed(number, lambda: said(validate(manifest, old)))
    assert said(validate(manifest, old)) == first, number
    if old is not None:
        errors = [text for severity, text in said(validate(manifest)) if severity == "error"]
        assert bool(errors) or not any("(it was so before" in text for _, text in first), number
    clean = plain(manifest)[0]
    whole = timed(number, lambda: default(clean))
    assert default(whole) == whole, number
    assert patch(whole) == [], number
    steps = timed(number, lambda: patch(clean))
    if number % 10 == 0:
        assert jsonpatch.apply_patch(copy.deepcopy(clean), steps) == whole, number
    return manifest


def try_range(maker: Maker, first: int, count: int) -> None:
    """Numbers one after the other, and in small groups beside each other."""
    for start in range(first, first + count, GROUP):
        try_group(start, [try_one(maker, number) for number in range(start, start + GROUP)])


def try_group(start: int, group: list[dict[str, Any]]) -> None:
    """Look at some manifests beside each other."""
    found = timed((start, "together"), lambda: together(group))
    assert [said(problems) for problems in found] == [said(problems) for problems in together(group)]
    assert len(found) == GROUP
    for before, after in ((group, group[::-1]), (group[:2], group[1:]), (SOUND, group), (group, SOUND)):
        made = timed((start, "changes"), partial(changes, located(before), located(after)))
        assert (len(made.removed), len(made.found)) == (len(before), len(after))
    turned = changes(located(group), located(group))
    assert not any((*turned.found, *turned.removed))


@pytest.mark.parametrize("first", range(0, 10_000, CHUNK))
def test_ten_thousand_manifests(maker: Maker, first: int) -> None:
    try_range(maker, first, CHUNK)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(10_000, 110_000, 10_000))
def test_a_hundred_thousand_more(maker: Maker, first: int) -> None:
    try_range(maker, first, 10_000)


def test_a_number_always_means_the_same_manifest_and_most_are_wrong_in_their_own_way(maker: Maker) -> None:
    again = Maker(SEED)
    assert all(repr(maker.manifest(n)) == repr(again.manifest(n)) for n in (7, 3, 500))
    verdicts = [validate(maker.manifest(number)) for number in range(1000)]
    refused = sum(any(p.severity == "error" for p in problems) for problems in verdicts)
    assert 300 < refused < 990
    assert len({problem.rule for problems in verdicts for problem in problems}) > 60


# --- texts that are made for a pattern --------------------------------------------------------------------------
def patterns(kind: str) -> Iterator[tuple[str | int, ...]]:
    """The places of a kind whose texts must match a pattern."""

    def below(schema: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
        if "pattern" in schema:
            yield steps
        for name, inner in schema.get("properties", {}).items():
            yield from below(inner, (*steps, name))
        if "items" in schema:
            yield from below(schema["items"], (*steps, 0))
        if isinstance(schema.get("additionalProperties"), dict):
            yield from below(schema["additionalProperties"], (*steps, "a"))

    return below(crds.schema(kind), ())


def with_text(kind: str, steps: tuple[str | int, ...], text: str) -> dict[str, Any]:
    """The kind's manifest with a text at a place, whatever has to be made on the way."""
    value: Any = text
    for depth in range(len(steps) - 1, 1, -1):
        value = [value] if steps[depth] == 0 else {steps[depth]: value}
    top, field = steps[0], steps[1]
    found = copy.deepcopy(BASES[kind])
    found[str(top)] = {**found.get(str(top), {}), str(field): _merged(found.get(str(top), {}).get(field), value)}
    return found


def _merged(sound: Any, value: Any) -> Any:
    if isinstance(sound, dict) and isinstance(value, dict):
        return {**sound, **{name: _merged(sound.get(name), entry) for name, entry in value.items()}}
    if isinstance(sound, list) and isinstance(value, list) and sound:
        return [_merged(sound[0], value[0]), *sound[1:]]
    return value


def try_long(manifest: dict[str, Any], what: object) -> None:
    timed(what, lambda: said(validate(manifest)))


@pytest.mark.parametrize("kind", sorted(BASES))
def test_a_long_text_never_keeps_a_pattern_busy(kind: str) -> None:
    places = [*patterns(kind)]
    assert places
    for place in places:
        for number, pump in enumerate(PUMPS):
            text = PREFIXES[number % len(PREFIXES)] + pump * (LONG // len(pump)) + ENDINGS[number % len(ENDINGS)]
            manifest = with_text(kind, place, text)
            try_long(manifest, (kind, place, pump))


# --- more of everything than anybody writes ---------------------------------------------------------------------
MANY: Final = 9_000


def many(entry: Any, count: int = MANY) -> list[Any]:
    """So many of an entry, each a little different where it has a key."""
    return [
        {**entry, "key": f"{entry['key']}{n}"} if isinstance(entry, dict) and "key" in entry else entry
        for n in range(count)
    ]


def requirement(key: str, values: list[str]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": values}


def minutely(number: int) -> dict[str, Any]:
    minutes = ",".join(str(minute) for minute in range(0, 60, 2))
    return {"nodes": f"{number}%", "schedule": f"{minutes},{number} * * * *", "duration": "1m"}


WIDE: Final = {
    "values of an unknown type": (
        "NodePool",
        "R",
        requirement("karpenter.k8s.aws/instance-family", [f"x{n}" for n in range(MANY)]),
    ),
    "values that are no label values": ("NodePool", "R", requirement("a", [f"-{n} x" for n in range(MANY)])),
    "requirements": ("NodePool", "T.requirements", many(requirement("a", ["x"]))),
    "reserved keys": ("NodePool", "T.requirements", many(requirement("karpenter.sh/x", ["x"]))),
    "impossible requirements": (
        "NodePool",
        "T.requirements",
        [requirement("karpenter.k8s.aws/instance-cpu", [str(n)]) for n in range(MANY)],
    ),
    "unknown fields": ("NodePool", "spec", {f"weigt{n}": 1 for n in range(MANY)}),
    "taints": ("NodePool", "T.taints", many({"key": "k", "effect": "NoSchedule"})),
    "wrong taints": ("NodePool", "T.taints", many({"key": "-" * 70, "effect": "noschedule"})),
    "limits": ("NodePool", "spec.limits", {f"k{n}": "1e999" for n in range(MANY)}),
    "labels": ("NodePool", "L", {f"karpenter.sh/k{n}": "a b" for n in range(MANY)}),
    "annotations": ("NodePool", "metadata.annotations", {f"k{n}": 5 for n in range(MANY)}),
    "budgets": (
        "NodePool",
        "D.budgets",
        [{"nodes": "1%", "schedule": f"{n % 60} {n % 24} {1 + n % 28} * *", "duration": "1h"} for n in range(5000)],
    ),
    "windows of every other minute": ("NodePool", "D.budgets", [minutely(n) for n in range(50)]),
    "reasons": ("NodePool", "B.reasons", [{"a": n} for n in range(MANY)]),
    "conditions": ("NodePool", "status", {"conditions": many({"type": "A", "status": "x"})}),
    "tags": ("EC2NodeClass", "spec.tags", {f"kubernetes.io/cluster/{n}": "a" for n in range(MANY)}),
    "terms": ("EC2NodeClass", "spec.subnetSelectorTerms", many({"id": "x", "tags": {"a": ""}})),
    "kubelet fields": ("EC2NodeClass", "spec.kubelet", {f"maxPod{n}": 1 for n in range(MANY)}),
    "overlays": (
        "NodeOverlay",
        "spec.requirements",
        [requirement("karpenter.k8s.aws/instance-family", [f"-{n}"]) for n in range(MANY)],
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_more_than_anybody_writes_is_answered_in_time_too(name: str) -> None:
    kind, path, value = WIDE[name]
    manifest = changed(kind, path, value)
    manifest = placed(manifest, "T.expireAfter", "1h") if kind == "NodePool" and path != "spec" else manifest
    assert len(json.dumps(manifest)) < 3 * 2**20, "what the API server lets through"
    problems = timed(name, lambda: validate(manifest))
    assert len(problems) < 500
    assert not any(problem.rule == "KERF-SCHEMA-LIMIT" for problem in problems), "every layer is to see it"
    timed((name, "defaults"), lambda: patch(manifest))
    timed((name, "no advice"), lambda: validate(manifest, manifest, settings=LintSettings(advice=False)))


# --- what broke once --------------------------------------------------------------------------------------------
ONCE: Final = (
    changed("NodePool", "R", requirement("karpenter.k8s.aws/instance-cpu", ["²"])),
    changed("NodePool", "R", requirement("karpenter.k8s.aws/instance-cpu", ["9" * 5000])),
    changed("NodePool", "spec.weight", 10**5000),
    changed("NodePool", "spec", {10**5000: 1, (10**5000, 1): 2}),
    changed("NodePool", "B", {"nodes": "100%", "reasons": 5}),
    changed("NodeOverlay", "spec.price", "1e999999999999"),
    changed("NodeOverlay", "spec.priceAdjustment", "-1e999999999999"),
    changed("EC2NodeClass", "spec.kubelet", {"evictionHard": {"memory.available": "1e9999999999%"}}),
    changed("EC2NodeClass", "spec.kubelet", {"maxPods": "(" * 500_000}),
    changed("EC2NodeClass", "spec.kubelet", {"maxPods": "[1].map(x, " * 80}),
)


@pytest.mark.parametrize("number", range(len(ONCE)))
def test_what_broke_once(number: int) -> None:
    timed(number, lambda: said(validate(ONCE[number])))
    timed(number, lambda: together([ONCE[number], BASES["EC2NodeClass"]]))
