"""Our charts as Helm renders them; no cluster is asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sources import ROOT

#: What a cluster with cert-manager and the Prometheus Operator knows besides.
KNOWN: Final = ("cert-manager.io/v1", "monitoring.coreos.com/v1")

#: The safe loader in C, where PyYAML was built with it: ten times as fast.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Objects by kind and name.
Objects = dict[tuple[str, str], Any]


class Helm:
    """The program, with caches and settings of its own in `home`."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        own = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **own, "HOME": str(home)}

    def __call__(self, *arguments: str, values: Any = None) -> str:
        """What it prints; `values` are given as a file. Raises CalledProcessError with its stderr as a note."""
        flags = ("--values", "-") if values is not None else ()
        text = None if values is None else yaml.safe_dump(values)
        command = [str(self._program), *arguments, *flags]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, env=self._environment, timeout=180
        )
        if done.returncode != 0:
            error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
            error.add_note(done.stderr)
            raise error
        return done.stdout

    def template(
        self,
        *flags: str,
        values: Any = None,
        release: str = "kerf",
        namespace: str = "kerf",
        known: Sequence[str] = KNOWN,
    ) -> Objects:
        """What charts/kerf makes of these values, for a cluster named test if they name none, with `known` kinds."""
        given = {"settings": {}} | (values or {})
        given = {**given, "settings": {"clusterName": "test", **given["settings"]}}
        apis = [flag for group in known for flag in ("--api-versions", group)]
        chart = str(ROOT / "charts/kerf")
        where = ("--namespace", namespace, "--kube-version", "1.36.0")
        return by_name(self("template", release, chart, *where, *apis, *flags, values=given))


def by_name(text: str) -> Objects:
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.load_all(text, Loader=_LOADER) if one}


def flat(one: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of an object; an item of a list stands by its name, if it has one, or the name of its port."""
    if isinstance(one, Mapping) and one:
        for key, value in one.items():
            yield from flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and one:
        for number, item in enumerate(one):
            name = (item.get("name") or item.get("port") or number) if isinstance(item, Mapping) else number
            yield from flat(item, f"{path}[{name}]")
    else:
        yield path, one


def different(one: Any, other: Any) -> set[str]:
    """The paths at which two objects differ; all of them where there is only one."""
    return {
        path for path, _ in {(path, repr(v)) for path, v in flat(one)} ^ {(path, repr(v)) for path, v in flat(other)}
    }
