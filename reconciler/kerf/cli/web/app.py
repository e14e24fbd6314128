"""The addresses of the page and their templates. Every one reads the current views and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from itertools import zip_longest
from typing import Final

from flask import Flask, abort, request

from kerf.cli.answering import explained, node_page
from kerf.cli.answering.boards import Boards, Views
from kerf.cli.web import errors, live, planned, record_pages, words
from kerf.cli.web.guards import guard
from kerf.cli.web.history import History
from kerf.cli.web.pages import ROWS, Sources, number, part
from kerf.cli.web.planned import Planned
from kerf.cli.web.reported import Events
from kerf.disruption.view import view
from kerf.scheduling.facts.nodes import Needs
from kerf.views.board import Board
from kerf.views.calendar import DAYS, calendars
from kerf.views.costs import TEAM, Costs, costs
from kerf.views.order import ORDERS, Filter, listed

#: No label of Kubernetes is longer.
_LONGEST_LABEL: Final = 317


def create_app(
    boards: Views,
    hosts: Iterable[str],
    history: History | None = None,
    plan: Planned | None = None,
    *,
    scheme: str = "http",
    events: Events | None = None,
) -> Flask:
    """The page of these views. `hosts` (`name:port`) are those that a browser may ask for."""
    sources = Sources(boards, history)
    app = Flask("kerf.cli.web", static_url_path="/static")
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    words.install(app)
    guard(app, hosts, scheme)
    _lists(app, sources)
    _details(app, sources)
    record_pages.add(app, sources, events)
    planned.add(app, sources, plan)
    if isinstance(boards, Boards):
        live.add(app, boards)

    @app.get("/favicon.ico")
    def icon() -> tuple[str, int]:
        return "", HTTPStatus.NO_CONTENT

    errors.add(app, sources)
    return app


def _lists(app: Flask, sources: Sources) -> None:
    @app.get("/")
    def cluster() -> str:
        found, chosen, order = sources.board(), _filter(), request.args.get("sort", "nodepool")
        if order not in ORDERS:
            abort(HTTPStatus.BAD_REQUEST, f"sort: no such order: one of {', '.join(ORDERS)}")
        shown = part(listed(found.nodes, chosen, order), number())
        zones = sorted({row.machine.zone for row in found.nodes} - {""})
        return sources.page(
            "cluster.html", "cluster", found, part=shown, chosen=chosen, order=order, orders=tuple(ORDERS), zones=zones
        )

    @app.get("/pending")
    def pending() -> str:
        found = sources.board()
        return sources.page("pending.html", "pending", found, part=part(found.pending, number()))

    @app.get("/next")
    def upcoming() -> str:
        found = sources.board()
        shown = calendars(found.snapshot, found.budgets[:ROWS])
        lines = [list(node_page.budgets(one, found.now)) for one in found.budgets]
        pools = list(zip_longest(lines, shown))
        return sources.page("next.html", "next", found, part=part(found.disruptions, number()), pools=pools, days=DAYS)

    @app.get("/cost")
    def cost() -> str:
        label = request.args.get("label", TEAM).strip() or TEAM
        if len(label) > _LONGEST_LABEL:
            abort(HTTPStatus.BAD_REQUEST, f"label: too long: a label has at most {_LONGEST_LABEL} characters")
        found, history = sources.board(), sources.history
        past = record_pages.trends(history) if history is not None else ()
        return sources.page("cost.html", "cost", found, costs=_costs(found, label), most=ROWS, trends=past)


def _details(app: Flask, sources: Sources) -> None:
    @app.get("/nodes/<path:name>")
    def node(name: str) -> str:
        found = sources.board()
        row = found.node(name)
        if row is None:
            abort(
                HTTPStatus.NOT_FOUND,
                f"Node {name}: not in the cluster{sources.when}: choose one from the list of nodes",
            )
        why = explained.of_node(found.snapshot, name).splitlines()
        return sources.page("node.html", "cluster", found, row=row, why=why)

    @app.get("/pods/<namespace>/<path:name>")
    def pod(namespace: str, name: str) -> str:
        key, found = f"{namespace}/{name}", sources.board()
        snapshot = found.snapshot
        if key not in snapshot.pods:
            abort(
                HTTPStatus.NOT_FOUND,
                f"Pod {key}: not in the cluster{sources.when}: choose one from the list of pending pods",
            )
        node_name = snapshot.pods[key].spec.node_name
        why = explained.of_pod(snapshot, key).splitlines()
        return sources.page("pod.html", "pending", found, key=key, node=node_name, why=why)


def _filter() -> Filter:
    given = request.args
    return Filter(given.get("nodepool", ""), given.get("zone", ""), given.get("q", "").strip())


def _costs(found: Board, label: str) -> Costs:
    """The costs by a label; those by the usual one are known."""
    return found.costs if label == found.costs.label else costs(view(found.snapshot), found.nodes, Needs(), label)
