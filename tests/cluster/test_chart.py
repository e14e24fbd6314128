"""The chart as Helm renders it: leave to watch what is watched; the webhook's certificate: who makes it, who may write
it, and who hands its CA on."""

from __future__ import annotations

import subprocess
from itertools import combinations
from typing import Any

import pytest
import yaml

from reconciler.model import kinds
from reconciler.runtime.settings import Options, parse

from .control_plane import ControlPlane
from .installation import ROOT

pytestmark = pytest.mark.cluster

Objects = dict[tuple[str, str], Any]
SECRET = "kerf-webhook-cert"


def rendered(control_plane: ControlPlane, *values: str) -> Objects:
    """The chart's objects by kind and name."""
    flags = [flag for value in ("settings.clusterName=test", *values) for flag in ("--set", value)]
    chart = str(ROOT / "charts/kerf")
    told = control_plane.helm("template", "kerf", chart, "-n", "kerf", "--kube-version", "1.36.0", *flags).stdout
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(told) if one}


def controllers_environment(objects: Objects) -> set[str]:
    (container,) = objects["Deployment", "kerf"]["spec"]["template"]["spec"]["containers"]
    return {row["name"] for row in container["env"]}


def may_write_secrets(objects: Objects) -> bool:
    roles = (one for (kind, _), one in objects.items() if kind in ("Role", "ClusterRole"))
    return any("secrets" in rule["resources"] for role in roles for rule in role["rules"])


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


def test_the_providers_gate_is_handed_on(control_plane: ControlPlane) -> None:
    assert not options(rendered(control_plane)).settings.gates.node_class_cel
    asked = rendered(control_plane, "settings.awsFeatureGates.nodeClassCEL=true")
    assert options(asked).settings.gates.node_class_cel


@pytest.mark.parametrize("asked", [set(c) for n in range(len(_ASKED) + 1) for c in combinations(_ASKED, n)], ids=str)
def test_the_controller_may_watch_what_it_watches_and_no_more(control_plane: ControlPlane, asked: set[str]) -> None:
    objects = rendered(control_plane, *(_ASKED[one] for one in sorted(asked)))
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


def test_switches_that_are_off_reach_the_controller(control_plane: ControlPlane) -> None:
    """Karpenter's chart loses a false."""
    assert options(rendered(control_plane)).ignore_dra_requests
    assert not options(rendered(control_plane, "settings.ignoreDRARequests=false")).ignore_dra_requests


def test_by_default_the_controller_makes_the_certificate(control_plane: ControlPlane) -> None:
    objects = rendered(control_plane)
    assert {"WEBHOOK_SERVICE", "WEBHOOK_CERT_SECRET", "WEBHOOK_CONFIGURATION"} <= controllers_environment(objects)
    assert may_write_secrets(objects)
    assert mounted(objects) == SECRET
    assert not any(kind in ("Certificate", "Issuer") for kind, _ in objects)
    assert all("annotations" not in one["metadata"] for one in configurations(objects))


def test_cert_manager_makes_it_when_asked_to_and_the_controller_has_no_leave_to(control_plane: ControlPlane) -> None:
    objects = rendered(control_plane, "webhook.certManager.enabled=true", "additionalAnnotations.team=infra")
    certificate, issuer = objects["Certificate", "kerf-webhook"]["spec"], objects["Issuer", "kerf-webhook"]["spec"]
    assert certificate["secretName"] == mounted(objects) == SECRET
    assert "kerf-webhook.kerf.svc" in certificate["dnsNames"]
    assert certificate["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "kerf-webhook"}
    assert issuer == {"selfSigned": {}}
    wanted = {"cert-manager.io/inject-ca-from": "kerf/kerf-webhook", "team": "infra"}
    assert all(one["metadata"]["annotations"] == wanted for one in configurations(objects))
    assert not any(name.startswith("WEBHOOK_") for name in controllers_environment(objects))
    assert not may_write_secrets(objects)


def test_an_issuer_of_the_users_own_signs_it(control_plane: ControlPlane) -> None:
    issuer = {"name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    flags = (f"webhook.certManager.issuerRef.{key}={value}" for key, value in issuer.items())
    objects = rendered(control_plane, "webhook.certManager.enabled=true", *flags)
    assert objects["Certificate", "kerf-webhook"]["spec"]["issuerRef"] == issuer
    assert not any(kind == "Issuer" for kind, _ in objects)


@pytest.mark.parametrize("also", ["webhook.caBundle=eA==", "webhook.url=https://10.0.0.5:8443"])
def test_two_makers_of_one_certificate_are_refused(control_plane: ControlPlane, also: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        rendered(control_plane, "webhook.certManager.enabled=true", also)
    assert "leave webhook.caBundle and webhook.url empty" in "".join(failure.value.__notes__)


def test_without_the_webhook_nothing_of_it_is_there(control_plane: ControlPlane) -> None:
    objects = rendered(control_plane, "webhook.enabled=false", "webhook.certManager.enabled=true")
    assert not any("webhook" in name.lower() or "Webhook" in kind for kind, name in objects)
    assert not any(kind in ("Certificate", "Issuer") for kind, _ in objects)
