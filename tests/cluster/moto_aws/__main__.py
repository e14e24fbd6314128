"""Runs AWS for tests in the foreground: `python -m tests.cluster.moto_aws --port 5000`."""

from __future__ import annotations

import argparse
import json

from .server import serve, serve_while_wanted
from .settings import FAMILIES, MotoSettings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=5000)
    parser.add_argument("--cluster-name", default="kerf-test")
    parser.add_argument("--region", default="us-west-2")
    parser.add_argument("--kubernetes-version", default="1.36")
    parser.add_argument("--describe-delay", type=float, default=0.0)
    parser.add_argument("--all-families", action="store_true", help="every instance type, not only the usual families")
    parser.add_argument("--settings", help="all settings as JSON; the server then ends with its standard input")
    given = parser.parse_args()
    if given.settings:
        serve_while_wanted(json.loads(given.settings), given.port)
        return
    settings = MotoSettings(
        cluster_name=given.cluster_name,
        region=given.region,
        kubernetes_version=given.kubernetes_version,
        describe_delay=given.describe_delay,
        families=() if given.all_families else FAMILIES,
    )
    serve(settings, given.port)


main()
