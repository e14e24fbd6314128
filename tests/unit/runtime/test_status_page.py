"""`kerf status` at the debug port of a live controller in the sandbox: what is a problem, and what is said of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from kerf.cli.app import app
from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.model.plan import Plan, Reason, Refusal
from kerf.model.snapshot import Snapshot
from kerf.ports import Forbidden
from kerf.runtime.controller import Controller
from kerf.runtime.questions import Questions
from kerf.runtime.status import Replica
from kerf.sandbox.world import World
from tests.unit.runtime.nights import REPLICA, Night

from .loops import Decider, controller, node


@pytest.fixture
def night() -> Iterator[Night]:
    with Night() as made:
        yield made


def test_before_everything_was_listed_nothing_is_decided_and_that_is_said(night: Night) -> None:
    code, page = night.kerf("status")
    assert code == 1
    assert "! watches: not listed yet, so nothing is decided: " in page
    assert "never complete" in page


def test_when_all_is_well_it_says_so(night: Night) -> None:
    node(night.world, "n")
    night.loop.tick()
    code, page = night.kerf("status")
    assert code == 0, page
    assert page.startswith("all is well\n")
    assert "pod-1_uuid, Kerf 0.1.0 490ef94, log level info" in page
    assert "leader    this replica, by the lease kerf/karpenter-leader-election" in page
    assert "0 NodeClaims, 1 Node, 0 instances" in page


def test_as_json_it_has_the_same_for_programs(night: Night) -> None:
    night.loop.tick()
    code, told = night.kerf("status", "-o", "json")
    found = json.loads(told)
    assert code == 0
    assert found["problems"] == []
    assert {row["name"] for row in found["working"]["sources"]} >= {"Node", "Pod", "NodeClaim", "Instance"}
    assert found["replica"]["leading"] is True


def test_old_news_are_named_with_their_age(night: Night) -> None:
    night.loop.tick()
    night.world.clock.sleep(200)
    found = night.status()
    (problem,) = [one for one in found.problems if one.code == "Stale"]
    assert problem.object == "watches"
    assert "Pod" in problem.text
    (pods,) = [source for source in found.working.sources if source.name == "Pod"]
    assert (pods.age_seconds, pods.stale) == (200.0, True)


def test_a_kind_in_doubt_is_a_guard_that_has_tripped(night: Night) -> None:
    night.loop.tick()
    night.loop.state.doubt(kinds.POD)
    code, page = night.kerf("status")
    assert code == 1
    assert "! Pod: an update could not be processed: no disruption that depends on this kind" in page


def test_a_condition_of_a_guard_is_a_problem(night: Night) -> None:
    held = {"type": "GarbageCollectionHalted", "status": "True", "reason": "TooMany", "message": "7 instances"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    pool: dict[str, Any] = {
        "metadata": {"name": "p"},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
    }
    night.world.kube.create(kinds.NODE_POOL, pool)
    night.world.kube.patch(kinds.Ref("NodePool", "", "p"), {"status": {"conditions": [held]}}, subresource="status")
    night.loop = controller(night.world, Decider())
    night.loop.tick()
    code, page = night.kerf("status")
    assert code == 1
    assert "! nodepool/p: GarbageCollectionHalted: 7 instances" in page


def test_what_was_decided_against_and_what_is_left_alone_is_counted(night: Night) -> None:
    refusals = tuple(Refusal(f"node/{n}", Reason("StaleSource", "old")) for n in range(3))
    night.loop = controller(night.world, Decider(Plan(refusals=refusals)))
    night.loop.tick()
    night.loop.state.actions.failed("nodeclaim/c", night.world.clock.now())
    _, page = night.kerf("status")
    assert "3  StaleSource" in page
    assert "not retried yet after a failure" in page
    assert "nodeclaim/c" in page


def test_a_bug_in_deciding_is_a_problem_until_a_decision_is_made(night: Night) -> None:
    broken = True

    def deciding(snapshot: Snapshot, memory: Memory) -> Plan:
        if broken:
            raise KeyError("x")
        return Plan()

    night.loop = controller(night.world, deciding)
    for _ in range(2):
        night.loop.tick()
    code, page = night.kerf("status")
    assert code == 1
    assert "! loop: Decide fails: KeyError: 'x' [since" in page
    assert "2 attempts" in page
    broken = False
    night.loop.tick()
    assert night.kerf("status")[0] == 0


def test_a_slow_half_that_fails_is_a_problem_until_it_answers(night: Night) -> None:
    night.loop.tick()
    night.loop.telemetry.proposing_failed(RuntimeError("the worker died"))
    night.loop.tick()
    assert "! loop: ProposeDisruption fails: RuntimeError: the worker died" in night.kerf("status")[1]
    night.loop.telemetry.proposed(1.0)
    night.loop.tick()
    assert night.kerf("status")[0] == 0


def test_events_that_may_not_be_written_are_a_problem(night: Night) -> None:
    night.loop.tick()
    night.loop.telemetry.event_failed(Forbidden("events is forbidden"))
    night.loop.tick()
    _, page = night.kerf("status")
    assert "! kubernetes/events: WriteEvents is forbidden: events is forbidden" in page
    assert "ClusterRole" in page
    for outcome, code in (("failed", 1), ("repeated", 1), ("written", 0)):
        night.loop.telemetry.event_tried("Normal", outcome)
        night.loop.tick()
        assert night.kerf("status")[0] == code, outcome


def test_a_success_ends_a_failure_that_the_loop_has_not_read_yet(night: Night) -> None:
    night.loop.tick()
    night.loop.telemetry.event_failed(Forbidden("events is forbidden"))
    night.loop.telemetry.event_tried("Normal", "written")
    night.loop.tick()
    assert night.kerf("status")[0] == 0


def test_an_object_that_is_left_out_is_a_problem(night: Night) -> None:
    refusal = Refusal("node/n", Reason("Malformed", "cpu: x is no quantity"))
    night.loop = controller(night.world, Decider(Plan(refusals=(refusal,))))
    night.loop.tick()
    code, page = night.kerf("status")
    assert (code, "! node/n: is ignored: Malformed: cpu: x is no quantity" in page) == (1, True)


def test_a_replica_that_waits_says_who_leads(night: Night) -> None:
    night.loop.tick()
    night.replica = Replica("pod-2_x", "0.1.0", "", "info", False, "kerf/l", "pod-1_y", ("only watching: somebody",))
    code, page = night.kerf("status")
    assert code == 1
    assert "! replica/pod-2_x: only watching: somebody" in page
    assert "leader    pod-1_y, by the lease kerf/l" in page


def test_a_replica_that_does_not_lead_never_says_that_all_is_well(night: Night) -> None:
    night.loop.tick()
    night.replica = replace(REPLICA, leading=False, leader="kerf-7d9-x2_uuid")
    code, page = night.kerf("status")
    assert code == 0
    assert "all is well" not in page
    first, second, *_ = page.splitlines()
    assert first.startswith("no problem known to this replica, which does not lead")
    assert second == "    kubectl exec -n kerf kerf-7d9-x2 -- kerf status"
    unknown = "actions that fail, back-offs and refusals: only the leader kerf-7d9-x2_uuid knows them"
    assert page.splitlines()[-1] == f"not checked: {unknown}"
    assert json.loads(night.kerf("status", "-o", "json")[1])["not_checked"] == [unknown]
    night.replica = replace(REPLICA, leading=False, leader="")
    assert (
        "not checked: actions that fail, back-offs and refusals: only a leader, and there is none,"
        in night.kerf("status")[1]
    )
    night.replica = REPLICA
    assert json.loads(night.kerf("status", "-o", "json")[1])["not_checked"] == []


def test_a_recorder_that_fails_is_a_problem_of_its_replica(night: Night) -> None:
    night.loop.tick()
    night.replica = replace(REPLICA, recording=("the record is not uploaded: 403: Forbidden",))
    code, page = night.kerf("status")
    assert code == 1
    assert "! replica/pod-1_uuid: the record is not uploaded: 403: Forbidden" in page
    assert "decisions are not affected" in page


def test_a_loop_that_does_not_answer_is_told_with_where_the_threads_stand(night: Night) -> None:
    night.late = True
    code, page = night.kerf("status")
    assert code == 2
    assert "the loop does not answer" in page
    assert "thread MainThread" in page


def test_where_nobody_answers_that_is_said() -> None:
    result = CliRunner().invoke(app, ["status", "--url", "http://127.0.0.1:9"])
    assert result.exit_code == 2
    assert "no controller answers at http://127.0.0.1:9" in result.output
    assert "kubectl port-forward" in result.output


def test_the_loop_answers_other_threads_between_two_looks() -> None:
    world, stop = World(), threading.Event()
    loop: Controller = controller(world, Decider())
    thread = threading.Thread(target=loop.run, args=(stop,), daemon=True)
    thread.start()
    found = loop.questions.ask(loop.status, 10)
    stop.set()
    loop.inbox.wake()
    thread.join(10)
    assert found.missing == ()
    with pytest.raises(TooLate):
        loop.questions.ask(loop.status, 0.05)


def test_a_question_that_fails_is_told_to_who_asked_and_the_loop_goes_on() -> None:
    questions = Questions(lambda: None)
    with ThreadPoolExecutor(2) as threads:
        failing = threads.submit(questions.ask, lambda: 1 // 0, 10)
        fine = threads.submit(questions.ask, lambda: 7, 10)
        while not (failing.done() and fine.done()):
            questions.answer()
        assert fine.result() == 7
        with pytest.raises(ZeroDivisionError):
            failing.result()
