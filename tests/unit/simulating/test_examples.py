"""Each example passes, and fails for the reason that it teaches with the NodePool that it warns of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from jsonschema import validate as validate_schema

from kerf.cli.verbs.simulation.loading import File
from kerf.simulating import reading
from kerf.simulating.playing import Play
from kerf.simulating.world import Case
from tests.sources import ROOT

FOLDER = ROOT / "manifests" / "simulate"
EXAMPLES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml")) if not path.stem.startswith("nodeclass")}
Spec = dict[str, Any]


def _restrict(key: str, *values: str) -> Callable[[Spec], None]:
    """The NodePool allows only these values of a label."""

    def change(spec: Spec) -> None:
        own = spec["template"]["spec"]["requirements"]
        kept = [one for one in own if one["key"] != key]
        spec["template"]["spec"]["requirements"] = [*kept, {"key": key, "operator": "In", "values": list(values)}]

    return change


def _disruption(**fields: Any) -> Callable[[Spec], None]:
    return lambda spec: spec["disruption"].update(fields)


def _template(**fields: Any) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        own = spec["template"]["spec"]
        own.update(fields)
        for name in [name for name, value in own.items() if value is None]:
            del own[name]

    return change


def _spot_in_one_zone(spec: Spec) -> None:
    _restrict("karpenter.sh/capacity-type", "spot")(spec)
    _restrict("topology.kubernetes.io/zone", "us-west-2a")(spec)


def _limit(cpu: str) -> Callable[[Spec], None]:
    return lambda spec: spec.update(limits={"cpu": cpu})


#: By example: the wrong NodePool, the assertion that fails, and its reason.
WRONG: dict[str, tuple[Callable[[Spec], None], str, str]] = {
    "api-throttling": (
        _disruption(consolidateAfter="1m"),
        "every pod of shop runs within 3m",
        "no NodePool can make nodes for now",
    ),
    "black-friday": (_limit("20"), "every pod of shop runs within 3m", "limit"),
    "broken-agent": (_limit("8"), "every pod of web runs within 5m", "limit"),
    "budget-window": (
        _disruption(budgets=[{"nodes": "100%"}]),
        "at most 0 evictions of web",
        "NodePool general (Underutilized)",
    ),
    "gpu-scarcity": (
        _restrict("karpenter.k8s.aws/instance-family", "g5"),
        "every pod of inference runs within 10m",
        "InsufficientInstanceCapacity",
    ),
    "image-roll-out": (_disruption(budgets=[{"nodes": "100%"}]), "at least 9 running pods of web", "(Drifted)"),
    "night-scale-in": (_disruption(consolidationPolicy="WhenEmpty"), "at most 1 node at the end", "stays"),
    "pdb-deadlock": (_template(terminationGracePeriod=None), "at most 0 drifted nodes at the end", "legacy"),
    "protected-jobs": (
        _template(expireAfter="2h", terminationGracePeriod="10m"),
        "at most 0 evictions of solver",
        "(Expired)",
    ),
    "quota": (
        _restrict("karpenter.sh/capacity-type", "spot"),
        "every pod runs within 5m",
        "MaxSpotInstanceCountExceeded",
    ),
    "spot-loss": (_spot_in_one_zone, "at least 6 running pods of web", "stopped in us-west-2a"),
    "zone-loss": (
        _restrict("topology.kubernetes.io/zone", "us-west-2a"),
        "every pod runs within 5m",
        "InsufficientInstanceCapacity",
    ),
}


#: Those that fail within seconds of work; the others are played by `make long`.
QUICK = {"budget-window", "gpu-scarcity", "image-roll-out", "night-scale-in", "pdb-deadlock", "protected-jobs"}


def test_every_example_has_a_wrong_node_pool() -> None:
    assert {*WRONG} == {*EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes(name: str) -> None:
    result = Play(File(str(EXAMPLES[name])).case(), 0).run()
    assert [one for one in result.verdicts if not one.passed] == []
    # With the right NodePool Kerf launches nothing while EC2 throttles launches, and no type without stock.
    assert len(result.warnings) == (name in ("api-throttling", "gpu-scarcity")), result.warnings


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in EXAMPLES]
)
def test_a_wrong_node_pool_fails_for_the_reason_that_the_example_teaches(name: str) -> None:
    change, assertion, reason = WRONG[name]
    case = File(str(EXAMPLES[name])).case()
    result = Play(_changed(case, change), 0).run()
    failed = {one.assertion: one for one in result.verdicts if not one.passed}
    assert assertion in failed, result.verdicts
    assert reason in " | ".join(failed[assertion].reasons), failed[assertion]
    assert failed[assertion].at is not None


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_schema_accepts_an_example(name: str) -> None:
    validate_schema(yaml.safe_load(EXAMPLES[name].read_text()), reading.schema())


def _changed(case: Case, change: Callable[[Spec], None]) -> Case:
    (pool,) = [one.manifest for one in case.manifests if one.kind == "NodePool"]
    change(pool["spec"])  # each case has objects of its own
    return case
