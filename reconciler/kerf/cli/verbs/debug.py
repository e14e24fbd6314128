"""`kerf debug`: what one asks of a running controller when its status is not enough."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from kerf.cli.operating import debug_port
from kerf.cli.operating.debug_port import Silent
from kerf.cli.parser import meant
from kerf.cli.terminal import say

_USAGE: Final = f"""\
kerf debug log-level [debug|info|error] [--for DURATION] [--url URL]
kerf debug threads [--url URL]
kerf debug profile [--seconds N] [--url URL]

log-level: the current level, or a new one for 15 minutes or --for, then the configured one again.
threads: the stack of each thread. (When nothing answers: kill -USR1 writes the same to standard error.)
profile: the CPU time of some seconds as folded stacks, the input of flame graphs.

{debug_port.WHERE.format(command="kerf debug threads")}

  --for DURATION      such as 30m; 24h at most
  --seconds N         duration of the profile; 10 by default, 120 at most
  --url URL           where the debug port is; http://127.0.0.1:8082 by default, or DEBUG_PORT

Exit codes: 0 done; 2 no answer, or the command is wrong."""


_OPTIONS: Final = ("--for", "--seconds", "--url", "--help")


def debug(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="log-level, threads or profile")] = "",
    level: Annotated[str, typer.Argument(help="of log-level: debug, info or error")] = "",
    span: Annotated[str, typer.Option("--for", help="duration of the log level")] = "",
    seconds: Annotated[float, typer.Option(help="duration of the profile")] = 10,
    url: Annotated[str, typer.Option(help="URL of the debug port, such as http://127.0.0.1:8081")] = "",
) -> None:
    """Of a running controller: change the log level for a time, show its threads, take a profile."""
    if {"-h", "--help"} & {what, level, *context.args}:
        say(_USAGE, prose=True)
        return
    if not what:
        say(_USAGE, err=True, prose=True)
        raise typer.Exit(2)
    try:
        unknown = next((word for word in (what, level, *context.args) if word.startswith("-")), "")
        if unknown:
            raise Silent(f"there is no option {unknown}{meant(unknown, _OPTIONS)}")
        say(_asked(what, level, span, seconds, url).decode(), end="")
    except Silent as error:
        raise debug_port.fail("debug", error) from error


def _asked(what: str, level: str, span: str, seconds: float, url: str) -> bytes:
    if what == "log-level" and level:
        query = {"level": level, **({"for": span} if span else {})}
        return debug_port.ask(url, "/debug/log-level", query, method="PUT")
    if what in ("log-level", "threads"):
        return debug_port.ask(url, f"/debug/{what}")
    if what == "profile":
        return debug_port.ask(url, "/debug/profile", {"seconds": f"{seconds:g}"}, seconds=seconds + 15)
    near = meant(what, ("log-level", "threads", "profile"))
    raise Silent(f"{what!r} is neither log-level, threads nor profile{near}")
