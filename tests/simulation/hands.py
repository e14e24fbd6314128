"""The hands of people, of AWS and of etcd: they do a script's deeds to the world."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import STATEFUL_SET, Kind
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.api.manifests import copied
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.conditions import TRUE, get
from tests.simulation.clusters import daemon_set, job, pdb
from tests.simulation.scripts import Script
from tests.simulation.trouble import lives

_MARK, _GUEST = "example.com/by-hand", "guest"
_LATER = 10.0
#: On a NodePool: what garbage collection has ended lately.
_COLLECTED = f"{labels.KERF}/garbage-collected"


class Staff:
    """Who controls the world, as far as deeds have a say in it."""

    leads = True

    def lead(self) -> None:
        self.leads = True

    def double(self) -> None:
        """A second controller believes that it leads, too."""

    def single(self) -> None:
        """One of the two is gone."""


class Hands:
    """Does a script's deeds: every public method is a verb. What is gone already is left alone."""

    def __init__(self, world: World, script: Script, staff: Staff) -> None:
        self._world, self._staff = world, staff
        self._manifests = {(m["kind"], m["metadata"]["name"]): copied(m) for m in script.manifests}
        self._outages: set[tuple[str, str, str]] = set()
        #: What was applied last, by kind and name: what is applied again and again is this.
        self._wanted: dict[tuple[str, str], Any] = {}

    def begin(self) -> None:
        for manifest in self._manifests.values():
            self._world.apply(manifest)

    def calm(self) -> None:
        """Undo what would keep the cluster from coming to rest: the weather, outages, blocks, marks, taints, pauses."""
        agent = self._world.ec2.weather.late_taint.partition("=")[0]
        self._world.ec2.weather = Weather()
        for key in sorted(self._outages):
            self._world.ec2.stock_out(*key, self._world.clock.now())
        for kind in (kinds.NODE, kinds.POD):
            for record in self._sorted(kind):
                self._unmark(record)
        for record in self._sorted(kinds.NODE):
            there = record.manifest["spec"].get("taints") or []
            if any(taint["key"] == agent for taint in there):
                taints = [taint for taint in there if taint["key"] != agent]
                self._world.server.patch(kinds.NODE, *record.key, {"spec": {"taints": taints}})
        for record in self._sorted(kinds.NODE_POOL):  # a pause may end when the world counts as idle
            unpaused = {"metadata": {"annotations": {labels.CONSOLIDATION_PAUSE: None}}}
            self._world.server.patch(kinds.NODE_POOL, *record.key, unpaused)
        self._clear_class()
        for (kind_name, name), manifest in self._manifests.items():
            if kind_name == "NodePool":
                manifest["spec"]["template"]["spec"].pop("expireAfter", None)
            if kind_name in ("NodePool", "EC2NodeClass"):
                self._apply(manifest)
            if kind_name in ("Deployment", "StatefulSet"):
                self.unblock(name)
                self._gone("PodDisruptionBudget", f"{name}-{_GUEST}")
        self._gone("DaemonSet", _GUEST)

    def _clear_class(self) -> None:
        """A class that was deleted under its nodes stays until they are gone; somebody takes its finalizers off."""
        found = self._world.server.find(kinds.NODE_CLASS, "", "default")
        if found is not None and found.value.metadata.deleting:
            self._abandon(kinds.NODE_CLASS, 0.0)

    def allow_garbage(self) -> None:
        """Somebody reads what garbage collection will not do without being told, and tells it to."""
        for record in (*self._sorted(kinds.NODE_POOL), *self._sorted(kinds.NODE_CLASS)):
            held = get(record.value.status.conditions, "GarbageCollectionHalted")
            if held is not None and held.status == TRUE:
                key, _, mark = held.message.rpartition(" ")[2].partition("=")
                self._world.server.patch(record.kind, *record.key, {"metadata": {"annotations": {key: mark}}})

    def lift_budgets(self, waiting: Container[str]) -> None:
        """A user removes the PodDisruptionBudgets of workloads of which pods are `waiting` for good: these would keep
        the other pods on a node that is drained."""
        short = {one.value.metadata.labels.get("app") for one in self._sorted(kinds.POD) if one.value.key in waiting}
        for record in self._sorted(kinds.PDB):
            if record.value.metadata.name in short:
                self._world.server.delete(kinds.PDB, *record.key)

    def tidy(self) -> None:
        """Somebody takes off the notes about garbage, which would be taken off within the hour."""
        for record in (*self._sorted(kinds.NODE_POOL), *self._sorted(kinds.NODE_CLASS)):
            self._world.server.patch(record.kind, *record.key, {"metadata": {"annotations": {_COLLECTED: None}}})

    # --- workloads --------------------------------------------------------------------------------------------------
    def scale(self, app: str, replicas: int) -> None:
        kind = "Deployment" if ("Deployment", app) in self._manifests else STATEFUL_SET.name
        self._manifests[kind, app]["spec"]["replicas"] = replicas
        patch = {"spec": {"replicas": replicas}}
        self._world.server.patch(self._world.server.kinds[kind], "default", app, patch)

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
        else:
            self._gone("PodDisruptionBudget", app)

    def overlap(self, app: str, seconds: int) -> None:
        """A second budget over the same pods: with two of them the eviction API answers with an error."""
        name = f"{app}-{_GUEST}"
        self._apply(pdb(app, {"maxUnavailable": 1}, name))
        self._later(seconds, lambda: self._gone("PodDisruptionBudget", name))

    def run_job(self, name: str, seconds: int) -> None:
        if self._world.server.find(kinds.POD, "default", name) is None:
            self._world.apply(job(name, seconds))

    def add_daemon(self, seconds: int) -> None:
        """One more DaemonSet wants room on every node, for a while."""
        self._apply(daemon_set(_GUEST))
        self._later(seconds, lambda: self._gone("DaemonSet", _GUEST))

    def delete_pod(self, pick: float) -> None:
        self._delete(kinds.POD, pick)

    def kill_pod(self, pick: float) -> None:
        """As `kubectl delete --force --grace-period=0`."""
        pod = self._one(kinds.POD, pick)
        if pod is not None:
            self._world.server.delete(kinds.POD, *pod.key, grace_seconds=0)

    def pin_pod(self, pick: float, seconds: int) -> None:
        self._annotate(kinds.POD, pick, labels.DO_NOT_DISRUPT, seconds)

    # --- nodes ------------------------------------------------------------------------------------------------------
    def delete_node(self, pick: float) -> None:
        self._delete(kinds.NODE, pick)

    def delete_claim(self, pick: float) -> None:
        self._delete(kinds.NODE_CLAIM, pick)

    def abandon_node(self, pick: float) -> None:
        """A person takes the finalizers off a node and deletes it; its instance lives on."""
        self._abandon(kinds.NODE, pick)

    def abandon_claim(self, pick: float) -> None:
        """The same to a claim: its instance has nobody any more."""
        self._abandon(kinds.NODE_CLAIM, pick)

    def release_node(self, pick: float) -> None:
        """A person takes the finalizers off a node, and nothing else; one that is being deleted is gone then."""
        node = self._one(kinds.NODE, pick)
        if node is not None:
            self._world.server.patch(kinds.NODE, *node.key, {"metadata": {"finalizers": []}})

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

    def cordon(self, pick: float, seconds: int) -> None:
        node = self._one(kinds.NODE, pick)
        if node is not None:
            self._world.server.patch(kinds.NODE, *node.key, {"spec": {"unschedulable": True}})
            self._later(seconds, lambda: self._unmark(node))

    def relabel_node(self, pick: float, label: str) -> None:
        """A person takes a label off a node, or sets one of theirs."""
        node = self._one(kinds.NODE, pick)
        if node is not None:
            value = None if label in node.value.metadata.labels else "by-hand"
            self._world.server.patch(kinds.NODE, *node.key, {"metadata": {"labels": {label: value}}})

    def protect(self, pick: float, seconds: int) -> None:
        self._annotate(kinds.NODE, pick, labels.DO_NOT_DISRUPT, seconds)

    def sicken(self, pick: float, seconds: int) -> None:
        self._annotate(kinds.NODE, pick, NOT_READY, seconds)

    # --- the controller's objects -----------------------------------------------------------------------------------
    def delete_pool(self, name: str, seconds: int) -> None:
        self._gone("NodePool", name)
        self._later(seconds, lambda: self._apply(self._manifests["NodePool", name]))

    def relabel_pool(self, name: str, version: str) -> None:
        """A new label in the template: its nodes drift."""
        self._manifests["NodePool", name]["spec"]["template"]["metadata"] = {"labels": {"version": version}}
        self._apply(self._manifests["NodePool", name])

    def edit_budget(self, name: str, nodes: str) -> None:
        pool = self._manifests["NodePool", name]
        kept = pool["spec"]["disruption"]
        self._apply({**pool, "spec": {**pool["spec"], "disruption": {**kept, "budgets": [{"nodes": nodes}]}}})

    def edit_limits(self, name: str, cpu: str) -> None:
        """Smaller limits, until somebody applies what is in Git."""
        pool = self._manifests["NodePool", name]
        self._apply({**pool, "spec": {**pool["spec"], "limits": {"cpu": cpu}}})

    def change_image(self, alias: str) -> None:
        self._manifests["EC2NodeClass", "default"]["spec"]["amiSelectorTerms"] = [{"alias": alias}]
        self._apply(self._manifests["EC2NodeClass", "default"])

    def break_class(self, seconds: int) -> None:
        """A selector that selects no subnet, for a while."""
        given = self._manifests["EC2NodeClass", "default"]
        nothing = [{"tags": {"karpenter.sh/discovery": "elsewhere"}}]
        self._apply({**given, "spec": {**given["spec"], "subnetSelectorTerms": nothing}})
        self._later(seconds, lambda: self._apply(self._manifests["EC2NodeClass", "default"]))

    def delete_class(self, seconds: int) -> None:
        self._gone("EC2NodeClass", "default")
        self._later(seconds, lambda: self._apply(self._manifests["EC2NodeClass", "default"]))

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

    def not_leading(self, seconds: float) -> None:
        self._staff.leads = False
        self._later(seconds, self._staff.lead)

    # --- aids -------------------------------------------------------------------------------------------------------
    def _apply(self, manifest: Any) -> None:
        """As `kubectl apply`, again and again until nothing of that name is on its way out."""
        place = (manifest["kind"], manifest["metadata"]["name"])
        self._wanted[place] = manifest
        self._insist(place)

    def _insist(self, place: tuple[str, str]) -> None:
        kind_name, name = place
        old = self._world.server.find(self._world.server.kinds[kind_name], "default", name)
        if old is not None and old.manifest["metadata"].get("deletionTimestamp"):
            self._later(_LATER, lambda: self._insist(place))
        else:
            self._world.apply(self._wanted[place])

    def _gone(self, kind_name: str, name: str) -> None:
        kind = self._world.server.kinds[kind_name]
        if self._world.server.find(kind, "default", name) is not None:
            self._world.delete(kind_name, name, "default")

    def _later(self, seconds: float, deed: Callable[[], None]) -> None:
        self._world.agenda.after(seconds, deed)

    def _sorted(self, kind: Kind) -> list[Record]:
        return self._world.server.select(kind, "", "", "")

    def _one(self, kind: Kind, pick: float) -> Record | None:
        there = self._sorted(kind)
        return there[int(pick * len(there))] if there else None

    def _delete(self, kind: Kind, pick: float) -> None:
        record = self._one(kind, pick)
        if record is not None:
            self._world.server.delete(kind, *record.key)

    def _abandon(self, kind: Kind, pick: float) -> None:
        record = self._one(kind, pick)
        if record is not None:
            self._world.server.patch(kind, *record.key, {"metadata": {"finalizers": []}})
            if self._world.server.find(kind, *record.key) is not None:
                self._world.server.delete(kind, *record.key)

    def _annotate(self, kind: Kind, pick: float, annotation: str, seconds: int) -> None:
        record = self._one(kind, pick)
        if record is not None:
            self._world.server.patch(kind, *record.key, {"metadata": {"annotations": {annotation: "true"}}})
            self._later(seconds, lambda: self._unmark(record))

    def _unmark(self, record: Record) -> None:
        """Take back what these hands have put on an object."""
        now = self._world.server.find(record.kind, *record.key)
        if now is None or now.value.metadata.uid != record.value.metadata.uid:
            return
        patch: dict[str, Any] = {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: None, NOT_READY: None}}}
        if record.kind is kinds.NODE:
            rows = [t for t in now.manifest["spec"].get("taints") or () if t["key"] != _MARK]
            patch["spec"] = {"taints": rows, "unschedulable": None}
        self._world.server.patch(record.kind, *record.key, patch)
