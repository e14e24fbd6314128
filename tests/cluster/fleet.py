"""A NodePool, a Deployment whose pods want a node of it each, and the PodDisruptionBudget of these (`rolling.yaml`).

How nodes come to their end is tried out on them: who goes, who follows, and how many pods run meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from .installation import Installation
from .stages import NOT_READY

MANIFEST: Final = Path(__file__).parent / "rolling.yaml"
NAME: Final = "rolling"


class Fleet:
    """The objects of `rolling.yaml`, which are there already, all of one name. `kerf` is who looks after the nodes."""

    def __init__(self, kerf: Installation, name: str = NAME) -> None:
        self.kerf, self.name = kerf, name

    # --- what people do ---------------------------------------------------------------------------------------------
    def scale(self, replicas: int, seconds: float = 180) -> float:
        """So many pods, and with them nodes; how long it took until the pods ran and the nodes were initialized."""
        self.kerf.kubectl("scale", "deployment", self.name, f"--replicas={replicas}")
        return self.kerf.wait(lambda: self.whole(replicas), seconds, f"{replicas} pods run on initialized nodes")

    def change_template(self, version: str) -> None:
        """A label more in the template: every node drifts."""
        patch = {"spec": {"template": {"metadata": {"labels": {"version": version}}}}}
        self.kerf.kubectl("patch", "nodepool", self.name, "--type=merge", "-p", json.dumps(patch))

    def allow(self, unavailable: int) -> None:
        """How many pods may be away for the PodDisruptionBudget; 0: none will ever go."""
        self._protect({"maxUnavailable": unavailable, "minAvailable": None})

    def keep(self, available: int) -> None:
        """How many pods have to be there for the PodDisruptionBudget."""
        self._protect({"minAvailable": available, "maxUnavailable": None})

    def _protect(self, spec: dict[str, Any]) -> None:
        self.kerf.kubectl("patch", "pdb", self.name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def sicken(self, node: str, seconds_ago: float) -> datetime:
        """The node's kubelet says that it is not ready; since when, as its condition has it from now on."""
        return sicken(self.kerf, node, seconds_ago)

    def heal(self, node: str) -> None:
        self.kerf.kubectl("annotate", "node", node, f"{NOT_READY}-")

    # --- what is there ----------------------------------------------------------------------------------------------
    def whole(self, replicas: int) -> bool:
        """So many pods run, each on a node of its own, and no node comes or goes."""
        claims = self.claims()
        ready = [c for c in claims if is_true(c, "Initialized") and "deletionTimestamp" not in c["metadata"]]
        return len(ready) == len(claims) == replicas and len(self.running()) == replicas

    def running(self) -> set[str]:
        """UIDs of the pods that run and stay."""
        return self.kerf.running(self.name)

    def pool(self) -> dict[str, Any]:
        return self.kerf.one("nodepool", self.name)

    def claims(self) -> list[dict[str, Any]]:
        return self.kerf.get("nodeclaims", selector=f"karpenter.sh/nodepool={self.name}")

    def claim(self, uid: str) -> dict[str, Any] | None:
        return next((claim for claim in self.claims() if claim["metadata"]["uid"] == uid), None)

    def uids(self) -> set[str]:
        """Of its claims; the name of one that is gone may come again."""
        return {claim["metadata"]["uid"] for claim in self.claims()}


@contextmanager
def fleet(kerf: Installation, name: str = NAME, *, gone_within: float = 180) -> Iterator[Fleet]:
    """With the pool, its Deployment without pods, and their budget; afterwards all nodes are given back."""
    manifest, found = MANIFEST.read_text().replace(NAME, name), Fleet(kerf, name)
    kerf.kubectl("apply", "-f", "-", input_=manifest)
    try:
        yield found
    finally:  # what a failed test leaves behind fails those after it
        kerf.kubectl("delete", "--wait=false", "-f", "-", input_=manifest)
    kerf.wait(lambda: not found.claims(), gone_within, "all nodes are given back")


def condition(thing: dict[str, Any], type_: str) -> dict[str, Any]:
    """Empty when it is not there."""
    conditions: list[dict[str, Any]] = thing.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})


def is_true(thing: dict[str, Any], type_: str) -> bool:
    return condition(thing, type_).get("status") == "True"


def approval(fleet: Fleet, field: str) -> str:
    """A field of the condition ChangeApproved; empty when it is not there."""
    return str(condition(fleet.pool(), "ChangeApproved").get(field, ""))


# --- the manifest, as commits change it ---------------------------------------------------------------------------
def changed(manifest: str, version: str) -> str:
    """The NodePool with another label in its template: every node drifts."""
    labels = f"    metadata: {{labels: {{example.com/version: {version}}}}}\n    spec:"
    return manifest.replace("    spec:", labels, 1)


def annotated(manifest: str, more: str) -> str:
    """The NodePool with more annotations, as `key: value` in YAML."""
    if "annotations: {" in manifest:
        return manifest.replace("annotations: {", f"annotations: {{{more}, ", 1)
    return manifest.replace("name: rolling}", f"name: rolling, annotations: {{{more}}}}}", 1)


def sicken(kerf: Installation, node: str, seconds_ago: float) -> datetime:
    """See `Fleet.sicken`."""
    kerf.kubectl("annotate", "node", node, f"{NOT_READY}=true", "--overwrite")
    kerf.wait(lambda: condition(kerf.one("node", node), "Ready")["status"] == "False", 20, "the node is not ready")
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds_ago)
    row = {"type": "Ready", "status": "False", "lastTransitionTime": since.isoformat().replace("+00:00", "Z")}
    patch = json.dumps({"status": {"conditions": [row]}})
    kerf.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", "-p", patch)
    return since
