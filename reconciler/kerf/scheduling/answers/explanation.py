"""The account of a refusal, as values: what each rule took away, pool by pool; the nearest miss; what would help.

Everything in it is bounded, whatever the number of pods, pools and nodes: so many pools, steps and lines, each text cut
at a known length. The words that Karpenter's users know stand at the beginning of every verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from kerf.scheduling.answers.edits import Edit

#: At most this many pools, steps of one pool, and rules by which nodes are left out are listed.
MOST_POOLS, MOST_STEPS, MOST_ROWS = 20, 16, 12
#: Verdicts, misses and other texts of one line are cut at this many characters; a whole refusal at this many.
LINE, WHOLE = 240, 1000

#: The rules in the order in which they are asked, as they are called in an account.
TAINTS, REQUIREMENTS, VOLUMES, OFFERINGS = "taints", "requirements", "volumes", "offerings"
RESOURCES, LIMITS, HOST_PORTS, MIN_VALUES = "resources", "limits", "host ports", "minValues"
TOPOLOGY, TOGETHER = "topology", "all together"
RULES = (
    TAINTS,
    REQUIREMENTS,
    VOLUMES,
    OFFERINGS,
    RESOURCES,
    LIMITS,
    HOST_PORTS,
    MIN_VALUES,
    TOPOLOGY,
    TOGETHER,
)


def cut(text: str, most: int = LINE) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class Step:
    """What one rule left of a pool's instance types and offerings, and how many it took; `about` is the label, the
    resource or the taint in question."""

    rule: str
    about: str
    types: int
    offerings: int
    lost_types: int
    lost_offerings: int


@dataclass(frozen=True, slots=True)
class PoolAccount:
    """Why a NodePool makes no node: the filters that its types went through, the rule at which none was left.

    `verdict` is that rule's, `nearest` what came nearest. `about` is the label, the resource or the taint in
    question; `crowded` is a pool that would do if nodes had no DaemonSet pods.
    A pool that is not asked at all has no steps; `types` and `offerings` are what it began with.
    """

    pool: str
    verdict: str
    rule: str = ""
    types: int = 0
    offerings: int = 0
    steps: tuple[Step, ...] = ()
    nearest: str = ""
    about: str = ""
    crowded: bool = False

    def __str__(self) -> str:
        return f"{self.verdict} ({self.nearest})" if self.nearest else self.verdict


@dataclass(frozen=True, slots=True)
class NodesAccount:
    """Why no node that exists is a place: how many were looked at, and how many each rule left out first."""

    looked_at: int = 0
    rows: tuple[tuple[str, int], ...] = ()
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """Of one class of equal pods: `pods` of them have no place.

    `edits` may help, likeliest first. What was tried of them, and helps, is in `fixes`: at most one of the pod and one
    of a NodePool. `tried` is how many were; None when there was no time to try.
    """

    pods: int
    pools: tuple[PoolAccount, ...] = ()
    more_pools: int = 0
    nodes: NodesAccount = NodesAccount()
    edits: tuple[Edit, ...] = ()
    fixes: tuple[Edit, ...] = ()
    tried: int | None = None
