"""A stage for tests of one rule: a small cluster in the sandbox, one controller after another, and a seam to disturb.

stage = Stage(replicas=2)
stage.settle()                                     # the pods run
stage.seam.fails["kube", "evict"] = EvictionBlocked("not now")
stage.run(60)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.runtime.leadership.leader import Leader
from kerf.runtime.parts import Parts
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from tests.simulation.memories import difference
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import HARMLESS, READS, Killed, lives
from tests.worlds import deployment, node_class, node_pool

SETTINGS = Settings(cluster_name="sandbox")
#: Nodes of this pool stay until a test wants them to go.
STILL = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}
#: Nodes of this one go as soon as they are empty.
EAGER = {**STILL, "consolidateAfter": "0s"}
#: At most one pod of an app on a node.
ALONE = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}


#: An error, or what is asked about a call and may raise one.
Trouble = BaseException | Callable[[Call], None]


class Seam(Faults):
    """What went through the ports, and what is to fail there.

    `fails` refuses requests and `loses` drops answers, by port and verb; an entry stays until it is taken out. It is
    an error, or is asked about each call and may raise one. `silent_kinds` are plurals whose watches say nothing.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.fails: dict[tuple[str, str], Trouble] = {}
        self.loses: dict[tuple[str, str], Trouble] = {}
        self.silent_kinds: set[str] = set()

    def before(self, call: Call) -> None:
        self.calls.append(call)
        _strike(self.fails.get((call.port, call.verb)), call)

    def after(self, call: Call) -> None:
        _strike(self.loses.get((call.port, call.verb)), call)

    def silent(self, call: Call) -> bool:
        return call.subject in self.silent_kinds

    def writes(self, *verbs: str) -> list[str]:
        """`verb subject` of the writes so far, in order; all that change something, or those of some verbs."""
        wanted = [c for c in self.calls if (c.verb in verbs if verbs else c.verb not in READS | HARMLESS)]
        return [f"{c.verb} {c.subject}" for c in wanted]


def _strike(trouble: Trouble | None, call: Call) -> None:
    if isinstance(trouble, BaseException):
        raise trouble
    if trouble is not None:
        trouble(call)


def of(subject: str, error: BaseException) -> Trouble:
    """The error for calls whose subject begins so."""

    def strike(call: Call) -> None:
        if call.subject.startswith(subject):
            raise error

    return strike


class Play:
    """A world and the controller at work in it. Tests that need another world than the stage's build on this.

    Where plans are made `twice`, `differences` has what those with memory say otherwise than those without.
    """

    twice = False

    def __init__(self, world: World, cloud: Any = None, settings: Settings = SETTINGS) -> None:
        self.world, self._cloud, self._settings = world, cloud or world.cloud, settings
        self.differences: list[str] = []
        self.controller = self.hire()

    def hire(self, may_act: Callable[[], bool] = lambda: True) -> Controller:
        """Another controller on the same world, one that remembers nothing."""
        world = self.world
        return Controller(
            Ports(kube=world.kube, cloud=self._cloud, clock=world.clock),
            Parts(decide=self._decide),
            settings=self._settings,
            inline=True,
            may_act=may_act,
        )

    def _decide(self, snapshot: Snapshot, memory: Memory) -> Plan:
        plan = decide(snapshot, memory)
        if self.twice:
            self.differences += difference(plan, decide(snapshot))
        return plan

    def restart(self) -> None:
        self.controller = self.hire()

    def live(self, **time: float) -> None:
        self.world.run(self.controller, timedelta(**time))


class Stage(Play):
    """See the module. `replicas` pods named `web-…` with a node each; `disruption` is the pool's."""

    def __init__(
        self,
        *,
        replicas: int = 1,
        disruption: Mapping[str, Any] = STILL,
        pool: Mapping[str, Any] | None = None,
        weather: Weather | None = None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.seam = Seam()
        self._leader: Leader | None = None
        world = World(seed=7, types=TYPES, weather=weather, faults=self.seam)
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": disruption, **(pool or {})}))
        world.apply(deployment("web", {"replicas": replicas, **ALONE}))
        super().__init__(world, settings=settings)
        #: Those that only watch; `controller` is the one that acts.
        self.standbys: list[Controller] = []

    def hire(self, may_act: Callable[[], bool] = lambda: True) -> Controller:
        """It acts only while it is the stage's controller and leads."""
        made = super().hire(
            lambda: may_act() and made is self.controller and (self._leader is None or self._leader.may_act())
        )
        return made

    def hand_over(self) -> None:
        """The first of those that watch acts from now on, and the one that did is gone."""
        self.controller = self.standbys.pop(0)

    def lead_by(self, leader: Leader) -> None:
        """From now on the controller acts while this one leads; the lease is renewed before each of its looks."""
        self._leader = leader

    # --- as the world's loop wants it -------------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        dues = [each.next_due for each in (self.controller, *self.standbys) if each.next_due is not None]
        return min(dues, default=None)

    def tick(self) -> None:
        if self._leader is not None:
            self._leader.step()
        for each in (self.controller, *self.standbys):
            each.tick()

    # --- time -------------------------------------------------------------------------------------------------------
    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Live for a while, or until something is so; then it must be so. A killed controller is replaced at once."""
        end = self.world.clock.now() + timedelta(seconds=seconds)
        while True:
            try:
                self.world.run(self, end, stop_when=until)
                break
            except Killed:
                self.seam.fails.clear()
                self.seam.loses.clear()
                self.restart()
        assert not self.differences
        assert until is None or until(), f"not so after {seconds} s"

    def settle(self) -> None:
        """Until every pod runs and the world is quiet; forget the calls so far."""
        self.run(300, until=self.all_run)
        self.run(30)
        self.seam.calls.clear()

    def all_run(self) -> bool:
        pods = self.values(kinds.POD)
        return bool(pods) and all(p.status.phase == "Running" and not p.metadata.deleting for p in pods)

    # --- what is there ----------------------------------------------------------------------------------------------
    def values(self, kind: kinds.Kind) -> list[Any]:
        """All objects of a kind as they are, by name."""
        return [record.value for record in self.world.server.select(kind, "", "", "")]

    @property
    def claims(self) -> list[Any]:
        return self.values(kinds.NODE_CLAIM)

    @property
    def nodes(self) -> list[Any]:
        return self.values(kinds.NODE)

    @property
    def machines(self) -> list[Machine]:
        """Instances that live, by ID."""
        return sorted((m for m in self.world.ec2.instances.values() if lives(m)), key=lambda m: m.id)

    def machine_of(self, claim: Any) -> Machine:
        return self.world.ec2.instances[claim.instance_id]

    def pods_on(self, node_name: str) -> list[Any]:
        return [pod for pod in self.values(kinds.POD) if pod.spec.node_name == node_name]

    # --- what people do ---------------------------------------------------------------------------------------------
    def scale(self, replicas: int) -> None:
        self.world.scale("default", "web", replicas)

    def protect(self) -> None:
        """A PodDisruptionBudget that lets no pod go."""
        metadata, selector = {"name": "web", "namespace": "default"}, {"matchLabels": {"app": "web"}}
        spec = {"selector": selector, "maxUnavailable": 0}
        self.world.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})

    def delete_claim(self, name: str) -> None:
        self.world.delete("NodeClaim", name)

    def abandon_claim(self, name: str) -> None:
        """A person takes the finalizers off a claim and deletes it."""
        self._release(kinds.NODE_CLAIM, name)

    def annotate(self, kind: kinds.Kind, name: str, key: str, value: str | None) -> None:
        """Of a kind without namespaces; None takes the annotation away."""
        self.world.server.patch(kind, "", name, {"metadata": {"annotations": {key: value}}})

    def rename_node(self, claim: Any, name: str) -> None:
        """The kubelet of the claim's instance registers once more, under the name of another node."""
        self._release(kinds.NODE, name)
        self.world.server.create(
            kinds.NODE, {"metadata": {"name": name}, "spec": {"providerID": claim.status.provider_id}}
        )

    def create_pod(self, name: str, *, node_name: str = "", scheduler: str = "") -> None:
        """A small pod of nobody's: bound to a node from the start, or refused once by a scheduler of its own."""
        resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "main", "resources": resources}]}
        spec |= {"nodeName": node_name} if node_name else {"schedulerName": scheduler}
        self.world.server.create(kinds.POD, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        if scheduler:
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "not now"}
            self.world.server.patch(
                kinds.POD, "default", name, {"status": {"conditions": [refused]}}, subresource="status"
            )

    def _release(self, kind: kinds.Kind, name: str) -> None:
        self.world.server.patch(kind, "", name, {"metadata": {"finalizers": []}})
        self.world.server.delete(kind, "", name)
