"""Each value of the chart is given, and shows where docs/reference/values.md says that it goes."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
import yaml

from kerf.runtime.settings.settings import parse
from tests.sources import ROOT
from tests.unit.charts.test_values import ALL_ROWS, merged
from tests.unit.charts.values_table import Row

from .charts import Helm, Objects, different

pytestmark = pytest.mark.cluster

#: With it there is an object of each kind, so that a value that changes one has something to change.
ALL_ON: Final = {
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True, "folder": "Nodes"},
    "networkPolicy": {"enabled": True},
    "controller": {"sidecarContainer": [{"name": "sidecar", "image": "example.com/sidecar:1"}]},
    "ui": {
        "enabled": True,
        "certSecret": "certificate",
        "certManager": {"issuerRef": {"name": "issuer"}},
        "proxy": {"caConfigMap": "ca", "names": ["proxy"]},
    },
}
CERTIFICATE: Final = {"webhook": {"certManager": {"enabled": True}}, "ui": {"certManager": {"enabled": True}}}
NO_TERMS: Final[list[Any]] = []
ANYWHERE: Final = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": NO_TERMS}}}
SPREAD: Final = [{"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]
BY_DEFAULT: Final = """podTopologySpread:
  defaultConstraints:
    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""
MAPPING: Final = {"example.com/given": "yes"}
#: What each value is changed to. A switch is turned over, a number grows, and a name becomes another one.
GIVEN: Final[dict[str, Any]] = {
    "additionalClusterRoleRules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}],
    "affinity": ANYWHERE,
    "controller.containerName": "karpenter",
    "controller.env": [{"name": "GIVEN", "value": "yes"}],
    "controller.envFrom": [{"configMapRef": {"name": "given"}}],
    "controller.extraVolumeMounts": [{"name": "given", "mountPath": "/given"}],
    "controller.image.digest": f"sha256:{'0' * 64}",
    "controller.livenessProbe": {"failureThreshold": 7},
    "controller.readinessProbe": {"failureThreshold": 7},
    "controller.resources": {"requests": {"cpu": 1}},
    "controller.securityContext.appArmorProfile": {"type": "RuntimeDefault"},
    "controller.securityContext.seLinuxOptions": {"level": "s0"},
    "controller.securityContext.seccompProfile": {"type": "Unconfined"},
    "controller.sidecarContainer": [{"name": "given", "image": "example.com/given:1"}],
    "controller.sidecarVolumeMounts": [{"name": "given", "mountPath": "/given"}],
    "dashboards.enabled": False,
    "dnsConfig": {"searches": ["example.com"]},
    "dnsPolicy": "Default",
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-given"}}],
    "extraVolumes": [{"name": "given", "emptyDir": {}}],
    "imagePullPolicy": "Never",
    "imagePullSecrets": [{"name": "given"}],
    "initContainers": [{"name": "given", "image": "example.com/given:1"}],
    "logErrorOutputPaths": ["stdout"],
    "logLevel": "debug",
    "logOutputPaths": ["stderr"],
    "networkPolicy.enabled": False,
    "networkPolicy.metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
    "podDisruptionBudget.unhealthyPodEvictionPolicy": "IfHealthyBudget",
    "podSecurityContext": {"fsGroup": 1},
    "prometheusRule.enabled": False,
    "serviceMonitor.enabled": False,
    "serviceMonitor.endpointConfig": {"interval": "30s"},
    "serviceMonitor.metricRelabelings": [{"action": "drop"}],
    "serviceMonitor.relabelings": [{"action": "drop"}],
    "serviceMonitor.sampleLimit": 0,
    "settings.clusterCABundle": "Z2l2ZW4=",
    "settings.clusterEndpoint": "https://given.example.com",
    "settings.canarySoak": "30m",
    "settings.consolidationMinimumSaving": "5%",
    "settings.deletionGuardPercent": "20",
    "settings.detailedMetrics": "nodes,pods",
    "settings.karpenterLeases": "kube-system,karpenter/given",
    "settings.minValuesPolicy": "BestEffort",
    "settings.planFirst": "24h",
    "settings.recordEncryption": "aws:kms",
    "settings.recordFolder": "/var/lib/kerf/record",
    "settings.recordS3": "s3://given/prefix",
    "settings.preferencePolicy": "Ignore",
    "settings.schedulerConfig": BY_DEFAULT,
    "settings.vmMemoryOverheadPercent": 0,
    "terminationGracePeriodSeconds": 0,
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": SPREAD,
    "ui.affinity": ANYWHERE,
    "ui.audiences": ["given"],
    "ui.certManager.issuerRef": {"name": "given"},
    "ui.enabled": False,
    "ui.from": [{"podSelector": {"matchLabels": {"app": "proxy"}}}],
    "ui.hosts": ["given.example.com"],
    "ui.proxy.names": ["given"],
    "ui.resources": {"requests": {"cpu": 1}},
    "ui.topologySpreadConstraints": SPREAD,
    "webhook.affinity": ANYWHERE,
    "webhook.caBundle": "Z2l2ZW4=",
    "webhook.certManager.issuerRef": {"name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io"},
    "webhook.failurePolicy": "Fail",
    "webhook.resources": {"requests": {"cpu": 1}},
    "webhook.topologySpreadConstraints": SPREAD,
    "webhook.trustedAccounts": ["given"],
    "webhook.url": "https://given.example.com:8443",
    "ui.port": 9445,
    "webhook.port": 9443,
}


def given(row: Row) -> Any:
    """Another value than the default."""
    default = yaml.safe_load(row.stated)
    if row.value in GIVEN:
        return GIVEN[row.value]
    if row.value.startswith("prometheusRule.alerts."):
        return {"enabled": False}
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    if isinstance(default, dict):
        return MAPPING
    if isinstance(default, str) and default[:1].isdigit():
        return f"1{default}"
    return "given"


def nested(path: str, value: Any) -> Any:
    first, dot, rest = path.partition(".")
    return {first: nested(rest, value) if dot else value}


def changed(before: Objects, after: Objects) -> dict[tuple[str, str], set[str]]:
    """The paths at which objects differ, by kind and name; what was added or removed differs everywhere."""
    return {name: different(before.get(name), after.get(name)) for name in before.keys() | after.keys()}


@pytest.fixture(scope="module")
def usual(helm: Helm) -> Objects:
    return helm.template(values=ALL_ON)


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: str(row.value))
def test_a_value_goes_where_the_page_says(helm: Helm, usual: Objects, row: Row) -> None:
    base = merged(ALL_ON, CERTIFICATE) if "issuerRef" in row.value else copy.deepcopy(ALL_ON)
    before = helm.template(values=base) if "issuerRef" in row.value else usual
    after = helm.template(values=merged(base, nested(row.value, given(row))))
    differences = changed(before, after)
    component, _, kind = row.kind.rpartition(" ")
    if kind == "each":
        differences = {name: differences[name] for name in before}
        assert all(any(_within(path, row.path) for path in paths) for paths in differences.values())
    else:
        its = {name for name in differences if _component(name[1]) == component}
        meant = {name for name in its if name[0] == kind}
        places = {path for name in meant for path in differences[name]}
        assert any(_within(path, row.path) for path in places), sorted(places)


def _component(name: str) -> str:
    """The Deployment that an object belongs to; empty for the controller."""
    return next((one for one in ("webhook", "ui") if name.endswith(f"-{one}")), "")


def _within(path: str, place: str) -> bool:
    rest = path.removeprefix(place)
    return place == "" or (path.startswith(place) and rest[:1] in ("", ".", "["))


def test_values_that_somebody_wrote_for_karpenter_are_understood(helm: Helm) -> None:
    """In a release of Karpenter's name; and the controller reads what it is told."""
    written = yaml.safe_load((ROOT / "tests/unit/charts/karpenter_values.yaml").read_text(encoding="utf-8"))
    objects = helm.template(values=written, release="karpenter", namespace="kube-system")
    pod = objects["Deployment", "karpenter"]["spec"]["template"]["spec"]
    controller, sidecar = pod["containers"]
    options = parse([], {row["name"]: row["value"] for row in controller["env"] if "value" in row})
    assert options.cluster_name == "karpenter-production"
    assert (options.settings.vm_memory_overhead_percent, options.reserved_enis) == (0, 1)
    assert (options.settings.ignore_dra_requests, options.settings.gates.reserved_capacity) == (False, False)
    assert (options.settings.gates.node_repair, options.settings.gates.spot_to_spot_consolidation) == (True, True)
    assert options.kube_client_qps == 50
    assert len({row["name"] for row in controller["env"]}) == len(controller["env"])
    mounts = ["/var/run/secrets/eks.amazonaws.com/serviceaccount", "/tmp"]
    assert [mount["mountPath"] for mount in controller["volumeMounts"]] == mounts
    assert [mount["mountPath"] for mount in sidecar["volumeMounts"]] == [*mounts, "/scratch"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    own = objects["Deployment", "karpenter"]["spec"]["selector"]
    assert term["podAffinityTerm"]["labelSelector"] == own
    assert pod["topologySpreadConstraints"][0]["labelSelector"] == own
