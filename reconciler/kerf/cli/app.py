"""The verbs of `kerf` as its help lists them, each in a module that is imported only when it is called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kerf.cli.parser import meant
from kerf.cli.verbs import QUICK

#: The flags of a verb that reads its own command line.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
#: Verbs whose options this module's library reads, each with its module, its function and its settings.
_VERBS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "run": ("run", "run", _PASS_ON),
    "webhook": ("run", "webhook", _PASS_ON),
    "why": ("why", "why", _PASS_ON),
    "snapshot": ("snapshot", "snapshot", _PASS_ON),
    "bundle": ("snapshot", "bundle", _PASS_ON),
    "events": ("events", "events", _PASS_ON),
    "preflight": ("preflight", "preflight", _PASS_ON),
    "settings": ("settings", "settings", _PASS_ON),
    "status": ("status", "status", _PASS_ON),
    "top": ("views.top", "top", _PASS_ON),
    "ui": ("views.ui", "ui", _PASS_ON),
    "ui-server": ("views.ui_server", "ui_server", _PASS_ON),
    "debug": ("debug", "debug", _PASS_ON),
    "migrate": ("migrate", "migrate", _PASS_ON),
    "simulate": ("simulation.simulate", "simulate", _PASS_ON),
    "release": ("release", "release", None),
    "demo": ("show", "demo", None),
    "catalogue": ("catalogue", "command", None),
}


def verbs() -> list[str]:
    """All verbs, in the order of the help."""
    return [*_VERBS, *QUICK]


class Verbs(TyperGroup):
    """A group that makes a command of a verb when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return verbs()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Ends the process with 2 for a verb that there is not, and says which one was meant."""
        word = args[0]
        if not word.startswith("-") and word not in verbs():
            ctx.fail(f"there is no verb {word!r}{meant(word, verbs())}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each verb is for, in whole sentences."""
        found = ((verb, self.get_command(ctx, verb).help or "") for verb in verbs())
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, " ".join(about.partition("\n\n")[0].split())) for verb, about in found])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        if cmd_name in QUICK:
            alone.command(cmd_name, context_settings=_PASS_ON, help=QUICK[cmd_name])(_quick(cmd_name))
        elif cmd_name in _VERBS:
            module, function, settings = _VERBS[cmd_name]
            found = getattr(import_module(f"kerf.cli.verbs.{module}"), function)
            alone.command(cmd_name, context_settings=settings)(found)
        else:
            return None
        return typer.main.get_command(alone)


def _quick(verb: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        raise typer.Exit(import_module(f"kerf.cli.verbs.{verb}").main(context.args))

    return run


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    help="Kerf, a node autoscaler for Kubernetes on AWS.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # logs are read by line
    rich_markup_mode=None,  # and so are complaints
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kerf {version('kerf')}")
        raise typer.Exit


@app.callback()
def kerf(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")] = False,
) -> None:
    """Kerf, a node autoscaler for Kubernetes on AWS that speaks the Karpenter v1 API."""
