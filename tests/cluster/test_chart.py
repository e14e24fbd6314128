"""The chart as Helm renders it: who makes the webhook's certificate, who may write it, who hands its CA on; and what
the controller may do only with a feature gate."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

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


def allowed(objects: Objects, resource: str) -> set[str]:
    """What the controller may do with a resource, anywhere."""
    rules = objects["ClusterRole", "kerf"]["rules"]
    return {verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]}


def configurations(objects: Objects) -> list[Any]:
    return [objects[f"{which}WebhookConfiguration", "kerf"] for which in ("Mutating", "Validating")]


def mounted(objects: Objects) -> str:
    volumes = objects["Deployment", "kerf-webhook"]["spec"]["template"]["spec"]["volumes"]
    return next(v["secret"]["secretName"] for v in volumes if "secret" in v)  # type: ignore[no-any-return]


@pytest.mark.parametrize("gate", [False, True])
def test_overlays_may_be_read_and_told_of_only_with_their_feature_gate(control_plane: ControlPlane, gate: bool) -> None:
    objects = rendered(control_plane, f"settings.featureGates.nodeOverlay={str(gate).lower()}")
    assert allowed(objects, "nodeoverlays") == ({"get", "list", "watch"} if gate else set())
    assert allowed(objects, "nodeoverlays/status") == ({"patch"} if gate else set())
    (container,) = objects["Deployment", "kerf"]["spec"]["template"]["spec"]["containers"]
    assert f"NodeOverlay={str(gate).lower()}" in next(
        r["value"] for r in container["env"] if r["name"] == "FEATURE_GATES"
    )


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
