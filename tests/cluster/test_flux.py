"""`manifests/flux/` with the real kustomize-controller: how it comes up, what it waits for, what it refuses and keeps.

The tests are one story: each leaves the repository applied and healthy.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gitops.checks import checked_out, told, with_renderers
from tests.gitops.mistakes import MISTAKES
from tests.gitops.repositories import git
from tests.needed import needed
from tests.sources import ROOT

from .binaries import ControlPlaneUnavailable
from .control_plane import ControlPlane
from .fleet import MANIFEST, Fleet, annotated, approval, changed, condition, is_true
from .flux import NAMESPACE
from .flux_installation import RELEASES, STEPS, FluxInstallation
from .flux_programs import find_flux

pytestmark = pytest.mark.cluster

_, CLASSES, POOLS = STEPS
GUIDE = ROOT / "docs/gitops-flux.md"
TEAMS = ROOT / "tests/cluster/flux_sample.yaml"
ROLLING = "kerf/node-pools/rolling.yaml"
WEBHOOKS = ("mutatingwebhookconfiguration/kerf", "validatingwebhookconfiguration/kerf")

#: Seconds within which each step happens also on a busy machine, where Flux may have to try once more after a minute.
SOON = 150


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FluxInstallation]:
    """Flux and its definitions are on the control plane. Without Flux skipped, in CI a failure."""
    needed(find_flux, "Flux", ControlPlaneUnavailable)
    with FluxInstallation(own_control_plane, tmp_path_factory.mktemp("flux")) as installation:
        yield installation


def test_what_is_committed_comes_up_step_by_step(kerf: FluxInstallation) -> None:
    kerf.applied(kerf.flux.publish("fleet"))
    assert kerf.too_early == []
    pools = kerf.get("nodepools")
    assert {pool["metadata"]["name"] for pool in pools} == {"batch", "general"}
    assert all(is_true(pool, "Ready") and is_true(pool, "UpToDate") for pool in pools)
    assert all(is_true(one, "Ready") for one in kerf.get("ec2nodeclasses"))


def test_a_second_reconcile_changes_nothing(kerf: FluxInstallation) -> None:
    before, changes = versions(kerf), kerf.flux.changes()
    assert changes["NodePool/general created"] == 1
    for step in STEPS:
        kerf.reconcile(step, "once more")
    assert versions(kerf) == before
    assert kerf.flux.changes() == changes


def test_who_applies_the_same_by_hand_sees_no_difference_and_no_conflict(kerf: FluxInstallation) -> None:
    """Neither what the webhook, the definitions and the controller have added, nor what Flux has."""
    files = ("--server-side", "-R", "-f", str(kerf.repository))
    assert kerf.kubectl("diff", *files) == ""
    kerf.kubectl("apply", "--dry-run=server", "--validate=strict", *files)


def test_the_commands_of_the_guide_do_what_it_says(kerf: FluxInstallation) -> None:
    commands = 0
    for block in re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL):
        for command, printed in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
            commands += 1
            told = kerf.run(command)
            assert not printed or told == printed, command
    assert commands >= 8
    kerf.applied(kerf.flux.publish("fleet"))


def test_what_others_write_stays_and_what_is_in_git_is_put_back(kerf: FluxInstallation) -> None:
    hashes = {pool["metadata"]["name"]: hash_of(pool) for pool in kerf.get("nodepools")}
    for limits, flags in (({"cpu": "1", "nodes": "9"}, ()), ({"memory": "1Ti"}, ("--field-manager=capacity-team",))):
        patch = json.dumps({"spec": {"limits": limits}})
        kerf.kubectl("patch", "nodepool", "batch", "--type=merge", "-p", patch, *flags)
    team = {"example.com/team": "platform"}
    text: dict[str, Any] = {"resources": ["batch.yaml", "general.yaml"], "commonAnnotations": team}
    text["labels"] = [{"pairs": team, "includeTemplates": True}]
    kerf.applied(kerf.commit("kerf/node-pools/kustomization.yaml", yaml.safe_dump(text)))
    pools = {pool["metadata"]["name"]: pool for pool in kerf.get("nodepools")}
    assert pools["batch"]["spec"]["limits"] == {"cpu": "500", "memory": "1Ti"}
    for name, pool in pools.items():
        assert team.items() <= pool["metadata"]["labels"].items()
        assert team.items() <= pool["metadata"]["annotations"].items()
        assert "example.com/team" not in str(pool["spec"]["template"])
        assert hash_of(pool) == hashes[name]
    kerf.applied(kerf.commit("kerf/node-pools/kustomization.yaml", None))


def test_a_roll_out_is_waited_for_and_a_newer_commit_need_not_wait(kerf: FluxInstallation) -> None:
    fleet = rolling(kerf)
    old = fleet.uids()
    held_back(kerf, fleet, "next")
    kerf.wait(lambda: "Running health checks" in waiting(kerf), SOON, "Flux waits")
    limit = kerf.text("kerf/node-pools/batch.yaml").replace('cpu: "500"', 'cpu: "600"')
    revision = kerf.commit("kerf/node-pools/batch.yaml", limit)
    kerf.wait(lambda: limit_of_batch(kerf) == "600", SOON, "the newer commit is applied")
    kerf.wait(lambda: f"Running health checks for revision {revision}" in waiting(kerf), SOON, "Flux waits anew")
    fleet.allow(1)

    def ended() -> bool:
        done = kerf.flux.done(POOLS, revision)
        assert not (done and old & fleet.uids()), "Flux has not waited for the roll-out"
        return done

    kerf.wait(ended, 120, "the roll-out is over")
    assert not old & fleet.uids()


def test_a_change_waits_until_a_commit_approves_its_plan(kerf: FluxInstallation) -> None:
    """With a canary. Flux removes no annotation of the controller, and applies nothing again because of one."""
    fleet = rolling(kerf)
    asked = annotated(kerf.text(ROLLING), "kerf.sh/plan-first: 'true', kerf.sh/canary-soak: 5s")
    kerf.applied(kerf.commit(ROLLING, asked))
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", SOON, "the NodePool is noted")
    old = fleet.uids()
    kerf.applied(kerf.commit(ROLLING, changed(asked, "approved")))
    kerf.wait(lambda: "would replace 1 drifted node" in approval(fleet, "message"), SOON, "the change waits")
    seen, changes = approval(fleet, "message"), kerf.flux.changes()
    kerf.reconcile(POOLS, "while the change waits")
    assert (fleet.uids(), approval(fleet, "message"), kerf.flux.changes()) == (old, seen, changes)
    assert "kerf.sh/seen-plan" in fleet.pool()["metadata"]["annotations"]
    (digest,) = set(re.findall(r"\b[0-9a-f]{20}\b", seen))
    revision = kerf.commit(ROLLING, annotated(kerf.text(ROLLING), f"kerf.sh/approved-plan: '{digest}'"))
    kerf.wait(lambda: kerf.flux.done(POOLS, revision) and not old & fleet.uids(), 240, "the change is rolled out")
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", SOON, "nothing is left to be approved")
    changes = kerf.flux.changes()
    kerf.reconcile(POOLS, "after the change")
    assert kerf.flux.changes() == changes


@pytest.mark.long
def test_a_roll_out_that_is_held_for_good_fails_and_is_done_when_it_is_let_go(kerf: FluxInstallation) -> None:
    fleet = rolling(kerf)
    revision = held_back(kerf, fleet, "stalled")
    kerf.wait(lambda: kerf.flux.condition(POOLS)["status"] == "False", 420, "the step fails")
    assert "NodePool/rolling status: 'Failed'" in kerf.flux.condition(POOLS)["message"]
    assert is_true(fleet.pool(), "Stalled")
    fleet.allow(1)
    kerf.wait(lambda: kerf.flux.done(POOLS, revision), 240, "the roll-out is over")


def test_a_class_that_is_not_ready_keeps_what_follows_waiting(kerf: FluxInstallation) -> None:
    good = kerf.text("kerf/node-classes/general.yaml")
    kerf.commit("kerf/node-classes/general.yaml", good.replace("discovery: kerf-e2e", "discovery: nowhere"))

    def not_ready() -> bool:
        (node_class,) = kerf.get("ec2nodeclasses")
        return condition(node_class, "SubnetsReady").get("status") == "False" and not is_true(node_class, "Ready")

    try:
        kerf.wait(not_ready, SOON, "the class is not ready")
        # False for a moment where Flux comes to the step again while the step before is not done yet
        kerf.wait(lambda: kerf.flux.condition(CLASSES)["status"] == "Unknown", SOON, "the step waits for the class")
        words = f"dependency 'flux-system/{CLASSES}' is not ready"
        kerf.wait(lambda: words in kerf.flux.condition(POOLS)["message"], SOON, "the pools wait")
    finally:
        revision = kerf.commit("kerf/node-classes/general.yaml", good)
    kerf.applied(revision)


def test_a_wrong_pool_is_refused_with_our_words_and_nothing_of_its_commit_is_applied(kerf: FluxInstallation) -> None:
    """The rule is one that only the webhook knows."""
    wrong = kerf.text("kerf/node-pools/general.yaml").replace(
        "- nodes: 10%", '- {nodes: 10%, schedule: "61 9 * * *", duration: 1h}'
    )
    refused(kerf, wrong, "KERF-NP-120")


def test_without_the_webhook_the_definitions_refuse_with_our_words(kerf: FluxInstallation) -> None:
    kerf.kubectl("delete", *WEBHOOKS)
    good = kerf.text("kerf/node-pools/general.yaml")
    wrong = good.replace('operator: Gte, values: ["6"]', 'operator: Gte, values: ["6", "7"]')
    refused(kerf, wrong, "KERF-NP-015")
    kerf.flux.releases.release(*RELEASES)
    kerf.kubectl("get", *WEBHOOKS)


def test_what_is_protected_stays_when_its_file_goes(kerf: FluxInstallation) -> None:
    """The pools have no nodes: what becomes of nodes is not Flux's business, but that of the one who drains them."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": NAMESPACE}}
    kerf.commit("kerf/charts/releases.yaml", yaml.safe_dump(other))
    kerf.commit("kerf/node-pools/general.yaml", None)
    kerf.applied(kerf.commit("kerf/node-pools/batch.yaml", None))
    kerf.wait(lambda: names(kerf) == {"general", "rolling"}, SOON, "the pool without protection is gone")
    general = next(pool for pool in kerf.get("nodepools") if pool["metadata"]["name"] == "general")
    assert "deletionTimestamp" not in general["metadata"]
    assert {one["metadata"]["name"] for one in kerf.get("helmreleases", namespace=NAMESPACE)} == set(RELEASES)


def test_a_pool_with_nodes_goes_with_its_file_only_when_it_says_that_it_is_meant(kerf: FluxInstallation) -> None:
    """The fourth node is one more than go without a word."""
    fleet = Fleet(kerf)
    kerf.wait(lambda: is_true(fleet.pool(), "UpToDate"), SOON, "the last roll-out is over")
    fleet.scale(4)
    kerf.wait(lambda: fleet.pool()["status"]["nodes"] == 4, SOON, "the pool counts its nodes")
    pool, nodes = kerf.text(ROLLING), fleet.uids()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another", "namespace": NAMESPACE}}
    kerf.commit("kerf/node-pools/other.yaml", yaml.safe_dump(other))  # a folder that is gone Flux does not prune
    kerf.commit(ROLLING, None)
    kerf.wait(lambda: "deletion.webhook.kerf.sh" in kerf.flux.condition(POOLS)["message"], SOON, "it is refused")
    assert "annotate nodepool rolling kerf.sh/allow-deletion=4" in kerf.flux.condition(POOLS)["message"]
    assert "deletionTimestamp" not in fleet.pool()["metadata"]
    meant = annotated(pool, "kerf.sh/allow-deletion: '4'")
    kerf.applied(kerf.commit(ROLLING, meant))
    assert fleet.uids() == nodes
    kerf.kubectl("delete", "deployment", fleet.name)  # its pods would have nowhere else to go
    kerf.applied(kerf.commit(ROLLING, None))
    kerf.wait(lambda: names(kerf) == {"general"} and not fleet.claims(), 120, "the pool and its nodes are gone")


def test_what_three_teams_commit_comes_up_and_their_mistakes_are_told_before_they_are_met(
    kerf: FluxInstallation, tmp_path: Path
) -> None:
    """From the editor to the cluster: hook, action and job tell all twelve; what is merged nevertheless, Flux meets."""
    repo = checked_out(kerf.teams)
    kerf.kubectl("create", "namespace", "data")
    kerf.kubectl("apply", "-f", str(TEAMS))
    teams_applied(kerf)
    before = versions(kerf)
    for mistake in MISTAKES:
        mistake.make(repo)
    planted = {mistake.place(repo) for mistake in MISTAKES}
    assert len(planted) == 12
    # The role that one of them names is there: else the data team's nodes could not be launched, and Flux would wait.
    kerf.aws.client("iam").create_role(RoleName="KarpenterNodeRole-data", AssumeRolePolicyDocument="{}")
    for found in told(with_renderers(tmp_path / "machine"), repo):
        assert planted - found == set(), "\n".join(map(str, sorted(found)))
    revision = kerf.flux.publish("teams")
    kerf.wait(lambda: kerf.flux.condition("payments")["status"] == "False", SOON, "the payments team's are refused")
    assert re.search(r"EC2NodeClass/payments .* \[KERF-EC2-008\]", kerf.flux.condition("payments")["message"])
    assert versions(kerf)["NodePool/payments"] == before["NodePool/payments"]
    kerf.wait(lambda: kerf.flux.done("data", revision), SOON, "the data team's are sound, whatever they mean")
    assert "jupyter" in names(kerf)
    assert "notebooks" not in names(kerf)
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        kerf.flux.releases.release("search")
    assert re.search(r"NodePool search: .* \[KERF-SCHEMA-PATTERN\]", refusal.value.stderr)
    git(repo, "checkout", "--quiet", "main", ".")
    teams_applied(kerf)


def test_all_stays_when_flux_goes(kerf: FluxInstallation) -> None:
    """But what the data and payments teams have not protected, by a Kustomization without a deletionPolicy."""
    kerf.kubectl("delete", "kustomizations", "--all", "-n", NAMESPACE, "--timeout=30s")
    assert names(kerf) == {"general", "search"}
    assert not any("deletionTimestamp" in pool["metadata"] for pool in kerf.get("nodepools"))


# --- what the story needs ---------------------------------------------------------------------------------------
def teams_applied(kerf: FluxInstallation) -> None:
    """What the teams' folder holds is applied and healthy."""
    revision = kerf.flux.publish("teams")
    kerf.flux.releases.release("search")
    for step in ("data", "payments"):
        kerf.wait(partial(kerf.flux.done, step, revision), SOON, f"{step} is applied")
    kerf.wait(lambda: {"batch", "notebooks", "payments", "search"} <= names(kerf), SOON, "the teams' pools are there")
    kerf.wait(lambda: all(is_true(one, "Ready") for one in kerf.get("nodepools")), SOON, "and ready")


def rolling(kerf: FluxInstallation) -> Fleet:
    """The pool of `rolling.yaml`, of the class that is committed, with its workload on one node."""
    pool, *workload = MANIFEST.read_text().split("---\n")
    kerf.applied(kerf.commit(ROLLING, pool.replace("name: default}", "name: general}")))
    kerf.kubectl("apply", "-f", "-", input_="---\n".join(workload))
    fleet = Fleet(kerf)
    fleet.scale(1)
    return fleet


def held_back(kerf: FluxInstallation, fleet: Fleet, version: str) -> str:
    """A commit that changes the pool's template, while no pod may go; its revision, once the node is behind."""
    fleet.allow(0)
    revision = kerf.commit(ROLLING, changed(kerf.text(ROLLING), version))
    kerf.wait(lambda: not is_true(fleet.pool(), "UpToDate"), SOON, "the pool's node is behind")
    return revision


def versions(kerf: FluxInstallation) -> dict[str, str]:
    """Of everything that Flux applies."""
    kinds = "nodepools,ec2nodeclasses,helmreleases,customresourcedefinitions"
    return {
        f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"]
        for one in kerf.get(kinds, namespace="")
    }


def names(kerf: FluxInstallation) -> set[str]:
    return {pool["metadata"]["name"] for pool in kerf.get("nodepools")}


def waiting(kerf: FluxInstallation) -> str:
    """What the last step is waiting for, in Flux's words."""
    return str(kerf.flux.condition(POOLS, "Reconciling").get("message", ""))


def hash_of(pool: dict[str, Any]) -> str:
    return str(pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"])


def limit_of_batch(kerf: FluxInstallation) -> str:
    return kerf.kubectl("get", "nodepool", "batch", "-o", "jsonpath={.spec.limits.cpu}")


def refused(kerf: FluxInstallation, wrong: str, rule: str) -> None:
    """A commit with this pool and a good change of another; then the commit that takes both back."""
    place, good, limit = "kerf/node-pools/general.yaml", kerf.text("kerf/node-pools/general.yaml"), limit_of_batch(kerf)
    other = kerf.text("kerf/node-pools/batch.yaml")
    (kerf.repository / "kerf/node-pools/batch.yaml").write_text(other.replace(f'cpu: "{limit}"', 'cpu: "700"'))
    revision = kerf.commit(place, wrong)
    kerf.wait(lambda: kerf.flux.kustomization(POOLS)["status"].get("lastAttemptedRevision") == revision, SOON, "tried")
    kerf.wait(lambda: kerf.flux.condition(POOLS)["status"] == "False", SOON, "the commit is refused")
    message = kerf.flux.condition(POOLS)["message"]
    assert "NodePool/general" in message
    assert rule in message
    assert " ".join(message.split()) in " ".join(GUIDE.read_text().split())
    assert limit_of_batch(kerf) == limit
    (kerf.repository / "kerf/node-pools/batch.yaml").write_text(other)
    kerf.applied(kerf.commit(place, good))
