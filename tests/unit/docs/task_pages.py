"""The pages of docs/tasks: their files, and the nodes that the pods of these files get."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml

from kerf.cli.answering import cluster_files
from kerf.model.memory import Memory
from kerf.model.settings import Settings
from kerf.provisioning.boundary import solve_apart
from kerf.provisioning.pending import pending_pods
from kerf.runtime.observe import looking
from kerf.runtime.process.clock import SystemClock
from kerf.scheduling.answers.solution import Solution
from tests import guides, worlds
from tests.sources import ROOT

FOLDER: Final = ROOT / "docs/tasks"
PAGES: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
FILES: Final = {(page, name): text for page, whole in PAGES.items() for name, text in guides.files(whole).items()}
#: Files with objects of Kubernetes; the others are values of the chart.
MANIFESTS: Final = {
    place: [*yaml.safe_load_all(text)]
    for place, text in FILES.items()
    if re.search(r"^apiVersion:", text, re.MULTILINE)
}
VALUES: Final = {place: yaml.safe_load(text) for place, text in FILES.items() if place not in MANIFESTS}
_WORKLOADS: Final = ("Deployment", "StatefulSet", "Job")


def solved(*places: tuple[str, str], more: Iterable[dict[str, Any]] = ()) -> Solution:
    """The places that the pods of these files get, with the instance types that are part of Kerf."""
    given = [*(one for place in places for one in MANIFESTS[place]), *more]
    if not any(one["kind"] == "EC2NodeClass" and one["metadata"]["name"] == "default" for one in given):
        given.append(worlds.node_class())
    spaces = {one["metadata"]["namespace"] for one in given if "namespace" in one["metadata"]}
    namespaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(spaces))
    found = cluster_files.of(("page", one) for one in (*_of_workloads(given), *namespaces))
    types = cluster_files.ShippedTypes.beside(found.objects)
    snapshot = looking.look(found, types, Settings(cluster_name="my-cluster"), SystemClock())
    pending, _ = pending_pods(snapshot)
    return solve_apart(snapshot, pending, Memory().turn(snapshot))


def _of_workloads(manifests: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The objects, with the pods of Deployments, StatefulSets and Jobs in their place."""
    for one in manifests:
        if one["kind"] not in _WORKLOADS:
            yield one
            continue
        spec, meta = one["spec"], one["metadata"]
        for number in range(spec.get("replicas", spec.get("parallelism", 1))):
            own = {"name": f"{meta['name']}-{number}", "namespace": meta["namespace"]}
            template = spec["template"]
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template.get("metadata", {}), **own},
                "spec": template["spec"],
            }


def commands(program: str) -> list[tuple[str, list[str]]]:
    """The commands of a program in blocks and in cells of tables, as words, each with its page; pipes are cut off."""
    found = re.compile(rf"(?:^\$ |\$\(|`){program} (.*?)(?:$|`)", re.MULTILINE)
    nested = re.compile(rf"\$\(({program} [^()]*)\)")
    rows = []
    for page, text in PAGES.items():
        for words in found.findall(text):
            whole = f"{program} {words}"
            inner = nested.search(whole)
            while inner is not None:
                rows.append((page, shlex.split(inner[1])))
                whole = whole.replace(inner[0], "X")
                inner = nested.search(whole)
            cut = shlex.split(whole)
            rows.append((page, cut[: cut.index("|")] if "|" in cut else cut))
    return rows
