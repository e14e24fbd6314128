"""AWS as recorded in a snapshot: each EC2NodeClass selects the same objects as then.

Only AWS knows the selection of a changed or new EC2NodeClass. Kerf assumes new images when the selection of images
changed. It assumes the subnets, security groups and other objects of the previous selection, or those of the most
similar EC2NodeClass. `guesses` lists these assumptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Image
from kerf.model.snapshot import Snapshot
from kerf.ports import Unavailable
from kerf.sandbox.api.manifests import digest
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.faults import Faults
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec

#: The selections in AWS: the condition with the result, the selected objects as text, and the fields.
_SELECTED: Final[tuple[tuple[str, str, Callable[[EC2NodeClassSpec], Any]], ...]] = (
    ("SubnetsReady", "subnets", lambda spec: spec.subnet_selector_terms),
    ("SecurityGroupsReady", "security groups", lambda spec: spec.security_group_selector_terms),
    ("CapacityReservationsReady", "capacity reservations", lambda spec: spec.capacity_reservation_selector_terms),
    ("InstanceProfileReady", "instance profile", lambda spec: (spec.role, spec.instance_profile)),
    ("PlacementGroupReady", "placement group", lambda spec: spec.placement_group_selector),
)


class SnapshotCloud(SandboxCloud):
    """The sandbox's EC2 with the data of a snapshot."""

    def __init__(self, ec2: Ec2, clock: VirtualClock, snapshot: Snapshot, faults: Faults) -> None:
        super().__init__(ec2, clock, faults, snapshot.settings.cluster_name)
        self._facts, self._classes = dict(snapshot.class_facts), dict(snapshot.node_classes)
        self._cluster = snapshot.cluster
        #: Assumptions about unknown values, as text.
        self.guesses: dict[str, None] = {}
        #: The EC2NodeClasses whose images are not known.
        self.unknown_images: dict[str, None] = {}

    def cluster(self) -> ClusterFacts:
        if self._cluster is None:
            raise Unavailable("the snapshot has no data about the cluster (version, endpoint)")
        return self._request("cluster", "", lambda: self._cluster or ClusterFacts("", ""))

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        return self._request("resolve", node_class.name, lambda: self._known(node_class))

    def _known(self, node_class: EC2NodeClass) -> ClassFacts:
        before, facts = self._nearest(node_class)
        images = self._images(node_class, before, facts)
        changed = [row for row in _SELECTED if before is None or row[2](before.spec) != row[2](node_class.spec)]
        for _, what, _ in changed:
            self._guess(f"EC2NodeClass {node_class.name}: {what}: assumed unchanged; AWS was not queried")
        if images is not facts.images:
            changed = [*changed, ("AMIsReady", "images", lambda spec: spec.ami_selector_terms)]
        problems = {type_: told for type_, told in facts.problems.items() if type_ not in {row[0] for row in changed}}
        held = tuple(replace(one, left=self._ec2.left(one.id)) for one in facts.reservations)
        return replace(
            facts,
            generation=node_class.metadata.generation,
            images=images,
            problems=problems,
            reservations=held,
            full_subnets=frozenset(),
        )

    def _nearest(self, node_class: EC2NodeClass) -> tuple[EC2NodeClass | None, ClassFacts]:
        """Return the EC2NodeClass of this name in the snapshot; else the data of the one with most equal selectors."""
        if node_class.name in self._facts and node_class.name in self._classes:
            return self._classes[node_class.name], self._facts[node_class.name]
        known = [name for name in self._classes if name in self._facts]
        if not known:
            raise Unavailable("the snapshot has no EC2NodeClass, so subnets and images are not known")
        best = max(sorted(known), key=lambda name: _shared(self._classes[name].spec, node_class.spec))
        self._guess(f"EC2NodeClass {node_class.name} is new: assumed to select the same as {best}; AWS was not queried")
        return self._classes[best], self._facts[best]

    def _images(self, node_class: EC2NodeClass, before: EC2NodeClass | None, facts: ClassFacts) -> tuple[Image, ...]:
        terms = (node_class.spec.ami_selector_terms, node_class.family)
        if before is None or terms == (before.spec.ami_selector_terms, before.family):
            return facts.images
        self.unknown_images[node_class.name] = None
        words = "images: assumed to differ from the current ones; AWS was not queried"
        self._guess(f"EC2NodeClass {node_class.name}: {words}")
        known = facts.images or (Image("ami-amd64"), Image("ami-arm64", architecture="arm64"))
        return tuple(replace(one, id=f"ami-{digest(one.id, str(terms))[:17]}") for one in known)

    def _guess(self, words: str) -> None:
        self.guesses[words] = None


def _shared(one: EC2NodeClassSpec, other: EC2NodeClassSpec) -> int:
    images = one.ami_selector_terms == other.ami_selector_terms
    return int(images) + sum(bool(read(one) == read(other)) for _, _, read in _SELECTED)
