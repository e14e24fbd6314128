"""What must always be true of a world in trouble.

Most of it is looked at as it happens: a listener at the API server and a seam before every write of the controller.
Only the truth of the world is consulted, never what the controller believes; nor is its arithmetic (`arithmetic.py`).
What a fault hides from the controller it is not held to account for, until it has been told (`sight.py`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kerf.model import kinds
from kerf.model.aws.cloud import SCHEDULED
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.settings import Settings
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.faults import Call
from kerf.sandbox.world import World
from kerf_api import durations, labels
from kerf_api.v1.budgets import EXPIRED
from kerf_api.v1.conditions import TRUE, get
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from tests.simulation.arithmetic import allowed, at_work, beyond_bearing, holds_up_a_drain, size, wants_a_place
from tests.simulation.rest import instance_of
from tests.simulation.sight import INSTANCES
from tests.simulation.trouble import Trouble, address, lives

#: How long polling, back-off and a refused termination may add to the adoption time.
PATIENCE = timedelta(minutes=5)
#: What two controllers have wrought between them counts as nobody's doing for so long after one of them is gone.
TWO = timedelta(seconds=95)
#: What the controller must have been told, to be held to account by an invariant.
_RESTS_ON = {
    "limits": ("nodeclaims", "nodepools"),
    "budget": ("nodeclaims", "nodes", "nodepools"),
    "pinned": ("nodeclaims", "nodes", "pods"),
    "released": ("nodeclaims", "nodes", INSTANCES),
    "taint": ("nodes", "pods"),
    "owned": ("nodeclaims", INSTANCES),
    "drain": ("nodeclaims", "nodes", "pods", INSTANCES),
    "deadline": ("nodeclaims", "nodes"),
    "orphan": ("nodeclaims", INSTANCES),
}
#: An object that controllers write more often than so in a while is being fought over.
_WRITTEN, _WHILE = 40, timedelta(seconds=10)
#: Commands that must not begin at a node with a pod that may not be disturbed.
_VOLUNTARY = frozenset({"Empty", "Underutilized"})


class Violation(Exception):
    """An invariant does not hold; the text says which, and of what."""


class Invariants:
    """See the module. `acting` is how many controllers are at work now (0: whatever happens is not their doing)."""

    def __init__(self, world: World, trouble: Trouble, settings: Settings) -> None:
        self._world, self._trouble, self._settings = world, trouble, settings
        self._found: list[str] = []
        self._orphaned: dict[str, datetime] = {}
        self._members: dict[str, set[str]] = {}
        self._groups: dict[str, set[str]] = {}
        #: Instances whose claim has been on its way out.
        self._given_up: set[str] = set()
        self._written: dict[tuple[str, str], deque[datetime]] = {}
        #: What the checks after every step looked at last.
        self._looked_at: tuple[int, int] | None = None
        self._claims_changed = 0
        self.acting = 0
        #: Whether more than one controller is at work, also between their turns.
        self.several = False
        self.leads: Callable[[], bool] = lambda: True
        #: When the last but one of several controllers was gone; since when there has been one that leads.
        self.alone_since: datetime | None = None
        self.led_since = world.clock.now()
        #: How often there was something to look at, by invariant, and how often the controller could see it all.
        self.asked, self.looked = Counter[str](), Counter[str]()
        world.server.listen(self._heard)
        trouble.before_write = self._before_write

    # --- as it happens ----------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None or record.kind.name not in _OWN:
            return
        if self.acting:
            self._count_write(record)
        if record.kind.name == "Node" and new is None and self.acting:
            self._node_released(record.value)
        if record.kind.name == "NodeClaim":
            self._heard_claim(old, new, record)

    def _heard_claim(self, old: Record | None, new: Record | None, record: Record) -> None:
        self._claims_changed += 1
        if new is not None:
            self._note_group(new.value)
            if new.value.metadata.deleting:
                self._given_up.add(instance_of(new.value))
        if not self.acting:
            return
        if new is None:
            self._released(record.value)
            return
        if old is None:
            self._limits(new.value)
        elif labels.COMMAND in new.value.metadata.annotations and labels.COMMAND not in old.value.metadata.annotations:
            self._budget(new.value)
            self._pinned(new.value)
        if old is not None and new.value.metadata.deleting and not old.value.metadata.deleting:
            self._empty(new.value)
        if _deadline_of(new.value) not in (None, _deadline_of(old.value) if old is not None else None):
            self._promised(new.value)

    def _count_write(self, record: Record) -> None:
        """No controller rewrites an object for ever, also not in turns with another one."""
        now = self._world.clock.now()
        times = self._written.setdefault((record.kind.name, record.key[1]), deque())
        times.append(now)
        while now - times[0] > _WHILE:
            times.popleft()
        if len(times) > _WRITTEN * (2 if self.several else 1):
            self._found.append(f"fight: {record.kind.name} {record.key[1]} is written {len(times)} times in {_WHILE}")

    def _note_group(self, claim: NodeClaim) -> None:
        group = claim.metadata.annotations.get(labels.LAUNCH_GROUP)
        if group is not None:
            self._members.setdefault(group, set()).add(claim.metadata.uid)
            self._groups.setdefault(claim.metadata.uid, set()).add(group)

    def _limits(self, created: NodeClaim) -> None:
        """Limits are never exceeded by intent: what the pool's claims have or may get at most. Those that a command
        replaces do not count."""
        pool = self._world.server.find(kinds.NODE_POOL, "", created.pool_name)
        if pool is None or pool.value.limits is None or not self._looks("limits"):
            return
        claims = [c for c in self._values(kinds.NODE_CLAIM) if c.pool_name == created.pool_name]
        stay = [c for c in claims if not c.metadata.deleting and labels.COMMAND not in c.metadata.annotations]
        for resource, limit in sorted(pool.value.limits.items()):
            used = sum(self._takes(claim, resource) for claim in stay)
            if used > limit:
                words = f"makes {used} {resource} of NodePool {pool.value.name}'s {limit}"
                self._found.append(f"limits: {created.name} {words}")

    def _takes(self, claim: NodeClaim, resource: str) -> int:
        types = self._world.ec2.region.types
        known = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
        if known in types:
            return size(types[known])[resource]
        may_be = claim.requirements().allowed(labels.INSTANCE_TYPE)
        return max((size(info)[resource] for name, info in types.items() if may_be.has(name)), default=0)

    def _budget(self, started: NodeClaim) -> None:
        """No voluntary command starts beyond its pool's budget."""
        reason = _command(started)["reason"]
        pool = self._world.server.find(kinds.NODE_POOL, "", started.pool_name)
        free = reason == EXPIRED and not self._settings.expire_within_budgets
        if free or pool is None or not self._looks("budget"):
            return
        claims = [c for c in self._values(kinds.NODE_CLAIM) if c.pool_name == started.pool_name]
        there = {n.spec.provider_id: n for n in self._values(kinds.NODE)}  # a claim that lost its Node is no node
        usable = [c for c in claims if c.is_true("Initialized") and not self._ends(c)]
        counted = [c for c in usable if c.status.provider_id in there]
        away = {provider for provider, node in there.items() if node.metadata.deleting or not node.ready}
        marked = [c for c in counted if c.metadata.deleting or labels.COMMAND in c.metadata.annotations]
        going = [*marked, *(c for c in counted if c not in marked and c.status.provider_id in away)]
        most = allowed(pool.value.spec.disruption.budgets, len(counted), reason, self._world.clock.now())
        if len(going) > most:
            names = ", ".join(sorted(c.name for c in going))
            self._found.append(f"budget: {len(going)} of {most} allowed go for {reason}: {names}")

    def _ends(self, claim: NodeClaim) -> bool:
        """Whether its instance is terminated; that this failed counts from a second after it was noted on."""
        asked, now = claim.condition("InstanceTerminating"), self._world.clock.now()
        changed = asked.last_transition_time if asked is not None else None
        return claim.is_true("InstanceTerminating") or (changed is not None and now - changed <= timedelta(seconds=1))

    def _empty(self, deleted: NodeClaim) -> None:
        """A node that goes because it is empty has no pod that wants a place elsewhere."""
        if labels.COMMAND not in deleted.metadata.annotations or _command(deleted)["reason"] != "Empty":
            return
        here = [p.key for p in self._pods_on(deleted.status.node_name) if wants_a_place(p)]
        if here:
            self._found.append(f"emptiness: {deleted.name} is deleted with {', '.join(here)}")

    def _pinned(self, started: NodeClaim) -> None:
        """No voluntary command begins at a node with a pod that asks not to be disturbed."""
        reason = _command(started)["reason"]
        if reason not in _VOLUNTARY or not started.status.node_name or not self._looks("pinned"):
            return
        here = [p for p in self._pods_on(started.status.node_name) if at_work(p)]
        kept = [p.key for p in here if p.metadata.annotations.get(labels.DO_NOT_DISRUPT) == "true"]
        if kept:
            self._found.append(f"pinned: {reason} begins at {started.name}, which has {', '.join(kept)}")

    def _promised(self, claim: NodeClaim) -> None:
        """Pods have until the end of the grace period that the claim has from its deletion on; only a node that has
        been sick or impaired for too long is ended at once. Where there is no grace period, there is no end."""
        text, now = _deadline_of(claim), self._world.clock.now()
        if not self._looks("deadline"):
            return
        sick = (n for n in self._values(kinds.NODE) if n.spec.provider_id == claim.status.provider_id)
        if self._impaired(claim) or (
            self._settings.gates.node_repair and any(beyond_bearing(node, now) for node in sick)
        ):
            return
        since, grace = claim.metadata.deletion_timestamp, durations.parse_nillable(claim.spec.termination_grace_period)
        if since is None or grace is None or datetime.fromisoformat(str(text)) < since + grace:
            self._found.append(f"deadline: {claim.name} is to be without pods by {text}, its grace period is {grace}")

    def _node_released(self, node: Node) -> None:
        """The controller lets a node go only when its instance is on its way out."""
        machine = self._world.ec2.instances.get(node.spec.provider_id.rpartition("/")[2])
        if machine is not None and self._looks("released") and lives(machine) and self._claims_of(machine):
            self._found.append(f"released: node {node.name} is gone and {machine.id} is {machine.state}")

    def _released(self, claim: NodeClaim) -> None:
        """The controller lets a claim go only when its instance is on its way out."""
        machine = self._world.ec2.instances.get(instance_of(claim))
        if machine is not None and lives(machine) and not self._claims_of(machine):
            self._found.append(f"released: {claim.name} is gone and {machine.id} is {machine.state}")

    def _before_write(self, call: Call) -> None:
        if not self.leads():
            self._found.append(f"lease: {call.verb} {call.subject} by one who does not lead")
        if call.port == "kube" and call.verb == "evict":
            self._tainted(call)
        elif call.port == "kube" and call.verb == "delete" and call.subject.startswith("pod/"):
            self._forced(call)
        elif call.port == "cloud" and call.verb == "terminate":
            self._owned(call.subject)
            self._terminated(call.subject)
        elif call.port == "cloud" and call.verb == "create_fleet" and call.subject not in self._members:
            self._found.append(f"launch: group {call.subject} was written to no claim first")

    def _tainted(self, call: Call) -> None:
        """Nobody is asked to leave a node that may be filled again meanwhile."""
        ref = address(call.subject)
        pod = self._world.server.find(kinds.POD, ref.namespace, ref.name)
        node = self._world.server.find(kinds.NODE, "", pod.value.spec.node_name) if pod is not None else None
        if node is None or not self._looks("taint"):
            return
        if all(t.key != labels.DISRUPTED_TAINT for t in node.value.spec.taints):
            self._found.append(f"taint: {call.subject} is evicted from {node.value.name}, which is open to others")

    def _forced(self, call: Call) -> None:
        """The controller deletes a pod itself only when its node's deadline leaves no more than the pod's grace."""
        ref = address(call.subject)
        record = self._world.server.find(kinds.POD, ref.namespace, ref.name)
        if record is None:
            return
        pod: Pod = record.value
        deadline = self._deadline(pod.spec.node_name)
        grace = timedelta(seconds=pod.spec.termination_grace_period_seconds or 0)
        if deadline is None or self._world.clock.now() < deadline - grace:
            self._found.append(f"force: {call.subject} is deleted around its budget; its node's deadline is {deadline}")

    def _owned(self, instance_id: str) -> None:
        """An instance ends only with its claim; one that never had a claim, or lost it by hand, when it is old."""
        machine = self._world.ec2.instances.get(instance_id)
        if machine is None or not lives(machine) or not self._looks("owned") or instance_id in self._given_up:
            return
        age = self._world.clock.now() - machine.launched
        if self._claims_of(machine) or age < self._settings.adoption_time:
            claims = ", ".join(claim.name for claim in self._claims_of(machine))
            self._found.append(f"owned: {instance_id}, {age.seconds} s old, is ended; its claim: {claims or 'none'}")

    def _terminated(self, instance_id: str) -> None:
        """An instance ends only when its node's pods have left, or the deadline has passed: also when the node is not
        ready, for its pods may be running all the same. One that never registered has none to speak of."""
        machine = self._world.ec2.instances.get(instance_id)
        if machine is None or not lives(machine) or not self._looks("drain"):
            return
        claims = self._claims_of(machine)
        registered = any(claim.is_true("Registered") for claim in claims)
        for node in self._values(kinds.NODE) if claims else ():
            ours = registered or labels.TERMINATION_FINALIZER in node.metadata.finalizers
            if node.spec.provider_id != machine.provider_id or not ours:
                continue
            deadline, now = self._deadline(node.name), self._world.clock.now()
            left = [p.key for p in self._pods_on(node.name) if holds_up_a_drain(p, now)]
            if left and (deadline is None or now < deadline - timedelta(seconds=1)):
                self._found.append(f"drain: {instance_id} is terminated under {', '.join(left)}")

    def broken(self, found: Iterable[str]) -> None:
        """Something that others have found; told after the step."""
        self._found += found

    # --- after every step ---------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raises Violation."""
        state = (self._claims_changed, self._world.ec2.changes)
        if state != self._looked_at:
            self._looked_at = state
            machines = [m for m in self._world.ec2.instances.values() if lives(m)]
            claims: list[NodeClaim] = list(self._values(kinds.NODE_CLAIM))
            self._note_orphans(machines, claims)
            self._check_twins(machines, claims)
        self._check_orphans()
        if self._found:
            raise Violation("; ".join(self._found))

    def _note_orphans(self, machines: list[Machine], claims: list[NodeClaim]) -> None:
        held = {instance_of(claim) for claim in claims}
        awaited = {c.metadata.annotations.get(labels.LAUNCH_GROUP) for c in claims if not instance_of(c)}
        orphans = {m.id for m in machines if m.id not in held and m.tags.get(labels.LAUNCH_GROUP) not in awaited}
        now = self._world.clock.now()
        self._orphaned = {id_: self._orphaned.get(id_, now) for id_ in sorted(orphans)}

    def _check_orphans(self) -> None:
        """No live instance without a claim for longer than the adoption time, while a controller leads that can see it;
        but for those about which the guard asks a user."""
        now, limit = self._world.clock.now(), self._settings.adoption_time + PATIENCE
        questions = [one.message for one in self._halts()] if self._orphaned else []
        for id_, since in self._orphaned.items():
            if any(id_ in message for message in questions):
                continue
            seen = self._trouble.sight.since(now, *_RESTS_ON["orphan"])
            if now - max(since, seen or since, self.alone_since or since, self.led_since) > limit:
                self._found.append(f"orphan: {id_} has had no claim since {since:%H:%M:%S}")

    def _halts(self) -> Iterator[Condition]:
        """The conditions by which garbage collection asks a user."""
        for keeper in (*self._values(kinds.NODE_POOL), *self._values(kinds.NODE_CLASS)):
            halt = get(keeper.status.conditions, "GarbageCollectionHalted")
            if halt is not None and halt.status == TRUE:
                yield halt

    def _check_twins(self, machines: list[Machine], claims: list[NodeClaim]) -> None:
        """Never two live instances for one claim, nor two claims for one instance.

        Where two controllers act, EC2 may refuse a fleet call of one, which then plans another call, and accept the
        same call of the other one. Neither can see that in time; the first instance is collected as garbage.
        """
        names = Counter(m.tags[labels.TAG_NODECLAIM] for m in machines if labels.TAG_NODECLAIM in m.tags)
        self._found += [f"twins: {count} instances of {name}" for name, count in names.items() if count > 1]
        ids = Counter(id_ for claim in claims if (id_ := instance_of(claim)))
        self._found += [f"shared: {count} claims have {id_}" for id_, count in ids.items() if count > 1]
        groups = Counter(m.tags.get(labels.LAUNCH_GROUP, "") for m in machines)
        for claim in claims:
            mine = self._groups.get(claim.metadata.uid, set())
            if self.several or self.alone_since is not None:
                mine = mine - self._trouble.refused_groups
            others = {uid for group in mine for uid in self._members[group]}
            count = sum(groups[group] for group in mine)
            if count > len(others):
                self._found.append(f"twins: {count} instances in the launch groups of {claim.name}: {sorted(mine)}")

    # --- aids -------------------------------------------------------------------------------------------------------
    def _looks(self, invariant: str) -> bool:
        """Whether the one controller there is has been told of all that this rests on; what is asked is counted."""
        self.asked[invariant] += 1
        alone = self.alone_since is None or self._world.clock.now() - self.alone_since > TWO
        if self.acting != 1 or not alone or not self._trouble.sight.of(*_RESTS_ON[invariant]):
            return False
        self.looked[invariant] += 1
        return True

    def _values(self, kind: Kind) -> Iterator[Any]:
        return (record.value for record in self._world.server.records(kind))

    def _pods_on(self, node_name: str) -> list[Pod]:
        return [p for p in self._values(kinds.POD) if p.spec.node_name == node_name]

    def _claims_of(self, machine: Machine) -> list[NodeClaim]:
        return [c for c in self._values(kinds.NODE_CLAIM) if instance_of(c) == machine.id]

    def _impaired(self, claim: NodeClaim) -> bool:
        """Whether EC2 has found the claim's instance impaired for two minutes."""
        limit = self._world.clock.now() - timedelta(minutes=2)
        mine = (one for one in self._world.ec2.impairments() if one.instance_id == claim.instance_id)
        return any(one.category != SCHEDULED and one.since is not None and one.since <= limit for one in mine)

    def _deadline(self, node_name: str) -> datetime | None:
        for claim in self._values(kinds.NODE_CLAIM):
            text = _deadline_of(claim)
            if claim.status.node_name == node_name and text is not None:
                return datetime.fromisoformat(text)
        return None


#: What the controller writes again and again.
_OWN = frozenset({"NodeClaim", "Node", "NodePool", "EC2NodeClass"})


def _deadline_of(claim: NodeClaim) -> str | None:
    return claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP)


def _command(claim: NodeClaim) -> dict[str, Any]:
    command: dict[str, Any] = msgspec.json.decode(claim.metadata.annotations[labels.COMMAND])
    return command
