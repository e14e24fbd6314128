"""What the scheduler answers: where each pod would be placed, which nodes to add for that, and why the others have no
place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from kerf.ec2.errors import LACKS_OF_ACCOUNT
from kerf.ec2.quotas import UsedUp
from kerf.model.plan import Purchase, Reason
from kerf.scheduling.answers.edits import Edit, PoolEdit
from kerf.scheduling.answers.explanation import WHOLE, Account, cut
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources
from kerf_api.texts import counted

#: Texts about used-up quotas are cut at this many characters, others at a quarter of a refusal.
_QUOTAS: Final = 440


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """Why a pod has no place: a stable code, words for a person, and the answer of each NodePool by name.

    `pools` are in the order in which they are reported, the nearest first. Equal pods share one `account`, which only
    the first classes of a solve have, and only where it is asked for. `target` is the key of the node on which the pod
    waits for a place; empty if it waits for none. `quotas` are the used-up quotas that leave it none, `around` edits
    of NodePools that give it one beside them.
    """

    code: str
    text: str
    pools: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    target: str = ""
    quotas: tuple[UsedUp, ...] = ()
    around: tuple[PoolEdit, ...] = ()

    @property
    def fixes(self) -> tuple[Edit, ...]:
        """The edits that were tried and help; those of NodePools `around` a quota come instead of another one."""
        tried = () if self.account is None else self.account.fixes
        return (*self.around, *(edit for edit in tried if not (self.around and isinstance(edit, PoolEdit))))

    def __str__(self) -> str:
        """For events and logs: never longer than an event may be, and what would help is never cut off."""
        fixes = " or ".join(map(str, self.fixes))
        raised = "".join(f"; {text}" for text in dict.fromkeys(LACKS_OF_ACCOUNT[one.code] for one in self.quotas))
        end = cut(f"{raised}; it would fit with one edit: {fixes}" if fixes else raised, WHOLE // 2)
        text, told = cut(self.text, _QUOTAS if self.quotas else WHOLE // 4), 0
        rows = [(name, why) for name, why in self.pools.items() if f"NodePool {name} {why}" not in text]
        for name, why in rows:  # of which the text says nothing
            more = f"; NodePool {name}: {why}"
            rest = f"; and {counted(len(rows) - told, 'more NodePool')}"
            if len(text) + len(more) + len(rest) + len(end) > WHOLE:
                return text + rest + end
            text, told = text + more, told + 1
        return text + end


@dataclass(frozen=True, slots=True)
class Grant:
    """A device that a claim (`namespace/name`) would get for a request: its driver, pool and name.

    `amounts` is what it takes of a device that several share. `instance_type` is the type that the device would be had
    with on a node that is not initialized; elsewhere it is empty. One that is `planned` is the node's own, and not
    published yet.
    """

    claim: str
    request: str
    device: tuple[str, str, str]
    amounts: Mapping[str, Fraction]
    instance_type: str = ""
    planned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node to add.

    `instance_types` all hold the pods, cheapest first; `requests` are the pods' and the least daemon overhead of these
    types; `price` is that of the cheapest offering, in millionths of a dollar per hour. `devices` is what claims get
    there. `probes` are the shapes of those of its pods that an earlier node did not help, `alternative_for` of those
    that were not bound where they were expected. `value` is what nodes for its pods cost at least when they need not be
    whole; None where it was not asked for, or when others that are to come may have a say in the node.
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
    devices: tuple[Grant, ...] = ()
    probes: tuple[str, ...] = ()
    alternative_for: tuple[str, ...] = ()
    value: int | None = None

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers that have to publish devices of the node before its pods can run, sorted."""
        return tuple(sorted({grant.device[0] for grant in self.devices if grant.planned}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """`placed` maps pod keys to keys of `snapshot.state_nodes`; each pod is in exactly one of the three.

    `pool_problems` names the NodePools that could not be used at all, with a code and the reason. `order` are the keys
    of all pods that have a place, in the order in which they were given it. `zones` counts the pods that were
    pending by where they could be placed (see `placing/pending_zones.py`). `bound` is what nodes for the pods of
    `new_nodes` cost at least, in millionths of a dollar per hour (see `improving/bound.py`); None when it is not known.
    `devices` is what claims get for pods that are placed on existing nodes. `unread` are nodes that could not be read
    because of a bug, by key, with the reason.
    """

    placed: Mapping[str, str] = field(default_factory=dict)
    new_nodes: tuple[NewNode, ...] = ()
    unplaced: Mapping[str, PodRefusal] = field(default_factory=dict)
    pool_problems: Mapping[str, PodRefusal] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    zones: Mapping[str, int] = field(default_factory=dict)
    bound: int | None = None
    devices: tuple[Grant, ...] = ()
    unread: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def price(self) -> int:
        """What the new nodes cost together at their cheapest, in millionths of a dollar per hour."""
        return sum(node.price for node in self.new_nodes)

    @property
    def purchase(self) -> Purchase | None:
        """The new nodes in numbers; None when there are none."""
        if not self.new_nodes:
            return None
        return Purchase(len(self.new_nodes), sum(len(node.pods) for node in self.new_nodes), self.price, self.bound)
