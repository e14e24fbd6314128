"""The one rule of topology constraints, against the formulas of the kube-scheduler's plugins written out."""

from __future__ import annotations

from itertools import product

import pytest

from kerf.model.kubernetes.selectors import selector_of
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.topology.admits import MANY, bounds


def _bond(kind: str, *, self_match: bool, max_skew: int = 1) -> TopologyConstraint:
    return TopologyConstraint(
        TopologyGroup(kind, "example.com/rack", None, selector_of(None, {}, ())), self_match, max_skew
    )


def _passes(kind: str, here: int, least: int, skew: int, self_match: bool, founded: bool) -> bool:
    """PodTopologySpread: matching + self - least <= skew. InterPodAffinity: some, or first of its kind; none."""
    if kind == SPREAD:
        return here + self_match - least <= skew
    if kind == AFFINITY:
        return here > 0 or (self_match and not founded)
    return here == 0


@pytest.mark.parametrize("kind", [SPREAD, AFFINITY, ANTI])
@pytest.mark.parametrize("self_match", [True, False])
def test_as_many_as_pass_one_after_the_other(kind: str, self_match: bool) -> None:
    for here, least, skew, founded in product(range(5), range(3), (1, 2, 3), (True, False)):
        limits = bounds(_bond(kind, self_match=self_match, max_skew=skew), least, founded=founded)
        count, more = here, 0
        while more < 20 and _passes(kind, count, least, skew, self_match, founded or more > 0 or count > 0):
            more, count = more + 1, count + self_match
        assert min(limits.more(here), 20) == more
        assert limits.admits(here) == (more > 0)


def test_a_constraint_that_does_not_count_its_own_pods_admits_any_number() -> None:
    assert bounds(_bond(SPREAD, self_match=False)).more(1) == MANY
    assert bounds(_bond(ANTI, self_match=False)).more(0) == MANY
