"""The rules of the design, each held by one test: the whole controller in the sandbox, one disturbance, one outcome.

Rules that other tests hold already are listed with them in docs/testing.md. Each of these dies when its rule is broken
in the sources (`make mutations`).
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from kerf.model import kinds
from kerf.ports import Expired, Forbidden, Invalid, Unavailable
from kerf.runtime.leadership.leader import Candidate, Leader
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.faults import Call
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.weather import Weather
from kerf_api import labels
from tests.simulation.stage import EAGER, SETTINGS, Stage, of
from tests.simulation.trouble import Killed, lives
from tests.worlds import deployment, node_pool

TWO_CPUS = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}


# --- budgets are counts -------------------------------------------------------------------------------------------
def test_a_node_that_is_not_ready_uses_up_budget() -> None:
    stage = Stage(replicas=3, disruption={**EAGER, "budgets": [{"nodes": "1"}]})
    stage.settle()
    sick = stage.nodes[0].name
    stage.annotate(kinds.NODE, sick, NOT_READY, "true")
    stage.scale(0)
    stage.run(120)
    assert not stage.seam.writes("delete")
    stage.annotate(kinds.NODE, sick, NOT_READY, None)
    stage.run(600, until=lambda: not stage.claims)


def test_limits_count_claims_that_have_no_node_yet() -> None:
    stage = Stage(replicas=2, pool={"limits": {"cpu": "4"}, "also": [TWO_CPUS]})
    stage.run(60, until=lambda: len(stage.machines) == 2)
    assert not stage.nodes
    stage.scale(4)
    stage.run(15)
    assert not stage.nodes
    assert len(stage.claims) == 2


# --- read your own writes -----------------------------------------------------------------------------------------
def test_own_writes_count_before_a_watch_shows_them() -> None:
    """With watches that say nothing at all, a launch goes from the node class's status to the instances."""
    stage = Stage(replicas=2)
    stage.seam.silent_kinds.update(kind.plural for kind in kinds.WATCHED)
    stage.run(20, until=lambda: sum(claim.is_true("Launched") for claim in stage.claims) == 2)
    made = stage.seam.writes("create", "create_fleet")
    assert sorted(made) == sorted(set(made))
    assert len(stage.machines) == 2


def test_a_creation_whose_answer_was_lost_meets_its_own_name() -> None:
    """Neither the answer nor the watch says that the claims are there, so they are created once more."""
    stage = Stage(replicas=2)
    stage.seam.silent_kinds.add("nodeclaims")
    stage.seam.loses["kube", "create"] = Unavailable("cut off")
    stage.run(8, until=lambda: len(stage.claims) == 2)
    stage.seam.loses.clear()
    stage.run(20)
    stage.seam.silent_kinds.clear()
    made = stage.seam.writes("create")
    assert len(made) > len(set(made)) == 2
    stage.settle()
    assert len(stage.claims) == len(stage.world.ec2.instances) == 2


# --- fresh or not at all ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", kinds.WATCHED, ids=lambda kind: kind.plural)
def test_an_expired_watch_is_listed_again_and_nothing_is_destroyed(kind: kinds.Kind) -> None:
    stage = Stage(replicas=2, disruption=EAGER)
    stage.settle()
    stage.seam.fails["kube", "read"] = of(kind.plural, Expired("too old"))
    stage.run(2)
    stage.seam.fails.clear()
    stage.run(90)
    assert Call("kube", "list", kind.plural) in stage.seam.calls
    assert not stage.seam.writes()
    stage.scale(3)
    stage.settle()
    assert len(stage.claims) == 3


@pytest.mark.parametrize("kind", kinds.WATCHED, ids=lambda kind: kind.plural)
def test_a_forbidden_list_is_not_an_empty_one(kind: kinds.Kind) -> None:
    """A permission is taken away while the controller runs, then it is restarted, then it is given back."""
    stage = Stage(replicas=2, disruption=EAGER)
    stage.settle()
    stage.seam.fails["kube", "read"] = of(kind.plural, Expired("too old"))
    stage.seam.fails["kube", "list"] = of(kind.plural, Forbidden("not yours"))
    stage.run(120)
    stage.restart()
    stage.run(120)
    assert not stage.seam.writes()
    stage.seam.fails.clear()
    stage.scale(3)
    stage.settle()
    assert len(stage.claims) == 3


@pytest.mark.parametrize("source", ["pods", "nodes", "nodeclaims"])
def test_nothing_is_destroyed_on_old_news(source: str) -> None:
    stage = Stage()
    stage.settle()
    stage.seam.silent_kinds.add(source)
    stage.seam.fails["kube", "list"] = of(source, Unavailable("down"))
    stage.run(60)
    (claim,) = stage.claims
    stage.delete_claim(claim.name)
    stage.run(40)
    stage.seam.calls.clear()
    stage.run(60)
    assert not stage.seam.writes("evict", "delete", "terminate")
    stage.seam.silent_kinds.clear()
    stage.seam.fails.clear()
    stage.run(200, until=lambda: not lives(stage.machine_of(claim)))


def test_pods_are_listed_once_more_before_an_empty_node_goes() -> None:
    """A pod comes to the node between the taint and the deletion, and the watch does not tell."""
    stage = Stage(disruption=EAGER)
    stage.settle()
    (node,) = stage.nodes
    stage.scale(0)
    stage.run(10)
    stage.seam.silent_kinds.add("pods")
    stage.create_pod("late", node_name=node.name)
    stage.run(30)
    stage.seam.silent_kinds.clear()
    stage.run(60)
    assert [n.name for n in stage.nodes] == [node.name]
    assert not stage.seam.writes("delete")
    assert not any(t.key == labels.DISRUPTED_TAINT for t in stage.nodes[0].spec.taints)


def test_no_action_starts_after_the_renew_deadline() -> None:
    """The API server takes twelve seconds for a write: what the plan wanted after it is not begun."""
    stage = Stage()
    leader = Leader(stage.world.kube, stage.world.clock, Candidate("kube-system", "kerf", "one"))
    stage.lead_by(leader)
    stage.settle()
    begun: list[tuple[str, bool]] = []
    stage.seam.fails["kube", "evict"] = stage.seam.fails["cloud", "terminate"] = lambda call: begun.append(
        (call.verb, leader.may_act())
    )
    stage.seam.fails["kube", "patch"] = lambda call: begun.append((call.verb, leader.may_act()))
    stage.seam.loses["kube", "patch"] = lambda call: stage.world.clock.sleep(12)
    (claim,) = stage.claims
    stage.delete_claim(claim.name)
    stage.run(300, until=lambda: not lives(stage.machine_of(claim)))
    assert all(may_act for _, may_act in begun), begun


def test_a_young_instance_without_a_claim_is_left_alone() -> None:
    stage = Stage(replicas=2)
    stage.run(60, until=lambda: sum(claim.is_true("Launched") for claim in stage.claims) == 2)
    claim = stage.claims[0]
    machine = stage.machine_of(claim)
    stage.abandon_claim(claim.name)
    stage.run(300, until=lambda: not lives(machine))
    assert machine.ended is not None
    assert machine.ended - machine.launched >= SETTINGS.adoption_time


def test_an_instance_whose_claim_a_silent_watch_hides_is_left_alone() -> None:
    """A replica whose watch of claims has gone silent takes over, and meets what was launched meanwhile."""
    stage = Stage()
    stage.settle()
    stage.standbys.append(stage.hire())
    stage.run(2)
    stage.seam.silent_kinds.add("nodeclaims")
    stage.scale(2)
    stage.run(90, until=stage.all_run)
    stage.hand_over()
    stage.run(120)
    assert not stage.seam.writes("terminate")
    assert len(stage.claims) == 2


def test_a_nominated_node_is_not_empty() -> None:
    """A pod that the scheduler has refused is expected on the node; until it is bound the node has no pods."""
    stage = Stage(disruption=EAGER)
    stage.settle()
    (node,) = stage.nodes
    stage.create_pod("late", scheduler="slow")
    stage.run(5)
    stage.scale(0)
    stage.run(60)
    assert not stage.seam.writes("delete")
    stage.world.server.bind("default", "late", node.name, timestamp(stage.world.clock.now()))
    stage.run(60)
    assert [n.name for n in stage.nodes] == [node.name]


def test_who_takes_over_looks_for_places_for_pending_pods_before_a_node_goes_as_empty() -> None:
    """What the one before had promised a pod is not known to the next: the empty node is its place all the same."""
    stage = Stage(disruption=EAGER)
    stage.settle()
    (node,) = stage.nodes
    stage.controller = stage.hire(lambda: False)
    stage.create_pod("late", scheduler="slow")
    stage.scale(0)
    stage.run(20)
    stage.restart()
    stage.run(10)
    assert not stage.seam.writes("delete")
    stage.world.server.bind("default", "late", node.name, timestamp(stage.world.clock.now()))
    stage.run(60)
    assert [n.name for n in stage.nodes] == [node.name]


# --- state lives in the API server --------------------------------------------------------------------------------
def test_backoff_survives_a_restart() -> None:
    """A replacement that failed is not bought again for a minute, whoever controls the cluster then."""
    stage = Stage()
    stage.settle()
    (old,) = stage.claims
    stage.world.apply(node_pool("general", {"disruption": EAGER, "labels": {"version": "2"}}))
    stage.run(120, until=lambda: len(stage.machines) == 2)
    (new,) = (claim for claim in stage.claims if claim.name != old.name)
    stage.delete_claim(new.name)
    stage.run(60, until=lambda: not any(labels.COMMAND in claim.metadata.annotations for claim in stage.claims))
    stage.seam.calls.clear()
    stage.restart()
    stage.run(45)
    assert not stage.seam.writes("create")
    stage.run(60, until=lambda: bool(stage.seam.writes("create")))


def test_an_instance_ends_by_its_id() -> None:
    """A node of another instance has registered under the name of the one that is to go."""
    stage = Stage(replicas=2)
    stage.settle()
    going, staying = stage.claims
    stage.rename_node(staying, going.status.node_name)
    stage.delete_claim(going.name)
    stage.run(120, until=lambda: not lives(stage.machine_of(going)))
    stage.run(60)
    assert stage.seam.writes("terminate")[0] == f"terminate {going.instance_id}"
    assert lives(stage.machine_of(staying))


def test_a_claim_lets_go_when_its_instance_is_gone() -> None:
    stage = Stage(weather=Weather(shutdown_seconds=60))
    stage.settle()
    (claim,) = stage.claims
    states: list[str] = []

    def heard(old: Record | None, new: Record | None) -> None:
        if new is None and old is not None and old.value.metadata.uid == claim.metadata.uid:
            states.append(stage.machine_of(claim).state)

    stage.world.server.listen(heard)
    stage.delete_claim(claim.name)
    stage.run(300, until=lambda: bool(states))
    assert states == ["terminated"]


def test_a_node_takes_no_new_pods_while_it_is_drained() -> None:
    stage = Stage()
    stage.settle()
    (claim,), (node,) = stage.claims, stage.nodes
    stage.delete_claim(claim.name)
    stage.run(300, until=lambda: stage.all_run() and not stage.pods_on(node.name))
    stage.run(60)
    assert len(stage.seam.writes("evict")) == 1
    assert claim.name not in [c.name for c in stage.claims]


def test_a_node_that_is_not_ready_is_drained_all_the_same() -> None:
    """Its pods may run on: only nobody hears of them."""
    stage = Stage()
    stage.settle()
    (claim,), (node,), (pod,) = stage.claims, stage.nodes, stage.values(kinds.POD)
    stage.annotate(kinds.NODE, node.name, NOT_READY, "true")
    stage.run(10)
    stage.delete_claim(claim.name)
    stage.run(300, until=lambda: not lives(stage.machine_of(claim)))
    assert stage.seam.writes("evict", "terminate")[0] == f"evict pod/{pod.key}"


def test_an_eviction_that_was_refused_is_asked_again_and_nothing_else() -> None:
    stage = Stage()
    stage.settle()
    (claim,), (pod,) = stage.claims, stage.values(kinds.POD)
    stage.protect()
    stage.delete_claim(claim.name)
    stage.run(300)
    assert stage.seam.writes("evict").count(f"evict pod/{pod.key}") > 3
    assert f"delete pod/{pod.key}" not in stage.seam.writes("delete")
    assert stage.values(kinds.POD) == [pod]
    stage.world.delete("PodDisruptionBudget", "web", "default")
    stage.run(120, until=lambda: not lives(stage.machine_of(claim)))


# --- launch is idempotent -----------------------------------------------------------------------------------------
def test_a_launch_is_written_to_its_claims_first() -> None:
    stage = Stage(replicas=2)
    carrying: list[set[str]] = []

    def look(call: Call) -> None:
        group = call.subject
        carrying.append({c.name for c in stage.claims if c.metadata.annotations.get(labels.LAUNCH_GROUP) == group})

    stage.seam.fails["cloud", "create_fleet"] = look
    stage.settle()
    assert carrying == [{claim.name for claim in stage.claims}]


@pytest.mark.parametrize("trouble", [Unavailable("cut off"), Killed()], ids=["answer lost", "killed"])
def test_a_launch_whose_answer_was_lost_launches_once(trouble: BaseException) -> None:
    """EC2 shows the instances only after a while, and until then the call is repeated."""
    stage = Stage(replicas=2, weather=Weather(describe_lag_seconds=20))
    stage.seam.loses["cloud", "create_fleet"] = trouble
    stage.run(12)
    stage.seam.loses.clear()
    stage.settle()
    assert len(stage.claims) == len(stage.world.ec2.instances) == 2


# --- no plan for nothing ------------------------------------------------------------------------------------------
def test_a_node_stays_when_its_pods_may_need_as_dear_a_node_again() -> None:
    """The two pods of the first node fit on the others, each on its own; but the smaller one goes where there is most
    room, and the other one may go nowhere else."""
    stage = Stage(replicas=0, pool={"also": [TWO_CPUS]})
    settled = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
    here, there = ({"nodeSelector": {labels.ZONE: f"us-west-2{zone}"}} for zone in "ab")
    for apps in (
        [deployment("roaming", {"cpu": "600m"}), deployment("tied", {"cpu": "650m", **here})],
        [deployment("here", {"cpu": "1200m", **settled, **here})],
        [deployment("there", {"cpu": "1300m", **settled, **there})],
    ):
        for app in apps:
            stage.world.apply(app)
        stage.settle()
    assert len(stage.nodes) == 3
    disruption = {**EAGER, "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    stage.world.apply(node_pool("general", {"disruption": disruption, "also": [TWO_CPUS]}))
    stage.run(1200)
    assert not stage.seam.writes("evict", "create", "delete")


# --- no global gate -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_pool_whose_claims_fail_holds_up_no_other(verb: str) -> None:
    """By then the back-off of what fails is long; others are served at once all the same."""
    stage = Stage(replicas=0)
    taint = {"key": "broken", "effect": "NoSchedule"}
    stage.world.apply(node_pool("broken", {"taints": [taint], "labels": {"of": "broken"}}))
    tolerant = {"tolerations": [{"key": "broken", "operator": "Exists"}], "nodeSelector": {"of": "broken"}}
    stage.world.apply(deployment("other", {"replicas": 1, **tolerant}))
    stage.seam.fails["kube", verb] = of("nodeclaim/broken-", Invalid("no"))
    stage.run(100)
    assert not stage.machines
    stage.scale(2)
    stage.run(5, until=lambda: len(stage.machines) == 2)


def test_an_object_that_cannot_be_understood_holds_up_only_itself() -> None:
    stage = Stage(replicas=4)
    stage.settle()
    odd, plain, *_ = stage.claims
    stage.annotate(kinds.NODE_CLAIM, odd.name, labels.TERMINATION_TIMESTAMP, "tomorrow")
    stage.delete_claim(odd.name)
    stage.delete_claim(plain.name)
    stage.run(180, until=lambda: not lives(stage.machine_of(plain)))
    assert lives(stage.machine_of(odd))
    stage.annotate(kinds.NODE_CLAIM, odd.name, labels.TERMINATION_TIMESTAMP, None)
    stage.run(180, until=lambda: not lives(stage.machine_of(odd)))


def test_what_failed_is_left_alone_for_longer_each_time() -> None:
    stage = Stage()
    tries: list[timedelta] = []
    started = stage.world.clock.now()

    def fail(call: Call) -> None:
        tries.append(stage.world.clock.now() - started)
        raise Unavailable("down")

    stage.seam.fails["kube", "create"] = fail
    stage.run(60)
    waits = [later - earlier for earlier, later in pairwise(tries)]
    assert waits == sorted(waits)
    assert 4 <= len(tries) <= 8
