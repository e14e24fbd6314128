"""No noise: what is added to a live object never shows as a difference to what Git says.

Everything under manifests/examples is applied the ways that people and Argo CD, Flux and kubectl apply it, with the
webhook and the controller running, and so are the charts' objects. Nobody may conflict with anybody, nothing may
change but by a person, and `kubectl diff` has nothing to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest
import yaml

from kerf_api import labels
from kerf_api.defaulting import default
from tests.sources import ROOT
from tests.unit.argocd.lua import health

from .control_plane import ControlPlane
from .installation import NAMESPACE, Installation

pytestmark = pytest.mark.cluster

EXAMPLES: Final = ROOT / "manifests/examples"
#: As people write them: amounts, durations and lists of which there is a shorter form, or another order.
SPELLINGS: Final = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spellings}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: spellings}
      expireAfter: 8760h
      terminationGracePeriod: 90m
      requirements:
      - {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["8", "4"]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      taints: [{key: example.com/spellings, effect: NoSchedule}]
  limits: {cpu: 1000000m, memory: 4096Gi, nodes: 10}
  disruption: {consolidateAfter: 120s, budgets: [{nodes: "10%"}, {nodes: "5", schedule: "@daily", duration: 90m}]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: spellings}
spec:
  role: KarpenterNodeRole
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: kerf-e2e}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: kerf-e2e}}]
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20G, encrypted: true}}]
  kubelet:
    systemReserved: {cpu: "0.1", memory: 1024Mi}
    evictionSoft: {memory.available: 5.0%}
    evictionSoftGracePeriod: {memory.available: 60s}
"""
#: What the controllers write on objects of people, and nobody else does.
ANNOTATIONS: Final = {
    "NodePool": {labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION},
    "EC2NodeClass": {labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION},
}
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
GATES: Final = {"settings.featureGates.nodeOverlay": "true", "settings.featureGates.capacityBuffer": "true"}

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests of a repository: all examples, and spellings."""
    found = tmp_path_factory.mktemp("repository")
    for example in sorted(EXAMPLES.glob("*.yaml")):
        (found / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    (found / "spellings.yaml").write_text(SPELLINGS, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(own_control_plane, tmp_path_factory.mktemp("kerf"), values=GATES) as installation:
        yield installation


def written(folder: Path) -> list[Manifest]:
    return [one for file in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text()) if one]


def live(kerf: Installation, folder: Path, *flags: str) -> dict[str, Manifest]:
    """The objects of the folder as they are, by kind and name."""
    items = json.loads(kerf.kubectl("get", "-f", str(folder), "-o", "json", *flags))["items"]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in items}


def generations(kerf: Installation, folder: Path) -> dict[str, int]:
    return {name: one["metadata"]["generation"] for name, one in live(kerf, folder).items()}


def settle(kerf: Installation, folder: Path) -> None:
    """Wait until the controller has said of each object what it thinks of it as it is now."""

    def said() -> bool:
        return all(
            any(
                c["type"] == "Ready"
                and c["status"] != "Unknown"
                and c.get("observedGeneration") == one["metadata"]["generation"]
                for c in one.get("status", {}).get("conditions", [])
            )
            for one in live(kerf, folder).values()
        )

    kerf.wait(said, 180, "every object has been looked at")


def differences(kerf: Installation, path: Path, *flags: str) -> str:
    """What `kubectl diff` prints; nothing when there is none. It fails for a conflict."""
    return kerf.kubectl("diff", *flags, "-f", str(path), check=False)


def server_side(kerf: Installation, path: Path, manager: str) -> str:
    return kerf.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", str(path))


def without(one: Manifest, *parts: str) -> Manifest:
    return {name: value for name, value in one.items() if name not in parts}


# --- charts -----------------------------------------------------------------------------------------------------
def test_what_helm_renders_is_what_is_there(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Although the controller has written its CA into the webhook configurations.

    It comes first: the other tests share an installation that runs until the end.
    """
    with Installation(control_plane, tmp_path, webhook=False) as inside:

        def trusted() -> bool:
            rows = inside.get("mutatingwebhookconfigurations")
            return any("caBundle" in hook["clientConfig"] for row in rows for hook in row["webhooks"])

        inside.wait(trusted, 30, "the controller has made its certificate")
        for chart in ("kerf-crd", "kerf"):
            text = inside.helm("get", "manifest", chart, "-n", NAMESPACE)
            file = tmp_path / f"{chart}.yaml"
            file.write_text(text, encoding="utf-8")
            assert differences(inside, file, "--server-side", "--field-manager=argocd-controller") == ""
            server_side(inside, file, "argocd-controller")
        assert trusted()


# --- by the ways of applying ------------------------------------------------------------------------------------
def test_everybody_applies_it_twice(kerf: Installation, folder: Path) -> None:
    """Server-side from two managers and client-side from a third: no conflict, and nothing is a change."""
    before: dict[str, int] = {}
    for manager in ("argocd-controller", "kustomize-controller"):
        for _ in range(2):
            server_side(kerf, folder, manager)
            before = before or generations(kerf, folder)
            assert generations(kerf, folder) == before
        settle(kerf, folder)
    kerf.kubectl("apply", "-f", str(folder))
    again = kerf.kubectl("apply", "-f", str(folder))
    assert [line for line in again.splitlines() if not line.endswith(" unchanged")] == []
    assert generations(kerf, folder) == before
    assert differences(kerf, folder) == ""
    for manager in ("argocd-controller", "kustomize-controller"):
        assert differences(kerf, folder, "--server-side", f"--field-manager={manager}") == ""


# --- what the controller and the webhook leave behind -----------------------------------------------------------
def test_only_defaults_and_a_few_notes_are_added(kerf: Installation, folder: Path) -> None:
    """Not even the spelling of an amount or of a duration changes."""
    found = live(kerf, folder)
    assert len(found) > 20
    for manifest in written(folder):
        one = found[f"{manifest['kind']}/{manifest['metadata']['name']}"]
        assert one["spec"] == default(manifest)["spec"]
        notes = set(one["metadata"].get("annotations", {})) - {LAST_APPLIED}
        assert notes == ANNOTATIONS.get(one["kind"], set())
        assert "labels" not in one["metadata"]


def test_the_controller_owns_nothing_of_a_spec(kerf: Installation, folder: Path) -> None:
    """So whoever applies next meets no conflict, and takes nothing away."""
    people = {"argocd-controller", "kustomize-controller", "kubectl-client-side-apply"}
    for name, one in live(kerf, folder, "--show-managed-fields").items():
        rows = one["metadata"]["managedFields"]
        owners = {row["manager"] for row in rows if "f:spec" in row["fieldsV1"]}
        assert owners - people == set(), name
        assert {row["manager"] for row in rows} - people == {"karpenter"}, name


def test_argo_cd_sees_the_state_of_each(kerf: Installation, folder: Path) -> None:
    """The health scripts over the live objects: what they select is not there, and only that is why they fail."""
    told = {name: health(one) for name, one in live(kerf, folder).items()}
    assert {told[name].status for name in ("NodePool/spellings", "EC2NodeClass/spellings")} == {"Healthy"}
    assert told["EC2NodeClass/general"].status == "Degraded"
    assert "SubnetsReady is False (SubnetsNotFound): " in told["EC2NodeClass/general"].message
    assert told["NodePool/general"].status == "Degraded"
    assert "NodeClassReady is False" in told["NodePool/general"].message
    assert {health.status for name, health in told.items() if name.startswith("NodeOverlay/")} == {"Healthy"}


# --- kustomize --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("injected", "reaches"),
    [
        ("commonLabels: {team: platform}", False),
        ("commonAnnotations: {argocd.argoproj.io/sync-options: Prune=confirm}", False),
        ("labels: [{pairs: {team: platform}, includeTemplates: true}]", False),
        ("labels: [{pairs: {team: platform}, fields: [{path: spec/template/metadata/labels, create: true}]}]", True),
    ],
)
def test_which_labels_of_kustomize_replace_every_node(
    control_plane: ControlPlane, tmp_path: Path, injected: str, reaches: bool
) -> None:
    """What is injected into the template changes the hash, and so drifts every node; what is not does not."""
    text = (EXAMPLES / "general-purpose.yaml").read_text(encoding="utf-8")
    (tmp_path / "pool.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "kustomization.yaml").write_text(f"resources: [pool.yaml]\n{injected}\n", encoding="utf-8")
    built = yaml.safe_load_all(control_plane.kubectl("kustomize", str(tmp_path)).stdout)
    pool = next(one for one in built if one["kind"] == "NodePool")
    before = next(one for one in yaml.safe_load_all(text) if one["kind"] == "NodePool")
    assert without(pool, "spec") != without(before, "spec")
    assert (pool["spec"]["template"] != before["spec"]["template"]) == reaches


def test_kustomize_renames_references_when_it_is_told_of_them(control_plane: ControlPlane, tmp_path: Path) -> None:
    """With the file that the guide shows."""
    guide = (ROOT / "docs/gitops.md").read_text(encoding="utf-8")
    shown = re.search(r"^  ```yaml\n  # (references.yaml)\n(.*?)^  ```$", guide, re.MULTILINE | re.DOTALL)
    assert shown is not None
    (tmp_path / shown[1]).write_text(dedent(shown[2]), encoding="utf-8")
    (tmp_path / "pool.yaml").write_bytes((EXAMPLES / "general-purpose.yaml").read_bytes())
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [pool.yaml]\nnamePrefix: eu-\nconfigurations: [{shown[1]}]\n", encoding="utf-8"
    )
    built = list(yaml.safe_load_all(control_plane.kubectl("kustomize", str(tmp_path)).stdout))
    pool = next(one for one in built if one["kind"] == "NodePool")
    assert {one["metadata"]["name"] for one in built} == {"eu-general"}
    assert pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] == "eu-general"
