"""What `make sbom` and `make licenses` run.

python -m image sbom build/image        # a bill of materials for each platform
python -m image licences build/image    # the list, and 1 when something may not be in the image
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from image import licences, sbom
from image.holdings import Distribution, installed
from image.player import PLATFORMS, Image, ImageUnavailable, StepFailed, play
from image.recipe import DOCKERFILE, ROOT, read


def main(arguments: list[str]) -> int:
    """Do what the command line says; 0 when it is done and nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m image", description="What the container image holds.")
    parser.add_argument("what", choices=["sbom", "licences"])
    parser.add_argument("folder", type=Path, help="where to write")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    try:
        images = {platform: play(platform, {"REVISION": commit()}) for platform in PLATFORMS}
    except (ImageUnavailable, StepFailed) as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    return write_bills(images, chosen.folder) if chosen.what == "sbom" else write_list(images, chosen.folder)


def write_bills(images: dict[str, Image], folder: Path) -> int:
    """Write `sbom-linux-amd64.cdx.json` and its like."""
    recipe, known = read(DOCKERFILE.read_text()), licences.rules()
    for platform, image in images.items():
        path = folder / f"sbom-{platform.replace('/', '-')}.cdx.json"
        path.write_text(sbom.bill(platform, recipe, image.configuration, installed(image), known))
        print(path)
    return 0


def write_list(images: dict[str, Image], folder: Path) -> int:
    """Write `licences.md`, and say what is in the way; 1 when something is."""
    known = licences.rules()
    there: dict[str, tuple[Distribution, ...]] = {platform: installed(image) for platform, image in images.items()}
    path = folder / "licences.md"
    path.write_text(licences.page({platform: licences.rows(found, known) for platform, found in there.items()}))
    print(path)
    found = licences.problems([each for found in there.values() for each in found], known)
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


def commit() -> str:
    """The commit that is checked out, with `-dirty` if the tree was changed; empty where there is no Git history."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    try:
        return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
