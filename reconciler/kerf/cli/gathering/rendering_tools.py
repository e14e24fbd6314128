"""Run kustomize and Helm on files of a stranger: without the network, and with bounds on time, memory and output.

A kustomization can name resources of other hosts, and the schema of a chart's values can refer to others. Kerf refuses
those that it sees, and runs the tools where a fetch fails: in a network namespace of their own where the kernel allows
that, with a proxy that does not exist, and with no transport for Git.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kerf.cli.gathering.sources import is_inside
from kerf.manifests import bounded, regular
from kerf.manifests.documents import LARGEST

#: Bytes of address space of a tool: the runtime of Go reserves more than it uses.
MEMORY: Final = 4 << 30
#: Seconds for all that is rendered in a run.
SECONDS: Final = 300
#: A port that no service has: connections are refused at once.
_NOWHERE: Final = "http://127.0.0.1:1"
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_HOSTS: Final = ("github.com", "www.github.com", "gitlab.com", "bitbucket.org", "git@", "gh:", "git::")
_SCHEMA: Final = "values.schema.json"
_STANDARD_SCHEMAS: Final = ("http://json-schema.org/", "https://json-schema.org/")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LARGEST_SCHEMA: Final = 1 << 24
#: Fields of a kustomization whose texts are data and no paths.
_DATA: Final = frozenset(
    [
        *("commonLabels", "commonAnnotations", "labels", "images", "namePrefix", "nameSuffix", "namespace", "replicas"),
        *("vars", "metadata", "buildMetadata", "generatorOptions", "literals", "options", "target", "patch"),
    ]
)
#: Fields whose files are instructions for kustomize, which can name further files.
_INSTRUCTIONS: Final = ("generators", "transformers", "validators")


class Failed(Exception):
    """A tool failed or exceeded a bound: the message has its words."""


@dataclass(slots=True)
class Runner:
    """Runs the tools of one run of Kerf; with `fetch` they may use the network."""

    fetch: bool
    _ends: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def run(self, command: Sequence[str]) -> bytes:
        """The output of a tool. Raises Failed."""
        seconds = min(bounded.SECONDS, self._ends - time.monotonic())
        if seconds <= 0:
            raise Failed(f"rendering took longer than {SECONDS} s in all; give fewer folders")
        with TemporaryDirectory(prefix="kerf-render-") as home:
            try:
                done = bounded.run(
                    [*([] if self.fetch else _alone()), *command],
                    home,
                    self._environment(home),
                    bounded.Bounds(LARGEST, seconds, MEMORY),
                    name=os.path.basename(command[0]),
                )
            except (bounded.Exceeded, bounded.Missing) as error:
                raise Failed(str(error)) from error
        if done.code:
            words = " ".join(done.err.decode("utf-8", "replace").split())
            words = words.removeprefix("Error: ").removeprefix("error: ")
            raise Failed(words[:_MOST_WORDS] or f"{command[0]} exited with code {done.code}, without a message")
        return done.out

    def _environment(self, home: str) -> Mapping[str, str]:
        if self.fetch:
            return os.environ
        proxies = {name: _NOWHERE for word in _PROXIES for name in (word, word.lower())}
        # The tools get no secret of a job: neither a token in a variable nor a file of the user's home.
        return {"PATH": os.environ.get("PATH", ""), "HOME": home, "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "", **proxies}


_MOST_WORDS: Final = 2000


@cache
def _alone() -> tuple[str, ...]:
    """The command that gives a program no network, where there is one and the kernel allows it."""
    program = shutil.which("unshare")
    if program is None:
        return ()
    command = (program, "--map-root-user", "--net", "--")
    try:
        done = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command if done.returncode == 0 else ()


def remote(about: Mapping[str, Any], folder: Path) -> str:
    """The first text of a kustomization that kustomize would fetch from the network; "" for none."""
    for name in _INSTRUCTIONS:
        for text in _texts(about.get(name)):
            if "://" in text or _is_remote(text):
                return text.strip().splitlines()[0]
            path = folder / text
            if "\n" not in text and path.is_file() and b"://" in regular.read(str(path), LARGEST):
                return f"an address in {text}"
    return next((text for text in _texts(about) if "\n" not in text and _is_remote(text)), "")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key not in _DATA:
                yield from _texts(entry)


def _is_remote(text: str) -> bool:
    return "://" in text or "?ref=" in text or text.lower().startswith(_HOSTS)


def unsafe(chart: Path, *, fetch: bool) -> str:
    """Why a chart must not be rendered, or "": a file that is not regular, a link out of it, a schema elsewhere."""
    root = os.path.realpath(chart)
    for path, folders, names in os.walk(chart):
        for name in sorted([*folders, *names]):
            place = os.path.join(path, name)
            shown = os.path.relpath(place, chart)
            mode = os.lstat(place).st_mode
            if stat.S_ISLNK(mode):
                if not is_inside(os.path.realpath(place), root):
                    return f"{shown} is a link out of the chart; put a copy in its place"
                continue
            if not stat.S_ISDIR(mode):
                try:
                    regular.require(place, mode)
                except OSError as error:
                    return f"{shown}: {error.strerror}"
            if name == _SCHEMA and not fetch and (found := _foreign(place)):
                return f"{shown} refers to {found}, which Helm may fetch from the network; add --fetch to allow it"
    return ""


def _foreign(path: str) -> str:
    """The first reference of a JSON schema that leads out of it; "" for none."""
    try:
        waiting = [json.loads(regular.read(path, _LARGEST_SCHEMA))]
    except (OSError, ValueError, RecursionError):
        return "something that cannot be read"
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            for key in _REFERENCES:
                if isinstance(found := value.get(key), str) and not found.startswith("#"):
                    return found
            found = value.get("$schema")
            if isinstance(found, str) and not found.startswith(_STANDARD_SCHEMAS):
                return found
    return ""
