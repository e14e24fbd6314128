"""The state of `kerf top` as lines of a terminal; only rows that fit are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerf.cli.answering.node_page import at
from kerf.cli.answering.plan_page import price
from kerf.cli.reports.escaping import visible
from kerf.cli.top.state import COST, NEXT, NODES, PENDING, VIEWS, State
from kerf.model.instants import length

#: Lines that are not rows: totals, views, header, keys.
_AROUND: Final = 5
_KEYS: Final = "q quit  1-4 views  s sort  / filter  Enter why  Esc back"
_HEADS: Final[Mapping[str, tuple[str, ...]]] = {
    NODES: ("NODE", "NODEPOOL", "TYPE", "ZONE", "STATE", "AGE", "PRICE", "PODS", "CPU", "MEM", "WHY IT STAYS"),
    PENDING: ("POD", "PODS", "ANSWER", "REASON"),
    NEXT: ("NODE", "NODEPOOL", "STATE", "REASON", "WHEN", "BUDGET AND BLOCKERS"),
    COST: ("NAMESPACE", "PODS", "PRICE", "SHARE"),
}
_RIGHT: Final = ("AGE", "PRICE", "PODS", "CPU", "MEM", "SHARE")


def draw(state: State, height: int, name: str, problem: str) -> RenderableType:
    """The screen for a terminal of so many lines; `name` is the origin, `problem` the error of the latest reading."""
    state.height = max(height - _AROUND, 1)
    first = max(0, min(state.selected - state.height // 2, len(state.rows) - state.height))
    body = _detail(state) if state.detail else _table(state, first)
    return Group(_totals(state, name), _views(state), body, _foot(state, problem))


def _totals(state: State, name: str) -> Text:
    board = state.board
    total = f"{len(board.nodes):,} nodes  {board.pods:,} pods  {board.waiting:,} pending"
    unused = f"{price(board.price)}, {price(board.costs.unused)} unused"
    return _line(f"{total}  {unused}  {name}  {board.now:%H:%M:%S} UTC", "bold")


def _views(state: State) -> Text:
    names = "  ".join(f"[{key} {name}]" if name == state.view else f" {key} {name} " for key, name in VIEWS.items())
    order = f"  sorted by {state.order}" if state.view == NODES else ""
    return _line(f"{names}{order}  {len(state.rows):,} rows", "dim")


def _foot(state: State, problem: str) -> Text:
    if problem:
        return _line(f"not read again: {problem}", "red")
    if state.typing or state.text:
        return _line(f"filter: {state.text}{'_' if state.typing else ''}", "yellow")
    return _line(_KEYS, "dim")


def _line(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style, no_wrap=True, overflow="ellipsis")


def _detail(state: State) -> RenderableType:
    return Group(*(Text(visible(line)) for line in state.detail[: state.height]))


def _table(state: State, first: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for head in _HEADS[state.view]:
        last = head == _HEADS[state.view][-1]
        table.add_column(head, justify="right" if head in _RIGHT else "left", no_wrap=True, ratio=1 if last else None)
    for number, row in enumerate(state.rows[first : first + state.height], first):
        cells = (_line(cell) for cell in _CELLS[state.view](state, row))
        table.add_row(*cells, style="reverse" if number == state.selected else "")
    return table


def _node(_: State, row: Any) -> tuple[str, ...]:
    machine = row.machine
    cost, age = "" if machine.price is None else price(machine.price), "" if row.age is None else length(row.age)
    uses = (f"{row.cpu.percent} %", f"{row.memory.percent} %", row.stays)
    return row.name, machine.nodepool, machine.instance_type, machine.zone, row.state, age, cost, str(row.pods), *uses


def _pending(_: State, row: Any) -> tuple[str, ...]:
    return row.answer.pod, str(len(row.pods)), row.answer.code, row.answer.text


def _next(state: State, row: Any) -> tuple[str, ...]:
    when = "" if row.at is None else at(row.at, state.board.now)
    blockers = "; ".join(filter(None, (row.budget, *row.blockers)))
    return row.node, row.nodepool, row.state, row.reason, when, blockers


def _cost(_: State, row: Any) -> tuple[str, ...]:
    return row.name, str(row.pods), price(row.price), f"{row.percent} %"


_CELLS: Final[Mapping[str, Callable[[State, Any], tuple[str, ...]]]] = {
    NODES: _node,
    PENDING: _pending,
    NEXT: _next,
    COST: _cost,
}
