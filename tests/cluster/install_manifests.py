"""`python -m tests.cluster.install_manifests`: write charts/kerf, rendered with its defaults, to manifests/install/.

Helm renders it, so Helm has to be there (`python -m tests.cluster build`). What says that Helm has installed an object
is left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sources import ROOT

from .binaries import find_binaries
from .charts import Helm

BASE: Final = ROOT / "manifests/install/base"
FILE: Final = BASE / "kerf.yaml"
CLUSTER_NAME: Final = "my-cluster"
HEADER: Final = "# Rendered from charts/kerf by `make install-manifests`. Edit the chart, not this file.\n"
HELMS: Final = ("helm.sh/chart", "app.kubernetes.io/managed-by")


def text(helm: Helm) -> str:
    """What the file has to hold."""
    values = {"settings": {"clusterName": CLUSTER_NAME}}
    objects = helm.template("--no-hooks", values=values).values()
    return HEADER + yaml.safe_dump_all(map(_plain, objects), sort_keys=False, width=120, default_flow_style=None)


def _plain(one: Any) -> Any:
    kept = {name: value for name, value in one["metadata"]["labels"].items() if name not in HELMS}
    return {**one, "metadata": {**one["metadata"], "labels": kept}}


def main() -> int:
    """Write the file."""
    with tempfile.TemporaryDirectory() as home:
        FILE.write_text(text(Helm(find_binaries() / "helm", Path(home))), encoding="utf-8")
    print(FILE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
