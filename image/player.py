"""Playing the Dockerfile in a folder: its lines, run by a shell, without a container engine.

Each stage is a folder. `COPY` copies, `RUN` runs in that folder, with a Python of the image's minor version in place
of the base image's; what is installed for that one itself is out of sight, for all lines install into folders. What
the base image brings along is played by that Python's own files, so everything above Debian is what a build makes. A
stage whose lines and files are what they were is kept in `.cache/image`. Secrets and caches that a line mounts are
left to the machine: pip is configured here as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from image.context import files
from image.recipe import DOCKERFILE, ROOT, Instruction, NotUnderstood, Recipe, Stage, filled, pairs, read

CACHE: Final = ROOT / ".cache" / "image"
PLATFORMS: Final = ("linux/amd64", "linux/arm64")
#: Where stages work; what another one copies is named by its path in there.
_WORKDIR: Final = "/build/"
_FRAME: Final = (
    "import json, sys; print(json.dumps([sys.version_info[:3], sys.base_prefix, __import__('site').getsitepackages()]))"
)


class ImageUnavailable(Exception):
    """The Dockerfile cannot be played on this machine; the message is one line that says why."""


class StepFailed(Exception):
    """A line of the Dockerfile failed; the message has the line and what it said last."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that plays the image's: its program, its full version, and the folder that it was installed to."""

    program: str
    version: str
    prefix: Path

    @property
    def minor(self) -> str:
        """Such as `3.11`."""
        return self.version.rpartition(".")[0]


@dataclass(slots=True)
class Configuration:
    """What the image says about how it runs."""

    environment: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    user: str = ""
    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """What was played: the folders that the last stage lays over each other, in order, and the configuration."""

    layers: tuple[Path, ...]
    configuration: Configuration

    def unpack(self, folder: Path) -> None:
        """Lay the layers over each other in `folder`; files are linked where that is on the same disk."""
        for layer in self.layers:
            shutil.copytree(layer, folder, symlinks=True, dirs_exist_ok=True, copy_function=_link)


def find_interpreter(recipe: Recipe, environment: Mapping[str, str] = os.environ) -> Interpreter:
    """A Python of the image's minor version: the one that runs, else one on the PATH. Raises ImageUnavailable."""
    if not sys.platform.startswith("linux"):
        raise ImageUnavailable("the image's lines can be played on Linux alone")
    minor = recipe.python.rpartition(".")[0]
    programs = [sys.executable, shutil.which(f"python{minor}", path=environment.get("PATH", ""))]
    for program in filter(None, programs):
        asked = subprocess.run([program, "-c", _FRAME], capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            continue
        version, prefix, sites = json.loads(asked.stdout)
        if version[:2] == [int(part) for part in minor.split(".")] and all(
            path.endswith("site-packages") for path in sites
        ):
            return Interpreter(str(program), ".".join(map(str, version)), Path(prefix))
    raise ImageUnavailable(
        f"the image has Python {recipe.python}, and there is no Python {minor} here (Debian's own does not do)"
    )


def play(
    platform: str,
    arguments: Mapping[str, str] | None = None,
    announce: Callable[[str], None] = print,
    cache: Path = CACHE,
    recipe: Recipe | None = None,
) -> Image:
    """Play the Dockerfile, or another one, for a platform such as `linux/arm64`.

    Raises ImageUnavailable, NotUnderstood and StepFailed.
    """
    recipe = recipe or read(DOCKERFILE.read_text())
    given = {"TARGETARCH": platform.partition("/")[2], "BUILDPLATFORM": "", **(arguments or {})}
    return _Play(recipe, given, find_interpreter(recipe), announce, cache).last()


class _Play:
    """One run through the stages that the last one needs."""

    def __init__(
        self,
        recipe: Recipe,
        given: Mapping[str, str],
        interpreter: Interpreter,
        announce: Callable[[str], None],
        cache: Path,
    ) -> None:
        self._recipe = recipe
        self._stages = {stage.name: stage for stage in recipe.stages}
        self._given = given
        self._interpreter = interpreter
        self._announce = announce
        self._cache = cache

    def last(self) -> Image:
        stage = self._recipe.stages[-1]
        if stage.base != "scratch":
            raise NotUnderstood(f"the last stage starts from {stage.base}")
        values = self._values(stage)
        configuration = Configuration()
        layers = []
        for step in stage.instructions:
            if step.name == "COPY":
                source, target = step.text.split()
                if target != "/":
                    raise NotUnderstood(f"COPY to {target}")
                layers.append(self.stage(step.flag("from")) / source.removeprefix(_WORKDIR))
            elif step.name != "ARG":
                _configure(configuration, step, values)
        return Image(tuple(layers), configuration)

    def stage(self, name: str) -> Path:
        """The folder of a stage, played if it is not kept."""
        stage = self._stages[name]
        folder = self._cache / f"{name}-{self._fingerprint(stage)}"
        if not folder.is_dir():
            self._announce(f"playing the stage {name} of the Dockerfile")
            self._cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".playing-", dir=self._cache) as temporary:
                staging = Path(temporary) / name
                staging.mkdir()
                self._perform(stage, staging, Path(temporary) / "bin")
                # Two runs at a time may make the same; the first to be ready counts.
                if not folder.is_dir():
                    staging.rename(folder)
        return folder

    def _perform(self, stage: Stage, folder: Path, programs: Path) -> None:
        programs.mkdir()
        # No link: a Python finds what belongs to it by the path that it was started by.
        (programs / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(self._interpreter.program)} "$@"\n')
        (programs / "python3").chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= self._environment(stage) | self._values(stage)
        environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        for step in stage.instructions:
            if step.name == "COPY":
                self._copy(step, folder)
            elif step.name == "RUN":
                command = ["/bin/sh", "-c", step.text]
                ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
                if ran.returncode != 0:
                    raise StepFailed(f"stage {stage.name}: {' '.join(ran.stderr.strip().splitlines()[-3:])}")

    def _copy(self, step: Instruction, folder: Path) -> None:
        *sources, target = step.text.split()
        if step.flag("from"):
            if step.flag("from") != "base" or sources != ["/"]:
                raise NotUnderstood(f"COPY --from={step.flag('from')} {step.text}")
            base_image(self._interpreter, folder / target)
            return
        for source in sources:
            for path in _of_context(source):
                to = folder / target / path.relative_to(source) if target != "./" else folder / path
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, to)

    def _lineage(self, stage: Stage) -> list[Stage]:
        """The stage after those that it starts from."""
        parent = self._stages.get(stage.base)
        return [*(self._lineage(parent) if parent else []), stage]

    def _environment(self, stage: Stage) -> dict[str, str]:
        steps = [step for each in self._lineage(stage) for step in each.instructions if step.name == "ENV"]
        return {name: value for step in steps for name, value in pairs(step.text).items()}

    def _values(self, stage: Stage) -> dict[str, str]:
        """What the stage's arguments are: given, else its own default, else that of the Dockerfile."""
        asked = {n: v for step in stage.instructions if step.name == "ARG" for n, v in pairs(step.text).items()}
        return {name: self._given.get(name, own or self._recipe.arguments.get(name, "")) for name, own in asked.items()}

    def _fingerprint(self, stage: Stage) -> str:
        """Changes with whatever may change what the stage comes to."""
        known = hashlib.sha256(repr((self._lineage(stage), self._values(stage), self._interpreter)).encode())
        for step in stage.instructions:
            if step.name == "COPY" and not step.flag("from"):
                for path in (path for source in step.text.split()[:-1] for path in _of_context(source)):
                    known.update(f"\0{path}\0".encode() + (ROOT / path).read_bytes())
        return known.hexdigest()[:16]


def base_image(interpreter: Interpreter, folder: Path) -> None:
    """What plays the base image: the interpreter's own files where that has Python, and the users that Debian has."""
    local = folder / "usr" / "local"
    library = f"lib/python{interpreter.minor}"
    # As in the image: without tests, and without bytecode.
    left_out = shutil.ignore_patterns("test", "tests", "idle_test", "__pycache__", "site-packages", "config-*")
    shutil.copytree(interpreter.prefix / library, local / library, symlinks=True, ignore=left_out)
    (local / "bin").mkdir()
    shutil.copy2(interpreter.prefix / "bin" / f"python{interpreter.minor}", local / "bin")
    for name in ("python3", "python"):
        (local / "bin" / name).symlink_to(f"python{interpreter.minor}")
    for path in sorted((interpreter.prefix / "lib").glob("libpython*.so*")):
        shutil.copy2(path, local / "lib", follow_symlinks=False)
    # Something that the lines have to take away.
    for path in (local / library / "site-packages" / "pip" / "__init__.py", local / "bin" / "pip3"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('pip')\n")
    (folder / "etc").mkdir()
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (folder / "etc" / "group").write_text("root:x:0:\n")


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _configure(configuration: Configuration, step: Instruction, values: Mapping[str, str]) -> None:
    match step.name:
        case "ENV":
            configuration.environment |= {n: filled(v, values) for n, v in pairs(step.text).items()}
        case "LABEL":
            configuration.labels |= {n: filled(v, values) for n, v in pairs(step.text).items()}
        case "USER":
            configuration.user = step.text
        case "EXPOSE":
            configuration.ports = tuple(step.text.split())
        case "ENTRYPOINT":
            configuration.entry_point = tuple(json.loads(step.text))
        case "CMD":
            configuration.command = tuple(json.loads(step.text))
        case _:
            raise NotUnderstood(f"{step.name} in the last stage")


def _of_context(source: str) -> list[Path]:
    """The files of the context that a COPY names. Raises NotUnderstood when there are none, as a build would."""
    found = [path for path in files(ROOT) if path == Path(source) or Path(source) in path.parents]
    if not found:
        raise NotUnderstood(f"COPY {source}: no such file for the build")
    return found
