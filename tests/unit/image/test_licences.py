"""Which licences may be in the image: what is known and allowed, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from image.holdings import Distribution
from image.licences import Row, Rules, allowed, page, problems, rows, rules

RULES = Rules(
    allowed={"MIT": "notice stays", "Apache-2.0": "ours", "GPL-3.0-or-later WITH GCC-exception-3.1": "run-time"},
    words={"Apache 2.0": "Apache-2.0", "OSI Approved :: MIT License": "MIT"},
    distributions={},
    bundled={},
    texts={},
)


def distribution(expression: str = "", **more: object) -> Distribution:
    return Distribution("sample", "1.0", expression, **{"texts": ("LICENSE",), **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("licence", "may"),
    [
        ("MIT", True),
        ("MIT AND Apache-2.0", True),
        ("MIT OR AGPL-3.0-only", True),
        ("MIT AND AGPL-3.0-only", False),
        ("(MIT OR AGPL-3.0-only) AND Apache-2.0", True),
        ("(MIT AND AGPL-3.0-only) OR GPL-2.0-only", False),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", True),
        ("GPL-3.0-or-later", False),
    ],
)
def test_all_parts_of_and_and_one_of_or(licence: str, may: bool) -> None:
    assert allowed(licence, RULES) is may


@pytest.mark.parametrize(
    ("found", "licence"),
    [
        (distribution("MIT"), "MIT"),
        (distribution(stated="Apache 2.0"), "Apache-2.0"),
        (distribution(stated="MIT"), "MIT"),
        (distribution(stated="see the file", classifiers=("OSI Approved :: MIT License",)), "MIT"),
        (distribution(classifiers=("OSI Approved :: BSD License",)), ""),
        (distribution("Proprietary"), ""),
        (distribution(), ""),
    ],
)
def test_what_metadata_say(found: Distribution, licence: str) -> None:
    assert rows([found], RULES) == (Row("sample", "1.0", licence),)


def test_a_row_of_the_table_counts_before_what_metadata_say() -> None:
    known = Rules(RULES.allowed, {}, {"sample": {"licence": "Apache-2.0"}}, {}, {})
    assert rows([distribution("MIT")], known) == (Row("sample", "1.0", "Apache-2.0"),)


def test_what_is_in_the_way_is_said() -> None:
    assert problems([distribution("MIT")], RULES) == ()
    [unknown] = problems([distribution(stated="do what you like")], RULES)
    assert unknown.startswith("sample 1.0: nobody knows its licence")
    [refused] = problems([distribution("AGPL-3.0-only")], RULES)
    assert refused.startswith("sample 1.0: AGPL-3.0-only is not among")
    assert problems([distribution("MIT", texts=())], RULES) == ("sample 1.0: there is no text of its licence in it",)


def test_a_library_that_is_carried_along_has_a_licence_of_its_own() -> None:
    found = distribution("MIT", bundled=("libgfortran",))
    [unknown] = problems([found], RULES)
    assert unknown.startswith("libgfortran (in sample 1.0): nobody knows")
    row = {"libgfortran": {"licence": "GPL-3.0-or-later WITH GCC-exception-3.1"}}
    assert problems([found], Rules(RULES.allowed, {}, {}, row, {})) == ()


def test_a_row_that_nothing_needs_is_a_problem() -> None:
    known = Rules(
        RULES.allowed, {}, {"gone": {"licence": "MIT"}}, {"libgone": {"licence": "MIT"}}, {"sample": "has none"}
    )
    assert len(problems([distribution("MIT")], known)) == 3


def test_the_list_tells_where_each_thing_is() -> None:
    here, there = Row("a", "1", "MIT"), Row("b", "2", "MIT", "a 1")
    assert page({"linux/amd64": [here, there], "linux/arm64": [here]}).splitlines()[2:] == [
        "| a | 1 | MIT |  | linux/amd64, linux/arm64 |",
        "| b | 2 | MIT | a 1 | linux/amd64 |",
    ]


def test_every_row_of_our_table_is_spdx_and_allowed_and_says_why() -> None:
    known = rules()
    for said in (*known.distributions.values(), *known.bundled.values()):
        assert allowed(said["licence"], known)
        assert said["because"]
    assert all(allowed(licence, known) for licence in known.words.values())
    assert all(known.allowed.values())
    for strict in ("GPL-3.0-only", "GPL-2.0-or-later", "AGPL-3.0-or-later", "SSPL-1.0", "BUSL-1.1"):
        assert not allowed(strict, known)
