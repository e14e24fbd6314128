"""The screens of `kerf demo`: a story with a live table of nodes below; plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerf_api.texts import counted

#: Lines of the live part that are no rows of nodes: a space, the totals, the header, the number of other nodes.
_AROUND_ROWS = 4
_COLOURS = {"ready": "green", "launching": "yellow", "booting": "yellow", "registered": "cyan"}


@dataclass(frozen=True, slots=True)
class Row:
    """One NodeClaim; `price` in US dollars per hour."""

    name: str
    type: str
    zone: str
    capacity: str
    price: float
    pods: int
    state: str


@dataclass(frozen=True, slots=True)
class View:
    """One moment of the world; `cost` in US dollars per hour."""

    elapsed: timedelta
    rows: tuple[Row, ...]
    running: int
    pending: int
    cost: float


class Screen(Protocol):
    """The output of the demo. Texts may carry rich markup."""

    def scene(self, title: str) -> None: ...

    def say(self, text: str) -> None: ...

    def frame(self, view: Callable[[], View]) -> None:
        """A moment has passed; `view` is called only by a screen that draws."""
        ...


class SilentScreen:
    """For `--json` and tests."""

    def scene(self, title: str) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def frame(self, view: Callable[[], View]) -> None:
        pass


class LineScreen:
    """For pipes and CI: the story, line by line; `wrapped` at the console's width, for a picture."""

    def __init__(self, console: Console, *, wrapped: bool = False) -> None:
        self._console, self._wrapped = console, wrapped

    def scene(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/]", soft_wrap=not self._wrapped)

    def say(self, text: str) -> None:
        if self._wrapped:
            plain = text.lstrip(" ")
            self._console.print(Padding(Text.from_markup(plain), (0, 0, 0, 2 + len(text) - len(plain))))
        else:
            self._console.print(f"  {text}", soft_wrap=True)

    def frame(self, view: Callable[[], View]) -> None:
        pass


class LiveScreen:
    """For a terminal: the story, line by line, and below its newest line the nodes as they are.

    The nodes take at most half of the height, those that change first: a small terminal shows the newest lines. Older
    lines scroll up and can be read there. Use it as a context manager.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines = LineScreen(console, wrapped=True)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def scene(self, title: str) -> None:
        self._lines.scene(title)

    def say(self, text: str) -> None:
        self._lines.say(text)

    def frame(self, view: Callable[[], View]) -> None:
        self._live.update(self._draw(view()), refresh=True)

    def _draw(self, view: View) -> RenderableType:
        minutes, seconds = divmod(int(view.elapsed.total_seconds()), 60)
        head = Text.assemble(
            (f" {minutes:02}:{seconds:02} ", "reverse"),
            (f"  {counted(view.running, 'pod')} running", "green"),
            (f"  {view.pending} pending", "yellow" if view.pending else "dim"),
            f"  {counted(len(view.rows), 'node')}",
            (f"  ${view.cost:.2f}/h", "bold"),
            no_wrap=True,
            overflow="ellipsis",
        )
        most = max(self._console.height // 2 - _AROUND_ROWS, 1)
        rows = view.rows if len(view.rows) <= most else sorted(view.rows, key=lambda row: row.state == "ready")
        shown = tuple(rows[:most])
        left = len(view.rows) - len(shown)
        rest = [Text(f"… and {counted(left, 'more node')}", style="dim")] if left else []
        return Group(Text(), head, node_table(shown), *rest)


def node_table(rows: tuple[Row, ...]) -> Table:
    """The columns of `kubectl get nodeclaims`, with price and pods."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NAME", "TYPE", "CAPACITY", "ZONE", "$/H", "PODS", "STATE"):
        table.add_column(name, justify="right" if name in ("$/H", "PODS") else "left", no_wrap=True)
    for row in rows:
        colour = _COLOURS.get(row.state, "red")
        price = f"{row.price:.3f}" if row.price else ""
        cells = (row.name, row.type, row.capacity, row.zone, price, str(row.pods), f"[{colour}]{row.state}[/]")
        table.add_row(*cells)
    return table
