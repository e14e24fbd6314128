"""What the referee reads of a scheduler's answer, and what it says of it: each violation has the name of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from kerf_api.requirements import Requirements
from kerf_api.resources import Resources


class Given(Protocol):
    """What the referee reads of a device that a claim gets; on a new node of which type the node is then."""

    @property
    def claim(self) -> str: ...
    @property
    def request(self) -> str: ...
    @property
    def device(self) -> tuple[str, str, str]: ...
    @property
    def amounts(self) -> Mapping[str, Fraction]: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def planned(self) -> bool: ...


class PlannedNode(Protocol):
    """What the referee reads of a planned node."""

    @property
    def pool(self) -> str: ...
    @property
    def requirements(self) -> Requirements: ...
    @property
    def instance_types(self) -> tuple[str, ...]: ...
    @property
    def requests(self) -> Resources: ...
    @property
    def pods(self) -> tuple[str, ...]: ...
    @property
    def price(self) -> int: ...
    @property
    def devices(self) -> Sequence[Given]: ...


class Answer(Protocol):
    """What the referee reads of a solution."""

    @property
    def placed(self) -> Mapping[str, str]: ...
    @property
    def new_nodes(self) -> Sequence[PlannedNode]: ...
    @property
    def unplaced(self) -> Mapping[str, Any]: ...
    @property
    def devices(self) -> Sequence[Given]: ...


class Violation(NamedTuple):
    """A broken rule: its name, one of RULES, and what is wrong in words."""

    rule: str
    words: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}"


#: The rules by name.
RULES: Mapping[str, str] = {
    "answers": "every pod that was asked for has one answer, and no other pod has any",
    "devices": "claims get what they ask for, and no device is given beyond what it allows; while claims are ignored, "
    "no pod that claims devices has a place",
    "target": "pods go to nodes that stay and take part",
    "taint": "a pod tolerates the taints of its node; a planned node's startup taints do not count",
    "node-selector": "the labels of the node satisfy the pod's nodeSelector",
    "node-affinity": "the node satisfies a term of the pod's required node affinity",
    "host-port": "no two pods of a node want one port of the host",
    "volume": "the node can have the pod's volumes",
    "attach-limit": "a node attaches as many volumes as its drivers can, and no more",
    "room": "what runs on a node fits into it",
    "pool": "nodes are planned from NodePools that take part",
    "requirements": "a planned node stays within what its NodePool allows",
    "types": "a planned node lists types of its NodePool, at least one and no more than a claim may",
    "offering": "each listed type can be had",
    "capacity": "each listed type has room for the pods and the daemon sets",
    "price": "types are listed cheapest first, and the node's price is that of the first",
    "requests": "a planned node requests at least what its pods do",
    "min-values": "the listed types keep the NodePool's minValues (Strict)",
    "limits": "a NodePool stays within its limits",
    "reservation": "no more nodes are planned on a capacity reservation than it has machines for",
    "spread": "required topology spread",
    "affinity": "required pod affinity",
    "anti-affinity": "required pod anti-affinity, from both sides",
}
