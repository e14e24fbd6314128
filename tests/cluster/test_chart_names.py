"""Names of long releases, of 63 characters at most, and values with which a process would not start."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from .charts import Helm, Objects

pytestmark = pytest.mark.cluster

#: Names of Services, Deployments and Pods; other objects may have 253 characters.
SHORT = ("Service", "Deployment", "Pod", "ServiceAccount")
MOST = 63
ALL: dict[str, Any] = {
    "ui": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "webhook": {"certManager": {"enabled": True}},
}


def rendered(helm: Helm, release: str = "kerf", **values: Any) -> Objects:
    return helm.template(values={**ALL, **values}, release=release)


def services(objects: Objects) -> set[str]:
    return {name for kind, name in objects if kind == "Service"}


@pytest.mark.parametrize("length", [47, 50, 51, 52, 53])
def test_a_long_release_name(helm: Helm, length: int) -> None:
    consistent(rendered(helm, "r" * length))


@pytest.mark.parametrize("key", ["fullnameOverride", "nameOverride"])
@pytest.mark.parametrize("length", [54, 55, 56, 60, 62, 63])
def test_a_long_name_of_the_values(helm: Helm, key: str, length: int) -> None:
    consistent(rendered(helm, **{key: "n" * length}))


def consistent(objects: Objects) -> None:
    """No name is too long, and all that refers to the webhook's Service has its name."""
    assert [name for kind, name in objects if kind in SHORT and len(name) > MOST] == []
    (webhook,) = (name for name in services(objects) if name.endswith("-webhook"))
    (ui,) = (name for kind, name in objects if kind == "Deployment" and name.endswith("-ui"))
    assert {("Deployment", webhook), ("ServiceAccount", webhook), ("ServiceAccount", ui)} <= objects.keys()
    configurations = [one for (kind, _), one in objects.items() if kind.endswith("WebhookConfiguration")]
    named = {hook["clientConfig"]["service"]["name"] for one in configurations for hook in one["webhooks"]}
    assert named == {webhook}
    (certificate,) = (one for (kind, _), one in objects.items() if kind == "Certificate")
    assert all(name.startswith(f"{webhook}.kerf.svc") for name in certificate["spec"]["dnsNames"])
    alerts = json.dumps([one for (kind, _), one in objects.items() if kind == "PrometheusRule"])
    assert f'job=\\\\\\"{webhook}\\\\\\"' in json.dumps(alerts)


def test_shorter_names_have_their_suffix_as_before(helm: Helm) -> None:
    name = "n" * 55
    assert {name, f"{name}-webhook"} <= services(rendered(helm, fullnameOverride=name))
    job = rendered(helm, prometheusRule={"enabled": True, "job": "own"})
    assert 'job="own-webhook"' in str(job["PrometheusRule", "kerf"])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"webhook": {"healthPort": 8443}}, "webhook.healthPort: is the same as webhook.port, 8443"),
        ({"webhook": {"port": "8444"}}, "webhook.healthPort: is the same as webhook.port, 8444"),
        ({"ui": {"enabled": True, "healthPort": 8445}}, "ui.healthPort: is the same as ui.port, 8445"),
        ({"settings": {"leaderElectionName": "Big_Name"}}, "leaderElectionName"),
    ],
)
def test_ports_and_names_that_would_fail_at_the_start(helm: Helm, values: dict[str, Any], text: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        helm.template(values=values)
    assert text in failure.value.stderr


def test_a_lease_name_from_a_template(helm: Helm) -> None:
    objects = helm.template(values={"settings": {"leaderElectionName": "{{ .Release.Name }}-lease"}})
    (container,) = objects["Deployment", "kerf"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "LEADER_ELECTION_NAME", "value": "kerf-lease"} in container["env"]
