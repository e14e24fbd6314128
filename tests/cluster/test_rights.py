"""Every right of the chart is needed, and so is what docs/permissions.md gives people: with everything switched on.

The control plane has the admission plugin OwnerReferencesPermissionEnforcement, which some distributions switch on: it
asks for leave on an owner's finalizers. Conflicts are answered by a proxy, since nobody else writes here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kerf.model import kinds
from tests.guides import files
from tests.sources import ROOT

from . import grants, record, rights
from .charts import Helm, flat
from .control_plane import ControlPlane
from .grants import Grant
from .installation import Installation
from .proxy import KUBE, PASS, Answer, Decision, Request

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HERE: Final = Path(__file__).parent
PLUGIN: Final = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
#: How long the plugin may take until it knows a new definition. Source: its discovery is renewed every 30 s.
DISCOVERED: Final = 60.0
#: Drains end by then, whatever a PodDisruptionBudget says.
SOON: Final = {"spec": {"template": {"spec": {"terminationGracePeriod": "15s"}}}}
#: What is written about objects of each kind, as the proxy calls it; the first of each meets a conflict.
WRITES: Final = {
    "NodePool": {"PATCH nodepools", "PATCH nodepools/status"},
    "NodeClaim": {"PATCH nodeclaims", "PATCH nodeclaims/status"},
    "EC2NodeClass": {"PATCH ec2nodeclasses", "PATCH ec2nodeclasses/status"},
    "NodeOverlay": {"PATCH nodeoverlays/status"},
    "CapacityBuffer": {"PATCH capacitybuffers/status"},
    "Node": {"PATCH nodes"},
    "Pod": {"PATCH pods/status", "POST pods/eviction"},
}


def values() -> dict[str, str]:
    """`rights.EVERYTHING` as Helm's `--set-string` reads it."""
    return {
        path: re.sub(r"([,{}])", r"\\\1", text if isinstance(text, str) else json.dumps(text))
        for path, text in flat(rights.EVERYTHING)
    }


@pytest.fixture(scope="module")
def kerf(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """On a control plane of its own; where there is none, there is no Helm either."""
    folder, families = tmp_path_factory.mktemp("rights"), ("c6a", "m6a")
    plane = ControlPlane(extra_flags={"kube-apiserver": PLUGIN})
    # Kept running: a machine that stalls takes the lease from the controller, which then ends.
    how: dict[str, Any] = {"webhook": False, "proxied": True, "kept_running": True}
    with plane as own, Installation(own, folder, families=families, values=values(), **how) as kerf:
        own.kubectl("create", "namespace", record.PEOPLE)
        _wait_for_the_plugin(kerf, folder)
        yield kerf


def _wait_for_the_plugin(kerf: Installation, folder: Path) -> None:
    """It knows NodePools when somebody who may update their finalizers may make one an owner."""
    rules = [
        grants.as_rule(Grant("karpenter.sh", *rest))
        for rest in (("nodeclaims", "create"), ("nodepools/finalizers", "update"))
    ]
    somebody = _person(kerf, folder, "somebody", rules)
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "probe",
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodePool",
                    "name": "a",
                    "uid": "b",
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "Exists"}],
        },
    }

    def known() -> bool:
        create = ("create", "--dry-run=server", "-f", "-", "--kubeconfig", str(somebody))
        done = kerf.control_plane.kubectl(*create, input=json.dumps(claim), check=False)
        return done.returncode == 0

    kerf.wait(known, DISCOVERED, "the admission plugin knows NodePools")


def _person(kerf: Installation, folder: Path, name: str, rules: list[dict[str, Any]]) -> Path:
    """The kubeconfig of somebody who may do this, in the whole cluster."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": record.PEOPLE}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": record.PEOPLE}],
    }
    kerf.kubectl("apply", "-f", "-", input_=yaml.safe_dump_all([account, role, binding]))
    return kerf.control_plane.service_account_kubeconfig(record.PEOPLE, name, folder / f"{name}.kubeconfig")


def _asked(kerf: Installation, user: str = rights.CONTROLLER) -> list[rights.Call]:
    return list(rights.calls(kerf.control_plane.record, user))


def test_everything_that_the_comparison_knows_is_installed(kerf: Installation, helm: Helm) -> None:
    assert {*grants.of_rules(kerf.rules())} == {one for one in rights.given(helm) if not one.namespace}


# --- conflicts ----------------------------------------------------------------------------------------------------
def test_what_met_a_conflict_is_read_again(kerf: Installation) -> None:
    """In all kinds that are written; at last a budget that allows nothing is overruled, by deleting the pods."""
    waiting = set().union(*WRITES.values())

    def conflict_once(request: Request) -> Decision:
        if request.port == KUBE and request.operation in waiting:
            waiting.discard(request.operation)
            return Answer(409)
        return PASS

    kerf.proxy.rule = conflict_once
    kerf.kubectl("apply", "-f", str(HERE / "workloads.yaml"), "-f", str(HERE / "rights.yaml"))
    kerf.kubectl("patch", "nodepool", "general", "--type=merge", "-p", json.dumps(SOON))
    kerf.kubectl("scale", "deployment/web", "--replicas=2")
    kerf.wait(lambda: len(kerf.running()) == 2, 180, "two pods run")
    kerf.kubectl("delete", "nodeclaims", "--all", "--wait=false")
    kerf.wait(lambda: Grant("", "pods", "delete") in _verbs(kerf), 120, "pods that may not be evicted are deleted")
    kerf.wait(lambda: not waiting, 60, "everything was written that can be")
    read = {kind.plural: name for name in WRITES for kind in [kinds.BY_NAME[name]]}
    kerf.wait(
        lambda: {one.resource for one in _verbs(kerf) if one.verb == "get"} >= read.keys(), 60, "all is read again"
    )
    kerf.wait(lambda: len(kerf.running()) == 2, 180, "two pods run again")


def _verbs(kerf: Installation) -> set[Grant]:
    """What the controller was allowed, names and namespaces left out."""
    return {Grant(c.asked.group, c.asked.resource, c.asked.verb) for c in _asked(kerf) if not c.refused}


# --- owners -------------------------------------------------------------------------------------------------------
def test_whose_finalizers_may_not_be_updated_nobody_may_own(kerf: Installation) -> None:
    """A NodePool owns its claims, a claim its node, and both stay until what they own has gone."""
    rules, known = kerf.rules(), _claims(kerf)
    with kerf.allowed_only(_without(rules, "nodepools/finalizers")):
        kerf.kubectl("scale", "deployment/web", "--replicas=20")
        kerf.wait(lambda: _refused(kerf, "create", "nodeclaims"), 60, "no claim may have an owner")
        assert _claims(kerf) <= known
    with kerf.allowed_only(_without(rules, "nodeclaims/finalizers")):
        kerf.wait(lambda: not _claims(kerf) <= known, 120, "claims are made")
        kerf.wait(lambda: _refused(kerf, "patch", "nodes"), 120, "no node may have an owner")
    kerf.wait(lambda: len(kerf.running()) == 20, 180, "all pods run")


def _claims(kerf: Installation) -> set[str]:
    return {one["metadata"]["name"] for one in kerf.get("nodeclaims")}


def _without(rules: list[dict[str, Any]], resource: str) -> list[dict[str, Any]]:
    left = [{**rule, "resources": [one for one in rule["resources"] if one != resource]} for rule in rules]
    return [rule for rule in left if rule["resources"]]


def _refused(kerf: Installation, verb: str, resource: str) -> bool:
    """By admission: the roles allow it."""
    found = (one for one in _asked(kerf) if (one.asked.verb, one.asked.resource) == (verb, resource))
    return any(one.permitted and one.refused for one in found)


# --- people -------------------------------------------------------------------------------------------------------
def _roles() -> dict[str, list[dict[str, Any]]]:
    """The roles for people in docs/permissions.md."""
    text = files((ROOT / "docs/permissions.md").read_text(encoding="utf-8"))["people.yaml"]
    return {one["metadata"]["name"]: one["rules"] for one in yaml.safe_load_all(text)}


def test_whoever_asks_why_needs_the_role_of_the_docs_and_no_more(kerf: Installation, tmp_path: Path) -> None:
    """A preflight reports as not checked what that role does not allow."""
    config = _who_has("kerf-look", kerf, tmp_path)
    pod = next(p for p in kerf.get("pods", selector="app=web") if p["spec"].get("nodeName"))
    for what in (("pod", f"default/{pod['metadata']['name']}"), ("node", pod["spec"]["nodeName"])):
        assert kerf.kerf("why", *what, "--kubeconfig", config)
    _nothing_more_was_given("kerf-look", kerf)
    told = json.loads(kerf.kerf("preflight", "--kubeconfig", config, "-o", "json", code=1))["findings"]
    rows = {one["check"]: one for one in told if one["result"] == "not checked"}
    assert rows["permissions"]["seen"].endswith("needs create subjectaccessreviews.authorization.k8s.io")
    assert {*rows} >= {"cluster-name", "controller-role", "webhook"}
    assert {one["result"] for one in told if one["check"] in ("settings", "region", "kinds")} == {"ok"}


def test_whoever_checks_a_migration_needs_two_roles_of_the_docs_and_no_more(kerf: Installation, tmp_path: Path) -> None:
    config = _who_has("kerf-migrate", kerf, tmp_path, "kerf-look")
    assert "may not be listed" not in kerf.kerf("migrate", "check", "--kubeconfig", config, code=1)
    _nothing_more_was_given("kerf-migrate", kerf)


def test_whoever_releases_what_was_left_needs_the_role_of_the_docs_and_no_more(
    kerf: Installation, tmp_path: Path
) -> None:
    """The controller is stopped: who comes later has none."""
    config = _who_has("kerf-release", kerf, tmp_path)
    kerf.stop_controller()
    assert "karpenter.sh/termination from nodeclaim/" in kerf.kerf("release", "--yes", "--kubeconfig", config)
    _nothing_more_was_given("kerf-release", kerf)


def _who_has(role: str, kerf: Installation, folder: Path, *others: str) -> str:
    """The kubeconfig of an account that is called by the role it has; maybe it has others, too."""
    roles = _roles()
    return str(_person(kerf, folder, role, [rule for each in (role, *others) for rule in roles[each]]))


def _nothing_more_was_given(role: str, kerf: Installation) -> None:
    """All of the role was used, and what was refused is what the docs say can be done without."""
    found = _asked(kerf, f"system:serviceaccount:{record.PEOPLE}:{role}")
    assert {one.asked for one in found if one.refused} <= {Grant("", "services", "get", "kube-dns", "kube-system")}
    used = {Grant(one.asked.group, one.asked.resource, one.asked.verb) for one in found if not one.refused}
    assert sorted(map(str, {*grants.of_rules(_roles()[role])} - used)) == []


# --- at last ------------------------------------------------------------------------------------------------------
def test_nothing_else_was_refused_here_and_nothing_allowed_beside_the_chart(kerf: Installation, helm: Helm) -> None:
    found = rights.Comparison(rights.given(helm))
    found.take(kerf.control_plane.record)
    print(f"\n{len(found.given & found.used)} of {len(found.given)} rights needed in {found.calls} calls; not here:")
    print("\n".join(map(str, sorted(found.given - found.used))))
    assert found.wrong == {}
    assert found.refused > 0
