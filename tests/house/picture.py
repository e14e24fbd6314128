"""`make picture`: the rooms of the product and what they import, drawn from the imports for the page of architecture.

A room is a package at the top, or a folder or module directly in `kerf`. An arrow leads to what a room imports; one
that other arrows imply is left out.
"""

from __future__ import annotations

import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Final

import networkx as nx
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.house.imports import imports
from tests.house.sizes import modules
from tests.sources import ROOT

PICTURE: Final = ROOT / "docs/architecture-rooms.svg"
_PURE: Final = "Pure rooms import no I/O library and read no clock"
_COLOURS: Final = {True: "#d9ead3", False: "#fce5cd"}
_ARROW: Final = " imports "
#: Every other floor stands so far to the right, in widths: an arrow past a floor is not hidden by the room there.
_ASIDE: Final = 0.4


def room_of(module: str) -> str:
    """The room of a module, by its full name."""
    package, _, rest = module.partition(".")
    return f"{package}.{rest.partition('.')[0]}" if package == "kerf" and rest else package


def rooms(files: Mapping[str, Path]) -> tuple[dict[str, list[Path]], nx.DiGraph[str]]:
    """The files of each room, and a graph of rooms without the arrows that others imply.

    Raises networkx.NetworkXError when rooms import each other in a circle.
    """
    held: defaultdict[str, list[Path]] = defaultdict(list)
    for module, path in files.items():
        if module != "kerf":  # its docstring alone
            held[room_of(module)].append(path)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(held))
    for module, found in imports(files).items():
        arrows = {(room_of(module), room_of(one)) for one in found if one != "kerf"}
        graph.add_edges_from(sorted(arrow for arrow in arrows if arrow[0] != arrow[1] and module != "kerf"))
    return dict(held), nx.transitive_reduction(graph)


def pure() -> Set[str]:
    """The rooms that import-linter keeps from the world."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == _PURE)
    return frozenset(contract["source_modules"])


def draw(path: Path) -> None:
    """Write the picture; the same imports make the same file."""
    held, graph = rooms(modules())
    places = _places(graph)
    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=_span([x for x, _ in places.values()], 0.12), ylim=_span([y for _, y in places.values()], 0.06))
    boxes = {name: _box(axes, name, places[name], held[name], pure=name in pure()) for name in graph}
    for source, target in graph.edges:
        _arrow(axes, boxes[source], boxes[target], f"{source}{_ARROW}{target}")
    with rc_context({"svg.hashsalt": "rooms", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def shown(path: Path) -> tuple[Set[str], Set[tuple[str, str]]]:
    """The rooms and arrows of a picture."""
    names = [one.get("id", "") for one in ET.parse(path).iter()]
    parted = [name.partition(_ARROW) for name in names]
    arrows = {(source, target) for source, arrow, target in parted if arrow}
    return frozenset(name for name in names if name.startswith("kerf") and _ARROW not in name), frozenset(arrows)


def _places(graph: nx.DiGraph[str]) -> dict[str, tuple[float, float]]:
    """Floor by floor from the top, each room below those that import it."""
    places: dict[str, tuple[float, float]] = {}
    floors = [*nx.topological_generations(graph.reverse())]
    for height, names in reversed([*enumerate(floors)]):

        def above(name: str) -> tuple[float, str]:
            over = [places[one][0] for one in graph.predecessors(name)]
            return sum(over) / len(over) if over else 0.0, name

        ordered = sorted(names, key=above)
        for number, name in enumerate(ordered):
            places[name] = (number - (len(ordered) - 1) / 2 + _ASIDE * (height % 2), float(height))
    return places


def _span(values: Sequence[float], margin: float) -> tuple[float, float]:
    least, most = min(values), max(values)
    return least - margin * (most - least), most + margin * (most - least)


def _box(axes: Axes, name: str, at: Sequence[float], files: Sequence[Path], *, pure: bool) -> Text:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    size = f"{round(lines, -2):,} lines" if lines >= 1000 else "1 module"
    style = {"boxstyle": "round,pad=0.5", "facecolor": _COLOURS[pure], "edgecolor": "#666666"}
    text = f"{name.removeprefix('kerf.')}\n{size}"
    box = axes.text(at[0], at[1], text, ha="center", va="center", bbox=style, zorder=3)
    box.set_gid(name)
    return box


def _arrow(axes: Axes, source: Text, target: Text, name: str) -> None:
    style = {"arrowstyle": "-|>", "color": "#666666", "mutation_scale": 14}
    ends = {"patchA": source.get_bbox_patch(), "patchB": target.get_bbox_patch()}
    arrow = axes.annotate("", target.get_position(), source.get_position(), arrowprops=style | ends, zorder=1)
    assert arrow.arrow_patch is not None
    arrow.arrow_patch.set_gid(name)


def main() -> int:
    draw(PICTURE)
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
