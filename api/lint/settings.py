"""What a validation depends on besides the manifest: which advice is wanted, and which features are switched on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LintSettings:
    """`advice`: warnings about what is legal but unwise. `kubelet_expressions`: the feature gate NodeClassCEL."""

    advice: bool = True
    kubelet_expressions: bool = False
