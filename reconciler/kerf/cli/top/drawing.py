"""The state of `kerf top` as lines of a terminal; only rows and columns that fit are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from kerf.cli.answering.node_page import at
from kerf.cli.answering.plan_page import price
from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import fitted
from kerf.cli.top.state import COST, NEXT, NODES, PENDING, VIEWS, CostLine, Detail, State
from kerf.model.instants import length
from kerf_api.texts import counted

#: Lines that are not rows: totals, views, header, keys.
_AROUND: Final = 5
_KEYS: Final = "q quit  1-4 views  s sort  / filter  Enter why  p pods"
_HEADS: Final[Mapping[str, tuple[str, ...]]] = {
    NODES: ("NODE", "NODEPOOL", "TYPE", "ZONE", "STATE", "AGE", "PRICE", "PODS", "CPU", "MEM", "WHY IT STAYS"),
    PENDING: ("POD", "PODS", "ANSWER", "REASON"),
    NEXT: ("NODE", "NODEPOOL", "STATE", "REASON", "WHEN", "BUDGET AND BLOCKERS"),
    COST: ("NAME", "BY", "PODS", "PRICE", "SHARE"),
}
_RIGHT: Final = ("AGE", "PRICE", "PODS", "CPU", "MEM", "SHARE")
#: Columns that a narrow terminal leaves out, from the first one on.
_LEFT_OUT: Final = (
    *("ZONE", "AGE", "TYPE", "ANSWER", "NODEPOOL", "PODS", "BY", "MEM", "CPU", "REASON", "STATE", "WHEN", "PRICE"),
)
#: The least widths of columns whose cells may be cut.
_LEAST: Final = {"NODE": 16, "POD": 24, "NAME": 16, "NODEPOOL": 10, "TYPE": 10, "REASON": 12}
#: The width that the last column keeps if it is a text, and the space between columns.
_LAST, _SPACE = 18, 1


def draw(state: State, size: tuple[int, int], name: str, problem: str) -> RenderableType:
    """The screen of a terminal with these columns and lines; `name` is the origin, `problem` the error of reading."""
    width, height = size
    state.height = max(height - _AROUND, 1)
    body = _detail(state, state.detail, width) if state.detail else _table(state, width)
    return Group(_totals(state, name), _views(state), body, _foot(state, problem))


def _totals(state: State, name: str) -> Text:
    board = state.board
    total = f"{counted(len(board.nodes), 'node')}  {counted(board.pods, 'pod')}  {board.waiting:,} pending"
    unused = f"{price(board.price)}, {price(board.costs.unused)} unused"
    return _line(f"{total}  {unused}  {name}  {board.now:%Y-%m-%d %H:%M:%S} UTC", "bold")


def _views(state: State) -> Text:
    names = "  ".join(f"[{key} {name}]" if name == state.view else f" {key} {name} " for key, name in VIEWS.items())
    order = f"  sorted by {state.order}" if state.view == NODES else ""
    return _line(f"{names}{order}  {counted(len(state.rows), 'row')}", "dim")


def _foot(state: State, problem: str) -> Text:
    if problem:
        return _line(f"not read again: {problem}", "red")
    if state.typing or (state.text and not state.detail):
        return _line(f"filter: {state.text}{'_' if state.typing else ''}", "yellow")
    if state.detail:
        last = min(state.detail.first + state.height, state.detail.lines)
        return _line(f"lines {state.detail.first + 1} to {last} of {state.detail.lines}  Up Down  Esc back", "dim")
    return _line(_KEYS, "dim")


def _line(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style, no_wrap=True, overflow="ellipsis")


def _detail(state: State, detail: Detail, width: int) -> RenderableType:
    """As many of its lines as fit, each in the width of the terminal."""
    lines = "\n".join(fitted(visible(line), width) for line in detail.text.splitlines()).split("\n")
    detail.lines = len(lines)
    detail.move(0, state.height)
    return Group(*(_line(line) for line in lines[detail.first : detail.first + state.height]))


def _table(state: State, width: int) -> Table:
    first = max(0, min(state.selected - state.height // 2, len(state.rows) - state.height))
    heads = _HEADS[state.view]
    rows = [tuple(map(visible, _CELLS[state.view](state, row))) for row in state.rows[first : first + state.height]]
    if _total(_widths(heads, rows, width), range(len(heads))) > width:
        rows = _shortened(heads, rows)
    widths = _widths(heads, rows, width)
    kept = _kept(heads, [min(size, _LEAST.get(head, size)) for head, size in zip(heads, widths, strict=True)], width)
    widths = _cut(heads, widths, kept, width)
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True, padding=(0, _SPACE, 0, 0))
    for number in kept:
        last = number == len(heads) - 1
        size, ratio = (None, 1) if last else (widths[number], None)
        justify: JustifyMethod = "right" if heads[number] in _RIGHT else "left"
        table.add_column(heads[number], justify=justify, no_wrap=True, width=size, ratio=ratio)
    for number, cells in enumerate(rows, first):
        table.add_row(*(_line(cells[kept_one]) for kept_one in kept), style="reverse" * (number == state.selected))
    return table


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column; a text in the last one may be cut."""
    found = [min(max(map(cell_len, column)), width // 2) for column in zip(heads, *rows, strict=True)]
    return [*found[:-1], found[-1] if heads[-1] in _RIGHT else min(found[-1], _LAST)]


def _total(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[number] + _SPACE for number in kept)


def _shortened(heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows with short cells: names of nodes without their domain if they stay unique, times as distances."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in heads]
    for number, head in enumerate(heads):
        cells = columns[number]
        if head == "NODE":
            hosts = [cell.partition(".")[0] for cell in cells]
            columns[number] = hosts if len({*hosts}) == len({*cells}) else cells
        elif head == "WHEN":
            columns[number] = [cell.partition(" (")[2].removesuffix(")") for cell in cells]
    return list(zip(*columns, strict=True))


def _cut(heads: Sequence[str], widths: Sequence[int], kept: Sequence[int], width: int) -> list[int]:
    """The widths of columns where the kept ones fit: the widest that may be cut loses first."""
    found = list(widths)
    while _total(found, kept) > width:
        wide = [number for number in kept[:-1] if found[number] > _LEAST.get(heads[number], found[number])]
        if not wide:
            break
        found[max(wide, key=lambda number: found[number])] -= 1
    return found


def _kept(heads: Sequence[str], sizes: Sequence[int], width: int) -> list[int]:
    """The numbers of the columns that fit; the first and the last one always stay."""
    kept = list(range(len(heads)))
    for head in _LEFT_OUT:
        if _total(sizes, kept) <= width:
            break
        kept = [number for number in kept if heads[number] != head or number in (0, len(heads) - 1)]
    return kept


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


def _cost(_: State, row: CostLine) -> tuple[str, ...]:
    return row.name or "(none)", row.by, str(row.pods), price(row.price), f"{row.percent} %"


_CELLS: Final[Mapping[str, Callable[[State, Any], tuple[str, ...]]]] = {
    NODES: _node,
    PENDING: _pending,
    NEXT: _next,
    COST: _cost,
}
