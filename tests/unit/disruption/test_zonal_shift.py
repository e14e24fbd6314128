"""In a zone that traffic is shifted away from no node is given up that need not be: its instance would not end."""

from __future__ import annotations

import pytest

from kerf.disruption.candidates.candidates import Blocker
from tests.unit.disruption.worlds import HOUR, NOW, ZONE, claim, code, judged, node, pool


@pytest.mark.parametrize("eventual", [False, True])
def test_a_node_in_a_zone_shifted_away_is_no_candidate_until_it_is_over(eventual: bool) -> None:
    one = claim("a")
    world = (pool(), one, node(one))
    found = judged(*world, eventual=eventual, shifted={ZONE: NOW + HOUR})
    assert isinstance(found, Blocker)
    assert (found.code, found.until, found.quiet) == ("ZonalShift", NOW + HOUR, False)
    assert code(*world, eventual=eventual, shifted={ZONE: NOW}) == "", "it is over"
    assert code(*world, eventual=eventual, shifted={"us-west-2b": NOW + HOUR}) == ""
