"""The catalogue of a node class: all types, zones and markets at once, as at a start or when prices come anew."""

from __future__ import annotations

import tracemalloc
from statistics import median
from time import process_time
from typing import Final

from benchmarks.table import Row
from reconciler.ec2.catalogue import build
from tests.unit.ec2 import ec2_facts as facts

_TIMES: Final = 5
_MOST_SECONDS, _MOST_MIB = 1.0, 60.0
_MIB: Final = 2**20


def rows() -> list[Row]:
    """CPU seconds and memory of building it: all types that the emulator of AWS knows, in three zones, both markets."""
    given = facts.node_class(), facts.facts(), facts.region(*facts.all_names()), facts.SETTINGS
    made = build(*given)
    seconds = []
    for _ in range(_TIMES):
        began = process_time()
        build(*given)
        seconds.append(process_time() - began)
    tracemalloc.start()
    kept = build(*given)
    held, peak = (bytes_ / _MIB for bytes_ in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    offerings = sum(len(type_.offerings) for type_ in kept)
    what, took = f"AWS: catalogue of {len(made)} types, {offerings} offerings", median(seconds)
    return [
        Row(f"{what}, CPU", f"{took:.2f} s", f"≤ {_MOST_SECONDS:g} s", took <= _MOST_SECONDS),
        Row(f"{what}, kept", f"{held:.0f} MiB", f"≤ {_MOST_MIB:g} MiB", held <= _MOST_MIB),
        Row(f"{what}, at most while it is built", f"{peak:.0f} MiB", f"≤ {_MOST_MIB:g} MiB", peak <= _MOST_MIB),
    ]
