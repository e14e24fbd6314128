"""What a validation depends on besides the manifest: which advice is wanted, and with which instance types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kerf_api.lint.catalogue import Catalogue, shipped


@dataclass(frozen=True, slots=True)
class LintSettings:
    """How to judge.

    `advice`: warnings about what is legal but unwise. `catalogue`: the instance types that advice knows; None for those
    of us-east-1, which are part of the linter.
    """

    advice: bool = True
    catalogue: Catalogue | None = None

    @property
    def types(self) -> Catalogue:
        """The catalogue to look things up in."""
        return self.catalogue or shipped()


STANDARD: Final = LintSettings()
