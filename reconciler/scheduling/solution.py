"""What the scheduler answers: where each pod would go, which nodes to add for that, and why the others go nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from api.requirements import Requirements
from api.resources import Resources


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """Why a pod has no place: a stable code, words for a person, and the answer of each NodePool by name."""

    code: str
    text: str
    pools: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "; ".join([self.text, *(f"nodepool {name}: {why}" for name, why in sorted(self.pools.items()))])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node to add.

    `instance_types` all hold the pods, cheapest first; `requests` are the pods' and the least daemon overhead of these
    types; `price` is that of the cheapest offering, in millionths of a dollar per hour.
    """

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    requests: Resources
    pods: tuple[str, ...]
    price: int
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]
    min_values_relaxed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """`placed` maps pod keys to keys of `snapshot.state_nodes`; each pod is in exactly one of the three.

    `pool_problems` names the NodePools that could not be used at all, with a code and the reason. `order` are the keys
    of all pods that have a place, in the order in which they were given it. `zones` counts the pods that were
    pending by where they could go (see `zones.py`).
    """

    placed: Mapping[str, str] = field(default_factory=dict)
    new_nodes: tuple[NewNode, ...] = ()
    unplaced: Mapping[str, PodRefusal] = field(default_factory=dict)
    pool_problems: Mapping[str, PodRefusal] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    zones: Mapping[str, int] = field(default_factory=dict)

    @property
    def price(self) -> int:
        """What the new nodes cost together at their cheapest, in millionths of a dollar per hour."""
        return sum(node.price for node in self.new_nodes)
