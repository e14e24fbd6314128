"""A cheaper set of nodes, by removing some and filling them again, as often as the effort allows.

Which nodes are removed and which sizes are tried is drawn from a fixed seed: the same pods get the same answer. What
keeps pods apart or together on hosts holds on every node by itself, so nodes can be exchanged a few at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerf.scheduling.packing.draft import PoolDemand, goes_first
from kerf.scheduling.packing.drafts import Draft
from kerf.scheduling.packing.fill import Filling

_SEED = 20260101
#: So many nodes are removed at once, at most.
_MOST = 8
#: So often lanes are filled in another order than the usual one.
_SHUFFLED = 0.5
#: After so many trials without any gain the search ends, or after so many for each pod.
_PATIENCE, _PATIENCE_A_POD = 120, 4


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    draft: Draft
    price: float
    loss: float


def improved(filling: Filling, drafts: list[Draft], effort: int) -> list[Draft]:
    """These nodes or cheaper ones for the same pods; at most so many seats are looked for."""
    if not effort:
        return drafts
    priced = [_priced(filling, draft) for draft in drafts]
    free = [node.price < np.inf and not _together(node.draft) for node in priced]
    nodes = [node for node, able in zip(priced, free, strict=True) if able]
    fixed = [node.draft for node, able in zip(priced, free, strict=True) if not able]
    noise = np.random.Generator(np.random.PCG64(_SEED))
    end, in_vain = filling.seats + effort, 0
    patience = min(_PATIENCE, _PATIENCE_A_POD * sum(sum(node.draft.content.values()) for node in nodes))
    while nodes and filling.seats < end and in_vain < patience and not filling.template.work.worn:
        chosen = _chosen(nodes, noise)
        amounts = _amounts(filling, [nodes[i] for i in chosen], noise)
        in_vain += 1
        trial = [_priced(filling, draft) for draft in filling.fill(amounts, noise=noise)]
        if sum(n.price for n in trial) < sum(nodes[i].price for i in chosen) - 1 and _whole(trial, amounts):
            nodes, in_vain = [node for i, node in enumerate(nodes) if i not in chosen] + trial, 0
    return fixed + [node.draft for node in nodes]


def _together(draft: Draft) -> bool:
    return any(goes_first(stock) for stock in draft.content)


def _priced(filling: Filling, draft: Draft) -> _Priced:
    price = filling.sizes.price(draft.requirements, draft.used)
    worth = sum(stock.worth * number for stock, number in draft.content.items())
    return _Priced(draft, price, max(price * 1.3 - worth, price * 0.01))


def _chosen(nodes: Sequence[_Priced], noise: np.random.Generator) -> set[int]:
    """Some nodes, rather those whose pods get little for their price."""
    number = min(int(noise.integers(1, _MOST + 1)), len(nodes))
    loss = np.array([node.loss for node in nodes])
    return {int(i) for i in noise.choice(len(nodes), number, replace=False, p=loss / loss.sum())}


def _amounts(filling: Filling, nodes: Sequence[_Priced], noise: np.random.Generator) -> dict[PoolDemand, int]:
    """The pods of some nodes, in the order of the stocks, or every other time with their lanes in any order."""
    found: dict[PoolDemand, int] = {}
    for node in nodes:
        for stock, number in node.draft.content.items():
            found[stock] = found.get(stock, 0) + number
    order = [stock for stock in filling.stocks if stock in found]
    lanes = list(dict.fromkeys(stock.lane for stock in order))
    if len(lanes) > 1 and noise.random() < _SHUFFLED:
        ranks = dict(zip(lanes, noise.permutation(len(lanes)).tolist(), strict=True))
        order.sort(key=lambda stock: ranks[stock.lane])
    return {stock: found[stock] for stock in order}


def _whole(trial: Sequence[_Priced], amounts: dict[PoolDemand, int]) -> bool:
    """Whether every pod has a place."""
    return sum(sum(node.draft.content.values()) for node in trial) == sum(amounts.values())
