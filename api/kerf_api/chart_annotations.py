"""The annotations that the match conditions of the chart's webhooks name, as lists for the chart.

Requests that change only the metadata of an object reach the webhook when they change one of these. The lists are
bounded and so is the cost of a condition: too high a cost would let a request pass.

`python -m kerf_api.chart_annotations FOLDER` writes the lists.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kerf_api import approval, thresholds
from kerf_api.written_annotations import WRITTEN

#: By the name of a list, the annotations: those in which Kerf keeps its own state, and those whose text users write
#: and Kerf reads.
LISTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "written-annotations": tuple(sorted(frozenset().union(*WRITTEN.values()))),
        "checked-annotations": tuple(sorted({*approval.ANNOTATIONS, *thresholds.ANNOTATIONS})),
    }
)


def rendered(name: str) -> str:
    """A list as YAML. `name` is a key of `LISTS`."""
    head = "# Rendered from api/kerf_api/chart_annotations.py by `make manifests`. Edit the module, not this list.\n"
    return head + "".join(f"- {key}\n" for key in LISTS[name])


def main(arguments: Sequence[str]) -> int:
    """Write the lists to the folder that the only argument names."""
    (folder,) = arguments
    for name in LISTS:
        Path(folder, f"{name}.yaml").write_text(rendered(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
