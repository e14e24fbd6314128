"""Charts as SVG, drawn by pygal: without scripts, the same bytes for the same values, with colours for light and dark.

A page shows a chart as an image, from a file or a data URL: the styles of a chart inline would be the page's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from xml.etree import ElementTree

#: Colours of Okabe and Ito: distinct without red and green, with a contrast of 3 on white and on black at least.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#b0609a", "#8a7a00", "#4a90c2", "#a0522d", "#6b6b6b")
#: The highest number of curves that have a colour of their own.
MOST: Final = len(COLOURS)
_FONT: Final = "system-ui, sans-serif"
_CSS: Final = (
    "inline:.series .line.reactive { stroke-width: 2.5 !important } .axis .guide.line { stroke-opacity: .3 }"
    " .text-overlay text.value { fill: #fff !important }"
    " @media (prefers-color-scheme: dark) {"
    " .title, .legends .legend text, .axis text, .axis text.major { fill: #e6e6e6 !important }"
    " .axis .line, .axis .guide.line, .axis .major.line { stroke: #8a8a8a !important }"
    " .plot .series path, .legends rect { filter: brightness(1.5) } }"
)

#: Distances of labels on the axis of time, in seconds.
_DISTANCES: Final = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)
_LABELS: Final = 8
_LONGEST: Final = 60
_SVG: Final = "http://www.w3.org/2000/svg"
_SCRIPTS: Final = ("script", f"{{{_SVG}}}script")
_WIDTH: Final = 960
_HEIGHT: Final = 320


@dataclass(frozen=True, slots=True)
class Curve:
    """A value that stays the same from one point to the next: times since the start, in order, with values."""

    name: str
    points: Sequence[tuple[timedelta, float]]


def over_time(title: str, curves: Sequence[Curve], end: timedelta, read: Callable[[float], str] = "{:g}".format) -> str:
    """Curves over the time from 0 to `end`, as steps. `read` is the text of a value."""
    import pygal

    chart = pygal.XY(**_look(title, len(curves)), show_dots=False, stroke_style={"width": 2})
    chart.x_value_formatter = lambda seconds: _clock(timedelta(seconds=float(seconds)))
    chart.value_formatter = chart.y_value_formatter = read
    chart.xrange = (0, end.total_seconds() or 1)
    chart.x_labels = _ticks(end) if any(curve.points for curve in curves) else []
    for curve in curves:
        chart.add(_name(curve.name), _steps(curve.points, end))
    return _text(chart)


def bars(
    title: str,
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    read: Callable[[float], str] = "{:g}".format,
) -> str:
    """Horizontal bars: a group for each name, with a bar of each series."""
    import pygal

    chart = pygal.HorizontalBar(**_look(title, len(series)), print_values=True)
    chart.value_formatter = read
    chart.x_labels = [_name(name) for name in names]
    for name, values in series:
        chart.add(_name(name), list(values))
    return _text(chart)


def stacked(found: Sequence[str]) -> str:
    """Charts below each other, as one for a file. A browser that shows it alone in dark has a dark background."""
    parts = (
        f'<svg y="{_HEIGHT * number}" width="{_WIDTH}" height="{_HEIGHT}">{chart}</svg>'
        for number, chart in enumerate(found)
    )
    box = f"0 0 {_WIDTH} {_HEIGHT * len(found)}"
    head = f'<svg xmlns="{_SVG}" viewBox="{box}" role="img" style="color-scheme: light dark">'
    return f"{head}{''.join(parts)}</svg>"


def _look(title: str, curves: int) -> dict[str, Any]:
    from pygal.style import Style

    style = Style(
        background="transparent", plot_background="transparent", foreground="#333", foreground_strong="#111",
        foreground_subtle="#777", colors=COLOURS, font_family=_FONT, title_font_size=18, label_font_size=14,
        major_label_font_size=14, legend_font_size=14, value_font_size=14, transition="0s", opacity=".9",
    )  # fmt: skip
    return {
        "title": _name(title), "style": style, "js": [], "css": ["file://style.css", "file://graph.css", _CSS],
        "no_prefix": True, "width": _WIDTH, "height": _HEIGHT, "legend_at_bottom": True, "show_legend": curves > 1,
        "min_scale": 3, "max_scale": 6, "include_x_axis": True, "truncate_legend": -1,
        "truncate_label": -1,
    }  # fmt: skip


def _name(text: str) -> str:
    """A name as text that XML can hold, of a length that a chart can show."""
    shown = "".join(one if one.isprintable() else "�" for one in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _steps(points: Sequence[tuple[timedelta, float]], end: timedelta) -> list[tuple[float, float]]:
    """Both ends of each level."""
    found = list[tuple[float, float]]()
    for at, value in points:
        if found:
            found.append((at.total_seconds(), found[-1][1]))
        found.append((at.total_seconds(), value))
    return [*found, (end.total_seconds(), found[-1][1])] if found else found


def _ticks(end: timedelta) -> list[float]:
    seconds = end.total_seconds()
    distance = next((one for one in _DISTANCES if seconds / one <= _LABELS), max(_DISTANCES[-1], seconds / _LABELS))
    return [distance * number for number in range(int(seconds / distance) + 1)]


def _clock(at: timedelta) -> str:
    hours, rest = divmod(round(at.total_seconds()), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if seconds else f"{hours}:{minutes:02}"


def _text(chart: Any) -> str:
    """The chart as XML, without pygal's comment with the date, its script and identifiers."""
    root: ElementTree.Element = chart.render_tree()
    for part in list(root):
        if not isinstance(part.tag, str):
            root.remove(part)
    for parent in list(root.iter()):
        for child in [one for one in parent if one.tag in _SCRIPTS]:
            parent.remove(child)
    for one in root.iter():
        one.attrib.pop("id", None)
    root.set("role", "img")
    return ElementTree.tostring(root, encoding="unicode")
