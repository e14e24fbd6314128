"""Which instance types that can be bought hold a NodeClaim, for many NodeClaims that differ in no more than the types
that they allow and the resources that they request.

What is for sale is looked at once. By resource the types are sorted by what they have, so that for each NodeClaim a few
searches find those that hold it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache

from msgspec.structs import replace as with_fields

from kerf.ec2.instance_types.capacity import EFA_RESOURCE
from kerf.ec2.launch import candidates
from kerf.ec2.launch.fleet import names_types, wanted
from kerf.ec2.launch.templates import ENCLAVES
from kerf.model.aws.instance_type import Catalogue, OfferingKey
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import parse_entries

#: Resources for which a launch template is another one.
_SHAPING = (EFA_RESOURCE, *ENCLAVES)


class Holding:
    """`claim` is any of the NodeClaims of one `fleet.similar_launch`; `types` are those of its NodePool and class."""

    def __init__(
        self, claim: NodeClaim, types: Catalogue, out_of_stock: Mapping[OfferingKey, datetime], now: datetime
    ) -> None:
        """Raises ValueError on a malformed requirement."""
        rows = tuple(entry for entry in claim.spec.requirements if not names_types(entry))
        open_to_all = with_fields(claim, spec=with_fields(claim.spec, requirements=rows))
        sold = candidates.available(types, wanted(open_to_all), Resources(), out_of_stock, now)
        kinds = [group for one in sold for group in replace(one.type, offerings=one.offerings).groups()]
        self.reserved = any(offering.reservation is not None for kind in kinds for offering in kind.offerings)
        self._names = [kind.name for kind in kinds]
        self._rooms = [kind.allocatable for kind in kinds]
        self._having, self._allowed = cache(self._by_amount), cache(self._by_name)

    def of(self, claim: NodeClaim) -> Hashable | None:
        """Equal for NodeClaims that the same types hold, from the same launch templates; None when none holds it.

        Raises ValueError on a malformed requirement or quantity.
        """
        requests = claim.requests()
        found = self._allowed(tuple(entry for entry in claim.spec.requirements if names_types(entry)))
        for name, amount in requests.items():
            amounts, masks = self._having(name)
            found &= masks[bisect_left(amounts, amount)]
        return (found, *(requests[name] > 0 for name in _SHAPING)) if found else None

    def _by_amount(self, resource: str) -> tuple[list[int], list[int]]:
        """The amounts that types have, ascending, and for each place a mask of the types from there on."""
        order = sorted(range(len(self._rooms)), key=lambda index: self._rooms[index][resource])
        masks = [0]
        for index in reversed(order):
            masks.append(masks[-1] | 1 << index)
        return [self._rooms[index][resource] for index in order], masks[::-1]

    def _by_name(self, rows: tuple[Entry, ...]) -> int:
        """A mask of the types that the rows allow."""
        allowed = parse_entries(rows).allowed(labels.INSTANCE_TYPE)
        return sum(1 << index for index, name in enumerate(self._names) if allowed.has(name))
