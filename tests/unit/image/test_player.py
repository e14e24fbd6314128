"""Playing a Dockerfile: what its lines leave is kept, what fails leaves nothing, and arguments count."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from image.player import ImageUnavailable, StepFailed, find_interpreter, play
from image.recipe import Recipe, read

PYTHON = platform.python_version()
SAMPLE = """
ARG BASE_IMAGE=python:{python}-slim
ARG WORD=global
FROM --platform=${{BUILDPLATFORM}} ${{BASE_IMAGE}} AS tools
ENV GREETING=hello
FROM tools AS one
ARG WORD
ARG TARGETARCH
COPY LICENSE ./
RUN set -eux; {line}; mkdir -p one/tmp; echo "${{GREETING}} ${{WORD}} ${{TARGETARCH}}" > one/tmp/said
FROM scratch
COPY --from=one /build/one/ /
ARG WORD
ENV SAID="${{WORD}}"
USER 1:2
CMD ["--help"]
"""


def sample(line: str = "test -f LICENSE", python: str = PYTHON) -> Recipe:
    return read(SAMPLE.format(line=line, python=python))


def test_what_its_lines_leave_is_the_image(tmp_path: Path) -> None:
    told: list[str] = []
    image = play("linux/arm64", {"WORD": "given"}, told.append, tmp_path / "cache", sample())
    image.unpack(tmp_path / "root")
    assert (tmp_path / "root" / "tmp" / "said").read_text() == "hello given arm64\n"
    assert image.configuration.environment == {"SAID": "given"}
    assert (image.configuration.user, image.configuration.command) == ("1:2", ("--help",))
    # The second time there is nothing left to do; with another argument there is.
    play("linux/arm64", {"WORD": "given"}, told.append, tmp_path / "cache", sample())
    assert len(told) == 1
    again = play("linux/arm64", {}, told.append, tmp_path / "cache", sample())
    assert len(told) == 2
    assert again.configuration.environment == {"SAID": "global"}


def test_a_line_that_fails_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"stage one: .*the disk is on fire"):
        play("linux/amd64", {}, lambda _: None, tmp_path, sample("echo the disk is on fire >&2; false"))
    assert list(tmp_path.iterdir()) == []


def test_without_the_python_of_the_image_nothing_is_played() -> None:
    with pytest.raises(ImageUnavailable, match=r"no Python 3\.99 here"):
        find_interpreter(sample(python="3.99.1"))
