"""Who means whom in what the chart renders: selectors and pods, accounts and roles, whatever the release is called."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from kerf.model import kinds
from tests.sources import ROOT
from tests.unit.charts.test_values import OLDER, merged

from .charts import Helm, Objects, by_name

pytestmark = pytest.mark.cluster

ALL_ON: Final = {"serviceMonitor": {"enabled": True}, "networkPolicy": {"enabled": True}}
#: Name of the release, its nameOverride, and what its objects are called.
RELEASES: Final = {
    "kerf": ("", "kerf"),
    "staging": ("", "staging-kerf"),
    "karpenter": ("", "karpenter"),
    "my-karpenter": ("", "my-karpenter"),
    "production": ("karpenter", "production-karpenter"),
}
#: By which Karpenter's chart knows its pods. Source: operations reference §6.3.
KARPENTERS: Final = ("app.kubernetes.io/name", "app.kubernetes.io/instance")


def of(helm: Helm, release: str, **more: Any) -> tuple[Objects, str]:
    override, full = RELEASES[release]
    return helm.template(values={**ALL_ON, "nameOverride": override, **more}, release=release), full


def pods(objects: Objects) -> dict[str, Any]:
    """The templates of the pods, by the name of the Deployment."""
    return {name: one["spec"]["template"] for (kind, name), one in objects.items() if kind == "Deployment"}


def selectors(objects: Objects, name: str) -> Iterator[Mapping[str, str]]:
    """All that are to select the pods of a Deployment, from its own to those in their affinity."""
    spec = pods(objects)[name]["spec"]
    yield objects["Deployment", name]["spec"]["selector"]["matchLabels"]
    yield objects["Service", name]["spec"]["selector"]
    yield objects["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"]
    yield objects["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"]
    for term in spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]:
        yield term["labelSelector"]["matchLabels"]
    for constraint in spec["topologySpreadConstraints"]:
        yield constraint["labelSelector"]["matchLabels"]


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("release", RELEASES)
def test_each_deployment_means_its_own_pods(helm: Helm, release: str) -> None:
    objects, full = of(helm, release)
    assert set(pods(objects)) == {full, f"{full}-webhook"}
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(objects).items()}
    for name in labels:
        for selector in selectors(objects, name):
            assert [other for other in labels if selects(selector, labels[other])] == [name]


@pytest.mark.parametrize("release", [name for name, (_, full) in RELEASES.items() if "karpenter" in full])
def test_a_release_of_karpenters_name_selects_as_karpenter_does(helm: Helm, release: str) -> None:
    objects, full = of(helm, release)
    selector = objects["Deployment", full]["spec"]["selector"]["matchLabels"]
    assert selector == dict(zip(KARPENTERS, ("karpenter", release), strict=True))
    assert objects["Service", full]["spec"]["ports"][0]["name"] == "http-metrics"


@pytest.mark.parametrize("release", RELEASES)
def test_each_service_is_scraped_once_and_the_job_has_its_name(helm: Helm, release: str) -> None:
    objects, full = of(helm, release)
    services = {name: one for (kind, name), one in objects.items() if kind == "Service"}
    monitors = {name: one["spec"] for (kind, name), one in objects.items() if kind == "ServiceMonitor"}
    assert set(monitors) == {full, f"{full}-webhook"}
    for name, monitor in monitors.items():
        wanted = monitor["selector"]["matchLabels"]
        assert [other for other in services if selects(wanted, services[other]["metadata"]["labels"])] == [name]
        (endpoint,) = monitor["endpoints"]
        assert [port["name"] for port in services[name]["spec"]["ports"]] == [endpoint["port"]]


def test_the_page_has_an_account_of_its_own_without_aws_and_secrets(helm: Helm) -> None:
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/kerf"}
    objects, full = of(helm, "kerf", ui={"enabled": True}, serviceAccount={"annotations": role})
    spec, account = pods(objects)[f"{full}-ui"]["spec"], objects["ServiceAccount", f"{full}-ui"]
    assert (spec["serviceAccountName"], "annotations" in account["metadata"]) == (f"{full}-ui", False)
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert (security["readOnlyRootFilesystem"], security["runAsNonRoot"]) == (True, True)
    assert "priorityClassName" not in spec
    rules = objects["ClusterRole", f"{full}-ui"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "create"}
    created = {resource for rule in rules if "create" in rule["verbs"] for resource in rule["resources"]}
    assert created == {"tokenreviews", "subjectaccessreviews"}
    assert not {"secrets", "configmaps", "events"} & {resource for rule in rules for resource in rule["resources"]}


def test_the_page_may_list_the_kinds_that_the_controller_watches(helm: Helm) -> None:
    gates = {"nodeOverlay": True, "capacityBuffer": True}
    settings = {"featureGates": gates, "ignoreDRARequests": False, "schedulerConfig": "a: b"}
    objects, full = of(helm, "kerf", ui={"enabled": True}, settings={"clusterName": "a", **settings})
    rules = objects["ClusterRole", f"{full}-ui"]["rules"]
    listed = {(rule["apiGroups"][0], one) for rule in rules if "list" in rule["verbs"] for one in rule["resources"]}
    assert listed == {(kind.group, kind.plural) for kind in kinds.KNOWN}


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_without_a_certificate_listens_on_loopback_and_has_no_service(helm: Helm, release: str) -> None:
    objects, full = of(helm, release, ui={"enabled": True})
    arguments = pods(objects)[f"{full}-ui"]["spec"]["containers"][0]["args"]
    assert "--bind=127.0.0.1:8445" in arguments
    assert ("Service", f"{full}-ui") not in objects
    with_one, _ = of(helm, release, ui={"enabled": True, "certSecret": "given"})
    assert "--bind=:8445" in pods(with_one)[f"{full}-ui"]["spec"]["containers"][0]["args"]
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(with_one).items()}
    for selector in selectors(with_one, f"{full}-ui"):
        assert [other for other in labels if selects(selector, labels[other])] == [f"{full}-ui"]


@pytest.mark.parametrize(
    ("values", "fix"),
    [
        ({"proxy": {"caConfigMap": "ca", "names": ["a"]}}, "set ui.proxy.names, and ui.certSecret"),
        ({"proxy": {"caConfigMap": "ca"}, "certSecret": "a"}, "set ui.proxy.names, and ui.certSecret"),
        ({"certManager": {"enabled": True}}, "set ui.certManager.issuerRef"),
    ],
)
def test_half_a_configuration_of_the_page_is_refused(helm: Helm, values: Mapping[str, Any], fix: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        of(helm, "kerf", ui={"enabled": True, **values})
    assert fix in "".join(failure.value.__notes__)


def test_a_webhook_elsewhere_is_not_scraped(helm: Helm) -> None:
    objects, full = of(helm, "kerf", webhook={"url": "https://10.0.0.5:8443"})
    assert [name for kind, name in objects if kind in ("ServiceMonitor", "PodDisruptionBudget")] == [full, full]


@pytest.mark.parametrize("release", RELEASES)
def test_rights_are_given_to_the_account_of_the_pods(helm: Helm, release: str) -> None:
    objects, full = of(helm, release, serviceAccount={"name": "given"})
    bindings = [one for (kind, _), one in objects.items() if kind.endswith("RoleBinding")]
    account = {"kind": "ServiceAccount", "name": "given", "namespace": "kerf"}
    assert [one["subjects"] for one in bindings] == [[account]] * 3
    assert all((one["roleRef"]["kind"], one["roleRef"]["name"]) in objects for one in bindings)
    assert pods(objects)[full]["spec"]["serviceAccountName"] == "given"
    assert ("ServiceAccount", "given") in objects
    schemas = [one["spec"] for (kind, _), one in objects.items() if kind == "FlowSchema"]
    assert {subject["serviceAccount"]["name"] for one in schemas for subject in one["rules"][0]["subjects"]} == {
        "given"
    }


def test_in_kube_system_the_api_server_has_flow_schemas_of_its_own(helm: Helm) -> None:
    assert any(kind == "FlowSchema" for kind, _ in helm.template())
    assert not any(kind == "FlowSchema" for kind, _ in helm.template(namespace="kube-system"))


def test_karpenters_program_is_refused(helm: Helm) -> None:
    """As in values that name a copy of its image; Kerf's chart would start it with Kerf's arguments."""
    copy = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/karpenter/controller"
    with pytest.raises(subprocess.CalledProcessError) as failure:
        helm.template(values={"controller": {"image": {"repository": copy}}})
    assert "controller.image.repository: this is Karpenter's program" in "".join(failure.value.__notes__)


def test_terms_that_name_pods_are_left_as_they_are(helm: Helm) -> None:
    others = {"matchLabels": {"app": "noisy"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": others}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": others}]
    objects, full = of(helm, "kerf", affinity=anti, topologySpreadConstraints=spread)
    for name in (full, f"{full}-webhook"):
        spec = pods(objects)[name]["spec"]
        assert spec["affinity"]["podAntiAffinity"] == anti["podAntiAffinity"]
        assert spec["topologySpreadConstraints"] == spread


def test_the_webhook_may_go_elsewhere(helm: Helm) -> None:
    objects, full = of(helm, "kerf", webhook={"affinity": {"nodeAffinity": {"preferred": []}}})
    assert "podAntiAffinity" in pods(objects)[full]["spec"]["affinity"]
    assert pods(objects)[f"{full}-webhook"]["spec"]["affinity"] == {"nodeAffinity": {"preferred": []}}


def test_switches_that_are_text_count_as_what_they_say(helm: Helm) -> None:
    """As `--set-string`, and Argo CD's parameters, have them."""
    off = helm.template("--set-string", "webhook.admission=false,flowSchemas.enabled=false,serviceAccount.create=false")
    assert not any("webhook" in name or kind in ("FlowSchema", "ServiceAccount") for kind, name in off)
    (subject,) = off["ClusterRoleBinding", "kerf"]["subjects"]
    assert subject["name"] == "default"


def test_labels_and_annotations_of_the_users_do_not_take_the_place_of_ours(helm: Helm) -> None:
    given = {"app.kubernetes.io/name": "other", "app.kubernetes.io/component": "other", "team": "platform"}
    objects, full = of(helm, "karpenter", additionalLabels=given, podLabels=given)
    labels = pods(objects)[full]["metadata"]["labels"]
    assert (labels["app.kubernetes.io/name"], labels["team"]) == ("karpenter", "platform")
    service = objects["Service", full]["metadata"]["labels"]
    assert (service["app.kubernetes.io/name"], service["team"]) == ("karpenter", "platform")


# --- values of older charts -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory, helm: Helm) -> Callable[[Any], str]:
    """The notes of the chart with given values. `helm template` leaves them out, so a copy of the chart has them in an
    object."""
    chart = tmp_path_factory.mktemp("notes") / "kerf"
    shutil.copytree(ROOT / "charts/kerf", chart)
    text = (chart / "templates/NOTES.txt").read_text(encoding="utf-8")
    (chart / "templates/_notes.tpl").write_text('{{- define "notes" -}}\n' + text + "\n{{- end -}}\n", encoding="utf-8")
    shown = '{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {text: {{ include "notes" . | quote }}}}'
    (chart / "templates/notes.yaml").write_text(f"---\n{shown}\n", encoding="utf-8")

    def told(values: Any) -> str:
        given = merged({"settings": {"clusterName": "test"}}, values)
        objects = by_name(helm("template", "kerf", str(chart), "--kube-version", "1.36.0", values=given))
        return str(objects["ConfigMap", "notes"]["data"]["text"])

    return told


def test_webhook_enabled_of_karpenter_1_0_leaves_kerfs_webhook_on(helm: Helm, notes: Callable[[Any], str]) -> None:
    assert ("ValidatingWebhookConfiguration", "kerf") in helm.template(values=OLDER)
    assert "deletion.webhook.kerf.sh" in str(helm.template(values=OLDER)["ValidatingWebhookConfiguration", "kerf"])
    assert helm.template(values=OLDER)["Deployment", "kerf"] == helm.template()["Deployment", "kerf"]
    words = "webhook.enabled is a value of Karpenter 1.0 (its conversion webhook) and has no effect"
    told = notes(OLDER)
    assert (
        f"{words}: Kerf's admission checks and deletion guard are on. To disable them: webhook.admission=false." in told
    )
    for value in ("postInstallHook", "webhook.metrics", "webhook.serviceName", "webhook.serviceNamespace"):
        assert f"- {value} is a value of Karpenter 1.0 and has no effect." in told
    assert "settings.featureGates.StaticCapacity has no effect: the gate is spelled staticCapacity." in told
    assert "settings.featureGates.drift has no effect." in told


def test_a_value_that_is_null_counts_as_absent(helm: Helm, notes: Callable[[Any], str]) -> None:
    """As in Karpenter's charts. Helm takes the default away with it."""
    empty = ("additionalLabels", "additionalAnnotations", "podLabels", "podAnnotations", "extraVolumes", "nodeSelector")
    parts = ("env", "envFrom", "extraVolumeMounts", "sidecarVolumeMounts", "livenessProbe", "readinessProbe")
    values: dict[str, Any] = dict.fromkeys(empty) | {"controller": dict.fromkeys(parts)}
    values |= {"serviceAccount": {"annotations": None}, "service": {"annotations": None}}
    without: dict[str, Any] = {"nodeSelector": {}, "controller": {"livenessProbe": {}, "readinessProbe": {}}}
    assert helm.template(values=values).keys() == helm.template(values=without).keys()
    pod = pods(helm.template(values=values))["kerf"]
    assert [probe["httpGet"]["path"] for probe in _probes(pod)] == ["/healthz", "/readyz"]
    assert notes(values)


def _probes(pod: dict[str, Any]) -> list[dict[str, Any]]:
    container = pod["spec"]["containers"][0]
    return [container["livenessProbe"], container["readinessProbe"]]


def test_a_grace_period_may_be_a_text(helm: Helm) -> None:
    pod = pods(helm.template(values={"terminationGracePeriodSeconds": "45"}))["kerf"]
    assert pod["spec"]["terminationGracePeriodSeconds"] == 45


def test_the_notes_say_that_nothing_is_checked_only_where_that_is_so(notes: Callable[[Any], str]) -> None:
    off = "webhook.admission is false: Kerf runs without admission checks and without the deletion guard."
    assert off in notes({"webhook": {"admission": False}})
    assert off in notes({"webhook": {"admission": "false", "enabled": True}})
    for values in ({}, {"webhook": {"enabled": True}}, {"webhook": {"enabled": False}}):
        assert off not in notes(values)
    assert "no effect" not in notes(
        {"webhook": {"enabled": True}, "settings": {"featureGates": {"staticCapacity": True}}}
    )
