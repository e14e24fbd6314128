"""`kerf status`: how a running controller is doing, in ten seconds, for who is called at night."""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

from kerf.cli.arguments import Output
from kerf.cli.operating import debug_port, status_page
from kerf.cli.operating.debug_port import Silent

_USAGE: Final = f"""\
kerf status [--url URL] [-o FORMAT]

What somebody should look at, who leads, how old the news of each source are, how long looks take, what is under way,
what is left alone after failures, what EC2 has none of, which guards have tripped, what was decided against.

{debug_port.WHERE.format(command="kerf status")}

A replica that waits for the lease answers for itself, and says who leads: ask that pod.

  --url URL           where the debug port is; http://127.0.0.1:8082 by default, or DEBUG_PORT
  -o, --output FORMAT text or json; text by default

Exit codes: 0 all is well; 1 somebody should look; 2 no answer, or the command is wrong."""


def status(
    context: typer.Context,
    url: Annotated[str, typer.Option(help="where the debug port is")] = "",
    output: Output = "text",
) -> None:
    """How a running controller is doing: who leads, how old its news are, what waits, what is held."""
    if "--help" in context.args or "-h" in context.args:
        typer.echo(_USAGE)
        return
    try:
        if context.args or output not in ("text", "json"):
            raise Silent(f"{' '.join(context.args) or output!r} makes no sense here; see kerf status --help")
        found = json.loads(debug_port.ask(url, "/status"))
    except Silent as error:
        raise debug_port.fail("status", error) from error
    typer.echo(json.dumps(found, indent=2) if output == "json" else status_page.page(found), nl=output == "json")
    if found["problems"]:
        raise typer.Exit(1)
