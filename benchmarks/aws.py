"""The catalogue of a node class: all types, zones and markets at once, as at a start or when prices come anew."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from statistics import median
from time import process_time
from typing import Any, Final

from benchmarks.table import Row
from kerf.ec2.instance_types.catalogue import build
from kerf.model.settings import FeatureGates
from tests.unit.ec2 import ec2_facts as facts

_TIMES: Final = 5
_MOST_SECONDS, _MOST_MIB = 1.0, 60.0
_MOST_MORE: Final = 0.3
_OPEN: Final = replace(facts.SETTINGS, gates=FeatureGates(node_class_cel=True))
_MIB: Final = 2**20


def _reckoned() -> float:
    """CPU seconds that the expressions of a class add, at the first time: another number makes them new."""
    given = facts.facts(), facts.region(*facts.all_names()), _OPEN
    seconds = []
    for number in range(_TIMES):
        began = process_time()
        build(facts.node_class(), *given)
        between = process_time()
        build(facts.node_class(kubelet=_kubelet(number)), *given)
        seconds.append(process_time() - between - (between - began))
    return median(seconds)


def _kubelet(number: int) -> dict[str, Any]:
    """Expressions that come to something else on nearly every type."""
    own = f"size(instance_type) + {number}"
    return {
        "maxPods": f"min(vcpus * 8 + {own}, 250)",
        "kubeReserved": {"cpu": f"60 + vcpus * 5 + {own}", "memory": f"255 + 11 * max_pods + {number}"},
        "systemReserved": {
            "cpu": f"vcpus + {own}",
            "memory": f"memory_mib / 100 + {number}",
            "pid": f"max_pods + {own}",
        },
    }


def rows() -> list[Row]:
    """CPU seconds and memory of building it: all types that the emulator of AWS knows, in three zones, both markets."""
    given = facts.node_class(), facts.facts(), facts.region(*facts.all_names()), facts.SETTINGS
    made = build(*given)
    seconds = []
    for _ in range(_TIMES):
        began = process_time()
        build(*given)
        seconds.append(process_time() - began)
    reckoned = _reckoned()
    tracemalloc.start()
    kept = build(*given)
    held, peak = (bytes_ / _MIB for bytes_ in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    offerings = sum(len(type_.offerings) for type_ in kept)
    what, took = f"AWS: catalogue of {len(made)} types, {offerings} offerings", median(seconds)
    return [
        Row(f"{what}, CPU", f"{took:.2f} s", f"≤ {_MOST_SECONDS:g} s", took <= _MOST_SECONDS),
        Row(
            f"{what}, CPU more for six expressions", f"{reckoned:.2f} s", f"≤ {_MOST_MORE:g} s", reckoned <= _MOST_MORE
        ),
        Row(f"{what}, kept", f"{held:.0f} MiB", f"≤ {_MOST_MIB:g} MiB", held <= _MOST_MIB),
        Row(f"{what}, at most while it is built", f"{peak:.0f} MiB", f"≤ {_MOST_MIB:g} MiB", peak <= _MOST_MIB),
    ]
