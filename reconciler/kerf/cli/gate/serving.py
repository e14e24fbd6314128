"""The page behind gunicorn: with TLS for all addresses, without it on the loopback address.

The worker is the webhook's: its threads never wait for a client.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from flask import Flask, Response
from gunicorn.app.base import BaseApplication

from kerf.cli.gate import access
from kerf.cli.gate.access import Gate
from kerf.cli.gate.claims import LONGEST_TOKEN, MOST_HEADERS
from kerf.cli.gate.metrics import PageMetrics
from kerf.cli.gate.options import Options
from kerf.cli.gate.readings import Reading, Readings, Watch
from kerf.cli.gate.reviews import Reviews
from kerf.cli.gate.viewed import ViewedBoards
from kerf.cli.web.app import create_app
from kerf.kube.client import KubeClient
from kerf.model import settings as model
from kerf.ports import Clock
from kerf.sockets import listening
from kerf_webhook import Settings, server
from kerf_webhook.certificate import Certificate

#: Threads that answer requests. A view of a large cluster takes a second of one CPU.
_THREADS: Final = 8
_BACKLOG: Final = 128
_BESIDE_TOKEN: Final = 64
#: Objects made between two searches for garbage.
_GARBAGE: Final = 50_000
#: The longest silence of the API server during a review.
_REVIEW_SECONDS: Final = 10.0
_NO_BODIES: Final = Settings(body_bytes=0)


def page(
    readings: Readings,
    reviews: Reviews,
    options: Options,
    settings: model.Settings,
    clock: Clock,
    answered: Callable[[int], None],
) -> Flask:
    """The app, behind its gate. `answered` receives the status of each answer."""
    names = options.proxy[1] if options.proxy is not None else frozenset()
    nothing = Reading.of({}, clock.now(), settings).board(frozenset())
    boards = ViewedBoards(settings.cluster_name, nothing)
    app = create_app(boards, options.hosts, scheme="http" if options.tls is None else "https")

    @app.after_request
    def counted(response: Response) -> Response:
        """Registered before the gate, so it runs after the gate's own functions, which may replace the answer."""
        answered(response.status_code)
        return response

    access.install(app, Gate(reviews, readings, names), boards)
    return app


@dataclass(frozen=True, slots=True)
class Clients:
    """The connections to the API server: `lists` at the pace of the settings, `reviews` a bounded number at once."""

    lists: KubeClient
    reviews: KubeClient


def run(
    clients: Clients, options: Options, settings: model.Settings, clock: Clock, report: Callable[[str], None]
) -> None:
    """Serve until a signal ends the process. Raises OSError, OverflowError when an address is in use."""
    metrics = PageMetrics()
    readings = Readings(clients.lists, settings, clock.now, Watch(report, metrics.failed, metrics.made))
    ask = partial(clients.reviews.request, read_seconds=_REVIEW_SECONDS)
    reviews = Reviews(ask, options.audiences, reviewed=metrics.reviewed)
    _Server(page(readings, reviews, options, settings, clock, metrics.answered), options, readings, metrics).run()


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn, configured by our options and by nothing else."""

    def __init__(self, app: Flask, options: Options, readings: Readings, metrics: PageMetrics) -> None:
        """Raises OSError, OverflowError when an address cannot be listened on."""
        self._app, self._readings, self._every = app, readings, options.refresh_seconds
        self._metrics: Final = metrics
        cert_file, key_file = options.tls or (None, None)
        serving = server.Options(options.bind, options.health_bind, cert_file, key_file, threads=_THREADS)
        self._serving: Final = serving
        certificate = None
        if options.tls is not None:
            certificate = Certificate(*options.tls, options.proxy[0] if options.proxy is not None else None)
        self._bound: Final = [f"fd://{listening(*one, _BACKLOG).detach()}" for one in server.addresses(serving)]
        #: In the order of the addresses; the worker reads them.
        self.doors: Final = server.doors(serving, certificate, _NO_BODIES, {"/metrics": metrics.text})
        super().__init__()

    def load_config(self) -> None:
        for name, value in server.configuration(self._serving).items():
            self.cfg.set(name, value)
        self.cfg.set("bind", self._bound)
        # The whole header of a token: its name, the scheme and blanks beside it.
        self.cfg.set("limit_request_field_size", LONGEST_TOKEN + _BESIDE_TOKEN)
        self.cfg.set("limit_request_fields", MOST_HEADERS)
        # A name with _ is that of a name with -, once it is a variable. A dropped one would lack in a person's reviews.
        self.cfg.set("header_map", "refuse")
        # No client sets the scheme or the path of its requests by headers, not even one on this machine.
        self.cfg.set("forwarded_allow_ips", "")
        # The worker collects the bytes of an answer: there is no socket through which the system could send a file.
        self.cfg.set("sendfile", False)
        self.cfg.set("post_worker_init", lambda worker: self._readings.start(self._every))
        self.cfg.set("worker_exit", lambda arbiter, worker: self._readings.stop())

    def load(self) -> Flask:
        # Objects of a reading and its views form no circles: a search for garbage among them takes a tenth of the CPU.
        gc.set_threshold(_GARBAGE)
        return self._app

    def dropped(self, reason: str) -> None:
        """A connection that the worker closed. There are no metrics of them."""

    def refused(self, status: HTTPStatus) -> None:
        """Count a request that the worker answered without the app."""
        self._metrics.answered(status.value)
