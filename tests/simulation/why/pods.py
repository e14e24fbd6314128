"""One world of pods: all fit, one thing is broken, `kerf why pod` answers, and its first edit is applied."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kerf.provisioning.why import Answer, why
from kerf.runtime.observe.looking import look
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.world import World
from kerf.scheduling.answers.patches import FieldRef, Patch
from tests.simulation.scripts import TYPES
from tests.simulation.stage import SETTINGS
from tests.simulation.why import worlds
from tests.simulation.why.breaking import KINDS, Broken
from tests.simulation.why.manifests import covers, with_value
from tests.simulation.why.play import SlowPlay, Unbroken
from tests.simulation.why.worlds import Draft, Manifest

#: Objects are applied in this order.
_ORDER: Final = ("EC2NodeClass", "NodePool", "StorageClass", "PersistentVolumeClaim", "DaemonSet", "Deployment")
#: So many draws of a world may be no use: not all pods fit at first, or all still do when it is broken.
_DRAWS: Final = 8


@dataclass(frozen=True)
class Found:
    """What came of one world. `miss` says what fell short; empty when the thing is named first and the edit works."""

    kind: str
    seed: int
    nodepools: int
    named: bool
    works: bool
    cause: str
    edit: str
    action: str

    @property
    def miss(self) -> str:
        short = [*([] if self.named else ["named something else"]), *([] if self.works else ["the edit is not enough"])]
        return " and ".join(short)


def judged(seed: int) -> Found:
    """The world of this seed. Raises Unbroken when no draw of it is any use."""
    kind = list(KINDS)[seed % len(KINDS)]
    last = Unbroken()
    for draw in range(_DRAWS):
        try:
            return _judged(kind, seed, random.Random(seed * _DRAWS + draw))
        except Unbroken as error:
            last = error
    raise last


def _judged(kind: str, seed: int, dice: random.Random) -> Found:
    draft = worlds.drawn(dice)
    KINDS[kind].prepared(draft)
    if seed // len(KINDS) % 2:
        worlds.unrelated(draft, dice, dice.choice((2, 2, 3, 4)))
    play = _Play(draft, seed, fresh=dice.random() < 0.5)
    play.settle()
    intact = dict(draft.objects)
    broken = KINDS[kind].broken(draft, dice)
    play.breaks(broken)
    pod = play.waiting()
    answer = why(look(play.world.kube, play.world.cloud, SETTINGS, play.world.clock), pod)
    patch = next(iter(answer.patches), None)
    works = patch is not None and play.applied(patch, broken, intact) and play.serves()
    cause, edit = answer.cause.text if answer.cause is not None else "", patch.text if patch is not None else ""
    pools = sum(1 for kind_, _ in draft.objects if kind_ == "NodePool")
    action = patch.action if patch is not None else ""
    return Found(kind, seed, pools, _named(answer, broken), works, cause, edit, action)


def _named(answer: Answer, broken: Broken) -> bool:
    """Whether the cause is about the broken object, and the field of it that was broken."""
    fields = answer.cause.fields if answer.cause is not None else ()
    return any(_same(one, broken) for one in fields)


def _same(one: FieldRef, broken: Broken) -> bool:
    return (one.kind, one.name) == (broken.kind, broken.name) and covers(one.path, broken.path)


class _Play(SlowPlay):
    """The world of a draft and its controller. `fresh`: no pod of `shop` runs when something is broken."""

    def __init__(self, draft: Draft, seed: int, *, fresh: bool) -> None:
        super().__init__(World(seed=seed, types=TYPES))
        self._single = ("StorageClass", "gp3") in draft.objects
        self._fresh = fresh or self._single
        if self._single:
            draft.set("Deployment", "default/shop", "spec.replicas", 1)
            draft.shop("containers[0].resources.requests.cpu", "1500m")
        self._draft = draft
        for kind in _ORDER:
            for (own, _), manifest in draft.objects.items():
                if own == kind:
                    self.world.apply(manifest)

    def settle(self) -> None:
        """Until all pods run; then, in a fresh world, without those of `shop` and their nodes."""
        if not self.until(self.all_run, minutes=5):
            raise Unbroken("not all pods fit")
        if not self._fresh:
            return
        nodes = {pod["spec"]["nodeName"] for pod in self.shop_pods()}
        self._scale(0)
        self.wait(seconds=10)
        for claim in self.world.objects("NodeClaim"):
            if claim.get("status", {}).get("nodeName") in nodes:
                self.world.delete("NodeClaim", claim["metadata"]["name"])
        self.until(lambda: self._gone(nodes) and self.all_run(), minutes=10)

    def breaks(self, broken: Broken) -> None:
        for manifest in broken.applied:
            if manifest["kind"] != "Deployment":
                self.world.apply(manifest)
        for kind, name in broken.deleted:
            namespace, _, own = name.rpartition("/")
            self.world.delete(kind, own, namespace)
        self.wait(seconds=30)
        replicas = 1 if self._single else worlds.REPLICAS
        self.world.apply(self._draft.set("Deployment", "default/shop", "spec.replicas", replicas))
        self.until(self._served, minutes=3)

    def waiting(self) -> str:
        """The key of a pod of `shop` without a node."""
        found = sorted(pod["metadata"]["name"] for pod in self.shop_pods() if not pod["spec"].get("nodeName"))
        if not found:
            raise Unbroken("all pods have a place still")
        return f"default/{found[0]}"

    def applied(self, patch: Patch, broken: Broken, intact: dict[tuple[str, str], Manifest]) -> bool:
        """Whether the edit could be made: of a field without a value, or an object that is missing, the user's."""
        try:
            if patch.action == "Create":
                made = intact.get((patch.kind, patch.name)) or _made_up(patch.kind, patch.name)
                self.world.apply(made)
            elif patch.action == "Correct":
                self._corrected(patch, broken, intact)
            elif patch.action == "Edit":
                self.world.apply(self._edited(patch))
        except (Refused, KeyError, IndexError):
            return False
        return True

    def _corrected(self, patch: Patch, broken: Broken, intact: dict[tuple[str, str], Manifest]) -> None:
        """A user who reads the name of the field sets it right, if it is that one. Raises KeyError."""
        right = any(_same(FieldRef(patch.kind, patch.name, one.path), broken) for one in patch.fields)
        if not right:
            raise KeyError(patch.name)
        mended = intact[patch.kind, patch.name]
        if patch.kind == "Deployment":
            mended = with_value(mended, "spec.replicas", 1 if self._single else worlds.REPLICAS)
        self.world.apply(mended)

    def _edited(self, patch: Patch) -> Manifest:
        made = self._draft.objects[patch.kind, patch.name]
        for one in patch.fields:
            made = with_value(made, one.path, one.value)
        return made

    def serves(self) -> bool:
        """Whether all pods of `shop` run in the end."""
        return self.until(self._served, minutes=8)

    def _served(self) -> bool:
        running = [pod for pod in self.shop_pods() if pod.get("status", {}).get("phase") == "Running"]
        wanted = 1 if self._single else worlds.REPLICAS
        return len(running) >= wanted and all(pod["spec"].get("nodeName") for pod in self.shop_pods())

    def shop_pods(self) -> Iterator[Manifest]:
        return (pod for pod in self.pods() if pod["metadata"].get("labels", {}).get("app") == "shop")

    def _gone(self, nodes: Collection[str]) -> bool:
        return not any(node["metadata"]["name"] in nodes for node in self.world.objects("Node"))

    def _scale(self, replicas: int) -> None:
        self.world.scale("default", "shop", replicas)


def _made_up(kind: str, name: str) -> Manifest:
    """An object of which only the name is known."""
    namespace, _, own = name.rpartition("/")
    meta: dict[str, Any] = {"name": own, **({"namespace": namespace} if namespace else {})}
    if kind == "StorageClass":
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": kind,
            "metadata": meta,
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    raise KeyError(kind)
