"""The figures that say whether the house can be walked, with their limits."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.house import sizes
from tests.house.calls import Calls
from tests.house.imports import circle, imports
from tests.house.plain_pod import files_entered
from tests.sources import FOLDERS, ROOT

#: Of all lines, in percent; modules in one folder; files of scheduling that a plain pod passes; stations of calls.
ROOM_SHARE, MODULES, FILES, CHAIN = 15.0, 20, 28, 16
PARAMETERS, FUNCTION_LINES, ATTRIBUTES, FILE_LINES = 7, 40, 10, 400
#: Classes with more attributes than the limit are listed here, with their number and the reason for each.
WIDE: Final = "docs/decisions/0011-wide-classes.md"
_ROW: Final = re.compile(r"^\| `([^`]+)` \| (\d+) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: `value` and `limit` as they are printed; `beyond` what breaks the limit, each with its place."""

    name: str
    value: str
    limit: str
    beyond: tuple[str, ...] = ()


def figures() -> Iterator[Figure]:
    """All figures of the product's sources, tests apart."""
    files = sizes.modules()
    yield from of_rooms(files)
    yield from of_functions(files)
    yield of_attributes(files)
    yield complexity()
    yield from of_walks(files)


def of_rooms(files: Mapping[str, Path]) -> Iterator[Figure]:
    """Shares of rooms and folders, and circles of imports."""
    lines, modules = sizes.lines_of_folders(files), sizes.modules_of_folders(files)
    whole, all_lines = Counter[str](), sum(lines.values())
    for folder, count in lines.items():
        whole["/".join(folder.split("/")[:3])] += count
    yield _share("largest room, with the rooms in it", whole, all_lines)
    yield _share("largest folder by itself", lines, all_lines)
    yield _most("modules in one folder", dict(modules), MODULES)
    yield _most("lines of a file", {_path(path): _lines(path) for path in files.values()}, FILE_LINES)
    found = circle(imports(files))
    yield Figure("circles of imports", str(int(bool(found))), "0", (" → ".join(found),) if found else ())


def of_functions(files: Mapping[str, Path]) -> Iterator[Figure]:
    """Lines and parameters of functions."""
    found = dict(sizes.functions(files))
    yield _most("lines of a function", {place: sizes.length(one) for place, one in found.items()}, FUNCTION_LINES)
    yield _most("parameters of a function", {place: sizes.parameters(one) for place, one in found.items()}, PARAMETERS)


def of_attributes(files: Mapping[str, Path]) -> Figure:
    """Attributes of classes; one that the decision record lists may have as many as it says, and must need its row."""
    counts, text = sizes.attributes(files), (ROOT / WIDE).read_text(encoding="utf-8")
    listed = {name: int(number) for name, number in _ROW.findall(text)}
    other = {k: v for k, v in counts.items() if v > listed.get(k, 0)}
    figure = _most("attributes of a class", other, ATTRIBUTES)
    idle = tuple(f"{WIDE}: {k} has {counts.get(k, 0)}" for k in sorted(listed) if counts.get(k, 0) <= ATTRIBUTES)
    return replace(figure, beyond=(*figure.beyond, *idle))


def complexity() -> Figure:
    """Functions with more independent ways through them than pyproject.toml allows, as ruff counts them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    limit = project["tool"]["ruff"]["lint"]["mccabe"]["max-complexity"]
    rule = ("--select", "C901", "--output-format", "concise")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--quiet", *rule, *FOLDERS.values()]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    beyond = tuple(line for line in said if "C901" in line)
    return Figure(f"functions of a complexity over {limit}", str(len(beyond)), "0", beyond)


def of_walks(files: Mapping[str, Path]) -> Iterator[Figure]:
    """How far a reader goes who follows a call, or a plain pod."""
    entered = files_entered()
    over = (", ".join(entered),) if len(entered) > FILES else ()
    yield Figure("files of scheduling that a plain pod enters", str(len(entered)), str(FILES), over)
    chain = Calls.of(files).longest()
    over = (" → ".join(chain),) if len(chain) > CHAIN else ()
    yield Figure("stations of the longest chain of calls", str(len(chain)), str(CHAIN), over)


def _share(name: str, lines: Mapping[str, int], total: int) -> Figure:
    shares = {folder: 100 * count / total for folder, count in lines.items()}
    beyond = tuple(f"{folder}: {share:.1f} %" for folder, share in shares.items() if share > ROOM_SHARE)
    return Figure(name, f"{max(shares.values()):.1f} %", f"{ROOM_SHARE:.0f} %", beyond)


def _most(name: str, counts: Mapping[str, int], limit: int) -> Figure:
    over = sorted(((count, place) for place, count in counts.items() if count > limit), reverse=True)
    beyond = tuple(f"{place}: {count}" for count, place in over)
    return Figure(name, str(max(counts.values(), default=0)), str(limit), beyond)


def _path(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())
