"""The page of `kerf ui` on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kerf.cli.answering.boards import Boards
from kerf.cli.web import server
from kerf.cli.web.app import create_app
from kerf.cli.web.history import History
from kerf.cli.web.planned import Planned


@contextmanager
def serving(boards: Boards, history: History | None = None, plan: Planned | None = None) -> Iterator[str]:
    """The address of the page; streams must have ended before the context does."""
    descriptor, port = server.bound(0)
    page = server.server(create_app(boards, server.hosts(port), history, plan), descriptor, port)
    thread = threading.Thread(target=page.serve_forever)
    thread.start()
    try:
        yield f"http://{server.HOST}:{port}"
    finally:
        page.shutdown()
        thread.join()
        page.server_close()
