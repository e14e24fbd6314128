"""A command that needs all lists names every missing permission at once; invalid credentials are no permission."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.ports import Forbidden, Listing
from kerf.runtime.observe import looking
from kerf.sandbox.clock import VirtualClock


class Lists:
    def __init__(self, *denied: Kind, text: str = "403 forbidden") -> None:
        self._denied, self._text = denied, text

    def list(self, kind: Kind) -> Listing:
        if kind in self._denied:
            raise Forbidden(f"GET {kind.path()}: {self._text}")
        return Listing((), "1")


def refusal(kube: Any) -> str:
    with pytest.raises(Forbidden) as raised:
        looking.capture(kube, None, Settings("demo"), VirtualClock())  # type: ignore[arg-type]
    return str(raised.value)


def test_all_missing_permissions_are_named() -> None:
    text = refusal(Lists(kinds.NODE, kinds.NODE_POOL, kinds.PDB))
    assert text == "needs permission to list nodepools.karpenter.sh, nodes, poddisruptionbudgets.policy"


def test_credentials_that_are_not_valid_stay_the_error() -> None:
    assert refusal(Lists(kinds.NODE, text="401 Unauthorized")) == "GET /api/v1/nodes: 401 Unauthorized"
