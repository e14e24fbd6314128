"""`kerf run` and `kerf webhook`: the two programs of the chart."""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext
from kerf.cli.terminal import say


def run(
    context: typer.Context,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    """Run the controller, in a cluster or beside it. Settings are Karpenter's flags and variables."""
    # What is left in the context are settings. Their own parser knows Karpenter's spelling and reports all mistakes.
    from kerf.cli import output
    from kerf.ports import PortError
    from kerf.runtime import program
    from kerf.runtime.process import connecting
    from kerf.runtime.settings import settings

    try:
        options = settings.parse(context.args, os.environ)
        told = settings.effective(context.args, os.environ)
        output.forward(logging.getLogger("standard output").warning)
        code = program.run(options, connecting.Where(kubeconfig, kube_context), told)
    except settings.Help:
        say(f"kerf run [--kubeconfig FILE] [--context NAME] [settings]\n\n{settings.usage()}")
        return
    except settings.SettingsError as error:
        for problem in error.problems:
            say(problem, err=True)
        raise typer.Exit(2) from error
    except PortError as error:
        say(f"cannot start: {error}", err=True)
        raise typer.Exit(1) from error
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End now: all is done, the lease is given up, and only a long poll of the queue would still hold us for 20 s."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


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
