"""Scenarios: small worlds as YAML. Each file tells a story in steps, and after each step what must be true.

A scenario is a list of steps. Verbs: `gates` (feature gates; first of all), `apply` (a manifest), `stage` (the usual
node class, with a pool when `pool` is given: its template spec and disruption), `deploy` (name, replicas and pod spec
of a Deployment), `scale`, `delete`, `stock_out`, `reclaim` (a spot instance), `sicken` (so many nodes of those that are
well), `cure` (all of them), `remember` (the claims as they are now), `run` (virtual time), `expect`. An expectation
must hold at once; with `within` the world runs until it does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from api import durations, labels
from reconciler.model import kinds
from reconciler.model.plan import Plan
from reconciler.model.settings import FeatureGates, Settings
from reconciler.runtime.controller import Controller
from reconciler.sandbox.kubelets import NOT_READY
from reconciler.sandbox.world import World
from tests.worlds import deployment, node_class, node_pool

FILES = sorted(Path(__file__).parent.glob("*.yaml"))
STEP = timedelta(seconds=2)


class Story:
    """One scenario being played."""

    def __init__(self) -> None:
        self.world = World(seed=11)
        self.do_gates({})
        self.refusals: dict[str, str] = {}
        self._remembered: dict[str, set[str]] = {}

    # --- the controller, with an ear on its refusals --------------------------------------------------------------
    @property
    def next_due(self) -> Any:
        return self._controller.next_due

    def tick(self) -> Plan:
        plan = self._controller.tick()
        self.refusals.update({refusal.subject: str(refusal.reason) for refusal in plan.refusals})
        return plan

    # --- verbs ----------------------------------------------------------------------------------------------------
    def play(self, step: Mapping[str, Any]) -> None:
        for verb, given in step.items():
            getattr(self, f"do_{verb}")(given)

    def do_gates(self, given: Mapping[str, bool]) -> None:
        self._controller = Controller(
            kube=self.world.kube,
            cloud=self.world.cloud,
            clock=self.world.clock,
            settings=Settings("sandbox", interruption_queue="sandbox", gates=FeatureGates(**given)),
            inline=True,
        )

    def do_stage(self, given: Mapping[str, Any]) -> None:
        self.world.apply(node_class())
        for name, pool in (given.get("pools") or {"general": {}}).items():
            self.world.apply(node_pool(name, pool or {}))
        self.do_run("10s")

    def do_apply(self, manifest: Mapping[str, Any]) -> None:
        self.world.apply(manifest)

    def do_pool(self, given: Mapping[str, Any]) -> None:
        for name, pool in given.items():
            self.world.apply(node_pool(name, pool or {}))

    def do_deploy(self, given: Mapping[str, Any]) -> None:
        for name, what in given.items():
            self.world.apply(deployment(name, what))

    def do_scale(self, given: Mapping[str, int]) -> None:
        for name, replicas in given.items():
            self.world.scale("default", name, replicas)

    def do_delete(self, given: Mapping[str, str]) -> None:
        for kind, name in given.items():
            self.world.delete(kind, self._first_node() if name == "a node" else name, "default")

    def do_stock_out(self, given: Mapping[str, str]) -> None:
        until = self.world.clock.now() + durations.parse(given.get("for", "24h"))
        for key in self.world.cloud.region().types if given["type"] == "every" else [given["type"]]:
            for zone in ("us-west-2a", "us-west-2b", "us-west-2c"):
                self.world.ec2.stock_out(key, zone, given["capacity"], until)

    def do_reclaim(self, _: object) -> None:
        spot = sorted(m.id for m in self.world.ec2.instances.values() if m.capacity_type == "spot" and _lives(m))
        self.world.ec2.reclaim_spot(spot[0])

    def do_sicken(self, count: int) -> None:
        well = [n for n in self._named("Node") if NOT_READY not in (n["metadata"].get("annotations") or {})]
        for one in well[:count]:
            self._mark(one, "true")

    def do_cure(self, _: object) -> None:
        for one in self._named("Node"):
            self._mark(one, None)

    def do_run(self, text: str) -> None:
        self.world.run(self, durations.parse(text))

    def do_remember(self, name: str) -> None:
        """Keep the claims as they are now, for `none_of` and `all_of` later."""
        self._remembered[name] = self._claims()

    def do_expect(self, given: Mapping[str, Any]) -> None:
        wanted = {what: value for what, value in given.items() if what != "within"}
        end = self.world.clock.now() + durations.parse(given.get("within", "0s"))
        while (unmet := self._unmet(wanted)) and self.world.clock.now() < end:
            self.world.run(self, STEP)
        took = f"at {self.world.clock.now():%H:%M:%S}"
        assert not unmet, f"{took}: {unmet}\n{self._picture()}"

    # --- expectations ---------------------------------------------------------------------------------------------
    def _unmet(self, wanted: Mapping[str, Any]) -> dict[str, str]:
        found = {what: (value, getattr(self, f"see_{what}")(value)) for what, value in wanted.items()}
        return {what: f"wanted {want}, found {got}" for what, (want, got) in found.items() if not _meets(got, want)}

    def see_running(self, wanted: Mapping[str, int]) -> dict[str, int]:
        alive = [p for p in self.world.objects("Pod") if not p["metadata"].get("deletionTimestamp")]
        count = Counter(p["metadata"]["labels"].get("app") for p in alive if p["status"].get("phase") == "Running")
        return {app: count[app] for app in wanted}

    def see_nodes(self, _: object) -> int:
        return sum(not n["metadata"].get("deletionTimestamp") for n in self.world.objects("Node"))

    def see_claims(self, _: object) -> int:
        return len(self._claims())

    def see_instances(self, _: object) -> int:
        return sum(_lives(m) for m in self.world.ec2.instances.values())

    def see_launched(self, _: object) -> int:
        return len(self.world.ec2.instances)

    def see_pools(self, wanted: Mapping[str, int]) -> dict[str, int]:
        nodes = Counter(n["metadata"]["labels"].get(labels.NODEPOOL) for n in self.world.objects("Node"))
        return {pool: nodes[pool] for pool in wanted}

    def see_types(self, wanted: Mapping[str, int]) -> dict[str, int]:
        nodes = Counter(n["metadata"]["labels"].get(labels.INSTANCE_TYPE) for n in self.world.objects("Node"))
        return {name: nodes[name] for name in wanted}

    def see_zones(self, _: object) -> int:
        return len({n["metadata"]["labels"][labels.ZONE] for n in self.world.objects("Node")})

    def see_capacity(self, _: object) -> list[str]:
        return sorted({n["metadata"]["labels"][labels.CAPACITY_TYPE] for n in self.world.objects("Node")})

    def see_pods_per_node(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """The most pods of an app on one node."""
        most = {}
        for app in wanted:
            pods = [p for p in self.world.objects("Pod") if p["metadata"]["labels"].get("app") == app]
            most[app] = max(Counter(p["spec"].get("nodeName") for p in pods).values(), default=0)
        return most

    def see_tainted(self, _: object) -> int:
        return sum(_disrupted(n) for n in self.world.objects("Node"))

    def see_none_of(self, name: str) -> list[str]:
        return sorted(self._claims() & self._remembered[name])

    def see_gone(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """How many of the remembered claims are no more."""
        return {name: len(self._remembered[name] - self._claims()) for name in wanted}

    def see_all_of(self, name: str) -> list[str]:
        return sorted(self._remembered[name] - self._claims())

    def see_refused(self, wanted: Mapping[str, str]) -> dict[str, str]:
        return {prefix: self._refusals(prefix) for prefix in wanted}

    def see_conditions(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """`Kind name Type` to `Status Reason: message`."""
        return {key: self._condition(*key.split()) for key in wanted}

    def see_events(self, wanted: list[str]) -> list[str]:
        have = {e.get("reason", "") for e in self.world.objects("Event")}
        return [reason for reason in wanted if reason in have]

    # --- aids -----------------------------------------------------------------------------------------------------
    def _claims(self) -> set[str]:
        return {c["metadata"]["name"] for c in self.world.objects("NodeClaim")}

    def _first_node(self) -> str:
        return str(self._named("Node")[0]["metadata"]["name"])

    def _named(self, kind: str) -> list[dict[str, Any]]:
        """All of a kind, by name."""
        return sorted(self.world.objects(kind), key=lambda one: one["metadata"]["name"])

    def _mark(self, node: Mapping[str, Any], value: str | None) -> None:
        patch = {"metadata": {"annotations": {NOT_READY: value}}}
        self.world.server.patch(kinds.NODE, "", node["metadata"]["name"], patch)

    def _refusals(self, prefix: str) -> str:
        return " | ".join(text for subject, text in sorted(self.refusals.items()) if subject.startswith(prefix))

    def _condition(self, kind: str, name: str, type_: str) -> str:
        one = next(o for o in self.world.objects(kind) if o["metadata"]["name"] == name)
        found = next((c for c in one.get("status", {}).get("conditions", []) if c["type"] == type_), {})
        message = f": {found['message']}" if found.get("message") else ""
        return f"{found.get('status', '')} {found.get('reason', '')}{message}"

    def _picture(self) -> str:
        nodes = [f"{n['metadata']['name']} {n['metadata']['labels']}" for n in self.world.objects("Node")]
        return "\n".join([*nodes, *sorted(f"{s}: {r}" for s, r in self.refusals.items())])


def _meets(found: Any, wanted: Any) -> bool:
    """Equal; or, where the wanted is text over a number, a bound such as `<= 3`; over text, a regular expression."""
    if isinstance(wanted, Mapping):
        return all(_meets(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, str) and isinstance(found, int):
        operator, _, bound = wanted.partition(" ")
        return {"<=": found <= int(bound), ">=": found >= int(bound)}[operator]
    if isinstance(wanted, str) and isinstance(found, str):
        return re.search(wanted, found) is not None
    if isinstance(wanted, str) and isinstance(found, list):
        return not found  # none_of, all_of: nothing left over
    return bool(found == wanted)


def _lives(machine: Any) -> bool:
    return machine.state in ("pending", "running")


def _disrupted(node: Mapping[str, Any]) -> bool:
    return any(t["key"] == labels.DISRUPTED_TAINT for t in node["spec"].get("taints") or [])


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_scenario(file: Path) -> None:
    story = Story()
    for step in YAML(typ="safe").load(file.read_text(encoding="utf-8")):
        story.play(step)
