"""`kerf run` as a process of a chart: it lives for months, and so loads no framework for command lines."""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str]) -> int:
    """Run the controller by the rest of a command line; the exit code."""
    parser = ArgumentParser(prog="kerf run", add_help=False, allow_abbrev=False)
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    given, settings = parser.parse_known_args(arguments)
    return start(given.kubeconfig, given.context, settings)


def start(kubeconfig: str, context: str, arguments: Sequence[str]) -> int:
    """Run the controller in this cluster; the exit code when it cannot start, or has only printed its help."""
    # Karpenter's flags have a parser of their own, which knows their spelling and reports all mistakes.
    from kerf.cli import output
    from kerf.cli.terminal import say
    from kerf.ports import PortError
    from kerf.runtime import program
    from kerf.runtime.process import allocating, connecting
    from kerf.runtime.settings import settings

    allocating.limit_arenas()
    try:
        options = settings.parse(arguments, os.environ)
        told = settings.effective(arguments, os.environ)
        output.forward(logging.getLogger("standard output").warning)
        code = program.run(options, connecting.Where(kubeconfig, context), told)
    except settings.Help:
        say(f"kerf run [--kubeconfig FILE] [--context NAME] [settings]\n\n{settings.usage()}")
        return 0
    except settings.SettingsError as error:
        say("\n".join(error.problems), err=True)
        return 2
    except PortError as error:
        say(f"cannot start: {error}", err=True)
        return 1
    return _leave(code)


def _leave(code: int) -> NoReturn:
    """End now: all is done, the lease is given up, and only a long poll of the queue would still hold us for 20 s."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
