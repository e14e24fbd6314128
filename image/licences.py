"""Whether all that the image holds may be handed on in it, and the list that says under which licence it is.

What metadata say counts, in the words of SPDX; where they say too little, or something else carries along a library,
`licences.yaml` says what it is and how somebody knows. What nobody knows, and what is not on the list of what may be
handed on, is a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from license_expression import LicenseExpression, get_spdx_licensing

from image.holdings import Distribution

TABLE: Final = Path(__file__).with_name("licences.yaml")
_SPDX: Final = get_spdx_licensing()


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the image holds; `part_of` names the distribution that carries it along, if one does."""

    name: str
    version: str
    licence: str
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """`licences.yaml`, read."""

    allowed: Mapping[str, str]
    words: Mapping[str, str]
    distributions: Mapping[str, Mapping[str, str]]
    bundled: Mapping[str, Mapping[str, str]]
    texts: Mapping[str, str]


def rules(path: Path = TABLE) -> Rules:
    """The rules of the file."""
    read: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return Rules(**read)


def rows(distributions: Iterable[Distribution], known: Rules) -> tuple[Row, ...]:
    """What there is, by name; a licence that nobody knows is empty."""
    return tuple(row for each in distributions for row in _rows(each, known))


def problems(distributions: Iterable[Distribution], known: Rules) -> tuple[str, ...]:
    """What is in the way of handing it on, a line each; of all platforms together, so that no row is stale on one."""
    everything = tuple(distributions)
    found = [line for row in rows(everything, known) for line in _problems(row, known)]
    found += [
        f"{each.name} {each.version}: there is no text of its licence in it"
        for each in everything
        if not each.texts and each.name not in known.texts
    ]
    return tuple(sorted({*found, *_stale(everything, known)}))


def allowed(licence: str, known: Rules) -> bool:
    """Whether an expression of SPDX lets something be handed on: all that AND joins, one of those that OR joins."""
    return _allowed(_SPDX.parse(licence, validate=True), known)


def page(rows_of: Mapping[str, Iterable[Row]]) -> str:
    """The list as Markdown, a row for each thing, and on which platforms it is."""
    where: dict[Row, list[str]] = {}
    for platform, found in rows_of.items():
        for row in found:
            where.setdefault(row, []).append(platform)
    head = ["| name | version | licence | part of | platforms |", "|---|---|---|---|---|"]
    lines = (
        f"| {row.name} | {row.version} | {row.licence} | {row.part_of} | {', '.join(where[row])} |"
        for row in sorted(where, key=lambda each: (each.name, each.version))
    )
    return "\n".join([*head, *lines]) + "\n"


def _rows(distribution: Distribution, known: Rules) -> Iterator[Row]:
    yield Row(distribution.name, distribution.version, _licence(distribution, known))
    for library in distribution.bundled:
        said = known.bundled.get(library, {})
        yield Row(library, "", said.get("licence", ""), part_of=f"{distribution.name} {distribution.version}")


def _licence(distribution: Distribution, known: Rules) -> str:
    if distribution.name in known.distributions:
        return known.distributions[distribution.name]["licence"]
    for said in (distribution.expression, distribution.stated, *distribution.classifiers):
        licence = known.words.get(said, said)
        if licence and _is_spdx(licence):
            return licence
    return ""


def _is_spdx(text: str) -> bool:
    return not _SPDX.validate(text).errors


def _problems(row: Row, known: Rules) -> Iterator[str]:
    name = f"{row.name} {row.version}".strip() + (f" (in {row.part_of})" if row.part_of else "")
    if not row.licence:
        yield f"{name}: nobody knows its licence; read its text and add it to image/licences.yaml"
    elif not allowed(row.licence, known):
        yield f"{name}: {row.licence} is not among what may be handed on in the image (image/licences.yaml)"


def _allowed(expression: LicenseExpression, known: Rules) -> bool:
    if isinstance(expression, _SPDX.OR):
        return any(_allowed(each, known) for each in expression.args)
    if isinstance(expression, _SPDX.AND):
        return all(_allowed(each, known) for each in expression.args)
    return str(expression) in known.allowed


def _stale(distributions: Iterable[Distribution], known: Rules) -> Iterator[str]:
    everything = tuple(distributions)
    there = {each.name for each in everything}
    libraries = {library for each in everything for library in each.bundled}
    without_text = {each.name for each in everything if not each.texts}
    for name in sorted(set(known.distributions) - there):
        yield f"image/licences.yaml: distributions: {name} is not in the image"
    for name in sorted(set(known.bundled) - libraries):
        yield f"image/licences.yaml: bundled: {name} is not in the image"
    for name in sorted(set(known.texts) - without_text):
        yield f"image/licences.yaml: texts: {name} is not in the image, or has a text"
