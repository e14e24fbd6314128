"""Lines of Prometheus' text format, for series that are too many to go through a registry at every scrape."""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def head(name: str, text: str, kind: str = "gauge") -> str:
    """What comes before the series of a metric."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    """One series and its value."""
    return written(name, told(labels), value)


def told(labels: Iterable[tuple[str, str]]) -> str:
    """Labels as they stand between the braces of a series."""
    return ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels)


def written(name: str, labels: str, value: float) -> str:
    """One series and its value; of one whose labels have been put into words before."""
    return f"{name}{{{labels}}} {float(value)!r}\n"
