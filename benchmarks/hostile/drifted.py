"""Shapes of pods that run already, on nodes that have drifted: simulations have to find other places for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.clusters import RUNNING, Yard, catalogue, node_pool
from benchmarks.hostile import company, pods
from benchmarks.hostile.pods import Shape
from benchmarks.workloads import pod
from kerf.model.cluster import build
from kerf.model.settings import Settings
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.v1.hashes import NODEPOOL_HASH_VERSION

#: Pods of one node.
_EACH: Final = 100
#: Of a NodePool that was changed meanwhile.
_OTHER_HASH: Final = {labels.NODEPOOL_HASH: "1", labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION}
#: A pod that fills a node, in thousandths of a CPU.
_WHOLE: Final = 15_000


def _on_drifted_nodes(shape: Shape, number: int) -> list[Any]:
    """Nodes that have drifted, 2 at least, and so many pods of the shape, about 100 on each."""
    yard = Yard(catalogue(), Settings(cluster_name="benchmark"))
    count = max(2, -(-number // _EACH))
    fillers = pods.decoded([pod(f"filler{i}", {}, _WHOLE, 64) for i in range(count)])
    yard.buy(solve(build([node_pool()], **yard.facts()), fillers).new_nodes, "drifted")
    found: list[Any] = []
    for claim, node in yard.nodes.values():
        (one, *_) = claim.status.conditions
        drifted = replace(one, type="Drifted", reason="NodePoolDrifted")
        status = replace(claim.status, conditions=(*claim.status.conditions, drifted))
        meta = replace(claim.metadata, annotations={**claim.metadata.annotations, **_OTHER_HASH})
        found += [replace(claim, metadata=meta, status=status), node]
    names = [node.name for _, node in yard.nodes.values()]
    for i, unbound in enumerate(pods.decoded(shape(number))):
        spec = replace(unbound.spec, node_name=names[i * len(names) // number])
        found.append(replace(unbound, spec=spec, status=RUNNING))
    return found


def _drifted(shape: Shape) -> Callable[[int], list[Any]]:
    return lambda number: _on_drifted_nodes(shape, number)


_CHOSEN: Final[dict[str, Shape]] = {
    "NotIn": pods.not_in,
    "200 terms, all possible": pods.or_terms_possible,
    "50 preferred pod terms": pods.preferred_pod_terms,
    "20 anti-affinity terms": company.anti_terms,
    "apart from all": company.anti_all,
    "20 spreads, anyway": company.spreads_anyway,
    "spreads with filters": company.spreads_with_filters,
    "near the next": company.chain_backwards,
}
SHAPES: Final[dict[str, Callable[[int], list[Any]]]] = {
    f"drifted, {name}": _drifted(shape) for name, shape in _CHOSEN.items()
}
