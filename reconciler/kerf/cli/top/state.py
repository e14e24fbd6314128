"""The state of `kerf top`: the shown view and the effect of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.cli.answering import explained
from kerf.cli.top.pods import of_node
from kerf.views.board import Board
from kerf.views.cluster import NodeRow
from kerf.views.costs import percent
from kerf.views.order import ORDERS, Filter, listed
from kerf.views.upcoming import Disruption

NODES, PENDING, NEXT, COST = "nodes", "pending", "next", "cost"
#: The views by their keys.
VIEWS: Final = {"1": NODES, "2": PENDING, "3": NEXT, "4": COST}
_ORDERS: Final = tuple(ORDERS)
_MOVES: Final = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES: Final = {"page up": -1, " ": 1, "page down": 1}
#: More rows than any list has.
_ENDS: Final = {"home": -(10**9), "g": -(10**9), "end": 10**9, "G": 10**9}


@dataclass(frozen=True, slots=True)
class CostLine:
    """A share of the price of all nodes: of a NodePool, a namespace or a value of a label, as `by` says."""

    by: str
    name: str
    pods: int
    price: int
    percent: int


def cost_lines(board: Board) -> list[CostLine]:
    """Costs by NodePool, by namespace and by a label of pods, each the most expensive first."""
    costs = board.costs
    pools = sorted(board.pools, key=lambda one: (-one.price, one.name))
    found = [CostLine("NodePool", one.name, one.pods, one.price, percent(one.price, costs.total)) for one in pools]
    for by, rows in (("namespace", costs.by_namespace), (costs.label.rpartition("/")[2], costs.by_label)):
        found += [CostLine(by, row.name, row.pods, row.price, row.percent) for row in rows]
    return found


@dataclass(slots=True)
class Detail:
    """A text over the whole screen; `first` is the number of its first shown line, `lines` how many it has there."""

    text: str
    first: int = 0
    lines: int = 0

    def move(self, lines: int, height: int) -> None:
        """Scroll; the last line stays at the bottom."""
        self.first = max(min(self.first + lines, self.lines - height), 0)


@dataclass(slots=True)
class State:
    """`rows` are those of the view, `selected` is the number of one of them; `detail` is the text that covers them.

    `height` is the number of rows that fit the terminal.
    """

    board: Board
    view: str = NODES
    order: str = _ORDERS[0]
    text: str = ""
    typing: bool = False
    selected: int = 0
    detail: Detail | None = None
    height: int = 20
    rows: Sequence[Any] = field(default_factory=tuple)

    def show(self, board: Board) -> None:
        """Take the views of another reading; the selected row stays selected while the cluster has it."""
        name = _name(self.rows[self.selected]) if board is not self.board and self.rows else None
        self.board = board
        if self.view == NODES:
            self.rows = listed(board.nodes, Filter(text=self.text), self.order)
        else:
            self.rows = {PENDING: board.pending, NEXT: board.disruptions, COST: cost_lines(board)}[self.view]
        if name is not None:
            names = (number for number, row in enumerate(self.rows) if _name(row) == name)
            self.selected = next(names, self.selected)
        self.selected = min(self.selected, max(len(self.rows) - 1, 0))

    def press(self, key: str) -> bool:
        """Apply a key; False to quit."""
        if not key:
            return True
        if self.typing:
            self._type(key)
        elif key == "q" and self.detail is None:
            return False
        elif key in ("escape", "q"):
            self.detail, self.text = None, self.text if self.detail else ""
        elif key in VIEWS:
            self.view, self.selected, self.detail = VIEWS[key], 0, None
        else:
            self._act(key)
        self.show(self.board)
        return True

    def _act(self, key: str) -> None:
        moved = _MOVES.get(key, 0) + _PAGES.get(key, 0) * self.height + _ENDS.get(key, 0)
        if key == "/":
            self.view, self.typing, self.text, self.detail = NODES, True, "", None
        elif self.detail is not None:
            self.detail.move(moved, self.height)
        elif key == "s":
            self.order = _ORDERS[(_ORDERS.index(self.order) + 1) % len(_ORDERS)]
        elif key in ("enter", "p"):
            text = self._why() if key == "enter" else self._pods()
            self.detail = Detail(text) if text else None
        else:
            self.selected = min(max(self.selected + moved, 0), max(len(self.rows) - 1, 0))

    def _type(self, key: str) -> None:
        if key in ("enter", "escape"):
            self.typing, self.text = False, self.text if key == "enter" else ""
        elif key == "backspace":
            self.text = self.text[:-1]
        elif len(key) == 1:
            self.text += key
        self.selected = 0

    def _why(self) -> str:
        if node := self._node():
            return explained.of_node(self.board.snapshot, node)
        if self.view == PENDING and self.rows:
            return explained.of_pod(self.board.snapshot, self.rows[self.selected].answer.pod)
        return ""

    def _pods(self) -> str:
        node = self._node()
        return of_node(self.board.snapshot, node) if node else ""

    def _node(self) -> str:
        """The node of the selected row; empty for a row of none."""
        row = self.rows[self.selected] if self.rows else None
        if isinstance(row, NodeRow):
            return row.name
        return row.node if isinstance(row, Disruption) else ""


def _name(row: Any) -> str:
    """The identity of a row in its view."""
    if isinstance(row, Disruption):
        return f"{row.node}/{row.reason}"
    if isinstance(row, CostLine):
        return f"{row.by}/{row.name}"
    return str(row.name) if hasattr(row, "name") else str(row.answer.pod)
