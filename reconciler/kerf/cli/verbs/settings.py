"""`kerf settings`: what `kerf run` would make of this command line and environment, and where each value comes from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Output
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.runtime.settings.settings import Effective

_USAGE: Final = """\
kerf settings [--changed] [-o FORMAT] [settings]

Print every setting with its effective value and its source: a flag, the environment, or the default. All errors of
`kerf run` are listed together. For the settings of a controller run it in the pod, with the flags of the container:
kubectl exec -n NAMESPACE deploy/NAME -- kerf settings

  --changed           only settings that differ from the default
  -o, --output FORMAT text or json; text by default

Exit codes: 0 no error; 2 a setting or the command is invalid."""


def settings(
    context: typer.Context,
    changed: Annotated[bool, typer.Option("--changed", help="only settings that differ from the default")] = False,
    output: Output = "text",
) -> None:
    """Every setting with its effective value, and where that comes from."""
    from kerf.runtime.settings.settings import DEFAULT, Help, SettingsError, effective

    try:
        if output not in ("text", "json"):
            raise SettingsError([f"--output: {output!r} is neither text nor json"])
        rows = [row for row in effective(context.args, os.environ) if not changed or row.source != DEFAULT]
    except Help:
        say(_USAGE, prose=True)
        return
    except SettingsError as error:
        say("\n".join(f"kerf settings: {problem}" for problem in error.problems), err=True)
        raise typer.Exit(2) from error
    if output == "json":
        typer.echo(_as_json(rows))
    else:
        say(_page(rows))


def _as_json(rows: list[Effective]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=2)


def _page(rows: list[Effective]) -> str:
    named = max((len(row.variable) for row in rows), default=0)
    return "\n".join(f"{row.variable:<{named}}  {row.source:<11}  {row.value or '(empty)'}" for row in rows)
