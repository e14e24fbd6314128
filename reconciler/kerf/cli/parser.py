"""Command lines of the verbs: a misspelt verb or option gets a suggestion."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any, NoReturn

from kerf.cli.terminal import fitted, spelled, width

_UNKNOWN = "unrecognized arguments: "


class Parser(ArgumentParser):
    """The parser of a verb that loads no framework. An error ends the process with 2."""

    def __init__(self, prog: str, **told: Any) -> None:
        super().__init__(spelled(prog), **told)

    def format_help(self) -> str:
        """The help; in a terminal no line is wider than it."""
        return fitted(super().format_help(), width(sys.stdout), prose=True)

    def error(self, message: str) -> NoReturn:
        words = message.removeprefix(_UNKNOWN).split() if message.startswith(_UNKNOWN) else []
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        super().error(message + (meant(options[0], self._option_string_actions) if options else ""))


def meant(word: str, known: Iterable[str]) -> str:
    """`nearest.meant`, loaded with all rules only when it is asked: a command line that is right does not wait."""
    from kerf_api.lint import nearest

    return nearest.meant(word, known)
