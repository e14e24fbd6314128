"""Reading the Dockerfile: its stages and their instructions, with the defaults of its arguments.

Whether it is well-formed is hadolint's business (`make check`); this reads what ours has and refuses the rest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DOCKERFILE: Final = ROOT / "Dockerfile"

_FLAG: Final = re.compile(r"--(?P<name>[a-z]+)=(?P<value>\S+)\s+")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


class NotUnderstood(Exception):
    """The Dockerfile has something that is not read here; the message is one line that says what."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, its flags (`--from=base`), and the rest as one line."""

    name: str
    flags: tuple[tuple[str, str], ...]
    text: str

    def flag(self, name: str) -> str:
        """The value of a flag, or nothing."""
        return dict(self.flags).get(name, "")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its name (of the last one: empty), what it starts from, on which platform, and what follows."""

    name: str
    base: str
    platform: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile: the arguments before the first stage with their defaults, and the stages."""

    arguments: Mapping[str, str]
    stages: tuple[Stage, ...]

    @property
    def base_image(self) -> str:
        """The image that it starts from, such as `python:3.11.15-slim-trixie`."""
        return self.arguments["BASE_IMAGE"]

    @property
    def python(self) -> str:
        """The full version of the image's Python, as the name of the base image tells it."""
        return self.base_image.partition(":")[2].partition("-")[0]


def read(text: str) -> Recipe:
    """Read a Dockerfile. Raises NotUnderstood."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for instruction in _instructions(text):
        if instruction.name == "FROM":
            base, _, name = instruction.text.partition(" AS ")
            stages.append(Stage(name, filled(base, arguments), instruction.flag("platform"), ()))
        elif stages:
            last = stages[-1]
            stages[-1] = Stage(last.name, last.base, last.platform, (*last.instructions, instruction))
        elif instruction.name == "ARG":
            arguments |= pairs(instruction.text)
        else:
            raise NotUnderstood(f"{instruction.name} before the first FROM")
    return Recipe(arguments, tuple(stages))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its `${NAME}` filled in; what has no value is empty, as in a Dockerfile."""
    return _VARIABLE.sub(lambda found: values.get(found[1], ""), text)


def pairs(text: str) -> dict[str, str]:
    """The names and values of ENV, LABEL and ARG; a name alone has an empty value."""
    return {name: value for name, _, value in (word.partition("=") for word in shlex.split(text))}


def _instructions(text: str) -> Iterator[Instruction]:
    for line in _lines(text):
        name, _, rest = line.partition(" ")
        flags = []
        while (found := _FLAG.match(rest)) is not None:
            flags.append((found["name"], found["value"]))
            rest = rest[found.end() :]
        if "<<" in rest:
            raise NotUnderstood(f"{name} with a here-document")
        yield Instruction(name.upper(), tuple(flags), rest)


def _lines(text: str) -> Iterator[str]:
    """Lines without comments, those that end with a backslash joined to the next."""
    begun = ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        begun += line.strip()
        if begun.endswith("\\"):
            begun = begun[:-1].rstrip() + " "
        else:
            yield begun
            begun = ""
