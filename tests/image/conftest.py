"""The image, played once for all tests of this folder.

That takes minutes when nothing is kept of an earlier run: `make test` plays it before the tests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from image.holdings import Distribution, installed
from image.player import PLATFORMS, Image, ImageUnavailable
from image.recipe import DOCKERFILE, Recipe, read
from tests.needed import needed

from .images import Container, find_images, played


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    return read(DOCKERFILE.read_text())


@pytest.fixture(scope="session")
def images() -> Mapping[str, Image]:
    """The image of each platform; where it cannot be played the tests are skipped, in CI that is a failure."""

    def all_platforms() -> Mapping[str, Image]:
        find_images()
        return {platform: played(platform) for platform in PLATFORMS}

    return needed(all_platforms, "image", ImageUnavailable)


@pytest.fixture(scope="session")
def holdings(images: Mapping[str, Image]) -> Mapping[str, tuple[Distribution, ...]]:
    """What each platform's image holds."""
    return {platform: installed(image) for platform, image in images.items()}


@pytest.fixture(scope="session")
def container(images: Mapping[str, Image]) -> Iterator[Container]:
    """The image for this machine, unpacked where another user comes to, and closed to writing."""
    machine = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}[os.uname().machine]
    # Not under pytest's own temporary folder, which is closed to others.
    root = Path(tempfile.mkdtemp(prefix="kerf-image-"))
    try:
        images[machine].unpack(root)
        _chmod(root, lambda mode: mode & ~0o222 | 0o555)
        yield Container(root, images[machine].configuration)
    finally:
        _chmod(root, lambda mode: mode | 0o700)
        shutil.rmtree(root)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that anybody may write to, as a container's /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="kerf-scratch-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def _chmod(root: Path, change: Callable[[int], int]) -> None:
    for path in (root, *root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(change(path.stat().st_mode & 0o7777))
