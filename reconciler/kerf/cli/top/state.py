"""The state of `kerf top`: the shown view and the effect of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.cli.answering import explained
from kerf.views.board import Board
from kerf.views.cluster import NodeRow
from kerf.views.order import ORDERS, Filter, listed
from kerf.views.upcoming import Disruption

NODES, PENDING, NEXT, COST = "nodes", "pending", "next", "cost"
#: The views by their keys.
VIEWS: Final = {"1": NODES, "2": PENDING, "3": NEXT, "4": COST}
_ORDERS: Final = tuple(ORDERS)
_MOVES: Final = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES: Final = {"page up": -1, "page down": 1}


@dataclass(slots=True)
class State:
    """`rows` are those of the view, `selected` is the number of one of them; `detail` are the lines of `kerf why`.

    `height` is the number of rows that fit the terminal.
    """

    board: Board
    view: str = NODES
    order: str = _ORDERS[0]
    text: str = ""
    typing: bool = False
    selected: int = 0
    detail: tuple[str, ...] = ()
    height: int = 20
    rows: Sequence[Any] = field(default_factory=tuple)

    def show(self, board: Board) -> None:
        """Take the views of another reading."""
        self.board = board
        if self.view == NODES:
            self.rows = listed(board.nodes, Filter(text=self.text), self.order)
        else:
            self.rows = {PENDING: board.pending, NEXT: board.disruptions, COST: board.costs.by_namespace}[self.view]
        self.selected = min(self.selected, max(len(self.rows) - 1, 0))

    def press(self, key: str) -> bool:
        """Apply a key; False to quit."""
        if self.typing:
            self._type(key)
        elif key == "q" and not self.detail:
            return False
        elif key in ("escape", "q"):
            self.detail, self.text = (), self.text if self.detail else ""
        elif key in VIEWS:
            self.view, self.selected, self.detail = VIEWS[key], 0, ()
        else:
            self._act(key)
        self.show(self.board)
        return True

    def _act(self, key: str) -> None:
        if key == "s":
            self.order = _ORDERS[(_ORDERS.index(self.order) + 1) % len(_ORDERS)]
        elif key == "/":
            self.view, self.typing, self.text, self.detail = NODES, True, "", ()
        elif key == "enter":
            self.detail = tuple(self._why().splitlines())
        moved = _MOVES.get(key, 0) + _PAGES.get(key, 0) * self.height
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
        row = self.rows[self.selected] if self.rows else None
        if isinstance(row, NodeRow):
            return explained.of_node(self.board.snapshot, row.name)
        if isinstance(row, Disruption):
            return explained.of_node(self.board.snapshot, row.node)
        return explained.of_pod(self.board.snapshot, row.answer.pod) if self.view == PENDING and row else ""
