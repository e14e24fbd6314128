"""A scenario being played: verbs are done to a world in which the controller is at work.

A scenario is a list of steps. Verbs:

- `world` (first of all, if at all): `gates`, `settings` (durations as text), `weather`, and `types`: those of the
  simulation, or `all` of the catalogue;
- `stage` (the usual node class, with a pool when `pools` is not given), `pool` (pools from their short form), `edit`
  (what changes of it); `budgets` in it are those of a pool whose nodes are left alone otherwise; `node_class` (what
  changes of its spec);
- `deploy`, `stateful`, `daemon` (workloads from their short form), `guard` (an app's PodDisruptionBudget), `scale`,
  `resize` (other requests for an app's pods, in place; the kubelet acts on it after `resize_seconds` of the weather),
  `apply` (a manifest), `patch` and `annotate` (objects, unseen by the webhook), `approve` (the plan that a NodePool's
  condition names), `continue` (the same after a canary), `static_pod`, `delete`, `abandon`
  (finalizers off first); one object is meant by its name, `first`, `every`, `of APP` (of a Node or NodeClaim: where a
  pod of it is), `in POOL`, `not NAME` (a claim that is not among those remembered), or
  `newest APP` (the pod of an app that was created last);
- `stock_out`, `withdraw` (a type), `reclaim`, `rebalance`, `impair` and `recover` (what EC2 says of instances),
  `end_instance`, `stray` (an instance that has no claim), `sicken` (so many nodes of those that are well), `cure` (all
  of them), `condition` (of a node), `weather` (fields of `reconciler/kerf/sandbox/weather.py`; with `lacking`,
  `lacking_attachments`, `missing_labels` and `late_taint` the nodes that register from then on differ from their plan);
- `run` (virtual time), `until` (a day and hour in UTC), `idle` (time in which nothing may be written or told),
  `restart` (another controller takes over);
- `remember` (the claims as they are now), `expect` (must hold at once; with `within` the world runs until it does),
  `always` (must hold after each look of the controller from now on; the latest counts), `no_place` (apps whose pods
  cannot all run at the end).

At the end every pod that the controller made leave runs again, or another one in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.settings import FeatureGates, Settings
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api import durations, labels
from tests.scenarios.player import Player
from tests.scenarios.sights import Sights
from tests.simulation.clusters import pdb
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import Trouble, lives
from tests.worlds import daemon_set, deployment, node_class, node_pool, stateful_set, storage_class

Step = Mapping[str, Any]
#: So long after the last step everybody who had to leave runs again.
PATIENCE = timedelta(minutes=10)


class Broken(AssertionError):
    """The story went another way than it was told."""


class Story:
    """See the module. `opening` is what `world` says."""

    def __init__(self, opening: Step | None = None) -> None:
        given = dict(opening or {})
        self.trouble = Trouble(())
        types = None if given.get("types") == "all" else given.get("types", TYPES)
        weather = Weather(**given.get("weather", {}))
        self.world = World(seed=11, types=types, weather=weather, faults=self.trouble)
        self.trouble.begin(self.world.clock.now)
        self.player = Player(self.world, self.trouble, _settings(given))
        self.player.looks.append(self._watch)
        self.sights = Sights(self.world, self.player)
        self._always: Step = {}
        self._homeless: frozenset[str] = frozenset()
        self._pools: dict[str, Step] = {}
        self._class = node_class()
        self._strays = 0

    def play(self, step: Step) -> None:
        for verb, given in step.items():
            getattr(self, f"do_{verb}")(given)

    def end(self) -> None:
        """Whoever was made to leave runs again. Raises Broken."""
        self.world.run(self.player, PATIENCE, stop_when=lambda: not self._missing())
        if self._missing():
            raise Broken(self._told(f"evicted for good: {'; '.join(self._missing())}"))

    def _missing(self) -> list[str]:
        return self.player.evictions.missing(self._homeless)

    # --- the cluster ----------------------------------------------------------------------------------------------
    def do_stage(self, given: Step) -> None:
        self.world.apply(self._class)
        self.do_pool(given.get("pools") or {"general": {}})
        self.do_run("10s")

    def do_pool(self, given: Mapping[str, Step | None]) -> None:
        for name, pool in given.items():
            self._pools[name] = pool or {}
            self.world.apply(node_pool(name, _in_full(self._pools[name])))

    def do_edit(self, given: Mapping[str, Step]) -> None:
        self.do_pool({name: {**self._pools[name], **change} for name, change in given.items()})

    def do_node_class(self, given: Step) -> None:
        self._class = {**self._class, "spec": {**self._class["spec"], **given}}
        self.world.apply(self._class)

    def do_deploy(self, given: Mapping[str, Step]) -> None:
        for name, what in given.items():
            self.world.apply(deployment(name, what))

    def do_stateful(self, given: Mapping[str, Step]) -> None:
        self.world.apply(storage_class())
        for name, what in given.items():
            self.world.apply(stateful_set(name, what))

    def do_daemon(self, given: Mapping[str, Step]) -> None:
        for name, what in given.items():
            self.world.apply(daemon_set(name, what))

    def do_guard(self, given: Mapping[str, Step]) -> None:
        for app, limit in given.items():
            self.world.apply(pdb(app, limit))

    def do_scale(self, given: Mapping[str, int]) -> None:
        for name, replicas in given.items():
            self.world.scale("default", name, replicas)

    def do_resize(self, given: Mapping[str, Mapping[str, str]]) -> None:
        for app, requests in given.items():
            for one in self._chosen("Pod", f"of {app}"):
                self.world.resize(*one.key, requests)

    def do_static_pod(self, name: str) -> None:
        """A pod that the kubelet of the first node runs from a file."""
        node = self._chosen("Node", "first")[0].value
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid, "controller": True}
        metadata = {"name": name, "namespace": "default", "labels": {"app": name}, "ownerReferences": [owner]}
        resources = {"requests": {"cpu": "50m", "memory": "32Mi"}}
        spec = {"nodeName": node.name, "containers": [{"name": "main", "image": "main", "resources": resources}]}
        self.world.server.create(kinds.POD, {"metadata": metadata, "spec": spec})

    # --- single objects -------------------------------------------------------------------------------------------
    def do_apply(self, manifest: Step) -> None:
        self.world.apply(manifest)

    def do_patch(self, given: Mapping[str, Mapping[str, Step]]) -> None:
        for kind, rows in given.items():
            for name, patch in rows.items():
                for one in self._chosen(kind, name):
                    self.world.server.patch(one.kind, *one.key, patch)

    def do_annotate(self, given: Mapping[str, Mapping[str, Step]]) -> None:
        self.do_patch({k: {n: {"metadata": {"annotations": a}} for n, a in rows.items()} for k, rows in given.items()})

    def do_approve(self, name: str) -> None:
        self._obey(name, "ChangeApproved", labels.APPROVED_PLAN)

    def do_continue(self, name: str) -> None:
        self._obey(name, "CanaryPassed", labels.CONTINUED_PLAN)

    def _obey(self, name: str, type_: str, key: str) -> None:
        """Annotate a NodePool as its condition says."""
        (pool,) = self._chosen("NodePool", name)
        told = next(c.message for c in pool.value.status.conditions if c.type == type_)
        (digest,) = re.findall(rf"set {re.escape(key)}: ([0-9a-f]{{20}}) on it", told)
        self.do_annotate({"NodePool": {name: {key: digest}}})

    def do_delete(self, given: Mapping[str, str]) -> None:
        for kind, name in given.items():
            for one in self._chosen(kind, name):
                self.world.server.delete(one.kind, *one.key)

    def do_abandon(self, given: Mapping[str, str]) -> None:
        for kind, name in given.items():
            for one in self._chosen(kind, name):
                self.world.server.patch(one.kind, *one.key, {"metadata": {"finalizers": []}})
                self.world.server.delete(one.kind, *one.key)

    # --- AWS and machines -----------------------------------------------------------------------------------------
    def do_stock_out(self, given: Mapping[str, str]) -> None:
        until = self.world.clock.now() + durations.parse(given.get("for", "24h"))
        kind = "*" if given["type"] == "every" else given["type"]
        self.world.ec2.stock_out(kind, given.get("zone", "*"), given["capacity"], until)

    def do_reclaim(self, which: str) -> None:
        """`one`, `every`, a zone, or the one `of APP`."""
        for machine in self._machines(which, spot=True):
            self.world.ec2.reclaim_spot(machine.id)

    def do_rebalance(self, which: str) -> None:
        for machine in self._machines(which, spot=True):
            self.world.ec2.send("aws.ec2", "EC2 Instance Rebalance Recommendation", {"instance-id": machine.id})

    def do_end_instance(self, which: str) -> None:
        for machine in self._machines(which):
            self.world.ec2.end(machine)

    def do_impair(self, given: Mapping[str, str]) -> None:
        """EC2 says of these instances that a check of this category fails, or that something is scheduled."""
        for which, category in given.items():
            for machine in self._machines(which):
                self.world.ec2.impair(machine.id, category)

    def do_recover(self, which: str) -> None:
        for machine in self._machines(which):
            self.world.ec2.recover(machine.id)

    def do_stray(self, count: int) -> None:
        """As if it had been launched for a NodePool, by a controller that then forgot it."""
        model = self._machines("one")[0]
        tags = {key: v for key, v in model.tags.items() if key not in (labels.TAG_NODECLAIM, labels.LAUNCH_GROUP)}
        now = self.world.clock.now()
        for _ in range(count):
            self._strays += 1
            id_ = f"i-{self._strays:017x}"
            self.world.ec2.instances[id_] = replace(model, id=id_, tags=tags, launched=now, visible_at=now, boots=False)
            self.world.ec2.tag(id_, {})

    def do_sicken(self, given: int | Mapping[str, int]) -> None:
        """So many nodes; or so many of each pool."""
        well = [one for one in self._chosen("Node", "every") if NOT_READY not in one.value.metadata.annotations]
        rows = given.items() if isinstance(given, Mapping) else [("", given)]
        for one in [one for pool, count in rows for one in [w for w in well if _of_pool(w, pool)][:count]]:
            self.world.server.patch(one.kind, *one.key, {"metadata": {"annotations": {NOT_READY: "true"}}})

    def do_cure(self, _: object) -> None:
        self.do_annotate({"Node": {"every": {NOT_READY: None}}})

    def do_condition(self, given: Mapping[str, Mapping[str, str]]) -> None:
        """A node's agent reports: a condition by its type, of a node."""
        now = timestamp(self.world.clock.now())
        for name, rows in given.items():
            for one in self._chosen("Node", name):
                kept = [c for c in one.manifest["status"]["conditions"] if c["type"] not in rows]
                told = [{"type": t, "status": status, "lastTransitionTime": now} for t, status in rows.items()]
                patch = {"status": {"conditions": [*kept, *told]}}
                self.world.server.patch(one.kind, *one.key, patch, subresource="status")

    def do_withdraw(self, instance_type: str) -> None:
        """EC2 does not offer the type any more; what runs runs on."""
        region = self.world.ec2.region
        types = {name: info for name, info in region.types.items() if name != instance_type}
        self.world.ec2.region = replace(region, types=types)

    def do_weather(self, given: Step) -> None:
        self.world.ec2.weather = replace(self.world.ec2.weather, **given)

    # --- time -----------------------------------------------------------------------------------------------------
    def do_run(self, text: str) -> None:
        self.world.run(self.player, durations.parse(text))

    def do_until(self, text: str) -> None:
        self.world.run(self.player, datetime.fromisoformat(text).replace(tzinfo=UTC))

    def do_idle(self, text: str) -> None:
        """Nothing is written, launched, evicted or told."""
        self.trouble.writes = self.trouble.events = 0
        self.trouble.log.clear()
        self.do_run(text)
        if self.trouble.writes or self.trouble.events:
            raise Broken(
                self._told(f"{self.trouble.writes} writes, {self.trouble.events} events in {text} of idleness")
            )

    def do_restart(self, _: object) -> None:
        self.player.restart()

    # --- what must be so ------------------------------------------------------------------------------------------
    def do_remember(self, name: str) -> None:
        """Keep the claims as they are now, for `none_of`, `gone` and `all_of` later."""
        self.sights.remembered[name] = self.sights.claims()

    def do_expect(self, given: Step) -> None:
        wanted = {what: value for what, value in given.items() if what != "within"}
        end = self.world.clock.now() + durations.parse(given.get("within", "0s"))
        self.world.run(self.player, end, stop_when=lambda: not self.sights.unmet(wanted))
        if unmet := self.sights.unmet(wanted):
            raise Broken(self._told(str(unmet)))

    def do_always(self, given: Step) -> None:
        self._always = given

    def do_no_place(self, apps: Iterable[str]) -> None:
        self._homeless = frozenset(apps)

    def _watch(self) -> None:
        unmet = self.sights.unmet(self._always)
        if unmet:
            raise Broken(self._told(f"not always so: {unmet}"))

    # --- aids -----------------------------------------------------------------------------------------------------
    def _told(self, what: str) -> str:
        lines = [f"at {self.world.clock.now():%d %H:%M:%S}: {what}", self.sights.picture(), *self.trouble.log]
        return "\n".join(lines)

    def _chosen(self, kind_name: str, name: str) -> list[Record]:
        """The objects that a name means (see the module), by name. Raises Broken when there are none."""
        there = self.world.server.select(self.world.server.kinds[kind_name], "", "", "")
        word, _, rest = name.partition(" ")
        if word == "of" and kind_name == "Pod":
            found = [one for one in there if one.value.metadata.labels.get("app") == rest]
        elif word == "newest":
            of_app = [one for one in there if one.value.metadata.labels.get("app") == rest]
            found = sorted(of_app, key=lambda one: one.value.metadata.creation_timestamp)[-1:]
        elif word == "of":
            found = [one for one in there if _node_name(one) in self._nodes_of(rest)][:1]
        elif word == "in":
            found = [one for one in there if _of_pool(one, rest)][:1]
        elif word == "not":
            found = [one for one in there if one.key[1] not in self.sights.remembered[rest]][:1]
        else:
            found = {"every": there, "first": there[:1]}.get(name, [one for one in there if one.key[1] == name])
        if not found:
            raise Broken(self._told(f"there is no {kind_name} {name}"))
        return found

    def _nodes_of(self, app: str) -> set[str]:
        pods = (record.value for record in self.world.server.records(kinds.POD))
        return {pod.spec.node_name for pod in pods if pod.metadata.labels.get("app") == app and pod.spec.node_name}

    def _machines(self, which: str, *, spot: bool = False) -> list[Machine]:
        """Instances that live, by ID: `one`, `every`, those of a zone, or those behind the claims that are meant."""
        living = sorted((m for m in self.world.ec2.instances.values() if lives(m)), key=lambda m: m.id)
        living = [m for m in living if not spot or m.capacity_type == labels.SPOT]
        if which in ("one", "every"):
            return living[:1] if which == "one" else living
        if which in {m.zone for m in living}:
            return [m for m in living if m.zone == which]
        meant = {claim.value.instance_id for claim in self._chosen("NodeClaim", which)}
        return [m for m in living if m.id in meant]


def _of_pool(record: Record, pool: str) -> bool:
    """Of any pool when none is named."""
    return pool in ("", record.value.metadata.labels.get(labels.NODEPOOL))


def _node_name(record: Record) -> str:
    value = record.value
    return str(value.name if record.kind is kinds.NODE else value.status.node_name)


def _in_full(pool: Step) -> Step:
    """A pool's short form without `budgets`."""
    if "budgets" not in pool:
        return pool
    rest = {key: value for key, value in pool.items() if key != "budgets"}
    still = {"consolidateAfter": "Never", **pool.get("disruption", {})}
    return {**rest, "disruption": {**still, "budgets": pool["budgets"]}}


def _settings(given: Step) -> Settings:
    """Ten milliseconds of work for a cheaper answer: how cheap they are is not told here."""
    base = Settings("sandbox", interruption_queue="sandbox", improve=timedelta(milliseconds=10))
    spans = {one.name for one in fields(Settings) if isinstance(getattr(base, one.name), timedelta)}
    own: dict[str, Any] = {k: durations.parse(v) if k in spans else v for k, v in given.get("settings", {}).items()}
    return replace(base, gates=FeatureGates(**given.get("gates", {})), **own)
