"""Kerf as Flux installs it: `manifests/flux/` on a control plane, out of a repository that a test may change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sources import ROOT

from .control_plane import ControlPlane
from .flux import NAMESPACE, Flux
from .flux_releases import VALUES_KEY
from .installation import CLUSTER_NAME, Installation
from .moto_aws.settings import PINNED, ROLE
from .person import Person

MANIFESTS: Final = ROOT / "manifests/flux"
#: In the order in which they depend on each other.
STEPS: Final = ("kerf", "kerf-node-classes", "kerf-node-pools")
RELEASES: Final = ("kerf-crd", "kerf")
#: What is a placeholder in the manifests, and what stands for it here.
_CHANGES: Final = {
    "KarpenterNodeRole-example": ROLE,
    "al2023@v20250505": f"al2023@{PINNED['al2023']}",
    ": example}": f": {CLUSTER_NAME}}}",
    "clusterName: example": f"clusterName: {CLUSTER_NAME}",
}


class FluxInstallation(Installation):
    """A running Kerf that Flux has installed; a context manager. `repository` is the folder of the user's Git."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        super().__init__(control_plane, folder, values={"webhook.deletionGuard": "true"})
        self.repository = folder / "fleet"
        copy_manifests(MANIFESTS, self.repository / "kerf")
        #: Where a test may put a repository of teams that use what is installed.
        self.teams = folder / "teams"
        trees = {"fleet": self.repository, "kerf": ROOT, "teams": self.teams}
        self.flux = Flux(control_plane, folder, trees)
        #: NodePools that were there before the controller was ready.
        self.too_early: list[str] = []

    def __enter__(self) -> FluxInstallation:
        self.flux.__enter__()
        super().__enter__()
        self.too_early = [pool["metadata"]["name"] for pool in self.get("nodepools")]
        self.flux.releases.finish(*RELEASES)
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.flux.__exit__(None, None, None)

    def _install_charts(self, values: Mapping[str, str]) -> None:
        content = {VALUES_KEY: yaml.safe_dump(nested(values))}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kerf-values"}, "data": content}
        self.kubectl("apply", "-n", NAMESPACE, "-f", "-", input_=yaml.safe_dump(manifest))
        self.kubectl("apply", "--server-side", "--validate=strict", "-f", str(self.repository / "kerf"))
        self.flux.publish("fleet")
        self.flux.releases.release(*RELEASES)

    # --- the repository ---------------------------------------------------------------------------------------------
    def commit(self, path: str, text: str | None) -> str:
        """A file of the repository gets this text, or goes; the revision."""
        file = self.repository / path
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        return self.flux.publish("fleet")

    def text(self, path: str) -> str:
        return (self.repository / path).read_text()

    def reconcile(self, step: str, word: str) -> None:
        """Have Flux look at a step, which has nothing new, once more; `word` is another one each time."""
        revision = self.flux.kustomization(step)["status"]["lastAppliedRevision"]
        self.flux.request(step, word)

        def handled() -> bool:
            return bool(self.flux.kustomization(step)["status"].get("lastHandledReconcileAt") == word)

        self.wait(lambda: handled() and self.flux.done(step, revision), 60, f"{step} is reconciled once more")

    def run(self, command: str) -> str:
        """What a command of a person prints who has `kubectl` and `kerf` and is in the repository; it must succeed."""
        return Person(self.control_plane, self.repository.parent / "bin", self.repository, {}).does(command)

    def applied(self, revision: str, seconds: float = 150) -> None:
        """Wait until all steps have come to this revision and are healthy."""

        def done() -> bool:
            return all(self.flux.done(step, revision) for step in STEPS)

        self.wait(done, seconds, f"Flux has applied {revision}")

    def wait(self, reached: Callable[[], bool], seconds: float, what: str) -> float:
        """As elsewhere; a wait that fails shows what Flux and Kerf say of what they hold."""
        try:
            return super().wait(reached, seconds, what)
        except AssertionError as late:
            kinds = "kustomizations.kustomize.toolkit.fluxcd.io,nodepools,ec2nodeclasses"
            for one in self.get(kinds, namespace=""):
                late.add_note(f"{one['kind']} {one['metadata']['name']}: {json.dumps(one.get('status', {}))}")
            raise


def copy_manifests(source: Path, target: Path) -> None:
    """Copy a folder of `manifests/` as a user does, with the names of this cluster."""
    for path in sorted(source.rglob("*.yaml")):
        text = path.read_text()
        for placeholder, own in _CHANGES.items():
            text = text.replace(placeholder, own)
        copied = target / path.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(text)


def nested(values: Mapping[str, str]) -> dict[str, Any]:
    """Values by path as the maps within maps that values.yaml has."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *way, last = path.split(".")
        place = nested
        for name in way:
            place = place.setdefault(name, {})
        place[last] = value
    return nested
