"""The `kerf` command: every verb in one place, each in a module of its own that is imported only when it is used."""

from __future__ import annotations

import typer

from reconciler.cli import run as programs
from reconciler.cli import show

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Kerf, a node autoscaler for Kubernetes on AWS.",
    pretty_exceptions_enable=False,  # logs are read by line
)
app.command(context_settings=programs.PASS_ON)(programs.run)
app.command(context_settings=programs.PASS_ON)(programs.webhook)
app.command()(show.demo)


@app.callback()
def kerf() -> None:
    """Kerf, a node autoscaler for Kubernetes on AWS that speaks the Karpenter v1 API."""


def main() -> None:
    app()


if __name__ == "__main__":
    main()
