"""A bag of resources as an immutable value: name to integer amount (milli-cores for `cpu`, whole units otherwise)."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping

from kerf_api import quantity


class Resources(Mapping[str, int]):
    """Immutable and hashable; a resource that is absent counts as 0.

    Arithmetic keeps keys whose result is 0 (a limit of 0 is not the same as no limit).
    """

    __slots__ = ("_amounts", "_hash")

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        self._amounts: dict[str, int] = dict(amounts)
        self._hash: int | None = None

    @classmethod
    def parse(cls, quantities: Mapping[str, str | int | float] | None) -> Resources:
        """From a manifest's map of quantities. Raises ValueError on a malformed one."""
        return cls({name: quantity.amount(name, text) for name, text in (quantities or {}).items()})

    def texts(self) -> dict[str, str]:
        """As a manifest's map of quantities, keys sorted."""
        return {name: quantity.text(name, self._amounts[name]) for name in sorted(self._amounts)}

    def __getitem__(self, name: str) -> int:
        return self._amounts.get(name, 0)

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def items(self) -> ItemsView[str, int]:
        """As of any mapping; what sums up many bags should not be slowed down by the general way."""
        return self._amounts.items()

    def __add__(self, other: Mapping[str, int]) -> Resources:
        total = dict(self._amounts)
        for name, value in other.items():
            total[name] = total.get(name, 0) + value
        return Resources(total)

    def __sub__(self, other: Mapping[str, int]) -> Resources:
        rest = dict(self._amounts)
        for name, value in other.items():
            rest[name] = rest.get(name, 0) - value
        return Resources(rest)

    def maximum(self, other: Mapping[str, int]) -> Resources:
        """Per resource the larger of both."""
        return Resources({name: max(self[name], other.get(name, 0)) for name in {*self, *other}})

    def fits(self, room: Mapping[str, int]) -> bool:
        """Whether this request fits in `room`; a resource absent there is 0, and a negative room fits nothing."""
        return all(value <= room.get(name, 0) for name, value in self._amounts.items()) and all(
            value >= 0 for value in room.values()
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._amounts.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Resources], tuple[dict[str, int]]]:
        return Resources, (self._amounts,)

    def __repr__(self) -> str:
        return f"Resources({self.texts()})"


EMPTY = Resources()


def total(bags: Iterable[Mapping[str, int]]) -> Resources:
    """The sum of many bags."""
    amounts: dict[str, int] = {}
    for bag in bags:
        for name, value in bag.items():
            amounts[name] = amounts.get(name, 0) + value
    return Resources(amounts)
