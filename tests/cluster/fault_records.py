"""What a run of `test_faults.py` has found, a file for each fault, and the page that is rendered from all of them.

python -m tests.cluster.fault_records docs/reference/faults.md
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.sources import ROOT
from tests.unit.charts.monitoring import alerts

FOLDER: Final = Path(__file__).parent / "faults_seen"
PAGE: Final = ROOT / "docs/reference/faults.md"
#: The tools of an operator, as the columns of the page; alerts are judged from the series.
TOOLS: Final = ("status", "why", "preflight", "condition", "event")
#: Seconds between two scrapes of a record.
EVERY: Final = 10
#: In the name of a metric that is a time.
TIMESTAMP: Final = "_timestamp_seconds"
#: A series has a sum for each of these labels only: the alerts read no others.
_SUMMED: Final = {"client_go_request_duration_seconds_bucket": ("verb", "le")}
_LINE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SHOWN: Final = 400
_HEAD: Final = """\
# Faults and the tools that name them

Each fault was made on a real control plane: kube-apiserver, etcd and kube-scheduler of Kubernetes, Kerf as its chart
installs it, and a simulation of AWS. A cell has the seconds until the tool named the cause: the missing permission, the
object, or a word of the original error. The tools were asked in turn, so a time includes the runs of the others. An
empty cell: the tool had not named the cause when `kerf status` and at least one other had.

`promtool` judges the alerts, on the series of the controller and the webhook before and during the fault. The time in
that column is the default time for which the alert waits. `make faults` measures this page again.

`kerf status` is the first step in any case. [Troubleshooting](../troubleshooting.md) has the symptoms instead.

"""


@dataclass(frozen=True, slots=True)
class Seen:
    """The first line of a tool that names the cause, after so many seconds."""

    seconds: int
    line: str


@dataclass(frozen=True, slots=True)
class Record:
    """What was seen of a fault: the lines of the tools, by tool; the alerts that must name it; and the series that
    alerts read, with the value before the fault (None: no such series) and those during it, every `EVERY` seconds."""

    fault: str
    alerts: Sequence[str]
    seen: Mapping[str, Seen]
    calm: Mapping[str, float | None]
    during: Mapping[str, Sequence[float | None]]

    @property
    def slug(self) -> str:
        return slug(self.fault)


def slug(fault: str) -> str:
    return re.sub("[^a-z0-9]+", "-", fault.lower()).strip("-")


# --- series -------------------------------------------------------------------------------------------------------
def read_metrics() -> frozenset[str]:
    """The names of the metrics that alerts read."""
    return frozenset(name for one in alerts() for name in re.findall(r"\b(\w+)\{", one.expr))


def series(texts: Mapping[str, str], now: float) -> dict[str, float]:
    """The series that alerts read, of texts of /metrics by job; and `up` of each job, as Prometheus has it.

    Timestamps are seconds from `now`.
    """
    found: dict[str, float] = {}
    names = read_metrics()
    for job, text in texts.items():
        found[f'up{{job="{job}"}}'] = 1.0 if text else 0.0
        for line in text.splitlines():
            match = _LINE.match(line)
            if match is not None and match[1] in names and match[3] != "NaN":
                key = _named(match[1], match[2] or "", job)
                value = float(match[3]) - (now if TIMESTAMP in match[1] else 0.0)
                found[key] = found.get(key, 0.0) + value
    return found


def _named(name: str, labels: str, job: str) -> str:
    kept = _SUMMED.get(name)
    rows = [f'{key}="{value}"' for key, value in _LABEL.findall(labels) if kept is None or key in kept]
    selector = ",".join((f'job="{job}"', *rows))
    return f"{name}{{{selector}}}"


def recorded(calm: Mapping[str, float], during: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Both parts of a record's series; those that are 0 throughout, and histograms that stand still, say nothing."""
    names = sorted({*calm, *(name for row in during for name in row)})
    moving = {_family(n) for n in names if len({calm.get(n), *(row.get(n) for row in during)}) > 1}
    told = [n for n in names if _told(n, calm, during) and ("_bucket{" not in n or _family(n) in moving)]
    return {"calm": {n: calm.get(n) for n in told}, "during": {n: [row.get(n) for row in during] for n in told}}


def _told(name: str, calm: Mapping[str, float], during: Sequence[Mapping[str, float]]) -> bool:
    return bool(calm.get(name)) or any(row.get(name) for row in during) or "_bucket{" in name


def _family(name: str) -> str:
    """All buckets of a histogram have the same."""
    return re.sub(r',le="[^"]*"', "", name)


# --- files --------------------------------------------------------------------------------------------------------
def write(record: Record, folder: Path) -> None:
    """One series a line, so that two runs can be compared."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {name: [record.calm[name], *values] for name, values in record.during.items()}
    seen = {tool: [one.seconds, one.line] for tool, one in record.seen.items()}
    head = {"fault": record.fault, "alerts": list(record.alerts), "seen": seen}
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps([_short(v) for v in values])}" for name, values in rows.items()
    )
    text = json.dumps(head, indent=1)[:-2] + ',\n "series": {\n' + lines + "\n}}\n"
    (folder / f"{record.slug}.json").write_text(text, encoding="utf-8")


def _short(value: float | None) -> float | int | None:
    return value if value is None else int(value) if value == int(value) else round(value, 4)


def read(path: Path) -> Record:
    """Raises KeyError, ValueError for a file that `write` has not written."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        fault=found["fault"],
        alerts=tuple(found["alerts"]),
        seen={tool: Seen(seconds, line) for tool, (seconds, line) in found["seen"].items()},
        calm={name: values[0] for name, values in found["series"].items()},
        during={name: tuple(values[1:]) for name, values in found["series"].items()},
    )


def records(folder: Path = FOLDER) -> tuple[Record, ...]:
    """All of a folder, by file name."""
    return tuple(read(path) for path in sorted(folder.glob("*.json")))


# --- the page -----------------------------------------------------------------------------------------------------
def page(found: Iterable[Record], order: Sequence[str], waits: Mapping[str, str]) -> str:
    """The page. `order` has the faults as rows, `waits` for how long each alert waits."""
    by_name = {one.fault: one for one in found}
    rows = [by_name[name] for name in order if name in by_name]
    left = [f"- {name}" for name in order if name not in by_name]
    unmeasured = ("## Not measured yet\n", *left) if left else ()
    return _HEAD + "\n".join((*_table(rows, waits), "", *_sections(rows), *unmeasured)).rstrip("\n") + "\n"


def _table(rows: Iterable[Record], waits: Mapping[str, str]) -> Iterator[str]:
    yield f"| fault | {' | '.join(f'`kerf {t}`' if t in TOOLS[:3] else t for t in TOOLS)} | alert |"
    yield "|---" * (len(TOOLS) + 2) + "|"
    for one in rows:
        cells = [f"{one.seen[tool].seconds} s" if tool in one.seen else "" for tool in TOOLS]
        links = [f"[`{name}`](../troubleshooting.md#{name.lower()}) ({waits[name]})" for name in one.alerts]
        yield f"| [{one.fault}](#{_anchor(one.fault)}) | {' | '.join(cells)} | {', '.join(links)} |"


def _sections(rows: Iterable[Record]) -> Iterator[str]:
    for one in rows:
        yield f"## {one.fault}\n"
        for tool in TOOLS:
            if tool in one.seen:
                name = f"`kerf {tool}`" if tool in TOOLS[:3] else tool.capitalize()
                yield f"{name}:\n\n```text\n{one.seen[tool].line}\n```\n"


def _anchor(heading: str) -> str:
    """As the site makes it of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def shown(line: str) -> str:
    """A line as the page has it: without times and generated names, which differ in each run."""
    words = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", " ".join(line.split()))
    words = re.sub(r"\b(general|web)-[a-z0-9]{5,}(-[a-z0-9]{5})?\b", r"\1-NAME", words)
    words = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", words)
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def waits() -> dict[str, str]:
    """For how long each alert waits by default."""
    from tests.unit.charts.values_table import defaults

    return {name: one["for"] for name, one in defaults()["prometheusRule"]["alerts"].items()}


def main(path: Path) -> None:
    """Write the page from the records."""
    from .faults import FAULTS

    path.write_text(page(records(), [one.name for one in FAULTS], waits()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
