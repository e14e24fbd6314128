"""Which tiers have passed on this state of the sources: a run of hours that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


def state_of_the_sources(root: Path) -> str:
    """The commit and what differs from it, files that Git does not know included; empty outside of a repository."""
    git = ("git", "-C", str(root))
    seen = hashlib.sha256()
    try:
        for command in (("rev-parse", "HEAD"), ("diff", "--binary", "HEAD")):
            seen.update(subprocess.run((*git, *command), check=True, capture_output=True).stdout)
        others = subprocess.run(
            (*git, "ls-files", "-z", "--others", "--exclude-standard"), check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    for name in filter(None, others.stdout.split("\0")):
        seen.update(name.encode() + b"\0" + (root / name).read_bytes())
    return seen.hexdigest()


@dataclass(slots=True)
class Progress:
    """The file that keeps it, and for which state. What passed on another state does not count."""

    file: Path
    state: str
    #: Seconds that each tier took.
    passed: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        kept = json.loads(self.file.read_text(encoding="utf-8")) if self.file.exists() else {}
        self.passed = kept["passed"] if self.state and kept.get("state") == self.state else {}

    def keep(self, tier: str, seconds: float) -> None:
        """Note that a tier has passed."""
        self.passed[tier] = round(seconds, 1)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"state": self.state, "passed": self.passed}, indent=1), encoding="utf-8")
