"""`kerf ui`: nodes, costs, pending pods and next disruptions as a page of this machine. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Mistake, exits
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.answering.captures import Origin
    from kerf.cli.web.history import History
    from kerf.cli.web.planned import Planned

_USAGE: Final = """\
kerf ui [--port PORT] [--kubeconfig FILE] [--context NAME] [settings]
kerf ui [--port PORT] --snapshot FILE
kerf ui [--port PORT] -f PATH [-f PATH ...] [settings]
kerf ui [--port PORT] --record DIR

Serves a page on the loopback address of this machine: nodes with their requests, price and blockers; the cost by
NodePool, namespace, label and blocker; pending pods with the edits that help; next disruptions with their budgets;
the decisions of a record; the plan of a change.
The page is for one person on a laptop. It has no login and no TLS, and it changes nothing. Ctrl-C ends the command.

A live cluster is read every 30 seconds with your own credentials, and AWS as the controller reads it.

  --port PORT         the port of the page; 8900 by default, 0 for a free one
  --snapshot FILE     what `kerf snapshot` saved; neither the cluster nor AWS is asked
  -f, --file PATH     a file, a folder, or - : what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --record DIR        the record of a controller (RECORD_FOLDER), one of its files, or s3://BUCKET/PREFIX: its
                      decisions, the price over time, savings, and every view as of a time; later decisions need a new
                      start
  --plan PATH         changed manifests, a file or a folder; repeatable: before and after, as kerf plan computes them
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig

Settings are those of `kerf run` (flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
Exit codes: 0 ended by Ctrl-C; 1 something cannot be read, or the port is in use; 2 the command is wrong."""
_HIGHEST_PORT: Final = 65535


def ui(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="the port of the page; 0 for a free one")] = 8900,
    file: Files = None,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    record: Annotated[str | None, typer.Option(help="the record of a controller", metavar="DIR")] = None,
    plan: Annotated[list[str] | None, typer.Option(help="changed manifests; repeatable", metavar="PATH")] = None,
) -> None:
    """Show nodes, costs, pending pods and next disruptions as a page on this machine."""
    if {"-h", "--help"} & {*context.args}:
        say(_USAGE, prose=True)
        return

    with exits("ui"):
        if not 0 <= port <= _HIGHEST_PORT:
            raise Mistake(f"--port: {port} is not a port: a number from 0 to {_HIGHEST_PORT}")
        origin, history = _origin(context.args, file or [], (kubeconfig, kube_context), record)
        _serve(origin, history, _planned(origin, history, plan) if plan else None, port)


def _origin(
    arguments: list[str], paths: list[str], where: tuple[str, str], record: str | None
) -> tuple[Origin, History | None]:
    """The origin, and its history if it is a record. Raises Mistake."""
    from kerf.cli.answering import captures
    from kerf.cli.web.history import History

    captures.not_empty({"--record": record})
    if record is None:
        return captures.origin("ui", arguments, paths, where), None
    others = (*(["-f"] if paths else []), *(["--kubeconfig or --context"] if any(where) else []), *arguments)
    if others:
        raise Mistake(f"--record and {others[0]} exclude each other: a record has its cluster and settings")
    history = History(record, lambda words: say(f"kerf ui: {words}", err=True))
    return captures.Origin(record, lambda: history.latest().snapshot, capture=history.latest), history


def _planned(origin: Origin, history: History | None, paths: list[str]) -> Planned:
    """The plan of changed manifests. Raises Mistake."""
    from kerf.cli.answering import captures, changed
    from kerf.cli.web.planned import Planned

    assert origin.capture is not None
    return Planned(changed.of_files(paths), origin.capture, captures.digest_key() if history is None else None)


def _serve(origin: Origin, history: History | None, planned: Planned | None, port: int) -> None:
    """Until Ctrl-C. Raises Mistake, PortError."""
    from kerf.cli.answering.boards import Boards
    from kerf.cli.web import server
    from kerf.cli.web.app import create_app
    from kerf.cli.web.reported import Events
    from kerf.runtime.process.clock import SystemClock

    try:
        descriptor, bound = server.bound(port)
    except OSError as error:
        words = error.strerror or str(error)
        say(f"kerf ui: port {port}: cannot listen: {words}; --port 0 selects a free one", err=True)
        raise typer.Exit(1) from error
    boards = Boards(origin, report=lambda text: say(f"kerf ui: {text}", err=True))
    if origin.words:
        say(origin.words)
    events = Events(origin.connect, SystemClock()) if origin.connect is not None else None
    app = create_app(boards, server.hosts(bound), history, planned, events=events)
    serving = server.server(app, descriptor, bound)
    say(f"http://{server.HOST}:{bound} shows {origin.name}. Ctrl-C ends it.")
    boards.start()
    if planned is not None:
        planned.start()
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        say("")
    finally:
        boards.stop()
        serving.server_close()
