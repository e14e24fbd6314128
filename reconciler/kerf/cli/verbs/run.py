"""`kerf run` and `kerf webhook`: the two programs of the chart."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext
from kerf.cli.terminal import say
from kerf.cli.verbs import controller


def run(
    context: typer.Context,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    """Run the controller, in a cluster or beside it. Settings are Karpenter's flags and variables."""
    # What is left in the context are settings.
    raise typer.Exit(controller.start(kubeconfig, kube_context, context.args))


def webhook(
    context: typer.Context,
    self_signed_dir: Annotated[
        Path | None, typer.Option(help="make a certificate here (ca.crt, tls.crt, tls.key) and serve with it")
    ] = None,
    self_signed_name: Annotated[list[str] | None, typer.Option(help="DNS name of that certificate")] = None,
) -> None:
    """Serve the admission webhook. Flags: --bind, --cert-file, --key-file, --workers, --threads, --log-level."""
    from kerf_webhook import server

    arguments = list(context.args)
    if self_signed_dir is not None:
        from kerf.runtime.secrets.certificates import write_files

        write_files(self_signed_dir, tuple(self_signed_name or ["localhost"]), datetime.now(UTC))
        arguments += ["--cert-file", str(self_signed_dir / "tls.crt"), "--key-file", str(self_signed_dir / "tls.key")]
    try:
        server.run(arguments)
    except (OSError, ValueError) as error:
        say(f"cannot start: {error}", err=True)
        raise typer.Exit(2) from error
    sys.exit(0)
