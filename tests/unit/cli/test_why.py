"""`kerf why`: five typical answers word for word, from files; the same from a live world, which it leaves as it was."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kerf.cli.answering import account_page, answers, node_page
from kerf.cli.app import app
from kerf.judgement.judge import why as why_node
from kerf.model.settings import Settings
from kerf.provisioning.why import why
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import look
from kerf.sandbox.world import World
from kerf_api import labels
from tests import worlds
from tests.unit.disruption.worlds import snapshot
from tests.unit.judgement.yards import ON_DEMAND, machine, on_demand, worker
from tests.unit.kube.api_double import ApiDouble, Route

CASES = Path(__file__).parent / "why"
GOLDEN = {
    "taint": "ml/trainer-0",
    "too-large": "shop/cache-0",
    "volume-zone": "shop/db-0",
    "limit": "jobs/batch-3",
    "planned": "shop/web-0",
}


def run(*arguments: str, stdin: str = "") -> Any:
    return CliRunner().invoke(app, ["why", *arguments], input=stdin)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_it_reads_as_it_should(name: str) -> None:
    files = [f"--file={CASES / 'cluster.yaml'}", f"--file={CASES / name}.yaml"]
    done = run("pod", GOLDEN[name], *files)
    assert done.exit_code == 0
    assert done.stdout == (CASES / f"{name}.txt").read_text()


# --- the command line -------------------------------------------------------------------------------------------
def test_help_says_how() -> None:
    assert run("--help").stdout.startswith("kerf why pod [NAMESPACE/]NAME")
    alone = run()
    assert run("pod", "a/b", "--help").stdout == alone.stderr == run("--help").stdout
    assert (alone.exit_code, alone.stdout) == (2, "")


@pytest.mark.parametrize("arguments", [("pod", "/"), ("pod", "default/web/x"), ("pod", "a/b/c/d"), ("node", "a/b")])
def test_what_is_no_name_is_refused(arguments: tuple[str, str]) -> None:
    done = run(*arguments, f"--file={CASES / 'cluster.yaml'}")
    assert done.exit_code == 2
    assert f"'{arguments[1]}' is no name of a {arguments[0]}" in done.output


@pytest.mark.parametrize("name", ["nodepool/general", "nodepools/general", "general"])
def test_a_name_may_have_its_kind(name: str) -> None:
    assert "NodePool general" in run("nodepool", name, f"--file={CASES / 'cluster.yaml'}").output


def test_what_can_be_asked_about_is_named() -> None:
    done = run("service", "a")
    assert done.exit_code == 2
    assert "is neither pod, node, nodeclaim nor nodepool; write kerf why pod NAMESPACE/NAME" in done.stderr


def test_a_pool_of_files_is_told_and_one_that_is_not_there_exits_with_one() -> None:
    file = f"--file={CASES / 'cluster.yaml'}"
    told = run("nodepool", "general", file)
    assert told.exit_code == 0
    assert "NodePool general is ready: Kerf can launch nodes from it" in told.stdout
    assert json.loads(run("nodepool", "general", file, "-o", "json").stdout)["code"] == "Ready"
    assert run("nodepool", "nobody", file).exit_code == 1


def test_a_pod_as_json_holds_what_its_page_holds() -> None:
    files = [f"--file={CASES / 'cluster.yaml'}", f"--file={CASES / 'taint'}.yaml"]
    told = json.loads(run("pod", GOLDEN["taint"], *files, "-o", "json").stdout)
    page = (CASES / "taint.txt").read_text()
    assert (told["version"], told["pod"], told["code"]) == (1, GOLDEN["taint"], "Refused")
    account = told["refusal"]["account"]
    assert account["fixes"]
    assert all(fix in page for fix in account["fixes"])
    assert [pool["pool"] for pool in account["pools"]] == [
        line.split()[1].rstrip(":") for line in page.splitlines() if line.startswith("NodePool ")
    ]


def test_a_node_as_json_holds_what_its_page_holds() -> None:
    marked = [worker("w", "a", "500m", annotations={labels.DO_NOT_DISRUPT: "true"})]
    world = snapshot([on_demand(), *machine("a"), *machine("b"), worker("v", "b", "1", of="x"), *marked])
    told = json.loads(answers.as_json(why_node(world, "a"), world.now))
    end = next(end for end in told["ends"] if end["code"] == "Underutilized")
    text = "Deployment shop/web: remove the annotation karpenter.sh/do-not-disrupt"
    removed = {"path": f'spec.template.metadata.annotations["{labels.DO_NOT_DISRUPT}"]', "value": None}
    patch = {"action": "Edit", "kind": "Deployment", "name": "shop/web", "text": text, "fields": [removed]}
    remedy = {"text": text, "saving": 96_000, "patch": patch}
    assert (told["name"], told["code"], told["at"]) == ("node-a", "Stays", "2026-04-01T23:30:14Z")
    assert (end["saving"], end["remedies"]["found"], end["remedies"]["tried"]) == (96_000, [remedy], 1)
    assert told["holds"][0]["code"] == "PodDoNotDisrupt"
    assert told["budgets"]["allowances"][0]["allowed"] == 2


def test_a_format_that_is_not_known() -> None:
    done = run("pod", "a", "-f", str(CASES), "-o", "yaml")
    assert (done.exit_code, done.stderr) == (2, "kerf why: --output: 'yaml' is neither text nor json\n")


def test_which_pod_or_node() -> None:
    assert "which pod? kerf why pod NAMESPACE/NAME" in run("pod").stderr
    assert "which node? kerf why node NAME" in run("node").stderr


@pytest.mark.parametrize("kind", ["node", "Nodes", "no", "nodeclaim"])
def test_a_node_of_files(kind: str) -> None:
    """Its claim is not among them, as in most of what `kubectl get -o yaml` is asked for."""
    done = run(kind, "ip-10-0-1-7", f"--file={CASES / 'cluster.yaml'}")
    assert done.exit_code == 0
    assert "\nnode ip-10-0-1-7 is not managed by Kerf: no NodeClaim has its instance\n" in done.stdout


LAUNCHED = {"type": "Launched", "status": "True", "reason": "Launched"}
REGISTERED = {"type": "Registered", "status": "True", "reason": "Registered"}


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (
            [{"type": "Launched", "status": "False", "reason": "LaunchFailed", "message": "UnauthorizedOperation"}],
            (
                "waits for its instance to be launched",
                "LaunchFailed: UnauthorizedOperation",
                "- its NodeClaim is deleted, and created",
            ),
        ),
        (
            [LAUNCHED, {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "message": "no Node"}],
            (
                "waits for its instance to join the cluster",
                "NodeNotFound: no Node",
                "- its NodeClaim is deleted, and created",
            ),
        ),
        (
            [LAUNCHED, REGISTERED, {"type": "Initialized", "status": "Unknown", "reason": "NodeNotReady"}],
            ("has joined and waits to be initialized", "- NodeNotReady", "no time limit"),
        ),
    ],
    ids=["launch fails", "not registered", "not ready"],
)
def test_a_nodeclaim_on_its_way(conditions: list[dict[str, str]], words: tuple[str, ...], tmp_path: Path) -> None:
    at = "2026-01-01T12:00:00Z"
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-x2x9k", "creationTimestamp": at, "labels": {labels.NODEPOOL: "general"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        },
        "status": {"conditions": [{"lastTransitionTime": at, **one} for one in conditions]},
    }
    (tmp_path / "claim.json").write_text(json.dumps(claim))
    done = run("nodeclaim", "general-x2x9k", "-f", str(tmp_path / "claim.json"))
    assert done.exit_code == 0
    assert [text for text in words if text not in done.stdout] == []


def test_a_node_that_is_not_there() -> None:
    done = run("node", "node/ip-10-0-1-8", f"--file={CASES / 'cluster.yaml'}")
    assert done.exit_code == 1
    assert "node ip-10-0-1-8 does not exist\n  did you mean ip-10-0-1-7?\n" in done.stdout


def test_a_pod_that_is_not_there() -> None:
    done = run("pod", "web-0", f"--file={CASES}")
    assert done.exit_code == 1
    assert "pod default/web-0 does not exist\n  did you mean shop/web-0?\n" in done.stdout


def test_a_list_through_a_pipe() -> None:
    """As `kubectl get -o yaml` prints it."""
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: {nodeName: there}}"
    done = run("pod", "ns/a", "-f", "-", stdin=f"apiVersion: v1\nkind: List\nitems: [{pod}]\n")
    assert done.stdout.endswith("pod ns/a is already on node there\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", ":1:"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priority: high}}", ":1: Pod a: "),
        ("{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}}", ":1: NodePool a: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    done = run("pod", "a", "-f", str(file))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"kerf why: {file}{words}")


def test_no_such_file() -> None:
    done = run("pod", "a", "-f", "/nowhere/x.yaml")
    assert (done.exit_code, done.stderr) == (2, "kerf why: /nowhere/x.yaml: no such file or folder\n")


def test_settings_that_are_wrong_are_told() -> None:
    done = run("pod", "a", "-f", str(CASES), "--min-values-policy", "Perhaps")
    assert done.exit_code == 2
    assert "--min-values-policy: must be one of Strict, BestEffort" in done.stderr


def test_a_live_cluster_needs_its_name() -> None:
    done = CliRunner(env={"CLUSTER_NAME": ""}).invoke(app, ["why", "pod", "a"])
    assert done.exit_code == 2
    assert "CLUSTER_NAME (--cluster-name): is required" in done.stderr


def test_a_cluster_that_cannot_be_read(tmp_path: Path) -> None:
    done = run("pod", "a", "--kubeconfig", str(tmp_path / "none"), "--cluster-name", "x")
    assert done.exit_code == 1
    assert "kerf why: cannot read: kubeconfig" in done.stderr


def test_a_list_that_is_forbidden_is_named_and_nothing_but_reading_was_tried(tmp_path: Path) -> None:
    with ApiDouble() as api:
        api.routes = Denying()
        there = {"clusters": [{"name": "c", "cluster": {"server": api.configuration().host}}]}
        context = {"contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "current-context": "c"}
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps({**there, **context, "users": [{"name": "c", "user": {"token": "t"}}]}))
        done = CliRunner(env={"AWS_REGION": "us-west-2"}).invoke(
            app, ["why", "pod", "a", "--kubeconfig", str(file), "--cluster-name", "x"]
        )
        asked_for = {(method, path) for method, path, *_ in api.requests}
    assert done.exit_code == 1
    assert done.stderr.startswith("kerf why: cannot read: ")
    assert "needs permission to list nodepools.karpenter.sh, " in done.stderr
    assert {method for method, _ in asked_for} == {"GET"}


class Denying(dict[str, Route]):
    """An API server that says its version and denies all else."""

    def __missing__(self, call: str) -> Route:
        if call == "GET /version":
            return lambda _: (200, {"major": "1", "minor": "36"})
        return lambda _: (403, {"reason": "Forbidden", "code": 403})


# --- a live world -----------------------------------------------------------------------------------------------
def living(*pods: dict[str, Any]) -> World:
    """A sandbox in which the controller has been at work for a while."""
    world = World(seed=1)
    for manifest in (worlds.node_class(), worlds.node_pool("general", {}), *pods):
        world.apply(manifest)
    controller = Controller(world.ports, settings=Settings("sandbox"), inline=True)
    world.run(controller, timedelta(seconds=20))
    return world


def asked(world: World, key: str) -> str:
    snapshot = look(world.kube, world.cloud, Settings("sandbox"), world.clock)
    return account_page.page(why(snapshot, key))


def names(world: World) -> list[str]:
    return sorted(f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in world.objects("Pod"))


def test_a_live_cluster_is_read_and_left_as_it_was() -> None:
    world = living(worlds.deployment("giant", {"cpu": 500}))
    (pod,) = names(world)
    before = [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")]
    told = asked(world, pod)
    assert told.startswith(f"pod {pod} has no place: ")
    assert "NodePool general: no instance type has enough resources for cpu 500" in told
    assert [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")] == before


def test_a_node_of_a_live_cluster_is_told_of_and_left_as_it_was() -> None:
    world = living(worlds.deployment("web", {}))
    before = [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")]
    (claim,) = [one["metadata"]["name"] for one in world.objects("NodeClaim")]
    snapshot = look(world.kube, world.cloud, Settings("sandbox"), world.clock)
    told = node_page.page(why_node(snapshot, claim), snapshot.now)
    assert f"  NodeClaim {claim} of NodePool general, " in told
    assert "waits for its instance to join the cluster as a node" in told
    assert "NodeNotFound: no node has joined the cluster yet" in told
    assert [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")] == before


def test_the_change_that_would_let_a_node_of_a_live_cluster_go_is_told() -> None:
    """Its NodePool may make large nodes only."""
    large = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["8"]}
    world = World(seed=1)
    for manifest in (worlds.node_class(), worlds.node_pool("general", {"also": [large, ON_DEMAND]})):
        world.apply(manifest)
    world.apply(worlds.deployment("web", {}))
    controller = Controller(world.ports, settings=Settings("sandbox"), inline=True)
    world.run(controller, timedelta(minutes=5))
    (claim,) = [one["metadata"]["name"] for one in world.objects("NodeClaim")]
    before = [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")]
    found = look(world.kube, world.cloud, Settings("sandbox"), world.clock)
    told = node_page.page(why_node(found, claim), found.now)
    assert " stays: no replacement would be cheaper" in told.splitlines()[0]
    assert "pod default/web-" in told
    assert "  Underutilized  NodePool general: allow " in told.partition("\nChanges that unblock it\n")[2]
    assert [repr(world.objects(kind)) for kind in ("Pod", "Node", "NodeClaim", "NodePool", "Event")] == before


def test_what_ec2_finds_with_the_instance_of_a_node_is_told() -> None:
    world = living(worlds.deployment("web", {}))
    (instance,) = world.ec2.instances
    world.run(None, timedelta(minutes=2))
    world.ec2.impair(instance)
    world.run(None, timedelta(minutes=3))
    (claim,) = [one["metadata"]["name"] for one in world.objects("NodeClaim")]
    snapshot = look(world.kube, world.cloud, Settings("sandbox"), world.clock)
    told = node_page.page(why_node(snapshot, claim), snapshot.now)
    assert " is terminated now (InstanceStatusFailed: reachability failed)\n" in told


def test_a_pod_whose_node_is_on_its_way_waits_for_it() -> None:
    world = living(worlds.deployment("web", {}))
    (pod,) = names(world)
    told = asked(world, pod)
    assert told.startswith(f"pod {pod} has a place on NodeClaim general-")
    assert "  it waits for the " in told
