"""The `kerf` command. Verbs of Git hooks and editors, and the controller, load no framework and no other verb."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final

from kerf.cli import output, terminal
from kerf.cli.verbs import QUICK

#: Set by the shell that asks how a command line may go on.
_COMPLETING: Final = "_KERF_COMPLETE"
#: The exit code of a command that Ctrl-C ended, as shells have it.
_INTERRUPTED: Final = 130
#: What a write to standard output may meet: a full disk, a quota, a device that fails.
_NO_PLACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """Run the verb of the command line. Ends the process with 2 when its output has no place, 130 on an interrupt."""
    if sys.stdout is None:  # closed by the caller: nothing is to be printed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the end)
    else:
        output.keep()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _print_no_more()
        sys.exit(_INTERRUPTED)
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_PLACE:
            raise
        _print_no_more()
        with suppress(OSError):  # of a closed terminal standard error is gone, too
            print(f"{terminal.program()}: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def _print_no_more() -> None:
    """Throw away what is still to be printed, so that the interpreter does not fail at it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> None:
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    plain = sys.argv[2:] != ["--version"] and _COMPLETING not in os.environ
    if verb == "run" and plain:
        sys.exit(import_module("kerf.cli.verbs.controller").main(sys.argv[2:]))
    if verb in QUICK and plain:
        # Thousands of values live until the end; looking for rubbish among them would take as long as reading them.
        gc.disable()
        sys.exit(import_module(f"kerf.cli.verbs.{verb}").main(sys.argv[2:]))
    from kerf.cli.app import app, verbs

    if verb in verbs() and sys.argv[2:] == ["--version"]:
        del sys.argv[1]
    app(prog_name=terminal.program())


if __name__ == "__main__":
    main()
