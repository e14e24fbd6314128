"""What a service knows a finding by from one run to the next, wherever in its file the finding moves."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from kerf.manifests.checking import Finding


def fingerprints(findings: Sequence[Finding]) -> list[str]:
    """One text for each finding, no two alike: of its file, object, rule and path, and of how many such there were."""
    seen: Counter[str] = Counter()
    found = []
    for finding in findings:
        parts = (finding.file, finding.subject, finding.problem.rule, finding.problem.path)
        identity = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
        seen[identity] += 1
        found.append(f"{identity}:{seen[identity]}")
    return found
