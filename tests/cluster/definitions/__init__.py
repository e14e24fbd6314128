"""Karpenter's definitions of older releases, out of the modules of those releases: nothing of them is kept here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

from ..binaries import ControlPlaneUnavailable

HERE: Final = Path(__file__).parent
#: The releases, by the names of folders with a go.mod each.
RELEASES: Final = ("1.0", "1.4", "1.8")
_CORE, _AWS = "sigs.k8s.io/karpenter", "github.com/aws/karpenter-provider-aws"


def of(release: str) -> list[Path]:
    """The files of the definitions of NodePool, NodeClaim and EC2NodeClass. Raises ControlPlaneUnavailable."""
    command = ["go", "mod", "download", "-json", _CORE, _AWS]
    try:
        done = subprocess.run(
            command, cwd=HERE / release, capture_output=True, text=True, check=True, timeout=300
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ControlPlaneUnavailable(f"Karpenter {release} cannot be downloaded: {error}") from error
    found = _objects(done)
    return [
        *(Path(found[_CORE]) / f"pkg/apis/crds/karpenter.sh_{kind}.yaml" for kind in ("nodepools", "nodeclaims")),
        Path(found[_AWS]) / "pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml",
    ]


def _objects(text: str) -> dict[str, str]:
    """The folders of the modules, by path, of JSON objects that follow one another."""
    decoder, found, at = json.JSONDecoder(), dict[str, str](), 0
    while at < len(text.rstrip()):
        row, at = decoder.raw_decode(text, at)
        found[row["Path"]] = row["Dir"]
        at += len(text[at:]) - len(text[at:].lstrip())
    return found
