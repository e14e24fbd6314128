"""The chart as Helm renders it: leave to watch what is watched; the webhook's certificate: who makes it, who may write
it, and who hands its CA on."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from kerf.model import kinds
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import parse
from kerf_api.written_annotations import WRITTEN
from kerf_webhook.deletions import GUARDED

from .charts import Helm, Objects

pytestmark = pytest.mark.cluster

SECRET, KEY_SECRET = "kerf-webhook-cert", "kerf-launch-key"


def rendered(helm: Helm, *values: str) -> Objects:
    """The chart's objects by kind and name."""
    return helm.template(*(flag for value in values for flag in ("--set", value)))


def controllers_environment(objects: Objects) -> set[str]:
    (container,) = objects["Deployment", "kerf"]["spec"]["template"]["spec"]["containers"]
    return {row["name"] for row in container["env"]}


def secrets_to_write(objects: Objects) -> set[str]:
    """The names of the Secrets that the controller may read and replace; a rule without names is an error."""
    roles = (one for (kind, _), one in objects.items() if kind in ("Role", "ClusterRole"))
    rules = (rule for role in roles for rule in role["rules"] if "secrets" in rule["resources"])
    return {name for rule in rules if rule["verbs"] != ["create"] for name in rule["resourceNames"]}


def listed(objects: Objects) -> list[tuple[str, str]]:
    """The groups and resources that the controller may list and watch everywhere, as often as a rule says so."""
    rules = objects["ClusterRole", "kerf"]["rules"]
    rows = [r for r in rules if {"list", "watch"} <= set(r["verbs"])]
    return [(group, resource) for row in rows for group in row["apiGroups"] for resource in row["resources"]]


def verbs(objects: Objects, group: str, resource: str) -> set[str]:
    """What the controller may do with a resource, anywhere."""
    rules = objects["ClusterRole", "kerf"]["rules"]
    found = (rule["verbs"] for rule in rules if group in rule["apiGroups"] and resource in rule["resources"])
    return {verb for row in found for verb in row}


def options(objects: Objects) -> Options:
    """What the controller makes of the environment that the chart gives it."""
    (container,) = objects["Deployment", "kerf"]["spec"]["template"]["spec"]["containers"]
    return parse([], {row["name"]: row["value"] for row in container["env"] if "value" in row})


def configurations(objects: Objects) -> list[Any]:
    return [objects[f"{which}WebhookConfiguration", "kerf"] for which in ("Mutating", "Validating")]


def mounted(objects: Objects) -> str:
    volumes = objects["Deployment", "kerf-webhook"]["spec"]["template"]["spec"]["volumes"]
    return next(v["secret"]["secretName"] for v in volumes if "secret" in v)  # type: ignore[no-any-return]


DEFAULT_SPREAD = """podTopologySpread:
  defaultConstraints:
    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""


#: What may be asked for, and the values of the chart that do.
_ASKED = {
    "spread": "settings.schedulerConfig=" + DEFAULT_SPREAD.replace(",", "\\,").replace("{", "\\{").replace("}", "\\}"),
    "buffers": "settings.featureGates.capacityBuffer=true",
    "overlays": "settings.featureGates.nodeOverlay=true",
    "static": "settings.featureGates.staticCapacity=true",
    "devices": "settings.ignoreDRARequests=false",
}
#: Kinds whose status the controller writes, and reads again after a conflict.
_WITH_OUR_STATUS = {
    "buffers": ("autoscaling.x-k8s.io", "capacitybuffers"),
    "overlays": ("karpenter.sh", "nodeoverlays"),
}


def test_the_providers_gate_is_handed_on(helm: Helm) -> None:
    assert not options(rendered(helm)).settings.gates.node_class_cel
    asked = rendered(helm, "settings.awsFeatureGates.nodeClassCEL=true")
    assert options(asked).settings.gates.node_class_cel


@pytest.mark.parametrize("asked", [set(c) for n in range(len(_ASKED) + 1) for c in combinations(_ASKED, n)], ids=str)
def test_the_controller_may_watch_what_it_watches_and_no_more(helm: Helm, asked: set[str]) -> None:
    objects = rendered(helm, *(_ASKED[one] for one in sorted(asked)))
    settings = options(objects).settings
    gates = settings.gates
    assert {
        "spread": bool(settings.default_constraints),
        "buffers": gates.capacity_buffer,
        "overlays": gates.node_overlay,
        "static": gates.static_capacity,
        "devices": not settings.ignore_dra_requests,
    } == {one: one in asked for one in _ASKED}
    watched = listed(objects)
    assert set(watched) == {(kind.group, kind.plural) for kind in kinds.watched(settings)}
    assert len(watched) == len(set(watched))
    for one, (group, plural) in _WITH_OUR_STATUS.items():
        assert verbs(objects, group, plural) == ({"get", "list", "watch"} if one in asked else set())
        assert verbs(objects, group, f"{plural}/status") == ({"patch"} if one in asked else set())


def test_switches_that_are_off_reach_the_controller(helm: Helm) -> None:
    """Karpenter's chart loses a false."""
    assert options(rendered(helm)).ignore_dra_requests
    assert not options(rendered(helm, "settings.ignoreDRARequests=false")).ignore_dra_requests


@pytest.mark.parametrize(("version", "there"), [("1.29.9", False), ("1.30.0", True)])
def test_the_policy_for_the_status_of_pods_is_there_where_kubernetes_has_policies(
    helm: Helm, version: str, there: bool
) -> None:
    """An older API server refuses a release with a kind that it does not know."""
    objects = helm.template("--set", "settings.nominatePods=true", "--kube-version", version)
    assert (("ValidatingAdmissionPolicy", "kerf-pod-status") in objects) is there
    assert (("ValidatingAdmissionPolicyBinding", "kerf-pod-status") in objects) is there


def test_the_charts_defaults_are_the_programs(helm: Helm) -> None:
    """But for what only the chart knows: the webhook that it installs, the names of Secrets."""
    told = options(rendered(helm))
    webhook: dict[str, Any] = {name: getattr(told, name) for name in ("webhook_service", "webhook_cert_secret")}
    assert told == replace(parse([], {"CLUSTER_NAME": "test"}), **webhook, launch_key_secret=KEY_SECRET)


def test_by_default_the_controller_makes_the_certificate(helm: Helm) -> None:
    objects = rendered(helm)
    assert {"WEBHOOK_SERVICE", "WEBHOOK_CERT_SECRET", "WEBHOOK_CONFIGURATION"} <= controllers_environment(objects)
    assert secrets_to_write(objects) == {SECRET, KEY_SECRET}
    assert mounted(objects) == SECRET
    assert not any(kind in ("Certificate", "Issuer") for kind, _ in objects)
    assert all("annotations" not in one["metadata"] for one in configurations(objects))


def test_cert_manager_makes_it_when_asked_to_and_the_controller_has_no_leave_to(helm: Helm) -> None:
    objects = rendered(helm, "webhook.certManager.enabled=true", "additionalAnnotations.team=infra")
    certificate, issuer = objects["Certificate", "kerf-webhook"]["spec"], objects["Issuer", "kerf-webhook"]["spec"]
    assert certificate["secretName"] == mounted(objects) == SECRET
    assert "kerf-webhook.kerf.svc" in certificate["dnsNames"]
    assert certificate["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "kerf-webhook"}
    assert issuer == {"selfSigned": {}}
    wanted = {"cert-manager.io/inject-ca-from": "kerf/kerf-webhook", "team": "infra"}
    assert all(one["metadata"]["annotations"] == wanted for one in configurations(objects))
    assert not any(name.startswith("WEBHOOK_") for name in controllers_environment(objects))
    assert secrets_to_write(objects) == {KEY_SECRET}


def test_an_issuer_of_the_users_own_signs_it(helm: Helm) -> None:
    issuer = {"name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    flags = (f"webhook.certManager.issuerRef.{key}={value}" for key, value in issuer.items())
    objects = rendered(helm, "webhook.certManager.enabled=true", *flags)
    assert objects["Certificate", "kerf-webhook"]["spec"]["issuerRef"] == issuer
    assert not any(kind == "Issuer" for kind, _ in objects)


@pytest.mark.parametrize("also", ["webhook.caBundle=eA==", "webhook.url=https://10.0.0.5:8443"])
def test_two_makers_of_one_certificate_are_refused(helm: Helm, also: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        rendered(helm, "webhook.certManager.enabled=true", also)
    assert "leave webhook.caBundle and webhook.url empty" in "".join(failure.value.__notes__)


def test_deletions_are_asked_about_but_never_kept_from_anybody(helm: Helm) -> None:
    """Even where nothing else passes unchecked."""
    _, validating = configurations(rendered(helm, "webhook.failurePolicy=Fail"))
    ordinary, annotations, deletion = validating["webhooks"]
    assert (ordinary["failurePolicy"], deletion["failurePolicy"]) == ("Fail", "Ignore")
    assert ordinary["clientConfig"] == deletion["clientConfig"]
    assert {operation for rule in deletion["rules"] for operation in rule["operations"]} == {"DELETE"}
    assert {name for rule in deletion["rules"] for name in rule["resources"]} == {
        "nodepools",
        "customresourcedefinitions",
    }
    assert set(re.findall(r"'([a-z0-9.]+\.[a-z.]+)'", conditions(deletion)["nodes-depend-on-it"])) == set(GUARDED)
    others = configurations(rendered(helm, "webhook.deletionGuard=false"))[1]["webhooks"]
    assert [one["name"] for one in others] == [ordinary["name"], annotations["name"]]


def conditions(webhook: dict[str, Any]) -> dict[str, str]:
    """The expressions of the match conditions, by name."""
    return {one["name"]: one["expression"] for one in webhook["matchConditions"]}


def test_no_webhook_is_asked_about_objects_of_other_controllers(helm: Helm) -> None:
    every = [one for found in configurations(helm.template()) for one in found["webhooks"]]
    assert len(every) == 4
    for webhook in every:
        expression = conditions(webhook)["own-node-class"]
        assert "in ['', 'karpenter.k8s.aws']" in expression
        assert "in ['', 'EC2NodeClass']" in expression
        assert ("[object, oldObject]" in expression) is (webhook["name"] != "deletion.webhook.kerf.sh")


def own_annotations(helm: Helm, **webhook: Any) -> tuple[dict[str, Any], list[str], list[str]]:
    """The webhook, the accounts that the API server does not call it for, and the annotations that it calls it for."""
    mutating, validating = configurations(helm.template(values={"webhook": webhook}))
    assert len(mutating["webhooks"]) == 1
    (found,) = [one for one in validating["webhooks"] if one["name"] == "annotations.webhook.kerf.sh"]
    known = conditions(found)
    trusted, written = (re.findall(r"\[\".*?\"\]", known[name]) for name in ("not-trusted", "annotation-changed"))
    return found, json.loads(trusted[0]), json.loads(written[0])


def test_changes_of_kerfs_own_annotations_are_reviewed(helm: Helm) -> None:
    found, _, written = own_annotations(helm, failurePolicy="Fail")
    assert found["failurePolicy"] == "Fail"
    assert found["clientConfig"]["service"]["path"] == "/annotations"
    kinds = {name for rule in found["rules"] for name in rule["resources"]}
    assert kinds == {"nodepools", "nodeclaims", "ec2nodeclasses"}
    assert {operation for rule in found["rules"] for operation in rule["operations"]} == {"CREATE", "UPDATE"}
    assert written == sorted(set().union(*WRITTEN.values()))
    elsewhere, *_ = own_annotations(helm, url="https://10.0.0.5:8443/")
    assert elsewhere["clientConfig"] == {"url": "https://10.0.0.5:8443/annotations"}


def test_trusted_accounts_are_kerfs_own_and_those_of_the_values(helm: Helm) -> None:
    own = "system:serviceaccount:kerf:kerf"
    karpenters = [f"system:serviceaccount:{namespace}:karpenter" for namespace in ("kube-system", "karpenter")]
    assert own_annotations(helm)[1] == [own, *karpenters]
    assert own_annotations(helm, trustedAccounts=[])[1] == [own]
    assert own_annotations(helm, trustedAccounts=None)[1] == [own]
    odd = ["o'neil@example.com", 'a"b', "back\\slash", "arn:aws:iam::1:user/é<x>"]
    assert own_annotations(helm, trustedAccounts=odd)[1] == [own, *odd]


def test_without_the_webhook_nothing_of_it_is_there(helm: Helm) -> None:
    objects = rendered(helm, "webhook.admission=false", "webhook.certManager.enabled=true")
    assert not any("webhook" in name.lower() or "Webhook" in kind for kind, name in objects)
    assert not any(kind in ("Certificate", "Issuer") for kind, _ in objects)
