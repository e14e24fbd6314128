"""The Dockerfile is read as a builder reads it, and keeps what it promises."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from image.recipe import DOCKERFILE, ROOT, Instruction, NotUnderstood, Recipe, filled, pairs, read

SAMPLE = """
# A comment.
ARG BASE_IMAGE=python:3.11.15-slim
ARG EMPTY=
FROM --platform=${BUILDPLATFORM} ${BASE_IMAGE}${EMPTY} AS one
RUN --mount=type=secret,id=pip --mount=type=cache,target=/x \\
    set -e; \\
    # not part of it
    echo "a  b"
FROM scratch
COPY --from=one /build/x/ /
"""


@pytest.fixture
def recipe() -> Recipe:
    return read(DOCKERFILE.read_text())


def test_stages_flags_and_lines_that_go_on() -> None:
    found = read(SAMPLE)
    one, last = found.stages
    assert (one.name, one.base, one.platform) == ("one", "python:3.11.15-slim", "${BUILDPLATFORM}")
    flags = (("mount", "type=secret,id=pip"), ("mount", "type=cache,target=/x"))
    assert one.instructions == (Instruction("RUN", flags, 'set -e; echo "a  b"'),)
    assert (last.name, last.base, last.instructions[0].flag("from")) == ("", "scratch", "one")
    assert found.python == "3.11.15"


@pytest.mark.parametrize("text", ["RUN true\n", "FROM scratch\nRUN cat <<END\nEND\n"])
def test_what_is_not_read_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        read(text)


def test_variables_and_pairs() -> None:
    assert filled("${A}-${B}", {"A": "1"}) == "1-"
    assert pairs('A=1 B="two words" C') == {"A": "1", "B": "two words", "C": ""}


def test_the_base_image_is_pinned_by_a_full_version(recipe: Recipe) -> None:
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", recipe.base_image)
    assert {stage.base for stage in recipe.stages} - {stage.name for stage in recipe.stages} == {
        recipe.base_image,
        "scratch",
    }


def test_its_version_is_that_of_the_project_and_of_the_charts(recipe: Recipe) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert recipe.arguments["VERSION"] == project["version"]
    for chart in ("kerf", "kerf-crd"):
        assert yaml.safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())["appVersion"] == project["version"]


def test_its_python_is_one_that_the_project_supports(recipe: Recipe) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = project["requires-python"].removeprefix(">=").split(".")
    assert [int(part) for part in recipe.python.split(".")[:2]] >= [int(part) for part in least]


def test_no_step_goes_on_after_a_failure(recipe: Recipe) -> None:
    """Not left to SHELL, which builders of OCI images ignore."""
    steps = [step for stage in recipe.stages for step in stage.instructions if step.name == "RUN"]
    assert len(steps) == 3
    assert all(step.text.startswith("set -eux; ") for step in steps)
    assert not any(step.name == "SHELL" for stage in recipe.stages for step in stage.instructions)


def test_it_names_no_address_of_packages() -> None:
    assert not re.search(r"https?://|index-url|find-links|trusted-host", DOCKERFILE.read_text())


def test_nothing_of_the_target_platform_is_run(recipe: Recipe) -> None:
    """So no machine needs an emulator for the other architecture."""
    known = {stage.name: stage for stage in recipe.stages}
    for stage in recipe.stages:
        if any(step.name == "RUN" for step in stage.instructions):
            assert known[stage.base].platform == "${BUILDPLATFORM}"
