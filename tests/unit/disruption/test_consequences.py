"""What a move means, be it possible or under way: whose pods are evicted, which nodes come, what that saves."""

from __future__ import annotations

from kerf.disruption.command import Command
from kerf.model.annotations import text_of
from kerf_api import labels
from tests.unit.disruption.worlds import NOW, claim, node, pool
from tests.unit.judgement.yards import end, judged, machine, on_demand, worker


def test_whose_pods_are_evicted_and_which_node_comes() -> None:
    pods = [worker(f"web-{n}", "a", "100m") for n in range(2)]
    pods += [worker("db-0", "a", "100m", of="db", kind="StatefulSet"), worker("bare", "a", "100m", of="")]
    told = end(judged(on_demand(), machine("a"), *pods, worker("agent", "a", "10m", of="agent", kind="DaemonSet")))
    assert told.saving == 76_000
    assert told.facts == (
        "evicts 4 pods: 2 of Deployment shop/web, 1 of StatefulSet shop/db; "
        "shop/bare, which no controller creates again",
        "new node: on-demand in us-west-2a, from $0.0200 an hour, of NodePool default: t3.small",
    )


def test_of_many_workloads_the_largest_are_named() -> None:
    pods = [worker(f"{of}-{n}", "a", "10m", of=of) for of in "abcdefg" for n in range(2 if of == "g" else 1)]
    (evicts, _) = end(judged(on_demand(), machine("a"), *pods)).facts
    shown = ", ".join(f"1 of Deployment shop/{of}" for of in "abcd")
    assert evicts == f"evicts 8 pods: 2 of Deployment shop/g, {shown} and 2 more"


def test_where_pods_have_room_no_node_comes() -> None:
    told = end(judged(on_demand(), machine("a"), machine("b"), worker("v", "b", "1"), worker("w", "a", "100m")))
    assert told.facts == ("evicts 1 pod: 1 of Deployment shop/web",)
    assert (told.text, told.saving) == ("its pods fit on other nodes: saves $0.0960 an hour", 96_000)


def test_a_command_that_is_under_way_says_the_same() -> None:
    command = Command(
        id="c", reason="Underutilized", started=NOW, created=True, peers=("b",), why="replace, saves $0.0760 an hour"
    )
    a = claim("a", annotations={labels.COMMAND: text_of(command)})
    found = judged(pool(), a, node(a), worker("w", "a", "100m"))
    assert found.stage is not None
    assert "saves $0.0760 an hour" in found.text
    assert [fact.text for fact in found.stage.facts][:2] == [
        "is disrupted together with NodeClaim b",
        "evicts 1 pod: 1 of Deployment shop/web",
    ]
