"""`kerf top`: nodes, pending pods, next disruptions and costs in a terminal. It only reads."""

from __future__ import annotations

import signal
import sys
from typing import Final

import typer

from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Mistake, exits
from kerf.cli.terminal import dumb, say, width

_USAGE: Final = """\
kerf top [--kubeconfig FILE] [--context NAME] [settings]
kerf top --snapshot FILE
kerf top --record DIR [--at TIME]
kerf top -f PATH [-f PATH ...] [settings]

Shows nodes with their requests, price and blockers, pending pods, next disruptions and costs in the terminal.
A live cluster is read every 30 seconds with your own credentials, and AWS as the controller reads it.

  1 2 3 4             nodes, pending pods, next disruptions, costs
  Up Down j k         the previous or next row; PageUp and PageDown by pages, Home and End to the ends
  s                   the next order of nodes
  /                   filter nodes by name, NodePool, type, zone, workload or blocker
  Enter               the answer of `kerf why` for the row; Esc leaves it
  p                   the pods of the node with their requests; Esc leaves them
  q                   quit

  --snapshot FILE     what `kerf snapshot` saved; neither the cluster nor AWS is asked
  --record DIR        the record of a controller (RECORD_FOLDER), one of its files, or s3://BUCKET/PREFIX: the cluster
                      of its last decision
  --at TIME           with --record: the cluster of the latest decision up to then; RFC 3339, UTC without a zone
  -f, --file PATH     a file or a folder: what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig

Settings are those of `kerf run` (flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
Exit codes: 0 ended by q; 1 something cannot be read; 2 the command is wrong, or there is no terminal."""
_EVERY_SECONDS: Final = 0.5


def top(
    context: typer.Context,
    file: Files = None,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    """Show nodes, costs, pending pods and next disruptions in the terminal."""
    if {"-h", "--help"} & {*context.args}:
        say(_USAGE, prose=True)
        return

    with exits("top"):
        if not sys.stdin.isatty():
            fix = "save the objects to a file" if "-" in (file or []) else "use kerf ui, or kerf why"
            raise Mistake(f"standard input: not a terminal, and kerf top reads keys from it: {fix}")
        if not width(sys.stdout) or dumb():
            raise Mistake("standard output: not a terminal with a cursor: use kerf ui, or kerf why")
        _run(context.args, file or [], (kubeconfig, kube_context))


def _run(arguments: list[str], paths: list[str], where: tuple[str, str]) -> None:
    """Until a key ends it. Raises Mistake, PortError."""
    from rich.console import Console
    from rich.live import Live

    from kerf.cli.answering import captures
    from kerf.cli.answering.boards import Boards
    from kerf.cli.top import drawing, keyboard
    from kerf.cli.top.state import State

    boards, console = Boards(captures.origin("top", arguments, paths, where)), Console()
    descriptor, keys = sys.stdin.fileno(), keyboard.Keys(sys.stdin.fileno())
    state = State(boards.current)
    state.show(boards.current)
    boards.start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the terminal is set back first
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # a shell would get a terminal without echo
    try:
        with keyboard.single_keys(descriptor), Live(console=console, screen=True, auto_refresh=False) as live:
            going = True
            while going:
                if state.board is not boards.current:
                    state.show(boards.current)
                if not keys.waiting:  # a paste is drawn once
                    live.update(drawing.draw(state, console.size, boards.name, boards.problem), refresh=True)
                going = state.press(keys.next(_EVERY_SECONDS))
    except (EOFError, KeyboardInterrupt):
        return
    finally:
        boards.stop()
