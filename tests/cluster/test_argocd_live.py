"""`manifests/argocd/` with the real Argo CD: its waves, a roll-out, no differences at rest, refusals, pruning.

The tests are one story: each leaves the repository applied and healthy. In `make long`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.needed import needed

from .argocd_installation import APPLICATIONS, POOLS, ArgoCdInstallation
from .argocd_programs import find_argocd
from .binaries import ControlPlaneUnavailable
from .control_plane import ControlPlane
from .fleet import MANIFEST, Fleet, annotated, approval, changed, is_true

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1200)]

#: Seconds for a step that Argo CD may take up in its next round, also on a busy machine.
SOON = 150
REST_SECONDS = 600
GENERAL, BATCH, ROLLING = (f"{POOLS}/{name}.yaml" for name in ("general", "batch", "rolling"))


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCdInstallation]:
    """Without Argo CD skipped, in CI a failure."""
    needed(find_argocd, "Argo CD", ControlPlaneUnavailable)
    with ArgoCdInstallation(own_control_plane, tmp_path_factory.mktemp("argocd")) as installation:
        yield installation


def test_the_waves_come_up_in_order(kerf: ArgoCdInstallation) -> None:
    """No EC2NodeClass before the pods of the controller are Ready, and all Applications are Healthy in the end."""
    assert kerf.too_early == []
    kerf.wait(lambda: healthy(kerf, "kerf", *APPLICATIONS), 300, "all Applications are Synced and Healthy")
    begun = {name: kerf.argocd.application(name)["metadata"]["creationTimestamp"] for name in APPLICATIONS}
    assert list(begun.values()) == sorted(begun.values())
    assert names(kerf) == {"batch", "general"}
    assert all(is_true(one, "Ready") for kind in ("nodepools", "ec2nodeclasses") for one in kerf.get(kind))


def test_an_application_is_healthy_again_when_a_roll_out_has_ended(kerf: ArgoCdInstallation) -> None:
    """It is Synced as soon as the objects are applied, and Progressing until the last node is replaced."""
    fleet = rolling(kerf)
    old = fleet.uids()
    fleet.allow(0)
    kerf.synced("node-pools", kerf.commit(ROLLING, changed(kerf.text(ROLLING), "next")), SOON)
    kerf.wait(lambda: kerf.argocd.health("node-pools") == "Progressing", SOON, "the roll-out is seen")
    fleet.allow(1)

    def ended() -> bool:
        done = kerf.argocd.health("node-pools") == "Healthy"
        assert not (done and old & fleet.uids()), "Healthy before the roll-out has ended"
        return done

    kerf.wait(ended, 240, "the roll-out has ended")
    assert not old & fleet.uids()


def test_a_change_waits_until_a_commit_approves_its_plan(kerf: ArgoCdInstallation) -> None:
    """With a canary. Argo CD sees no difference and syncs nothing because of the annotations of the controller."""
    fleet = Fleet(kerf)
    asked = annotated(kerf.text(ROLLING), "kerf.sh/plan-first: 'true', kerf.sh/canary-soak: 5s")
    kerf.synced("node-pools", kerf.commit(ROLLING, asked), SOON)
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", SOON, "the NodePool is noted")
    old = fleet.uids()
    kerf.synced("node-pools", kerf.commit(ROLLING, asked.replace("version: next", "version: approved")), SOON)
    kerf.wait(lambda: "would replace 1 drifted node" in approval(fleet, "message"), SOON, "the change waits")
    seen, syncs = approval(fleet, "message"), history(kerf, "node-pools")
    refresh(kerf)
    assert kerf.argocd.differences("node-pools") == []
    assert (fleet.uids(), approval(fleet, "message"), history(kerf, "node-pools")) == (old, seen, syncs)
    assert "kerf.sh/seen-plan" in fleet.pool()["metadata"]["annotations"]
    (digest,) = set(re.findall(r"\b[0-9a-f]{20}\b", seen))
    approved = annotated(kerf.text(ROLLING), f"kerf.sh/approved-plan: '{digest}'")
    kerf.synced("node-pools", kerf.commit(ROLLING, approved), SOON)
    kerf.wait(lambda: not old & fleet.uids() and fleet.whole(1), 240, "the change is rolled out")
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", SOON, "nothing is left to be approved")
    syncs = history(kerf, "node-pools")
    refresh(kerf)
    assert kerf.argocd.differences("node-pools") == []
    assert history(kerf, "node-pools") == syncs
    kerf.wait(lambda: healthy(kerf, "node-pools"), SOON, "the Application is Healthy")


def test_no_difference_while_kerf_works(kerf: ArgoCdInstallation) -> None:
    """Ten minutes with new nodes, a CA bundle of the controller's, and three hard refreshes."""
    fleet = Fleet(kerf)
    (validating,) = (x for x in kerf.get("validatingwebhookconfigurations") if x["metadata"]["name"] == "kerf")
    assert all(webhook["clientConfig"].get("caBundle") for webhook in validating["webhooks"])
    syncs = {name: history(kerf, name) for name in APPLICATIONS}
    begun, refreshes = time.monotonic(), 0
    while time.monotonic() - begun < REST_SECONDS:
        for name in APPLICATIONS:
            assert kerf.argocd.differences(name) == [], name
        if time.monotonic() - begun > (refreshes + 1) * REST_SECONDS / 4 and refreshes < 3:
            refreshes += 1
            refresh(kerf)
            fleet.scale(1 + refreshes)
        time.sleep(1)
    assert refreshes == 3
    assert {name: history(kerf, name) for name in APPLICATIONS} == syncs
    kerf.wait(lambda: healthy(kerf, "kerf", *APPLICATIONS), SOON, "all Applications are Synced and Healthy")


def test_a_refusal_shows_the_words_of_the_webhook(kerf: ArgoCdInstallation) -> None:
    """The rule is one that only the webhook has. Argo CD meets it already when it compares, and syncs nothing."""
    kerf.serve_webhook()
    good = kerf.text(GENERAL)
    wrong = good.replace("- nodes: 10%", '- {nodes: 10%, schedule: "61 9 * * *", duration: 1h}')
    assert wrong != good
    kerf.commit(GENERAL, wrong)

    kerf.wait(lambda: "[KERF-NP-120]" in kerf.argocd.messages("node-pools"), SOON, "the refusal is shown")
    assert not kerf.argocd.synced("node-pools")
    kerf.argocd.end_sync("node-pools")
    kerf.synced("node-pools", kerf.commit(GENERAL, good), 300)


def test_a_pruned_node_pool_meets_the_deletion_guard(kerf: ArgoCdInstallation) -> None:
    """Argo CD asks first; with its word given, the guard refuses until the count of nodes is allowed in Git."""
    fleet = Fleet(kerf)
    kerf.wait(lambda: fleet.pool()["status"]["nodes"] == 4, SOON, "the NodePool counts its nodes")
    pool, nodes = kerf.text(ROLLING), fleet.uids()
    kerf.commit(ROLLING, None)
    kerf.wait(lambda: "confirm" in kerf.argocd.sync("node-pools").get("message", ""), SOON, "Argo CD asks")
    assert "deletionTimestamp" not in fleet.pool()["metadata"]
    kerf.argocd.approve_deletions("node-pools", now())
    words = "annotate nodepool rolling kerf.sh/allow-deletion=4"
    kerf.wait(lambda: words in kerf.argocd.messages("node-pools"), SOON, "the guard refuses")
    assert "deletionTimestamp" not in fleet.pool()["metadata"]
    assert fleet.uids() == nodes
    kerf.argocd.end_sync("node-pools")
    meant = annotated(pool, "kerf.sh/allow-deletion: '4'")
    kerf.synced("node-pools", kerf.commit(ROLLING, meant), 300)
    assert fleet.uids() == nodes
    kerf.kubectl("delete", "deployment", fleet.name)  # its pods have no other NodePool
    kerf.commit(ROLLING, None)
    kerf.wait(lambda: "confirm" in kerf.argocd.sync("node-pools").get("message", ""), SOON, "Argo CD asks")
    kerf.argocd.approve_deletions("node-pools", now())
    kerf.wait(lambda: names(kerf) == {"batch", "general"} and not fleet.claims(), 240, "NodePool and nodes are gone")


# --- for these tests --------------------------------------------------------------------------------------------
def healthy(kerf: ArgoCdInstallation, *applications: str) -> bool:
    return all(kerf.argocd.synced(name) and kerf.argocd.health(name) == "Healthy" for name in applications)


def rolling(kerf: ArgoCdInstallation) -> Fleet:
    """The NodePool of `rolling.yaml` by Git, its workload by hand, on one node."""
    pool, *workload = MANIFEST.read_text().split("---\n")
    kerf.synced("node-pools", kerf.commit(ROLLING, pool.replace("name: default}", "name: general}")), SOON)
    kerf.kubectl("apply", "-f", "-", input_="---\n".join(workload))
    fleet = Fleet(kerf)
    fleet.scale(1)
    kerf.wait(lambda: healthy(kerf, "node-pools"), SOON, "the Application is Healthy")
    return fleet


def refresh(kerf: ArgoCdInstallation) -> None:
    for name in APPLICATIONS:
        kerf.argocd.refresh(name)
    kerf.wait(lambda: all(map(kerf.argocd.refreshed, APPLICATIONS)), SOON, "all Applications are refreshed")


def history(kerf: ArgoCdInstallation, name: str) -> list[Any]:
    """The syncs of an Application: a difference that a sync removed at once leaves an entry."""
    rows: list[Any] = kerf.argocd.application(name)["status"].get("history", [])
    return [row["id"] for row in rows]


def names(kerf: ArgoCdInstallation) -> set[str]:
    return {pool["metadata"]["name"] for pool in kerf.get("nodepools")}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
