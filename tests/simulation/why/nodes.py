"""One world of nodes: a node should go and does not, `kerf why node` answers, and its first step is taken."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

from kerf.judgement.judge import why
from kerf.judgement.values import Judgement
from kerf.model import kinds
from kerf.runtime.observe.looking import look
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.world import World
from kerf.scheduling.answers.patches import Patch
from tests.simulation.stage import SETTINGS
from tests.simulation.why.blocking import BLOCKERS, DRIFTED, EMPTY, UNDERUTILIZED, Blocked
from tests.simulation.why.manifests import with_value
from tests.simulation.why.play import SlowPlay, Unbroken
from tests.simulation.why.pods import Found

_ANNOTATION: Final = 'metadata.annotations["karpenter.sh/do-not-disrupt"]'
_CPU: Final = "spec.template.spec.containers[0].resources.requests.cpu"
#: A pod of `web` fills one of them.
_TYPES: Final = ("c5.large", "m5.large", "m6i.large", "m7g.large", "r6i.large")


def judged(seed: int) -> Found:
    """The world of this seed. Raises Unbroken when the node goes all the same."""
    kind = list(BLOCKERS)[seed % len(BLOCKERS)]
    dice = random.Random(seed)
    blocked = _drawn(BLOCKERS[kind], dice)
    play = _Play(blocked, seed)
    play.begin(dice)
    name = play.staying()
    found = why(look(play.world.kube, play.world.cloud, SETTINGS, play.world.clock), name)
    patch = next(iter(found.patches), None)
    works = patch is not None and play.applied(patch) and play.goes(name)
    edit, action = (patch.text, patch.action) if patch is not None else ("", "")
    return Found(kind, seed, play.nodepools, _named(found, blocked), works, found.text, edit, action)


def _drawn(blocked: Blocked, dice: random.Random) -> Blocked:
    """With other sizes."""
    if blocked.pod is not None and "containers" in blocked.pod:
        return blocked
    return replace(blocked, pod={"memory": dice.choice(("256Mi", "512Mi", "1Gi")), **(blocked.pod or {})})


def _named(found: Judgement, blocked: Blocked) -> bool:
    """Whether the first line, or what stands below the first blocker, is about it."""
    first, _, _ = found.text.partition(", and ")
    below = [fact for hold in found.holds if hold.text in first for fact in hold.facts]
    return any(word in line for word in blocked.named for line in (first, *below))


class _Play(SlowPlay):
    """A world with a blocked node."""

    def __init__(self, blocked: Blocked, seed: int) -> None:
        super().__init__(World(seed=seed, types=_TYPES))
        self._blocked = blocked
        self._smaller: str | None = None
        for manifest in blocked.before():
            self.world.apply(manifest)
        self.nodepools = 1

    def begin(self, dice: random.Random) -> None:
        """Until all pods run; then the node becomes one that should go."""
        if not self.until(self.all_run, minutes=5):
            raise Unbroken("not all pods fit")
        self.wait(seconds=30)
        if self._blocked.bare:
            self._orphan()
        if self._blocked.nodes_annotated:
            for record in self.world.server.select(kinds.NODE, "", "", ""):
                body = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
                self.world.server.patch(kinds.NODE, "", record.key[1], body)
        if self._blocked.reason == EMPTY:
            self.world.scale("default", "web", 1)
        elif self._blocked.reason == DRIFTED:
            self.world.apply(self._blocked.changed_nodepool())
        else:
            self._smaller = dice.choice(("200m", "300m", "500m"))
            for pod in self.pods():
                self.world.resize("default", pod["metadata"]["name"], {"cpu": self._smaller})
        self.wait(minutes=4)

    def _orphan(self) -> None:
        """Pods without a controller."""
        for record in list(self.world.server.select(kinds.POD, "", "", "")):
            self.world.server.patch(kinds.POD, *record.key, {"metadata": {"ownerReferences": None}})
        self.world.delete("Deployment", "web", "default")

    def staying(self) -> str:
        """The name of a node that should go and is there."""
        nodes = {node["metadata"]["name"]: node for node in self.world.objects("Node")}
        used = {pod["spec"].get("nodeName") for pod in self.pods()}
        found = [name for name in sorted(nodes) if self._blocked.reason != EMPTY or name not in used]
        going = [name for name in found if nodes[name]["metadata"].get("deletionTimestamp")]
        if not found or going or len(nodes) != 2:
            raise Unbroken("the node is gone")
        return str(found[0])

    def applied(self, patch: Patch) -> bool:
        try:
            if patch.action == "Edit" and patch.fields[0].path == _ANNOTATION:
                namespace, _, name = patch.name.rpartition("/")
                body = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": patch.fields[0].value}}}
                self.world.server.patch(self.world.server.kinds[patch.kind], namespace, name, body)
            elif patch.action == "Edit":
                self.world.apply(self._edited(patch))
        except (Refused, KeyError, IndexError, StopIteration):
            return False
        return True

    def _edited(self, patch: Patch) -> dict[str, Any]:
        namespace, _, name = patch.name.rpartition("/")
        manifest = next(
            one
            for one in self.world.objects(patch.kind)
            if (one["metadata"].get("namespace", ""), one["metadata"]["name"]) == (namespace, name)
        )
        for one in patch.fields:
            manifest = with_value(manifest, one.path, one.value)
        if patch.kind == "Deployment" and self._smaller is not None:  # the pods that come now ask for no more again
            manifest = with_value(manifest, _CPU, self._smaller)
        kept = ("name", "namespace", "labels", "annotations")
        meta = {key: value for key, value in manifest["metadata"].items() if key in kept}
        return {key: value for key, value in {**manifest, "metadata": meta}.items() if key != "status"}

    def goes(self, name: str) -> bool:
        """Whether the node goes in the end; of two that are alike, one of them."""
        before = {claim["metadata"]["name"] for claim in self.world.objects("NodeClaim")}

        def gone() -> bool:
            if self._blocked.reason == UNDERUTILIZED:
                return not before <= {claim["metadata"]["name"] for claim in self.world.objects("NodeClaim")}
            return name not in {node["metadata"]["name"] for node in self.world.objects("Node")}

        return self.until(gone, minutes=120)
