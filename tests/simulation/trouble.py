"""What goes wrong: a script's faults at the ports, and its deeds, done to the world by its hands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from api import labels
from reconciler.model import kinds
from reconciler.model.kinds import Ref
from reconciler.ports import (
    Conflict,
    Disconnected,
    Expired,
    Invalid,
    PortError,
    Throttled,
    Unavailable,
)
from reconciler.sandbox.api_server import Record
from reconciler.sandbox.faults import Call, Faults
from reconciler.sandbox.kubelets import NOT_READY
from reconciler.sandbox.manifests import copied
from reconciler.sandbox.weather import Weather
from reconciler.sandbox.world import World
from tests.simulation.scripts import Fault, Script, pdb

READS = frozenset({"list", "watch", "read", "get", "get_lease", "instances", "region", "cluster", "resolve", "receive"})
#: Written at any time without changing what anybody decides on.
HARMLESS = frozenset({"emit", "put_lease", "delete_message"})
_ERRORS: dict[str, type[PortError]] = {
    error.__name__: error for error in (Conflict, Disconnected, Expired, Invalid, Throttled, Unavailable)
}
_REMEMBERED = 60


class Crash(BaseException):
    """The controller's process dies here; nothing in it can catch that."""


class Trouble(Faults):
    """The faults of a script, each when its time has come, until `end`. `before_write` hears of every write first."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._waiting = deque(sorted(faults, key=lambda fault: fault.at))
        self._armed: list[Fault] = []
        self._now: Callable[[], datetime] = lambda: _NEVER
        self._started = _NEVER
        self.before_write: Callable[[Call], None] = lambda call: None
        #: The latest writes with their outcome; how many there were; when a fault struck last.
        self.log: deque[str] = deque(maxlen=_REMEMBERED)
        self.writes = 0
        self.struck_at: datetime | None = None

    def begin(self, now: Callable[[], datetime]) -> None:
        self._now, self._started = now, now()

    def end(self) -> None:
        """From here on nothing fails."""
        self._waiting.clear()
        self._armed.clear()

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return (self._now() - self._started).total_seconds()

    @property
    def wakes_at(self) -> datetime | None:
        """When a silence ends and there may be something to read."""
        ends = [fault.at + fault.lasts for fault in self._armed if fault.error == "Silence"]
        later = [end for end in ends if end > self.elapsed]
        return self._started + timedelta(seconds=min(later)) if later else None

    # --- the seam -------------------------------------------------------------------------------------------------
    def before(self, call: Call) -> None:
        if call.verb not in READS | HARMLESS:
            self.writes += 1
            self._note(call, "")
            self.before_write(call)
        self._strike(call, after=False)

    def after(self, call: Call) -> None:
        self._strike(call, after=True)

    def silent(self, call: Call) -> bool:
        self._arm()
        found = any(f.error == "Silence" and _meant(f, call) for f in self._armed)
        if found:
            self.struck_at = self._now()
        return found

    def _strike(self, call: Call, *, after: bool) -> None:
        self._arm()
        for fault in self._armed:
            if fault.after is after and fault.error != "Silence" and _meant(fault, call):
                if not fault.lasts:
                    self._armed.remove(fault)
                self._fail(fault, call)

    def _fail(self, fault: Fault, call: Call) -> None:
        self.struck_at = self._now()
        self._note(call, f" -> {fault.error} {'after' if fault.after else 'before'}")
        if fault.error == "Crash":
            raise Crash(str(call))
        raise _ERRORS[fault.error](f"{call.verb} {call.subject}: {fault.error} by script")

    def _arm(self) -> None:
        """Faults whose time has come are armed; those that lasted long enough are over."""
        elapsed = self.elapsed
        while self._waiting and self._waiting[0].at <= elapsed:
            self._armed.append(self._waiting.popleft())
        if any(f.lasts and f.at + f.lasts <= elapsed for f in self._armed):
            self._armed = [f for f in self._armed if not f.lasts or f.at + f.lasts > elapsed]

    def _note(self, call: Call, outcome: str) -> None:
        self.log.append(f"{self.elapsed:8.2f} s  {call.port} {call.verb} {call.subject}{outcome}")


def _meant(fault: Fault, call: Call) -> bool:
    return fault.port == call.port and call.verb in fault.verbs and (not fault.subject or fault.subject == call.subject)


_NEVER = datetime.fromisoformat("2000-01-01T00:00:00+00:00")


class Hands:
    """Does a script's deeds: every public method is a verb. What is gone already is left alone."""

    def __init__(self, world: World, script: Script, staff: Staff) -> None:
        self._world, self._staff = world, staff
        self._manifests = {(m["kind"], m["metadata"]["name"]): copied(m) for m in script.manifests}
        self._outages: set[tuple[str, str, str]] = set()

    def begin(self) -> None:
        for manifest in self._manifests.values():
            self._world.apply(manifest)

    def calm(self) -> None:
        """Undo what would keep the cluster from coming to rest: the weather, outages, blocks, marks and taints."""
        world = self._world
        world.ec2.weather = Weather()
        for key in sorted(self._outages):
            world.ec2.stock_out(*key, world.clock.now())
        for node in self._sorted(kinds.NODE):
            self._unmark(node)
        for (kind, name), manifest in self._manifests.items():
            if kind == "NodePool":
                manifest["spec"]["template"]["spec"].pop("expireAfter", None)
            if kind in ("NodePool", "EC2NodeClass"):
                self._apply(manifest)
            if kind == "Deployment":
                self.unblock(name)

    # --- workloads --------------------------------------------------------------------------------------------------
    def scale(self, app: str, replicas: int) -> None:
        self._manifests["Deployment", app]["spec"]["replicas"] = replicas
        self._world.scale("default", app, replicas)

    def roll(self, app: str, version: str) -> None:
        template = self._manifests["Deployment", app]["spec"]["template"]
        template["metadata"]["annotations"] = {"version": version}
        self._apply(self._manifests["Deployment", app])

    def block(self, app: str, seconds: int) -> None:
        """A PodDisruptionBudget that lets nobody go, for a while."""
        self._apply(pdb(app, {"maxUnavailable": 0}))
        self._later(seconds, lambda: self.unblock(app))

    def unblock(self, app: str) -> None:
        known = self._manifests.get(("PodDisruptionBudget", app))
        if known is not None:
            self._apply(known)
        elif self._world.server.find(kinds.PDB, "default", app) is not None:
            self._world.delete("PodDisruptionBudget", app, "default")

    def delete_pod(self, pick: float) -> None:
        self._delete(kinds.POD, pick)

    # --- nodes ------------------------------------------------------------------------------------------------------
    def delete_node(self, pick: float) -> None:
        self._delete(kinds.NODE, pick)

    def delete_claim(self, pick: float) -> None:
        self._delete(kinds.NODE_CLAIM, pick)

    def abandon_claim(self, pick: float) -> None:
        """A person takes the finalizers off a claim and deletes it: its instance has nobody any more."""
        claim = self._one(kinds.NODE_CLAIM, pick)
        if claim is not None:
            self._world.server.patch(kinds.NODE_CLAIM, *claim.key, {"metadata": {"finalizers": []}})
            if self._world.server.find(kinds.NODE_CLAIM, *claim.key) is not None:
                self._world.server.delete(kinds.NODE_CLAIM, *claim.key)

    def taint(self, pick: float, effect: str, seconds: int) -> None:
        node = self._one(kinds.NODE, pick)
        if node is not None:
            rows = [*(node.manifest["spec"].get("taints") or ()), {"key": _MARK, "value": "x", "effect": effect}]
            self._world.server.patch(kinds.NODE, *node.key, {"spec": {"taints": rows}})
            self._later(seconds, lambda: self._unmark(node))

    def untaint_disrupted(self, pick: float) -> None:
        """A person takes the disruption taint off a node that is on its way."""
        going = [
            r for r in self._sorted(kinds.NODE) if any(t.key == labels.DISRUPTED_TAINT for t in r.value.spec.taints)
        ]
        if going:
            node = going[int(pick * len(going))]
            rows = [t for t in node.manifest["spec"]["taints"] if t["key"] != labels.DISRUPTED_TAINT]
            self._world.server.patch(kinds.NODE, *node.key, {"spec": {"taints": rows}})

    def protect(self, pick: float, seconds: int) -> None:
        self._annotate(pick, labels.DO_NOT_DISRUPT, seconds)

    def sicken(self, pick: float, seconds: int) -> None:
        self._annotate(pick, NOT_READY, seconds)

    # --- the controller's objects -----------------------------------------------------------------------------------
    def delete_pool(self, name: str, seconds: int) -> None:
        if self._world.server.find(kinds.NODE_POOL, "", name) is not None:
            self._world.delete("NodePool", name)
            self._later(seconds, lambda: self._apply(self._manifests["NodePool", name]))

    def relabel_pool(self, name: str, version: str) -> None:
        """A new label in the template: its nodes drift."""
        self._manifests["NodePool", name]["spec"]["template"]["metadata"] = {"labels": {"version": version}}
        self._apply(self._manifests["NodePool", name])

    def edit_budget(self, name: str, nodes: str) -> None:
        pool = self._manifests["NodePool", name]
        kept = pool["spec"]["disruption"]
        self._apply({**pool, "spec": {**pool["spec"], "disruption": {**kept, "budgets": [{"nodes": nodes}]}}})

    def change_image(self, alias: str) -> None:
        self._manifests["EC2NodeClass", "default"]["spec"]["amiSelectorTerms"] = [{"alias": alias}]
        self._apply(self._manifests["EC2NodeClass", "default"])

    # --- AWS, etcd, the controller's own process --------------------------------------------------------------------
    def reclaim(self, pick: float) -> None:
        spot = sorted(m.id for m in self._world.ec2.instances.values() if m.capacity_type == "spot" and lives(m))
        if spot:
            self._world.ec2.reclaim_spot(spot[int(pick * len(spot))])

    def end_instance(self, pick: float) -> None:
        living = sorted((m.id, m) for m in self._world.ec2.instances.values() if lives(m))
        if living:
            self._world.ec2.end(living[int(pick * len(living))][1])

    def stock_out(self, instance_type: str, capacity_type: str, seconds: int) -> None:
        key = (instance_type, "*", capacity_type)
        self._outages.add(key)
        self._world.ec2.stock_out(*key, self._world.clock.now() + timedelta(seconds=seconds))

    def compact(self) -> None:
        self._world.server.compact()

    def second_leader(self, seconds: int) -> None:
        self._staff.double()
        self._later(seconds, self._staff.single)

    def not_leading(self, seconds: int) -> None:
        self._staff.leads = False
        self._later(seconds, self._staff.lead)

    # --- aids -------------------------------------------------------------------------------------------------------
    def _apply(self, manifest: Any) -> None:
        """As `kubectl apply`, again and again until nothing of that name is on its way out."""
        kind = self._world.server.kinds[manifest["kind"]]
        old = self._world.server.find(kind, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        if old is not None and old.value.metadata.deleting:
            self._later(10, lambda: self._apply(manifest))
        else:
            self._world.apply(manifest)

    def _later(self, seconds: float, deed: Callable[[], None]) -> None:
        self._world.agenda.after(seconds, deed)

    def _sorted(self, kind: kinds.Kind) -> list[Record]:
        return self._world.server.select(kind, "", "", "")

    def _one(self, kind: kinds.Kind, pick: float) -> Record | None:
        there = self._sorted(kind)
        return there[int(pick * len(there))] if there else None

    def _delete(self, kind: kinds.Kind, pick: float) -> None:
        record = self._one(kind, pick)
        if record is not None:
            self._world.server.delete(kind, *record.key)

    def _annotate(self, pick: float, annotation: str, seconds: int) -> None:
        node = self._one(kinds.NODE, pick)
        if node is not None:
            self._world.server.patch(kinds.NODE, *node.key, {"metadata": {"annotations": {annotation: "true"}}})
            self._later(seconds, lambda: self._unmark(node))

    def _unmark(self, node: Record) -> None:
        """Take back what these hands have put on a node."""
        now = self._world.server.find(kinds.NODE, *node.key)
        if now is None or now.value.metadata.uid != node.value.metadata.uid:
            return
        rows = [t for t in now.manifest["spec"].get("taints") or () if t["key"] != _MARK]
        notes = {labels.DO_NOT_DISRUPT: None, NOT_READY: None}
        self._world.server.patch(kinds.NODE, *node.key, {"metadata": {"annotations": notes}, "spec": {"taints": rows}})


_MARK = "example.com/by-hand"


class Staff:
    """Who controls the world, as far as deeds have a say in it."""

    leads = True

    def lead(self) -> None:
        self.leads = True

    def double(self) -> None:
        """A second controller believes that it leads, too."""

    def single(self) -> None:
        """One of the two is gone."""


def lives(machine: Any) -> bool:
    return bool(machine.state in ("pending", "running"))


def address(subject: str) -> Ref:
    """The object that a call's subject names."""
    kind, *place = subject.split("/")
    name = next(known.name for known in kinds.WATCHED if known.name.lower() == kind)
    return Ref(name, place[0] if len(place) == 2 else "", place[-1])
