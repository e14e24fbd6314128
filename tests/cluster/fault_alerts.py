"""The recorded series of a fault as a file for `promtool test rules`.

An hour as before the fault; the fault as it was recorded; then as in its last minute, for as long as an alert may wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from .fault_records import EVERY, TIMESTAMP, Record

CALM_STEPS: Final = 3600 // EVERY
#: A counter is compared with half an hour before, and a gauge of a wait with its threshold.
_MORE_SECONDS: Final = 2700
#: These go on as they did in the last minute; any other series keeps its last value.
_GROWING: Final = re.compile(r"_(total|bucket|count|sum)\{|_time_seconds\{")
_MINUTE: Final = 60 // EVERY
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(wait: str) -> int:
    """Of a duration as the chart's values have it, such as 15m."""
    return int(wait[:-1]) * _UNITS[wait[-1]]


def document(record: Record, waits: dict[str, str]) -> dict[str, Any]:
    """The file: no alert before the fault, and after it each alert that must name it has fired."""
    steps = max(len(values) for values in record.during.values())
    longest = max(seconds(waits[name]) for name in record.alerts) + _MORE_SECONDS
    last = CALM_STEPS * EVERY + steps * EVERY + longest
    rows = [{"series": name, "values": _values(record, name, longest // EVERY)} for name in record.during]
    names = "|".join(record.alerts)
    # An alert about a rate ends some time after the last attempt that failed.
    ever = f'max_over_time(ALERTS{{alertstate="firing",alertname=~"{names}"}}[{last}s])'
    firing = f"group by (alertname) ({ever})"
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in record.alerts]
    calm = {"expr": 'group by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{CALM_STEPS * EVERY - EVERY}s"}
    fault = {"expr": firing, "eval_time": f"{last - EVERY}s", "exp_samples": samples}
    test = {"interval": f"{EVERY}s", "input_series": rows, "promql_expr_test": [{**calm, "exp_samples": []}, fault]}
    return {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [{"name": record.fault, **test}]}


def _values(record: Record, name: str, more: int) -> str:
    calm, during = record.calm[name], record.during[name]
    if TIMESTAMP in name:  # the file's time begins at 0; the last timestamp stays, and the clock goes on
        began = CALM_STEPS * EVERY
        calm = None if calm is None else calm + began
        during = [None if one is None else one + began + at * EVERY for at, one in enumerate(during)]
    before = f"_x{CALM_STEPS}" if calm is None else f"{calm:.10g}x{CALM_STEPS - 1}"
    known = " ".join("_" if value is None else f"{value:.10g}" for value in during)
    last = during[-1]
    if last is None:
        return f"{before} {known} stale"
    step = _slope(during) if _GROWING.search(name) else 0.0
    return f"{before} {known} {last + step:.10g}{step:+.10g}x{more}"


def _slope(values: Sequence[float | None]) -> float:
    """By which a series has grown between two scrapes of its last minute."""
    known = [value for value in values[-_MINUTE - 1 :] if value is not None]
    return max((known[-1] - known[0]) / (len(known) - 1), 0.0) if len(known) > 1 else 0.0
