"""`kerf demo`: the whole job in under a minute, on the sandbox, with the real controller and a clock that runs fast.

The script below is a list of scenes. Each does something a person or AWS would do (apply YAML, reclaim a spot
instance, scale down) and then lets the world run until what should follow has followed, or its time is up. The screen
only looks; nothing here helps the controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from importlib import resources
from typing import Any

from rich.markup import escape
from ruamel.yaml import YAML

from kerf.cli.demonstration.screen import Row, Screen, View
from kerf.model.plan import Refusal
from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.runtime.observe import looking
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured
from kerf_api import labels

STEP = timedelta(seconds=5)


@dataclass(slots=True)
class Summary:
    """What the demo ends with; money in US dollars per hour."""

    virtual_minutes: float = 0.0
    pods_running: int = 0
    pods_pending: int = 0
    nodes: int = 0
    nodes_launched: int = 0
    cost_before_usd_per_hour: float = 0.0
    cost_after_usd_per_hour: float = 0.0
    spot_reclaims_survived: int = 0
    drifted_nodes_replaced: int = 0
    most_drifting_at_once: int = 0
    manifests_refused: list[dict[str, Any]] = field(default_factory=list)
    pods_refused: list[dict[str, str]] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)


class Demo:
    """One run of the script. `pause_seconds` of real time pass per frame; 0 for tests and `--json`."""

    def __init__(self, screen: Screen, *, seed: int = 7, pause_seconds: float = 0.05) -> None:
        self.world = World(seed=seed)
        self.controller = Controller(
            self.world.ports, settings=Settings(cluster_name="sandbox", interruption_queue="sandbox"), inline=True
        )
        self.screen, self.pause_seconds = screen, pause_seconds
        self.summary = Summary()
        self.refusals: dict[str, Refusal] = {}
        self.started = self.world.clock.now()

    # --- the script ---------------------------------------------------------------------------------------------
    def run(self) -> Summary:
        """Play every scene in order; the summary says what was reached and what was not."""
        for scene in (self._apply, self._grow, self._reclaim, self._shrink, self._drift):
            scene()
        return self._finish()

    def _apply(self) -> None:
        self.screen.scene("A platform engineer applies an EC2NodeClass and three NodePools")
        for manifest in manifests("EC2NodeClass", "NodePool"):
            name = f"{manifest['kind']} {manifest['metadata']['name']}"
            try:
                self.world.apply(manifest)
                self.screen.say(f"[green]{name} accepted[/]")
            except Refused as refused:
                self.screen.say(f"[red]{name} rejected:[/]")
                for problem in refused.problems:
                    self.screen.say(f"  [red]{escape(problem)}[/]")
                self.summary.manifests_refused.append({"manifest": name, "problems": list(refused.problems)})
        self._until("both NodePools are Ready", 2, lambda: self._ready_pools() == 2)

    def _grow(self) -> None:
        self.screen.scene("Developers deploy 44 pods")
        for manifest in manifests("Deployment", "PodDisruptionBudget", "DaemonSet"):
            self.world.apply(manifest)
        self._until("43 pods run", 8, lambda: self._running() >= 43)
        self._settle(2)
        for subject, refusal in sorted(self.refusals.items()):
            if subject.startswith("pod/") and subject.removeprefix("pod/") in self._pending():
                self.screen.say(f"[yellow]{subject} is unschedulable:[/] {refusal.reason}")

    def _reclaim(self) -> None:
        spot = [i for i in self._instances() if i.capacity_type == labels.SPOT]
        if not spot:
            self.summary.unmet.append("Kerf launched no spot instance")
            return
        victim = max(spot, key=lambda i: (len(self._pods_on(i.provider_id)), i.id))
        self.screen.scene(f"EC2 reclaims spot instance {victim.id} ({victim.instance_type}) with two minutes' notice")
        self.world.ec2.reclaim_spot(victim.id)
        gone = f"{victim.id} is terminated and its pods run elsewhere"
        if self._until(gone, 8, lambda: victim.id not in {i.id for i in self._instances()} and self._running() >= 43):
            self.summary.spot_reclaims_survived += 1

    def _shrink(self) -> None:
        self.screen.scene("The Deployments web and workers scale down to a third; consolidation removes nodes")
        self.summary.cost_before_usd_per_hour = self._cost()
        self.world.scale("default", "web", 8)
        self.world.scale("default", "workers", 5)
        before = self._cost()
        self._until("the hourly cost is a third lower", 20, lambda: self._cost() <= before * 2 / 3 and self._calm())
        self._settle(6)
        self.summary.cost_after_usd_per_hour = self._cost()

    def _drift(self) -> None:
        self.screen.scene(
            "The label team of NodePool general changes; its nodes drift, and a budget allows one replacement at a time"
        )
        pool = next(m for m in manifests("NodePool") if m["metadata"]["name"] == "general")
        pool["spec"]["template"]["metadata"]["labels"]["team"] = "web-platform"
        old = {c["metadata"]["name"] for c in self._claims("general")}
        self.world.apply(pool)
        self._until(f"{len(old)} nodes are replaced", 40, lambda: self._replaced(old))
        self.summary.drifted_nodes_replaced = len(old - {c["metadata"]["name"] for c in self._claims("general")})
        self._settle(2)

    def _finish(self) -> Summary:
        done = self.summary
        done.virtual_minutes = round((self.world.clock.now() - self.started).total_seconds() / 60, 1)
        done.pods_running, done.pods_pending = self._running(), len(self._pending())
        done.nodes, done.nodes_launched = len(self._nodes()), len(self.world.ec2.instances)
        pending = self._pending()
        for subject, refusal in sorted(self.refusals.items()):
            if subject.removeprefix("pod/") in pending:
                done.pods_refused.append({"pod": subject.removeprefix("pod/"), "why": str(refusal.reason)})
        return done

    def captured(self) -> Captured:
        """The controller's view of the cluster now, for `kerf ui`, `kerf why` and `kerf plan`."""
        return looking.captured(self.controller.state, self.world.clock.now())

    # --- running the world --------------------------------------------------------------------------------------
    def _until(self, what: str, minutes: float, reached: Callable[[], bool]) -> bool:
        """Let the world run until `reached`, or say that it was not within so many virtual minutes."""
        begun = self.world.clock.now()
        while not reached():
            if self.world.clock.now() - begun > timedelta(minutes=minutes):
                self.summary.unmet.append(f"{what} (within {minutes:g} minutes)")
                self.screen.say(f"[bold red]not reached within {minutes:g} minutes:[/] {what}")
                return False
            self._advance()
        took = int((self.world.clock.now() - begun).total_seconds())
        self.screen.say(f"[bold green]✓[/] {what} [dim](after {took} s)[/]")
        return True

    def _settle(self, minutes: float) -> None:
        until = self.world.clock.now() + timedelta(minutes=minutes)
        while self.world.clock.now() < until:
            self._advance()

    def _advance(self) -> None:
        self.world.run(_Listening(self.controller, self._heard), STEP)
        self._watch_drift()
        self.screen.frame(self._view)
        if self.pause_seconds:
            time.sleep(self.pause_seconds)

    def _heard(self, refusals: tuple[Refusal, ...]) -> None:
        self.refusals.update({r.subject: r for r in refusals})

    def _watch_drift(self) -> None:
        claims = self._claims("general")
        leaving = [c for c in claims if _condition(c, "DisruptionReason") == "Drifted"]
        going = [c for c in leaving if not _is_true(c, "InstanceTerminating")]
        self.summary.most_drifting_at_once = max(self.summary.most_drifting_at_once, len(going))

    # --- looking at the world -----------------------------------------------------------------------------------
    def _claims(self, pool: str) -> list[dict[str, Any]]:
        claims = self.world.objects("NodeClaim")
        return [c for c in claims if c["metadata"].get("labels", {}).get(labels.NODEPOOL) == pool]

    def _nodes(self) -> list[dict[str, Any]]:
        return self.world.objects("Node")

    def _instances(self) -> list[Machine]:
        return [i for i in self.world.ec2.instances.values() if i.state in ("pending", "running")]

    def _ready_pools(self) -> int:
        return sum(_is_true(pool, "Ready") for pool in self.world.objects("NodePool"))

    def _workload_pods(self) -> Iterator[dict[str, Any]]:
        return (p for p in self.world.objects("Pod") if p["metadata"]["namespace"] == "default")

    def _running(self) -> int:
        return sum(p.get("status", {}).get("phase") == "Running" and _alive(p) for p in self._workload_pods())

    def _pending(self) -> set[str]:
        return {_key(p) for p in self._workload_pods() if not p["spec"].get("nodeName") and _alive(p)}

    def _pods_on(self, provider_id: str) -> list[dict[str, Any]]:
        names = {n["metadata"]["name"] for n in self._nodes() if n["spec"].get("providerID") == provider_id}
        return [p for p in self._workload_pods() if p["spec"].get("nodeName") in names]

    def _cost(self) -> float:
        """US dollars per hour of all live instances."""
        return sum(i.price for i in self._instances()) / 1_000_000

    def _calm(self) -> bool:
        return not any(_condition(c, "DisruptionReason") or not _alive(c) for c in self.world.objects("NodeClaim"))

    def _replaced(self, old: set[str]) -> bool:
        now = {c["metadata"]["name"] for c in self._claims("general")}
        return not now & old and self._calm() and all(_is_true(c, "Ready") for c in self._claims("general"))

    def _view(self) -> View:
        """What the screen shows: built only when it is drawn."""
        by_provider = {i.provider_id: i for i in self._instances()}
        on_node: dict[str, int] = {}
        for pod in self._workload_pods():
            on_node[pod["spec"].get("nodeName", "")] = on_node.get(pod["spec"].get("nodeName", ""), 0) + 1
        rows = []
        for claim in sorted(self.world.objects("NodeClaim"), key=lambda c: str(c["metadata"]["name"])):
            instance = by_provider.get(claim.get("status", {}).get("providerID", ""))
            node = claim.get("status", {}).get("nodeName", "")
            rows.append(
                Row(
                    name=claim["metadata"]["name"],
                    type=instance.instance_type if instance else "",
                    zone=instance.zone if instance else "",
                    capacity=instance.capacity_type if instance else "",
                    price=instance.price / 1_000_000 if instance else 0.0,
                    pods=on_node.get(node, 0) if node else 0,
                    state=_state(claim),
                )
            )
        elapsed = self.world.clock.now() - self.started
        return View(elapsed, tuple(rows), self._running(), len(self._pending()), self._cost())


@dataclass(slots=True)
class _Listening:
    """The controller, with someone listening to its refusals."""

    controller: Controller
    heard: Callable[[tuple[Refusal, ...]], None]

    @property
    def next_due(self) -> Any:
        return self.controller.next_due

    def tick(self) -> object:
        plan = self.controller.tick()
        self.heard(plan.refusals)
        return plan


def manifests(*kinds: str) -> list[dict[str, Any]]:
    """The demo's manifests of these kinds, in file order, freshly parsed."""
    text = resources.files("kerf.cli").joinpath("demo.yaml").read_text(encoding="utf-8")
    return [m for m in YAML(typ="safe").load_all(text) if m["kind"] in kinds]


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as one JSON-ready object."""
    return asdict(summary)


def _key(thing: Mapping[str, Any]) -> str:
    return f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"


def _alive(thing: Mapping[str, Any]) -> bool:
    return not thing["metadata"].get("deletionTimestamp")


def _condition(thing: Mapping[str, Any], type_: str) -> str:
    """The reason of a condition that is True, else the empty string."""
    found = [c for c in thing.get("status", {}).get("conditions", []) if c["type"] == type_ and c["status"] == "True"]
    return str(found[0].get("reason") or type_) if found else ""


def _is_true(thing: Mapping[str, Any], type_: str) -> bool:
    return bool(_condition(thing, type_))


def _state(claim: Mapping[str, Any]) -> str:
    if not _alive(claim):
        return "terminating" if _is_true(claim, "Drained") else "draining"
    if reason := _condition(claim, "DisruptionReason"):
        return f"leaving: {reason}"
    for type_, word in (("Initialized", "ready"), ("Registered", "registered"), ("Launched", "booting")):
        if _is_true(claim, type_):
            return word
    return "launching"
