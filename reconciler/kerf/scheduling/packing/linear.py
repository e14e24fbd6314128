"""Linear programs through HiGHS. Packing has two: what resources are worth, and which pods are placed on which size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from highspy import Highs, HighsLp, HighsModelStatus, MatrixFormat, kHighsInf

from kerf.scheduling.offerings.instance_types import Floats, Indices

_Highs: Any = Highs  # it has no types


class _Solver(_Highs):  # type: ignore[misc]  # its base has no types
    """A solver without output. Enabling callbacks, which the constructor does, prints a banner from HiGHS 1.16 on."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.silent()
        super().enableCallbacks()


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The numbers in a matrix that are not 0, with the row and the column of each."""

    rows: Indices
    columns: Indices
    values: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Entries:
        rows, columns = np.nonzero(matrix)
        return cls(rows, columns, matrix[rows, columns])

    @classmethod
    def together(cls, *parts: Entries) -> Entries:
        """All of them, row by row."""
        rows, columns, values = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "columns", "values")
        )
        order = np.flatnonzero(values)[np.argsort(rows[values != 0], kind="stable")]
        return cls(rows[order], columns[order], values[order])


def duals(rooms: Floats, prices: Floats) -> Floats:
    """What all the demand is worth by each resource, so that no type is worth more than its price and the sum is most.

    `rooms` [types, resources] are shares of the demand, `prices` [types].
    """
    most: float = prices.max()
    return most_under(np.ones(rooms.shape[1]), Entries.of(rooms), prices / most) * most


def most_of(needs: Floats, numbers: Floats, rooms: Floats) -> Floats:
    """How many pods of each kind go into each room, so that most of their needs are met: [rooms, kinds], in fractions.

    `needs` [kinds, resources] and `rooms` [rooms, resources] are shares of all demand, `numbers` [kinds] pods.
    """
    (kinds, _), places = needs.shape, len(rooms)
    no_more_pods = np.hstack([np.eye(kinds)] * places)
    within_rooms = np.kron(np.eye(places), needs.T)
    upper = np.concatenate([numbers, rooms.ravel()])
    gain = np.tile(needs.sum(axis=1), places)
    found = most_under(gain, Entries.of(np.vstack([no_more_pods, within_rooms])), upper)
    return found.reshape(places, kinds)


def most_under(gain: Floats, matrix: Entries, upper: Floats) -> Floats:
    """The x ≥ 0 with matrix·x ≤ upper and the largest gain·x; zeros when the solver finds none.

    The entries are in the order of their rows.
    """
    lp: Any = HighsLp()
    lp.num_row_, lp.num_col_ = len(upper), len(gain)
    lp.col_cost_ = -gain
    lp.col_lower_, lp.col_upper_ = np.zeros(len(gain)), np.full(len(gain), kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.full(len(upper), -kHighsInf), upper
    lp.a_matrix_.format_ = MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(matrix.rows, np.arange(len(upper) + 1))
    lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.columns, matrix.values
    solver: Any = _Solver()
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != HighsModelStatus.kOptimal:
        return np.zeros(len(gain))
    return np.array(solver.getSolution().col_value, dtype=np.float64)
